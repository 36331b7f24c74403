"""Reads rows of tables or of a query again and again, as Confluent's JDBC source does."""
