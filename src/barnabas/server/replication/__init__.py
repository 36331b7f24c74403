"""Replication's shell: fetchers of followed partitions, and the way of in-sync changes to the controller."""
