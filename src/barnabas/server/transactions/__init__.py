"""Transactions in the server: producer ids, partitions that join, markers that are written."""
