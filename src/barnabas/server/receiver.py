"""The memory into which connections receive.

Owns the buffer that all connections of a loop share, the buffers of large frames, and the number of bytes in unfinished and waiting
frames.

The loop fills a buffer and passes it on before it serves another socket. So one buffer serves all connections. The more of the buffer a
connection fills, the more of its requests are appended and answered together. A part of it (`small`) has room for thousands of small
requests. A connection with small requests gets only this part, so others get their turn earlier.

The end of a large frame often arrives later, and then the start must be copied. So a connection whose last frame was large receives into a
buffer for one frame (`large`). It keeps this buffer if the frame is not complete (`take_large`). These buffers are used again.
"""

from __future__ import annotations

from typing import Protocol

from barnabas import limits


class Reader(Protocol):
    """A connection, as the receiver uses it."""

    def pause(self, reason: str) -> None: ...

    def resume(self, reason: str) -> None: ...


class Receiver:
    """The receive buffer that the connections of one loop share, and the bytes of their unfinished frames.

    Over the limit, the broker does not read from connections with unfinished frames. The exception is the connection that has waited
    longest for the end of its frame. So one connection always continues, even with a frame larger than the limit. Kafka's memory pool does
    the same.
    """

    def __init__(self, max_frame_bytes: int, max_queued_bytes: int) -> None:
        self.buffer = memoryview(bytearray(limits.RECEIVE_BUFFER_BYTES))
        self.small = self.buffer[: limits.RECEIVED_SMALL_BYTES]
        self.max_frame_bytes = max_frame_bytes
        self.max_queued_bytes = max_queued_bytes if max_queued_bytes > 0 else None
        self.queued_bytes = 0
        self._large: memoryview | None = None  # the buffer for a connection whose last frame was large
        self._spare: list[memoryview] = []
        self._grown: memoryview | None = None
        self._holders: dict[Reader, int] = {}  # bytes that each connection holds, the longest waiting first
        self._paused: dict[Reader, None] = {}

    def take(self, connection: Reader, size: int) -> None:
        """Count `size` more bytes that `connection` holds."""
        self.queued_bytes += size
        self._holders[connection] = self._holders.get(connection, 0) + size
        if self._is_full() and connection is not next(iter(self._holders)):
            self._paused[connection] = None
            connection.pause("queue")

    def give_back(self, connection: Reader, size: int) -> None:
        """Note that `connection` does not hold `size` bytes any more, because a frame was handled or lost."""
        self.queued_bytes -= size
        left = self._holders.get(connection, 0) - size
        if left > 0:
            self._holders[connection] = left
        else:
            self._holders.pop(connection, None)
            if connection in self._paused:
                del self._paused[connection]
                connection.resume("queue")
        if self._paused:
            self._resume()

    def keep(self, size: int) -> None:
        """Count the bytes of whole frames that wait. They count against the limit, but do not pause their connection."""
        self.queued_bytes += size

    def let_go(self, size: int) -> None:
        """Note that waiting frames of `size` bytes were handled or lost."""
        self.queued_bytes -= size
        if self._paused and size:
            self._resume()

    @property
    def large(self) -> memoryview:
        """A buffer for one large frame. Connections share it like `buffer`, until one keeps it for an unfinished frame."""
        if self._large is None:
            self._large = self.lend()
        return self._large

    def take_large(self) -> memoryview:
        """Take the same buffer; the caller gives it back with `hand_in`."""
        taken, self._large = self.large, None
        return taken

    def lend(self) -> memoryview:
        return self._spare.pop() if self._spare else memoryview(bytearray(limits.LARGE_FRAME_BYTES))

    def lend_grown(self, size: int) -> memoryview | None:
        """The kept buffer for a frame of `size` bytes that is too large for `large`, or None; the caller gives it back with `hand_in`."""
        if self._grown is None or len(self._grown) < size:
            return None
        lent, self._grown = self._grown, None
        return lent

    def hand_in(self, buffer: memoryview) -> None:
        """Take back a lent buffer, or take over a buffer that grew with a frame."""
        if len(buffer) <= limits.LARGE_FRAME_BYTES:
            if len(self._spare) < limits.KEPT_FRAME_BUFFERS:
                self._spare.append(buffer)
        elif len(buffer) <= limits.KEPT_GROWN_BYTES and (self._grown is None or len(self._grown) < len(buffer)):
            self._grown = buffer

    def _resume(self) -> None:
        going_on = [next(iter(self._holders))] if self._is_full() else list(self._paused)
        for connection in going_on:
            self._paused.pop(connection, None)
            connection.resume("queue")

    def _is_full(self) -> bool:
        return self.max_queued_bytes is not None and self.queued_bytes > self.max_queued_bytes
