"""Verifies a data folder offline: finds errors, and repairs those that can be repaired without loss.

Reading order: `finding.py` (the form of results), `batches.py` (a `.log` file), `index_check.py` (the files beside it),
`partition.py` (a partition's folder), `directory.py` (a data folder), `repair.py` (the repairs). Everything reads through
`Files`; only `repair.py` writes.
"""
