"""Where the registry keeps its records: a compacted topic (`topic.py`), with a fake in memory (`memory.py`)."""
