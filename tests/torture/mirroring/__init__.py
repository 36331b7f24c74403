"""Torments two clusters with a mirror link, and the network between them, and compares the copies with their sources."""
