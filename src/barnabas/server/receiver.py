"""The memory into which connections receive.

Owns the buffer that all connections of a loop share, the buffers of large frames, and the count of bytes in frames that are unfinished or
wait for their turn.

How it works: the loop fills a buffer and hands it over before it turns to another socket, so one serves all connections. The more of it a
connection fills, the more of its requests are written and answered together; of small ones a part of it (`small`) holds thousands, and
others want their turn. Of a large frame the end may not be there yet, and it would be copied; so a connection whose last frame was large
receives into a buffer of the size of one (`large`), and keeps it if the frame is not complete (`take_large`). These buffers are used again.
"""

from __future__ import annotations

from typing import Protocol

from barnabas import limits


class Reader(Protocol):
    """A connection, as far as its receiving goes."""

    def pause(self, reason: str) -> None: ...

    def resume(self, reason: str) -> None: ...


class Receiver:
    """The receive buffer that the connections of one loop share, and the bytes of unfinished frames they hold.

    Over the limit, a connection with an unfinished frame is not read, apart from the one that has waited longest for the end of its
    frame: so there is always one that gets on, also with a frame larger than the limit (Kafka's memory pool gives that much too).
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
        self._holders: dict[Reader, int] = {}  # who holds so many bytes, the longest waiting first
        self._paused: dict[Reader, None] = {}

    def take(self, connection: Reader, size: int) -> None:
        """`connection` holds `size` more bytes."""
        self.queued_bytes += size
        self._holders[connection] = self._holders.get(connection, 0) + size
        if self._is_full() and connection is not next(iter(self._holders)):
            self._paused[connection] = None
            connection.pause("queue")

    def give_back(self, connection: Reader, size: int) -> None:
        """A frame, of which it held `size` bytes, is worked on or lost."""
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
        """So many bytes of whole frames wait for their turn. They count against the limit, and their connection is not paused for it."""
        self.queued_bytes += size

    def let_go(self, size: int) -> None:
        """They are worked on, or lost."""
        self.queued_bytes -= size
        if self._paused and size:
            self._resume()

    @property
    def large(self) -> memoryview:
        """A buffer for one large frame; shared as `buffer` is, until a connection takes it because its frame is not complete."""
        if self._large is None:
            self._large = self.lend()
        return self._large

    def take_large(self) -> memoryview:
        """The same for good; it is to be handed in again."""
        taken, self._large = self.large, None
        return taken

    def lend(self) -> memoryview:
        return self._spare.pop() if self._spare else memoryview(bytearray(limits.LARGE_FRAME_BYTES))

    def lend_grown(self, size: int) -> memoryview | None:
        """A buffer for a frame of `size` bytes that is larger than a large one, if one is there that has them; to be handed in again."""
        if self._grown is None or len(self._grown) < size:
            return None
        lent, self._grown = self._grown, None
        return lent

    def hand_in(self, buffer: memoryview) -> None:
        """Take back what was lent, or take over what grew with a frame."""
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
