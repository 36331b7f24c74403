"""The sink of Delta Lake tables."""
