"""The transaction coordinator: who owns a transactional id, what its transaction is about, and how it ends."""
