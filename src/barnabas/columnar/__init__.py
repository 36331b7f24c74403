"""Record batches as Arrow columns and back, in bulk: `decode` for readers, `encode` for writers, `codecs` for compressed batches.

Depends on neither Spark nor sockets. Its users are `pipelines` and `tables`.
"""
