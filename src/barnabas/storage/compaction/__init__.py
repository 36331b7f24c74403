"""Compaction: rewrites a log so that only the last record of each key is left.

    choose.py            the dirtiest log, and how far it may be cleaned
    task.py              the input of a cleaning as plain data, sent to the cleaner process
    cleaner.py           the cleaning itself: a pass over the dirty part that records the last offset of each key, then a pass over
                         everything that writes the retained records
    batch_retention.py   retention of a batch because of its transaction or its producer
    plain.py             the two passes over the records of a chunk, in plain Python
    compiled.py          the same on arrays, with the loops of kernels.py (numpy and numba, where they are installed)
    output.py            the files of a cleaned segment
    swap.py              how they replace the old ones, safe against a crash at any point

This package does not depend on the broker, the event loop or the clock. Offsets, order, keys, values and times never change.
"""
