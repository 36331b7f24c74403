"""Connectors, beside Kafka Connect."""
