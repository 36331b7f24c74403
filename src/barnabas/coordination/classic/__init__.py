"""The classic group protocol: the clients assign partitions, the coordinator keeps the members in step."""
