"""Transforms of single records, and predicates, by Kafka Connect's class names, over whole batches of Arrow columns."""
