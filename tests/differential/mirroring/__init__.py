"""Compares a copy of a mirror link with its source: every batch, over the wire, in data folders and with Kafka's dump tool."""
