"""Runs with two clusters and a mirror link between them."""
