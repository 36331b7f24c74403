"""The registry without I/O: what is registered (`state.py`), and commands that answer with records to write (`registry.py`)."""
