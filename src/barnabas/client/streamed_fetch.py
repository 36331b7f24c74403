"""A Fetch response that is read while it arrives: its records go to a receiver piece by piece, so its size costs no memory.

`FetchStream` has no I/O. A connection feeds it the bytes of one frame. It says how many bytes it needs next, and it uses as many as it can.

Rules
  1. Records come as whole batches, in pieces of about `PIECE_BYTES`. Records of a partition that are not larger come in one piece.
  2. A batch that is cut off at the end of a partition is left out.
  3. A view of records is valid during the call only.
  4. Lengths are checked against the size of the frame before anything is read.
"""

from __future__ import annotations

from collections.abc import Generator
from struct import Struct
from struct import error as StructError
from typing import Any, Protocol
from uuid import UUID

from barnabas.client.wire import Wire
from barnabas.errors import MalformedMessage
from barnabas.protocol.codec import read_varint, skip_tagged_fields
from barnabas.protocol.records.batch_header import HEADER_SIZE, LENGTH_OVERHEAD

PIECE_BYTES = 512 * 1024
STREAM_BYTES = 2 * PIECE_BYTES
FIRST_VERSION = 4  # earlier ones have message sets of old formats
FIRST_SESSION_VERSION, FIRST_FLEXIBLE_VERSION, FIRST_TOPIC_ID_VERSION = 7, 12, 13
HEAD_BYTES = 4096  # more than the fields of a partition before its records, without aborted transactions
DIVERGING_EPOCH_TAG = 0
_THROTTLE, _SESSION = Struct(">i"), Struct(">hi")
_PARTITION_4, _PARTITION_5 = Struct(">ihqq"), Struct(">ihqqq")
_I32, _LENGTH, _EPOCH_END = Struct(">i"), Struct(">h"), Struct(">iq")
_ABORTED_BYTES, _REPLICA_BYTES = 16, 4
_FIRST_REPLICA_VERSION = 11

Reading = Generator[int, memoryview, None]


class FetchReceiver(Protocol):
    """Takes the parts of a response in their order. It must not raise."""

    def begins(self) -> None:
        """The first bytes have arrived."""
        ...

    def partition_begins(
        self, topic: str | UUID, index: int, error_code: int, high_watermark: int, log_start_offset: int, size: int
    ) -> None:
        """The values of a partition; `size` is the number of bytes of its records."""
        ...

    def records(self, batches: memoryview) -> None:
        """Whole batches of the partition that began last."""
        ...

    def partition_ends(self, *, has_diverged: bool) -> None:
        """The partition has no more records."""
        ...


class FetchStream:
    """One response.

    Attributes:
        wanted: the next bytes needed, unless the frame ends before.
        throttle_ms, error_code, session_id: of the response, once its beginning was read.
    """

    def __init__(self, receiver: FetchReceiver) -> None:
        self._receiver = receiver
        self._view = memoryview(b"")
        self._at = self._left = self._version = 0
        self._reading: Reading | None = None
        self.wanted = HEAD_BYTES
        self.throttle_ms = self.error_code = self.session_id = 0
        self.is_done = False

    def begin(self, version: int, size: int) -> None:
        """The body of the response has `size` bytes in a version of the protocol."""
        self._version, self._left = version, size
        self._receiver.begins()
        self._reading = self._read()
        next(self._reading)

    def feed(self, view: memoryview) -> int:
        """Use bytes, of which the first is the first unused one; returns how many were used.

        Raises:
            MalformedMessage: the bytes are no Fetch response.
        """
        assert self._reading is not None, "begun"
        try:
            return self._reading.send(view)
        except StopIteration:
            self.is_done = True
            return self._at
        except (IndexError, ValueError, StructError) as error:
            raise MalformedMessage("FetchResponse", self._version, str(error)) from error
        finally:
            self._view = memoryview(b"")

    def _read(self) -> Reading:
        self._view = yield 0
        yield from self._need(HEAD_BYTES)
        (self.throttle_ms,) = self._unpack(_THROTTLE)
        if self._version >= FIRST_SESSION_VERSION:
            self.error_code, self.session_id = self._unpack(_SESSION)
        for _ in range(self._count()):
            yield from self._need(HEAD_BYTES)
            topic = self._topic()
            for _ in range(self._count()):
                yield from self._read_partition(topic)
            yield from self._need(HEAD_BYTES)
            self._tags({})
        yield from self._need(self._left)
        self._tags({})
        if self._left:
            raise ValueError(f"{self._left} bytes left over")

    def _read_partition(self, topic: str | UUID) -> Reading:
        yield from self._need(HEAD_BYTES)
        start = -1
        if self._version >= 5:
            index, error, high_watermark, _, start = self._unpack(_PARTITION_5)
        else:
            index, error, high_watermark, _ = self._unpack(_PARTITION_4)
        aborted_bytes = _ABORTED_BYTES + (self._version >= FIRST_FLEXIBLE_VERSION)
        for _ in range(self._count()):
            yield from self._need(HEAD_BYTES)
            self._skip(aborted_bytes)
        yield from self._need(HEAD_BYTES)
        if self._version >= _FIRST_REPLICA_VERSION:
            self._skip(_REPLICA_BYTES)
        size = self._count()
        self._receiver.partition_begins(topic, index, error, high_watermark, start, size)
        yield from self._read_records(size)
        diverging: list[bool] = []
        yield from self._need(HEAD_BYTES)
        self._tags({DIVERGING_EPOCH_TAG: lambda value, _at, _message: _note_diverging(value, diverging)})
        self._receiver.partition_ends(has_diverged=any(diverging))

    def _read_records(self, size: int) -> Reading:
        while size >= HEADER_SIZE:
            yield from self._need(min(size, PIECE_BYTES))
            end = self._whole_batches(min(size, len(self._view) - self._at))
            if not end:
                first = self._batch_bytes(0)
                if first > size:
                    break
                yield from self._need(first)  # a batch that is larger than a piece
                end = first
            self._receiver.records(self._view[self._at : self._at + end])
            self._skip(end)
            size -= end
        while size:  # the rest is cut off
            yield from self._need(1)
            part = min(size, len(self._view) - self._at)
            self._skip(part)
            size -= part

    def _whole_batches(self, size: int) -> int:
        """The end of the last whole batch of the next `size` bytes."""
        position = 0
        while position + HEADER_SIZE <= size:
            end = position + self._batch_bytes(position)
            if end > size:
                break
            position = end
        return position

    def _batch_bytes(self, position: int) -> int:
        (length,) = _I32.unpack_from(self._view, self._at + position + 8)
        if length + LENGTH_OVERHEAD < HEADER_SIZE:
            raise ValueError(f"a batch of {length + LENGTH_OVERHEAD} bytes")
        return int(length) + LENGTH_OVERHEAD

    # Bytes

    def _need(self, size: int) -> Reading:
        """Have this many bytes from the position on, or all that the frame still has."""
        size = min(size, self._left)
        while len(self._view) - self._at < size:
            used, self._at = self._at, 0
            self.wanted = size
            self._view = yield used

    def _skip(self, size: int) -> None:
        if not 0 <= size <= self._left:
            raise ValueError(f"{size} bytes where {self._left} are left")
        self._at += size
        self._left -= size

    def _unpack(self, layout: Struct) -> tuple[int, ...]:
        at = self._at
        self._skip(layout.size)
        return layout.unpack_from(self._view, at)

    def _count(self) -> int:
        """The length of an array or of records; 0 for null."""
        if self._version < FIRST_FLEXIBLE_VERSION:
            (count,) = self._unpack(_I32)
        else:
            value, end = read_varint(self._view, self._at)
            self._skip(end - self._at)
            count = value - 1
        if count > self._left:
            raise ValueError(f"{count} elements where {self._left} bytes are left")
        return max(count, 0)

    def _topic(self) -> str | UUID:
        at = self._at
        if self._version >= FIRST_TOPIC_ID_VERSION:
            self._skip(16)
            return UUID(bytes=bytes(self._view[at : at + 16]))
        if self._version >= FIRST_FLEXIBLE_VERSION:
            length = self._count()
        else:
            (length,) = self._unpack(_LENGTH)
        at = self._at
        self._skip(length)
        return str(self._view[at : at + length], "utf-8")

    def _tags(self, known: dict[int, Any]) -> None:
        if self._version >= FIRST_FLEXIBLE_VERSION:
            self._skip(skip_tagged_fields(self._view, self._at, known, None) - self._at)


class StreamMemory:
    """The memory of a streamed response: bytes that arrived and are not used yet."""

    def __init__(self, stream: FetchStream, size: int) -> None:
        self._stream = stream
        self._size = self._left = size  # of the frame, and what has not arrived of it
        self._memory = memoryview(bytearray(min(STREAM_BYTES, size)))
        self._first = self._end = 0  # of the unused bytes
        self._has_begun = False

    @property
    def is_done(self) -> bool:
        """Whether the whole frame was read."""
        return self._stream.is_done and not self._left

    def room(self) -> memoryview:
        """Memory for the next bytes of the frame; never empty."""
        wanted = self._stream.wanted
        if self._first and (self._first == self._end or len(self._memory) - self._first < max(wanted, len(self._memory) // 2)):
            unused = self._end - self._first
            self._memory[:unused] = self._memory[self._first : self._end]
            self._first, self._end = 0, unused
        if len(self._memory) < wanted:  # a batch is larger than the memory
            larger = memoryview(bytearray(wanted))
            larger[: self._end] = self._memory[: self._end]
            self._memory = larger
        return self._memory[self._end : self._end + self._left]

    def take(self, size: int, wire: Wire) -> int:
        """Feed what has arrived, with `size` more bytes; returns how many bytes the stream has used.

        Raises:
            ProtocolError: the response is malformed.
        """
        self._end += size
        self._left -= size
        if self._left and self._end - self._first < self._stream.wanted:
            return 0
        if not self._has_begun:
            self._has_begun = True
            version, self._first = wire.receive_start(self._memory[: self._end])
            self._stream.begin(version, self._size - self._first)
        used = self._stream.feed(self._memory[self._first : self._end])
        self._first += used
        if not self._left and not self._stream.is_done:
            raise MalformedMessage("FetchResponse", 0, "the frame ends before it")
        return used


def _note_diverging(value: memoryview, found: list[bool]) -> int:
    """Note whether a diverging epoch has an end offset; returns the number of bytes that were read."""
    found.append(_EPOCH_END.unpack_from(value)[1] >= 0)
    return skip_tagged_fields(value, _EPOCH_END.size, {}, None)
