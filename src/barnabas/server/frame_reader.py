"""The receiving half of one connection: divides the received bytes into frames and passes them to the dispatcher.

All connections of a loop share the buffers of the `Receiver`. `FrameReader` gives the loop a buffer for the next bytes, and keeps the
bytes that cannot be handled at once.

Rules
  1. Whole frames are handled in the shared buffer. The start of an unfinished frame moves to a buffer of its own (`partial`). So an idle
     connection has no buffer.
  2. If possible, a large frame stays in the buffer that received it. The connection borrows that buffer until the frame ends.
  3. The start of a small frame after whole frames is copied to the place before the next received bytes (`start`). So one read brings the
     rest of the frame and the next frames. This happens once for each frame, even if the frame comes in small pieces.
  4. The receiver counts all kept bytes, and pauses connections when there are too many.
  5. A turn of the loop handles at most `limits.MAX_REQUESTS_PER_TURN` requests of a connection, so that the loop serves others in between.
     Runs of produce requests cost little and do not count.

The methods take the connection as an argument and do not keep it. The connection keeps a bound method of its `FrameReader`. If the
`FrameReader` referred back to the connection, only the garbage collector could free both.
"""

from __future__ import annotations

import logging
from struct import Struct
from typing import Generic, Protocol, TypeVar

from barnabas import limits
from barnabas.errors import FrameTooLarge, ProtocolError
from barnabas.server.answer_order import ORDER, AnswerOrder
from barnabas.server.connection_interfaces import Dispatcher
from barnabas.server.receiver import Reader, Receiver

logger = logging.getLogger(__name__)
SIZE = Struct(">i")
NOTHING = memoryview(b"")
C = TypeVar("C", bound="FramedConnection")
LARGE = limits.LARGE_FRAME_BYTES // 2  # a larger frame gets a buffer of the receiver, and fills at least half of it


class GetBuffer(Protocol):
    """Returns the buffer into which the loop receives the next bytes."""

    def __call__(self, sizehint: int) -> memoryview: ...


class FramedConnection(Reader, Protocol):
    """The connection, as its receiving half uses it.

    Attributes:
        closed: it takes no more requests.
        is_put_off: the current request was stopped; it comes again when nothing pauses the connection.
        is_working: the connection handles requests at the moment.
        max_frame_bytes: a larger frame closes the connection.
        order: the answers that wait.
        paused_for: the reasons why the connection does not read; empty if it reads.
    """

    closed: bool
    is_put_off: bool
    is_working: bool
    max_frame_bytes: int
    order: AnswerOrder
    paused_for: set[str]

    @property
    def peer(self) -> str: ...

    def close(self) -> None: ...

    def fail(self, error: ProtocolError) -> None:
        """Log the error of the peer, and close the connection."""
        ...

    def pause_again(self) -> None:
        """Make the transport stop reading, even if it was told so before."""
        ...

    def wait_for_turn(self) -> None: ...


class FrameReader(Generic[C]):
    """The frames of one connection.

    Args:
        receiver: has the shared buffers.
        dispatcher: handles a request, or several.

    Attributes:
        partial: one unfinished frame that begins with its size, or None.
        start: the bytes of an unfinished frame that followed whole frames; `partial` is then None.
        expected: the likely size of the next frame in bytes, if the last frame was large; else 0.
        has_small_frames: whether the last frame was small.
        backlog: whole frames that wait because the connection is paused, in memory of their own.
    """

    __slots__ = ("_dispatcher", "_filled", "_lent", "_receiver", "backlog", "expected", "has_small_frames", "partial", "start")

    def __init__(self, receiver: Receiver, dispatcher: Dispatcher[C]) -> None:
        self.partial: memoryview | None = None
        self.start = b""
        self.expected = 0
        self.has_small_frames = True
        self.backlog = NOTHING
        self._receiver = receiver
        self._dispatcher = dispatcher
        self._filled = 0  # bytes of `partial`
        self._lent: memoryview | None = None  # the receiver's buffer that contains `partial`

    def get_buffer(self, sizehint: int) -> memoryview:
        """The buffer into which the loop receives the next bytes."""
        if self.partial is not None:
            return self.partial[self._filled :]
        if self.expected and not self.start:
            return self._receiver.large[: self.expected]
        buffer = self._receiver.small if self.has_small_frames else self._receiver.buffer
        if self.start:
            size = len(self.start)
            buffer[:size] = self.start
            return buffer[size:]
        return buffer

    def take_start(self, connection: C, nbytes: int) -> memoryview:
        """The kept start of a frame and the `nbytes` bytes received after it."""
        before, self.start = len(self.start), b""
        self._receiver.give_back(connection, before)
        return self._receiver.buffer[: before + nbytes]

    def fill(self, connection: C, nbytes: int) -> bool:
        """Add `nbytes` received bytes to the unfinished frame, and handle the frame if it is whole. Returns whether it was whole."""
        partial = self.partial
        assert partial is not None
        self._filled += nbytes
        if self._filled < len(partial):
            return False
        (size,) = SIZE.unpack_from(partial)
        if size < 0 or size > connection.max_frame_bytes:
            connection.fail(FrameTooLarge(size, connection.max_frame_bytes))
            return False
        if len(partial) < SIZE.size + size:
            self._grow(connection, partial, SIZE.size + size)
            return False
        self.partial = None
        lent, self._lent = self._lent, None
        self.handle(connection, partial)
        if lent is not None:
            self._receiver.hand_in(lent)
        elif len(partial) > limits.LARGE_FRAME_BYTES:
            self._receiver.hand_in(partial)
        self._receiver.give_back(connection, len(partial))
        return True

    def handle(self, connection: C, data: memoryview, *, in_large: bool = False, is_own: bool = False) -> None:
        """Handle the whole frames of `data` that may begin now, and keep the rest.

        Args:
            in_large: `data` is the start of the receiver's large buffer.
            is_own: the memory of `data` belongs to this connection, and may be kept.
        """
        connection.is_working = True
        try:
            position, size = self._handle_whole(connection, data)
        except ProtocolError as error:
            connection.fail(error)
            return
        except Exception:  # a fault of the broker: close only this connection, and log the fault
            logger.exception("event=request-failed peer=%s", connection.peer)
            connection.close()
            return
        finally:
            connection.is_working = False
        if connection.closed:
            return
        if size is None:
            rest = data[position:]
            self.keep_back(rest if is_own else memoryview(bytearray(rest)))
            connection.pause_again()
            return
        self.expected = size + 4 if LARGE < size + 4 <= limits.LARGE_FRAME_BYTES else 0
        self.has_small_frames = size <= limits.SMALL_FRAME_BYTES
        if position < len(data):
            self._leave(connection, data[position:], size, is_first=not position, in_large=in_large)

    def _handle_whole(self, connection: C, data: memoryview) -> tuple[int, int | None]:
        """Handle whole frames.

        Returns:
            The start of the rest, and the size of its frame or of the last frame. The size is None if the frame is whole and must wait.
        """
        position, end, size, left = 0, len(data), 0, limits.MAX_REQUESTS_PER_TURN
        dispatch, order, paused_for = self._dispatcher.dispatch, connection.order, connection.paused_for
        while end - position >= 4:
            (size,) = SIZE.unpack_from(data, position)
            if size < 0 or size > connection.max_frame_bytes:
                raise FrameTooLarge(size, connection.max_frame_bytes)
            stop = position + 4 + size
            if stop > end:
                break
            if order.waiting and not paused_for and not order.may_begin(data, position + 4, size):
                connection.pause(ORDER)
            if paused_for:
                return position, None
            behind = dispatch(connection, data, position, stop)
            if connection.closed:
                break
            if connection.is_put_off:
                connection.is_put_off = False
                return position, None
            position = behind
            if behind == stop:
                left -= 1
                if not left:
                    connection.wait_for_turn()
        return position, size

    def _leave(self, connection: C, rest: memoryview, size: int, *, is_first: bool, in_large: bool) -> None:
        """Keep the start of an unfinished frame.

        Args:
            rest: the start; it may be too short to tell the size of the frame.
            size: the size of the frame in bytes, if `rest` tells it.
            is_first: whether no whole frame came before it.
            in_large: whether it lies in the receiver's large buffer.
        """
        is_small = len(rest) < SIZE.size or (size <= limits.MAX_RUN_BYTES and 2 * len(rest) <= len(self._receiver.buffer))
        if is_small and not is_first:
            self.start = bytes(rest)
            self._receiver.take(connection, len(self.start))
        else:
            self._keep(connection, rest, stays=in_large and is_first)

    def keep_back(self, rest: memoryview) -> None:
        """Keep frames that wait; the memory of `rest` belongs to this connection."""
        self.backlog = rest
        self._receiver.keep(len(rest))

    def take_backlog(self) -> memoryview:
        """The frames that waited; they are not kept any more."""
        backlog, self.backlog = self.backlog, NOTHING
        self._receiver.let_go(len(backlog))
        return backlog

    def close(self, connection: C) -> None:
        """Give back all memory."""
        self.take_backlog()
        if self.start:
            self._receiver.give_back(connection, len(self.start))
            self.start = b""
        if self.partial is not None:
            self._receiver.give_back(connection, len(self.partial))
            self.partial = None
            if self._lent is not None:
                self._receiver.hand_in(self._lent)
                self._lent = None

    def _keep(self, connection: C, start: memoryview, *, stays: bool) -> None:
        """Keep the start of an unfinished frame. If `stays`, it stays at the beginning of the receiver's large buffer."""
        wanted = SIZE.size + SIZE.unpack_from(start)[0] if len(start) >= SIZE.size else SIZE.size
        if LARGE < wanted <= limits.LARGE_FRAME_BYTES:
            self._lent = self._receiver.take_large() if stays else self._receiver.lend()
        else:
            stays = False
            self._lent = self._receiver.lend_grown(wanted) if wanted > LARGE else None
        if self._lent is not None:
            self.partial = self._lent[:wanted]
        else:
            self.partial = memoryview(bytearray(min(wanted, len(start) + limits.FRAME_GROWTH_BYTES)))
        if not stays:
            self.partial[: len(start)] = start
        self._filled = len(start)
        self._receiver.take(connection, len(self.partial))

    def _grow(self, connection: C, partial: memoryview, wanted: int) -> None:
        """Move the full `partial` to a larger buffer; the whole frame has `wanted` bytes."""
        grown = memoryview(bytearray(min(wanted, 2 * self._filled + limits.FRAME_GROWTH_BYTES)))
        grown[: self._filled] = partial
        self._receiver.take(connection, len(grown) - len(partial))
        self.partial = grown
