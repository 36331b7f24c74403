"""Mirroring in a broker: it fetches the partitions that it leads from the source clusters of links."""
