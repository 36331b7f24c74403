"""Produce beyond the plain append: requests that wait, that come again and again, and that are part of a transaction."""
