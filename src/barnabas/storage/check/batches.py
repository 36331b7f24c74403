"""Reads the batches of one `.log` file and reports every damaged stretch of it.

Owns the classification of a segment's bytes: whole batches, damaged stretches, and the offsets of a damaged stretch.

Rules
  1. Every byte of the file belongs to a whole batch or to a stretch that a finding names.
  2. The offsets of a damaged stretch come from its neighbours: its own content cannot be trusted.
  3. A damaged batch does not end the check: it continues at the next whole one.

How it works: the file is read in large pieces; a batch costs one parse, one CRC and one check of its records. The CRC does not
cover base offset, length, leader epoch and magic. A wrong length or magic is detected because the next batch is not at the
expected place. A wrong base offset is detected because offsets neither decrease nor overlap. So a batch is held back until the
next one is read; if two contradict each other, the wrong one is the one whose neighbours are consistent without it. Leader
epochs are checked in `partition.py`.
"""

from __future__ import annotations

import errno
from collections.abc import Callable, Generator, Iterator
from pathlib import Path
from typing import NamedTuple

from msgspec import Struct, field

from barnabas.protocol.records.batch_header import (
    CRC_START,
    HEADER,
    HEADER_SIZE,
    LENGTH_OVERHEAD,
    MAGIC,
    BatchHeader,
)
from barnabas.protocol.records.crc import crc32c
from barnabas.protocol.records.record import Record, iterate_records
from barnabas.storage.batch_search import FoundBatch, is_plausible, next_batch
from barnabas.storage.check.finding import Finding, Repair
from barnabas.storage.check.record_check import fault_in_records
from barnabas.storage.files import Files

CHUNK_BYTES = 4 * 1024 * 1024  # per read
SECTOR_BYTES = 4096  # bytes skipped if the disk cannot read

Progress = Callable[[int], None]


class CheckedBatch(NamedTuple):
    """A batch of a segment or, if `whole` is False, a stretch whose batches are unknown; only its position is known."""

    position: int
    header: BatchHeader
    whole: bool
    end: int


class SegmentWalk(Struct):
    """One pass over a segment: iterate over it, then read its fields.

    Args:
        end_offset: start of the next segment, or the log end; None if unknown.
        recovery_point: records from here on may be unflushed: the next start ends the log before the first damage after it.
            Only there a tail may be cut.
        is_last: no segment follows.
        may_have_gaps: the log is compacted. Even so, a leader's active segment has no gaps, but a follower's may.
        progress: called with the number of checked bytes.
    """

    files: Files
    path: Path
    base_offset: int
    end_offset: int | None
    recovery_point: int
    progress: Progress = lambda _: None
    is_last: bool = True
    may_have_gaps: bool = False
    findings: list[Finding] = field(default_factory=list)
    size: int = 0
    whole_end: int = 0
    next_offset: int = 0  # offset after the last batch
    gaps: int = 0
    _fileno: int = -1
    _chunk: memoryview = field(default_factory=lambda: memoryview(b""))
    _chunk_start: int = 0
    # The last batch and the offset expected there; yielded once the next batch was checked.
    _held: tuple[CheckedBatch, int] | None = None

    def __iter__(self) -> Iterator[CheckedBatch]:
        self.next_offset = self.base_offset
        self._fileno = self.files.open(self.path)
        try:
            self.size = self.files.size(self._fileno)
            yield from self._walk()
        finally:
            self.files.close(self._fileno)

    def _walk(self) -> Iterator[CheckedBatch]:
        position = 0
        while position < self.size:
            data = self._whole_batch_at(position)
            if data is None:
                held, self._held = self._held, None
                if held is not None:
                    yield held[0]
                position = yield from self._damaged(position)
                continue
            header = BatchHeader._make(HEADER.unpack_from(data))
            released, header = self._in_order(position, header)
            if released is not None:
                yield released
            expected = self.next_offset
            self.gaps += header.base_offset > expected
            fault = fault_in_records(data, header)
            if fault is not None:
                self._say_batch(position, header, f"the records are not what the header says: {fault}")
            self._held = CheckedBatch(position, header, fault is None, position + len(data)), expected
            self.next_offset = header.base_offset + header.last_offset_delta + 1
            position += len(data)
            self.whole_end = position
            self.progress(len(data))
        if self._held is not None:
            yield self._last_in_order(*self._held)

    # Reading

    def records_of(self, batch: CheckedBatch) -> Iterator[Record]:
        """The records of a whole batch; only during the iteration."""
        return iterate_records(bytes(self._bytes_at(batch.position, batch.header.size)))

    def _bytes_at(self, position: int, size: int) -> memoryview:
        """`size` bytes from `position`, fewer if the file ends or the disk cannot read."""
        at = position - self._chunk_start
        if at < 0 or at + size > len(self._chunk):
            self._chunk, self._chunk_start, at = memoryview(self._read(position, max(CHUNK_BYTES, size))), position, 0
        return self._chunk[at : at + size]

    def _read(self, position: int, size: int) -> bytes:
        """The bytes from `position` on, up to the first unreadable sector."""
        try:
            return self.files.pread(self._fileno, size, position)
        except OSError as error:
            if error.errno != errno.EIO or size <= SECTOR_BYTES:
                if error.errno != errno.EIO:
                    raise
                return b""
        parts: list[bytes] = []
        while size > 0:
            part = self._read(position, min(SECTOR_BYTES - position % SECTOR_BYTES, size))
            parts.append(part)
            position, size = position + len(part), size - len(part)
            if not part:
                break
        return b"".join(parts)

    def _whole_batch_at(self, position: int) -> memoryview | None:
        """The batch that begins there, if its size is possible and its CRC matches."""
        head = self._bytes_at(position, HEADER_SIZE)
        if len(head) < HEADER_SIZE:
            return None
        length = int.from_bytes(head[8:12], "big", signed=True)
        size = length + LENGTH_OVERHEAD
        if head[16] != MAGIC or size < HEADER_SIZE or position + size > self.size:
            return None
        data = self._bytes_at(position, size)
        if len(data) < size or crc32c(data[CRC_START:]) != int.from_bytes(head[17:21], "big"):
            return None
        return data if data[23] < 0x80 else None  # no negative last offset delta

    # Offsets

    def _in_order(self, position: int, header: BatchHeader) -> tuple[CheckedBatch | None, BatchHeader]:
        """The previous batch, checked against its neighbours, and this batch's header with corrected offsets."""
        held, self._held = self._held, None
        expected = self.next_offset
        if held is None:
            return None, self._moved_up(position, header, expected)
        before, expected_before = held
        fitting_end = expected_before + before.header.last_offset_delta + 1
        if header.base_offset < expected and before.header.base_offset > expected_before and fitting_end <= header.base_offset:
            self._say_base_offset(before, expected_before, header.base_offset - 1)
            self.gaps -= 1
            self.next_offset = header.base_offset
            return before._replace(header=before.header._replace(base_offset=expected_before), whole=False), header
        return before, self._moved_up(position, header, expected)

    def _moved_up(self, position: int, header: BatchHeader, expected: int) -> BatchHeader:
        """The header with the base offset that it must have had, if its own decreases."""
        if header.base_offset >= expected:
            return header
        last = expected + header.last_offset_delta
        self._say_base_offset(CheckedBatch(position, header, True, position + header.size), expected, last)
        return header._replace(base_offset=expected)

    def _last_in_order(self, last: CheckedBatch, expected: int) -> CheckedBatch:
        """The last batch, checked against the start of the next segment."""
        is_only_gap = last.header.base_offset > expected and self.gaps == 1
        if self.end_offset is None and is_only_gap and not self.may_have_gaps:
            self._say_base_offset(last, expected, expected + last.header.last_offset_delta)
            return last._replace(whole=False)
        if self.end_offset is None or self.next_offset <= self.end_offset:
            return last
        if last.header.base_offset > expected and expected + last.header.last_offset_delta < self.end_offset:
            self._say_base_offset(last, expected, self.end_offset - 1)
            self.next_offset = self.end_offset
            return last._replace(header=last.header._replace(base_offset=expected), whole=False)
        self._say(
            last.position,
            (self.end_offset, self.next_offset - 1),
            f"the batch ends with offset {self.next_offset - 1}, but what follows begins at {self.end_offset}",
            "these offsets exist twice",
            "nothing tells which of them are right",
        )
        return last

    # Damage

    def _damaged(self, position: int) -> Generator[CheckedBatch, None, int]:
        """Report the damaged stretch that begins at `position`; returns the position to continue at."""
        head = self._bytes_at(position, HEADER_SIZE)
        header = BatchHeader._make(HEADER.unpack(head)) if len(head) == HEADER_SIZE else None
        following = self._following(position)
        stop = following.position if following else self.size
        self.progress(stop - position)
        unreadable = self._is_unreadable(position, stop)
        if following is None and not self.is_last and self.next_offset == self.end_offset and not unreadable:
            self._say_rest(position)
            return stop
        bound = following.header.base_offset if following else self.end_offset
        was_not_synced = self.next_offset >= self.recovery_point and not unreadable
        first, last = self._offsets_within(header, bound, stop - position)
        what = "the disk cannot read it" if unreadable else self._what_is_wrong(position, header, stop)
        if was_not_synced and following is None and self.is_last and bound is None:
            self._say_torn(position, stop - position, what)
        else:
            loss, why_not = "these records cannot be read", "their bytes are not what was written"
            if was_not_synced:
                loss += f"; the next start ends the log at offset {self.next_offset} and removes all that follows, for nothing " \
                    f"past the recovery point {self.recovery_point} was said to be on the disk"  # fmt: skip
                why_not = "whole batches follow, which would be lost: copy the folder before the next start, if they matter"
            self._say(position, (first, last), what, loss, why_not)
            if header is not None:
                yield CheckedBatch(position, header._replace(base_offset=first), False, stop)
        if last is not None:
            self.next_offset = last + 1 if following is None else self.next_offset
        if following is not None:
            self.next_offset = following.header.base_offset
        return stop

    def _following(self, position: int) -> FoundBatch | None:
        """The next whole batch after the damaged one at `position`."""
        try:
            return next_batch(self.files, self._fileno, position + 1, self.size, self.next_offset)
        except OSError as error:
            if error.errno != errno.EIO:
                raise
        start = position
        while start < self.size:  # some sectors cannot be read: search after them
            start += SECTOR_BYTES - start % SECTOR_BYTES
            if not self._read(start, 1):
                continue
            try:
                return next_batch(self.files, self._fileno, start, self.size, self.next_offset)
            except OSError as error:
                if error.errno != errno.EIO:
                    raise
        return None

    def _is_unreadable(self, position: int, stop: int) -> bool:
        return len(self._read(position, stop - position)) < stop - position

    def _offsets_within(self, header: BatchHeader | None, bound: int | None, size: int) -> tuple[int, int | None]:
        """First and last offset of a damaged stretch, the last None if unknown; `bound`: the next offset after it."""
        first = self.next_offset
        if bound is not None and header is not None and header.size != size:
            return first, bound - 1
        if header is None or not is_plausible(header, 0, header.size, first):
            return first, None if bound is None else bound - 1
        is_consistent = header.records_count == header.last_offset_delta + 1
        if not is_consistent or (bound is not None and header.next_offset > bound):
            return first, None if bound is None else bound - 1
        return (header.base_offset if self.gaps else first), header.last_offset

    def _what_is_wrong(self, position: int, header: BatchHeader | None, stop: int) -> str:
        size = stop - position
        if header is None:
            return f"the last {size} bytes are not a whole batch"
        if size <= self.size and self._crc_over(position, size) == header.crc:
            if header.magic != MAGIC:
                return f"the magic is {header.magic}, where it must be {MAGIC}; the CRC fits"
            if header.size != size:
                return f"the length is {header.batch_length}, where the CRC fits {size - LENGTH_OVERHEAD}"
        if header.magic == MAGIC and header.size == size:
            return "the CRC does not match"
        if header.magic == MAGIC and position + header.size > self.size:
            return f"the batch of {header.size} bytes goes past the end of the file, {size} bytes are left"
        return f"{size} bytes are no whole batch"

    def _crc_over(self, position: int, size: int) -> int:
        return int(crc32c(self._bytes_at(position, size)[CRC_START:]))

    # Findings

    def _say_torn(self, position: int, size: int, what: str) -> None:
        self._say(
            position,
            (self.next_offset, None),
            f"{what}; nothing whole follows, and all {size} bytes lie past the recovery point {self.recovery_point}",
            "records that were not said to be on the disk; the next start cuts them off",
            repair=Repair.CUT_TAIL,
            mended=True,
        )

    def _say_rest(self, position: int) -> None:
        self.findings.append(
            Finding(
                self.path,
                f"{self.size - position} bytes follow its records, and the next segment begins where these end",
                "nothing is lost: the disk refused the rest of this write",
                position,
                repair=Repair.CUT_TAIL,
                mended=self.next_offset >= self.recovery_point,
            )
        )

    def _say_base_offset(self, batch: CheckedBatch, expected: int, last: int) -> None:
        self._say(
            batch.position,
            (expected, last),
            f"the base offset is {batch.header.base_offset}, where its neighbours leave room for {expected} to {last}",
            "these records are not found by their offsets",
            "the CRC does not cover the base offset, so what it was is a conclusion",
        )

    def _say_batch(self, position: int, header: BatchHeader, what: str) -> None:
        offsets = header.base_offset, header.last_offset
        self._say(position, offsets, what, "consumers may refuse the batch", "the CRC fits, so it was written like this")

    def _say(
        self,
        position: int,
        offsets: tuple[int, int | None],
        what: str,
        loss: str,
        why_not: str = "",
        repair: Repair | None = None,
        mended: bool = False,
    ) -> None:
        self.findings.append(Finding(self.path, what, loss, position, *offsets, repair, why_not, mended))
