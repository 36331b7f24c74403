"""Logging in with SASL: what stands before a connection's requests until it is known who sends them."""
