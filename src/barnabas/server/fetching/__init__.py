"""Fetches: their sessions, the look at their partitions, waiting, and reading from the disk before the answer."""
