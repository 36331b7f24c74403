"""Verifying a data folder offline: what is wrong in it, and what of that can be put right without losing anything.

Reading order: `finding.py` (what is said), `batches.py` (a `.log` file), `index_check.py` (what stands beside it), `partition.py` (a
partition's folder), `directory.py` (a data folder), `repair.py` (what may be done). Everything reads through `Files`; only
`repair.py` writes.
"""
