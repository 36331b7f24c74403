"""Formats and databases of Spark as connectors."""
