"""Produce beyond the plain append: requests that wait, that repeat, and that belong to a transaction."""
