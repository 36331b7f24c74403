"""Writes records into tables of a database, exactly once."""
