"""Checks the indexes of a sealed segment, and rebuilds them from its batches.

Owns the checks that do not read batches, so that they can run at the first use of an index:

    the files are whole entries; the last entry of the index is within the segment; in both, the last entry is above the first

Rules
  1. An index only speeds up look-ups: any error in it is corrected by reading the headers of the batches.
  2. A rebuilt index has an entry for every `DEFAULT_INTERVAL_BYTES`. A broker writes it to the files at once.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from pathlib import Path

from barnabas.protocol.records.batch_header import BatchHeader
from barnabas.storage.index import SparseIndex

logger = logging.getLogger(__name__)

DEFAULT_INTERVAL_BYTES = 4096  # Kafka's default of `index.interval.bytes`; any other value works too


def contradiction(index: SparseIndex, time_index: SparseIndex, segment_bytes: int) -> str | None:
    """The error in the indexes of a segment of that size; None if there is none."""
    for each in (index, time_index):
        if each.has_partial_entry:
            return f"{each.path.name} ends within an entry"
        first, last = each.first(), each.last()
        if first is not None and last is not None and len(each) > 1 and (first[0] >= last[0] or first[1] >= last[1]):
            return f"{each.path.name} goes down from {first} to {last}"
    last = index.last()
    if last is not None and not 0 <= last[1] < segment_bytes:
        return f"{index.path.name} points to byte {last[1]} of {segment_bytes}"
    return None


def rebuild_indexes(
    index: SparseIndex,
    time_index: SparseIndex,
    batches: Iterable[tuple[int, BatchHeader]],
    *,
    path: Path,
    base_offset: int,
    reason: str,
) -> None:
    """Rebuild both indexes of the sealed segment at `path` from the positions and headers of its batches."""
    logger.warning("event=indexes-made-anew file=%s reason=%r", path, reason)
    for each in (index, time_index):
        each.start_empty()
    note_entries(batches, base_offset, index.append, time_index.append)
    for each in (index, time_index):
        each.write(exact=True)
        each.seal()


def note_entries(
    batches: Iterable[tuple[int, BatchHeader]],
    base_offset: int,
    note_position: Callable[[int, int], object],
    note_time: Callable[[int, int], object],
) -> None:
    """Give the entries of both indexes of a segment: relative offset and position, time and relative offset."""
    since_entry, newest, offset_of_newest, told = 0, -1, base_offset, -1
    for position, header in batches:
        if header.max_timestamp > newest:
            newest, offset_of_newest = header.max_timestamp, header.last_offset
        if since_entry > DEFAULT_INTERVAL_BYTES:
            note_position(header.last_offset - base_offset, position)
            if newest > told:
                note_time(newest, offset_of_newest - base_offset)
                told = newest
            since_entry = 0
        since_entry += header.size
    if newest > told:
        note_time(newest, offset_of_newest - base_offset)
