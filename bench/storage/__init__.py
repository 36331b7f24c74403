"""Measures the costs of storage under load: compaction, cold reads, many partitions, syncs; `python -m bench.storage`."""
