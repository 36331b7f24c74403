"""Groups of the consumer protocol (KIP-848): the coordinator assigns partitions, and each member takes them over at its own
pace."""
