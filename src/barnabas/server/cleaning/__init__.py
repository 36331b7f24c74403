"""Compaction in a running broker: the choice of logs (`cleaner`), and the process that cleans them (`process`, `worker`)."""
