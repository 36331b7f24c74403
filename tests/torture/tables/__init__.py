"""Scans of tables while transactions, compaction and retention run and the broker is killed: each must equal a consumer."""
