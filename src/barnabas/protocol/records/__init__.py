"""Record batches: the bytes that clients produce, the log stores and clients fetch."""
