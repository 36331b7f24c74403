"""Stateful stream processing over topics, one way a module; see README.md."""
