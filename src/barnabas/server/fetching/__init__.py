"""Fetches: their sessions, the look at their partitions, the wait for records, and the read from the disk before the answer."""
