"""The offset up to which two logs hold the same records, found with few requests. Pure: no I/O but reads of the log here.

Two clusters have leader epochs of their own, so the batches themselves are compared.

Rules
  1. Two batches are the same if their base and last offsets, lengths and CRCs are equal. In a compacted topic each side may have rewritten
     or removed batches, so the records that both sides have are compared.
  2. Once two logs differ at an offset, they differ in all that follows. So a binary search finds the offset. Two batches after that could
     be equal only if the same producer without a producer id wrote the same bytes, with the same times, to both clusters.
  3. Nothing at or past `limit` is the same: there the source took writes of its own, as it told at its promotion.
  4. Where compaction left no record that both sides have, `limit` decides; without it the logs count as different there.

How it works: the first probe is at the end of what both have, because most logs are the same. All below `_low` is the same, or outside of
one log; something at `_high` differs, or one log ends there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from barnabas.protocol.records.batch import iterate_records, split_batches
from barnabas.protocol.records.batch_header import HEADER_SIZE, BatchHeader, Buffer, read_header

PROBE_BYTES = 64 * 1024
COMPACTED_PROBE_BYTES = 1024 * 1024  # more, because a record that both sides have must be in it
READ_BYTES = 256 * 1024  # of one read of the log here
NO_LIMIT = 2**63 - 1

Read = Callable[[int], Buffer]  # whole batches here, from the one with the offset on; empty at the end of the log


class CommonPoint:
    """Searches; `position` is the offset to fetch from the source next, `receive` takes the answer.

    Args:
        start, end: of the log here.
        source_start, source_end: of the log in the source.
        limit: see rule 3; NO_LIMIT if the source does not tell it.
    """

    def __init__(
        self, read: Read, *, start: int, end: int, source_start: int, source_end: int, limit: int, is_compacted: bool
    ) -> None:
        self._read = read
        self._is_limited = limit < NO_LIMIT
        self._is_compacted = is_compacted
        self._low = max(start, source_start)
        self._high = min(end, source_end, limit)
        self._is_first = True
        self._source_start, self._source_end = source_start, source_end
        # If no batch was the same, the batch of the source at the result may begin before it, because deletion has moved a start into a
        # batch. The copy needs the first offset of that batch, so a last probe looks at it.
        self._has_last_probe = False
        self._floor = NO_LIMIT
        self._behind: dict[int, int] = {}  # offset -> a later one, with nothing in between on either side

    @property
    def is_done(self) -> bool:
        return self._is_closed and (self._has_last_probe or self._last_position >= self._source_end)

    @property
    def _is_closed(self) -> bool:
        return self._low >= self._high

    @property
    def _last_position(self) -> int:
        return max(self.offset, self._source_start)

    @property
    def offset(self) -> int:
        """The result, once `is_done`: everything below is the same. It may lie below the start of either log."""
        found = self._high
        while found in self._behind:
            found = self._behind[found]
        return min(found, self._floor)

    @property
    def position(self) -> int:
        if self._is_closed:
            return self._last_position
        return self._high - 1 if self._is_first else (self._low + self._high) // 2

    @property
    def probe_bytes(self) -> int:
        return COMPACTED_PROBE_BYTES if self._is_compacted else PROBE_BYTES

    def begins_at(self, source_start: int) -> None:
        """Retention has moved the start of the source."""
        self._low = max(self._low, min(source_start, self._high))
        self._source_start = max(self._source_start, source_start)

    def receive(self, theirs: Buffer) -> None:
        """Compare the batches of the source from `position` on, of which the first is whole, with those here.

        Raises:
            KafkaError: the batches are damaged.
        """
        if self._is_closed:
            self._floor = read_header(theirs).base_offset if len(theirs) >= HEADER_SIZE else NO_LIMIT
            self._has_last_probe = True
            return
        at, self._is_first = self.position, False
        if self._is_compacted:
            self._compare_records(at, theirs)
        else:
            self._compare_batches(at, theirs)

    def _compare_batches(self, at: int, theirs: Buffer) -> None:
        there, here = self._first_header(theirs), self._first_header(self._read(at))
        if there is None and here is None:
            self._nothing_from(at)
        elif there is not None and here is not None and _mark(there) == _mark(here):
            self._low, self._has_last_probe = min(here.last_offset + 1, self._high), True
        else:
            self._differs(at if here is None else here.base_offset, at)

    def _first_header(self, records: Buffer) -> BatchHeader | None:
        header = read_header(records) if len(records) >= HEADER_SIZE else None
        return None if header is None or header.base_offset >= self._high else header

    def _compare_records(self, at: int, theirs: Buffer) -> None:
        there, covered = {}, at
        for header, offset, content in self._records(theirs):
            covered = header.last_offset + 1
            if at <= offset < self._high:
                there[offset] = content
        here = {}
        for header, offset, content in self._records_here(at, min(max(covered, at + 1), self._high)):
            if offset in there:
                if there[offset] != content:
                    self._differs(header.base_offset, at)
                    return
                self._low, self._has_last_probe = offset + 1, True
            here[offset] = content
        if here.keys() & there.keys():
            return
        if not here and not there:
            self._nothing_from(at)
        elif self._is_limited:
            self._low, self._has_last_probe = max(self._low, min(max(covered, at + 1), self._high)), True
        else:
            self._differs(at, at)

    def _records_here(self, offset: int, end: int) -> Iterator[tuple[BatchHeader, int, Any]]:
        while offset < end:
            header = None
            for header, at, content in self._records(self._read(offset)):
                if at >= offset:
                    yield header, at, content
            if header is None:
                return
            offset = header.last_offset + 1

    def _records(self, batches: Buffer) -> Iterator[tuple[BatchHeader, int, Any]]:
        """Header, offset and content of each record."""
        for position, header in split_batches(batches, allow_partial=True):
            if header.base_offset >= self._high:
                return
            for record in iterate_records(batches, position):
                yield header, record.offset, (header.is_control, *record[1:])

    def _differs(self, base_offset: int, at: int) -> None:
        self._high = max(self._low, min(base_offset, at))

    def _nothing_from(self, at: int) -> None:
        """Neither side has a record in [at, high)."""
        self._behind[at] = self._high
        self._high = at


def _mark(header: BatchHeader) -> tuple[int, int, int, int]:
    return header.base_offset, header.last_offset, header.batch_length, header.crc
