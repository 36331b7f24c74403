"""Rows to records, and their transactions."""
