"""Replication on this broker: the fetchers of followed partitions, and the requests to change in-sync replicas."""
