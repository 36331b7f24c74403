"""Measures what storage costs while it works: compaction, cold reads, many partitions, syncs; `python -m bench.storage`."""
