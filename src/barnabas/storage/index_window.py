"""Neighbouring entries of an offset index in memory, for sequential readers.

Rules
  1. A window answers only for keys between its first and its last entry, so it does not depend on entries outside.
  2. It never changes. A truncation of the index drops it (`SparseIndex`).
  3. The number of indexes with windows is bounded over all logs (`OpenFiles.keep_windows`).
"""

from __future__ import annotations

import sys
from array import array
from bisect import bisect_right
from collections.abc import Iterable
from typing import NamedTuple

WINDOW_ENTRIES = 512  # 4 kB of the file, for at least 2 MiB of a log: two to ten reads of a consumer
MAX_WINDOWS = 4  # per index, so four readers at different places of a segment get one each


class IndexWindow(NamedTuple):
    """Entry i is (keys[i], values[i]); both go up."""

    keys: array[int]
    values: array[int]


def window_of(data: bytes) -> IndexWindow:
    """The window of whole entries, as the file has them: pairs of int32, big-endian."""
    numbers = array("i")
    numbers.frombytes(data)
    if sys.byteorder == "little":
        numbers.byteswap()
    return IndexWindow(numbers[0::2], numbers[1::2])


def floor_in(windows: Iterable[IndexWindow], column: int, bound: int) -> tuple[int, int] | None:
    """The last entry whose number in `column` (0: key, 1: value) is at or below `bound`; None if no window can tell."""
    for window in windows:
        numbers = window[column]
        if numbers[0] <= bound < numbers[-1]:
            slot = bisect_right(numbers, bound) - 1
            return window.keys[slot], window.values[slot]
    return None
