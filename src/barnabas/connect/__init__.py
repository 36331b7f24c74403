"""Connectors: sources that bring records into topics, and sinks that bring them out, behind Kafka Connect's own interface."""
