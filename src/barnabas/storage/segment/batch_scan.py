"""Going over the batches of a segment, header by header; and what is found out about a segment only when somebody asks.

Ugly: what of a sealed segment is not known yet are fields that are not set. `__getattr__`, which Python asks only for those, finds them
out; so the active segment's appends pay nothing for it, and a segment that nobody reads takes a few hundred bytes of memory. An index that
contradicts its segment is noticed, and made anew, at that moment.
"""

from __future__ import annotations

import errno
from array import array
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from barnabas.errors import CorruptLog
from barnabas.protocol.records.batch_header import CRC_START, HEADER, HEADER_SIZE, LENGTH_OVERHEAD, MAGIC, BatchHeader
from barnabas.protocol.records.crc import crc32c
from barnabas.storage.index_repair import contradiction, rebuild_indexes
from barnabas.storage.integrity import SegmentIntegrity
from barnabas.storage.segment.file_names import ABORTED_SUFFIX
from barnabas.storage.segment.segment_file import NO_TIMESTAMP, SegmentFile
from barnabas.storage.verify import measure

BASE_OFFSET_BYTES = 8  # of a batch's header, the first
WALK_BYTES = 8 * 1024  # read at once when walking over headers: two index intervals


class ScannedSegment(SegmentFile):
    """A segment whose batches can be gone over."""

    __slots__ = ()

    if not TYPE_CHECKING:  # a type checker would take any name for a field

        def __getattr__(self, name: str) -> Any:
            find_out = FOUND_OUT_LATER.get(name)
            if find_out is None:
                raise AttributeError(name)
            find_out(self)
            return object.__getattribute__(self, name)

    def knows(self, name: str) -> bool:
        """Whether a field that is found out late is there already."""
        try:
            object.__getattribute__(self, name)
        except AttributeError:
            return False
        return True

    def batch_size(self, position: int) -> int:
        """Bytes of the batch at `position`; where it is damaged, at least those of a header and at most what is left."""
        data = self.files.pread(self.fileno, LENGTH_OVERHEAD, position)
        size = int.from_bytes(data[8:12], "big", signed=True) + LENGTH_OVERHEAD
        return min(max(size, HEADER_SIZE), self.size - position)

    def base_offset_at(self, position: int) -> int | None:
        """That of the batch at `position`, as it says itself; None where it is not in memory. Raises as `_read`."""
        try:
            data = self._read_now(HEADER_SIZE, position)
        except BlockingIOError:
            return None
        return int.from_bytes(data[:BASE_OFFSET_BYTES], "big", signed=True)

    def walk(self, position: int = 0, *, waits: bool = True, first_bytes: int = WALK_BYTES) -> Iterator[tuple[int, BatchHeader]]:
        """Positions and headers from the batch at `position` on.

        Args:
            waits: for the disk; otherwise a header that is not in memory ends it.
            first_bytes: to read at first; those of a header, where the first one mostly tells what is asked.

        Raises:
            CorruptLog: what lies there is not a batch.
            BlockingIOError: the next header is not in memory.
        """
        data: bytes | bytearray = b""
        start, size, read = position, first_bytes, self._read if waits else self._read_now
        while position < self.size:
            if position + HEADER_SIZE > start + len(data):
                data, start, size = read(min(size, self.size - position), position), position, WALK_BYTES
                if len(data) < HEADER_SIZE:
                    raise CorruptLog(str(self.path), position, "a header is cut off")
            header = BatchHeader._make(HEADER.unpack_from(data, position - start))
            end = position + header.batch_length + LENGTH_OVERHEAD
            if header.magic != MAGIC or header.batch_length < HEADER_SIZE - LENGTH_OVERHEAD or end > self.size:
                raise CorruptLog(str(self.path), position, "no batch header")
            yield position, header
            position = end

    def _read(self, size: int, position: int) -> bytes:
        """Bytes of a batch; where the disk cannot read that many, those of a header.

        Raises:
            CorruptLog: the disk does not give a header's bytes there.
        """
        try:
            return self.files.pread(self.fileno, size, position)
        except OSError as error:
            if error.errno != errno.EIO:
                raise
        try:
            return self.files.pread(self.fileno, min(size, HEADER_SIZE), position)
        except OSError as error:
            if error.errno != errno.EIO:
                raise
            raise CorruptLog(str(self.path), position, "the disk cannot read it") from error

    def _read_now(self, size: int, position: int) -> bytes | bytearray:
        """Bytes of a batch that are in memory, a header at least; as `_read` where the platform cannot tell.

        Raises:
            BlockingIOError: they are not.
        """
        data = bytearray(size)
        try:
            got = self.files.preadv_nowait(self.fileno, (data,), position)
        except BlockingIOError:
            raise
        except OSError:
            return self._read(size, position)
        if got < min(size, HEADER_SIZE):
            raise BlockingIOError
        del data[got:]
        return data

    def walk_around(self, position: int = 0) -> Iterator[tuple[int, BatchHeader]]:
        """As `walk`, stepping over what is damaged."""
        least_offset = self.base_offset
        while position < self.size:
            try:
                for position, header in self.walk(position):  # noqa: B020 - it goes on where the walk ended
                    yield position, header
                    least_offset = header.next_offset
                return
            except CorruptLog as error:
                damage = measure(self.files, self.fileno, error.position, least_offset, error.reason, self.size)
                position = damage.end

    def read_batch(self, position: int, header: BatchHeader) -> bytes:
        """The bytes of a batch.

        Raises:
            CorruptLog: its CRC does not match.
        """
        data = self._read(header.size, position)
        if len(data) < header.size or crc32c(memoryview(data)[CRC_START:]) != header.crc:
            raise CorruptLog(str(self.path), position, f"the CRC of the batch at offset {header.base_offset} does not match")
        return data

    def load_first_timestamp(self) -> int | None:
        """Time of the first batch; None while the segment is empty."""
        if self.first_timestamp is None and self.size:
            _, header = next(self.walk_around(), (0, None))
            self.first_timestamp = header.max_timestamp if header is not None else None
        return self.first_timestamp

    def drop_name_suffix(self) -> None:
        """Its files have their own names now."""
        self.name_suffix = ""
        self.index, self.time_index = self.make_indexes()
        self._open_indexes()

    def doubt_all(self) -> None:
        """What is there now came from the disk: it is verified before it is served."""
        self.integrity = SegmentIntegrity(self.files, self.size, self.end_offset)

    def _open_indexes(self) -> None:
        """Take the indexes of a sealed segment as their files have them, unless that cannot be."""
        self.index, self.time_index = self.make_indexes()
        if not self.has_index_files:
            for index in (self.index, self.time_index):
                index.start_empty()
            return
        self.index.load_sealed()
        self.time_index.load_sealed()
        wrong = contradiction(self.index, self.time_index, self.size)
        if wrong is not None:
            self._mend_indexes(wrong)

    def _mend_indexes(self, reason: str) -> None:
        """Make the indexes anew, which contradict the segment."""
        rebuild_indexes(
            self.index, self.time_index, self.walk_around(), path=self.path, base_offset=self.base_offset, reason=reason
        )

    def _look_for_aborted(self) -> None:
        self.has_aborted = self.files.exists(self.directory / self.name_of(ABORTED_SUFFIX))

    def _open_max_timestamp(self) -> None:
        last = self.time_index.last()
        self.max_timestamp = last[0] if last else NO_TIMESTAMP
        self.offset_of_max_timestamp = self.base_offset + (last[1] if last else 0)

    def _open_written_ms(self) -> None:
        self.written_ms = self.files.modified_ms(self.path)

    def _open_recent(self) -> None:
        self._recent_last, self._recent_positions = array("q"), array("q")


FOUND_OUT_LATER: dict[str, Callable[[ScannedSegment], None]] = {
    "has_aborted": ScannedSegment._look_for_aborted,
    "index": ScannedSegment._open_indexes,
    "time_index": ScannedSegment._open_indexes,
    "max_timestamp": ScannedSegment._open_max_timestamp,
    "offset_of_max_timestamp": ScannedSegment._open_max_timestamp,
    "_recent_last": ScannedSegment._open_recent,
    "_recent_positions": ScannedSegment._open_recent,
    "integrity": ScannedSegment.doubt_all,
    "written_ms": ScannedSegment._open_written_ms,
}
