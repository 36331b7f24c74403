"""The sink of Apache Iceberg tables."""
