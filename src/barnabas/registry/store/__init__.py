"""The stores of the registry's records: a compacted topic (`topic.py`), and a fake in memory (`memory.py`)."""
