"""Captures the changes of a PostgreSQL database: a snapshot, then the stream of a replication slot."""
