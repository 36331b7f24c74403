"""The TLS code that brokers and clients share: key stores, contexts, names in certificates, a private authority."""
