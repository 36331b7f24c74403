"""Transactions in the server: producer ids, partitions that join, and the writing of markers."""
