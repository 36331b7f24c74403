"""The topics of Kafka Connect: followed, and written in transactions."""
