"""What brokers and clients share of TLS: key stores, contexts, names in certificates, a private authority."""
