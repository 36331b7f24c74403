"""TLS under a connection: the handshake, decryption into the connection's buffers, and encryption of its outbox."""
