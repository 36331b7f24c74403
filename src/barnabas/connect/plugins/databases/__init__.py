"""Connections to databases: their addresses, their types, and statements that differ between them."""
