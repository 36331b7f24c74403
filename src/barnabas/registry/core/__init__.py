"""The registry without I/O: the registered schemas (`state.py`), and the commands, which return records to write and an answer
(`registry.py`)."""
