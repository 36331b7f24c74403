"""Kills the parts of the engine, the broker and the SQL server while views follow their tables."""
