"""Keeps the result of a query as its tables change: from the changes of the tables come the changes of the result. No Kafka, no Spark."""
