"""TLS under a connection: the handshake, decryption into its buffers, encryption of what its outbox sends."""
