"""Clients and tools of others against the broker."""
