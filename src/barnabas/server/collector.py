"""Keeping Python's garbage collector from walking over what stays.

A full pass over the logs of 5,000 partitions takes 25 to 75 ms, in which nothing else of the process runs. Nothing of a log or a partition
is in a cycle: all of it goes by counting references when its topic is deleted, so the collector need not know it.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def kept_from_collector() -> Iterator[None]:
    """For making much that stays: the collector rests, and passes over all that there is then for ever."""
    if not gc.isenabled():
        yield
        return
    gc.collect()  # what is garbage by now would be kept for ever too
    gc.disable()
    try:
        yield
        gc.freeze()
    finally:
        gc.enable()
