"""Converters between the bytes of records and the columns that connectors work with, by Kafka Connect's class names."""
