"""Logging in with SASL: handles the frames of a connection until its principal is known."""
