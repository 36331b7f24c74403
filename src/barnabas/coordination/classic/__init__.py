"""The classic group protocol: the clients assign partitions, the coordinator synchronises the members."""
