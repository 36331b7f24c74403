"""Connectors from the command line: over the REST interface of barnabas or of Kafka Connect."""
