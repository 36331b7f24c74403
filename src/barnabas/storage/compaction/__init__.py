"""Compaction: a log rewritten so that of each key only the last record is left.

    choose.py            which log is the dirtiest, and how far it may be cleaned
    task.py              everything a cleaning needs to know, as plain data: what goes to the cleaner process
    cleaner.py           the cleaning itself: a pass over the dirty part that notes the last offset of each key, then a pass
                         over everything that writes what is to stay
    batch_retention.py   what becomes of a batch because of its transaction or its producer
    plain.py             the two passes over the records of a chunk, in plain Python
    compiled.py          the same on arrays, with the loops of kernels.py (numpy and numba, where they are installed)
    output.py            the files of a cleaned segment
    swap.py              how they take the place of the old ones, at whatever point a crash comes

Nothing here knows the broker, the event loop or the clock. Offsets, order, keys, values and times never change.
"""
