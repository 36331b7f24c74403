"""Walks over the batches of a segment, header by header."""

from __future__ import annotations

import errno
from collections.abc import Iterator

from barnabas.errors import CorruptLog
from barnabas.protocol.records.batch_header import CRC_START, HEADER, HEADER_SIZE, LENGTH_OVERHEAD, MAGIC, BatchHeader
from barnabas.protocol.records.crc import crc32c
from barnabas.storage.segment.segment_file import SegmentFile
from barnabas.storage.verify import measure

BASE_OFFSET_BYTES = 8  # the first bytes of a batch header
WALK_BYTES = 8 * 1024  # per read when only headers are read: two index intervals


class BatchScan:
    """The batches of one segment, one after the other."""

    __slots__ = ("_segment",)

    def __init__(self, segment: SegmentFile) -> None:
        self._segment = segment

    def batch_size(self, position: int) -> int:
        """Bytes of the batch at `position`; if it is damaged, at least those of a header and at most the rest of the segment."""
        segment = self._segment
        data = segment.files.pread(segment.fileno, LENGTH_OVERHEAD, position)
        size = int.from_bytes(data[8:12], "big", signed=True) + LENGTH_OVERHEAD
        return min(max(size, HEADER_SIZE), segment.size - position)

    def base_offset_at(self, position: int) -> int | None:
        """The base offset in the header of the batch at `position`; None if it is not in memory. Raises as `_read`."""
        try:
            data = self._read_now(HEADER_SIZE, position)
        except BlockingIOError:
            return None
        return int.from_bytes(data[:BASE_OFFSET_BYTES], "big", signed=True)

    def walk(self, position: int = 0, *, waits: bool = True, first_bytes: int = WALK_BYTES) -> Iterator[tuple[int, BatchHeader]]:
        """Positions and headers from the batch at `position` on.

        Args:
            waits: wait for the disk; otherwise a header that is not in memory ends the walk.
            first_bytes: size of the first read; one header, if the first header usually answers the question.

        Raises:
            CorruptLog: the bytes are not a batch.
            BlockingIOError: the next header is not in memory.
        """
        segment = self._segment
        data: bytes | bytearray = b""
        start, size, read = position, first_bytes, self._read if waits else self._read_now
        while position < segment.size:
            if position + HEADER_SIZE > start + len(data):
                data, start, size = read(min(size, segment.size - position), position), position, WALK_BYTES
                if len(data) < HEADER_SIZE:
                    raise CorruptLog(str(segment.path), position, "a header is cut off")
            header = BatchHeader._make(HEADER.unpack_from(data, position - start))
            end = position + header.batch_length + LENGTH_OVERHEAD
            if header.magic != MAGIC or header.batch_length < HEADER_SIZE - LENGTH_OVERHEAD or end > segment.size:
                raise CorruptLog(str(segment.path), position, "no batch header")
            yield position, header
            position = end

    def _read(self, size: int, position: int) -> bytes:
        """Bytes of a batch; if the disk cannot read that many, those of a header.

        Raises:
            CorruptLog: the disk cannot read a header there.
        """
        segment = self._segment
        try:
            return segment.files.pread(segment.fileno, size, position)
        except OSError as error:
            if error.errno != errno.EIO:
                raise
        try:
            return segment.files.pread(segment.fileno, min(size, HEADER_SIZE), position)
        except OSError as error:
            if error.errno != errno.EIO:
                raise
            raise CorruptLog(str(segment.path), position, "the disk cannot read it") from error

    def _read_now(self, size: int, position: int) -> bytes | bytearray:
        """Bytes of a batch that are in memory, at least a header; as `_read` if the platform cannot tell.

        Raises:
            BlockingIOError: they are not in memory.
        """
        segment = self._segment
        data = bytearray(size)
        try:
            got = segment.files.preadv_nowait(segment.fileno, (data,), position)
        except BlockingIOError:
            raise
        except OSError:
            return self._read(size, position)
        if got < min(size, HEADER_SIZE):
            raise BlockingIOError
        del data[got:]
        return data

    def walk_around(self, position: int = 0) -> Iterator[tuple[int, BatchHeader]]:
        """As `walk`, but skips damaged bytes."""
        segment = self._segment
        least_offset = segment.base_offset
        while position < segment.size:
            try:
                for position, header in self.walk(position):  # noqa: B020 - the next walk starts at `position`
                    yield position, header
                    least_offset = header.next_offset
                return
            except CorruptLog as error:
                damage = measure(segment.files, segment.fileno, error.position, least_offset, error.reason, segment.size)
                position = damage.end

    def read_batch(self, position: int, header: BatchHeader) -> bytes:
        """The bytes of a batch.

        Raises:
            CorruptLog: its CRC does not match.
        """
        data = self._read(header.size, position)
        if len(data) < header.size or crc32c(memoryview(data)[CRC_START:]) != header.crc:
            raise CorruptLog(
                str(self._segment.path), position, f"the CRC of the batch at offset {header.base_offset} does not match"
            )
        return data
