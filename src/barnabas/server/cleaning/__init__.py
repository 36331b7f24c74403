"""Compaction in a running broker: who is cleaned when (`cleaner`), in which process (`process`, `worker`)."""
