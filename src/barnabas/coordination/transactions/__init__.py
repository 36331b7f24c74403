"""The transaction coordinator: the owners of transactional ids, the partitions of transactions, and their ends."""
