"""The flow that keeps views, without Kafka and Spark."""
