"""Joins the event loop's side of a connection to the thread that runs its statements: messages one way, bytes the other.

Rules
  1. A thread runs while there are messages; `deliver` says when one has to be started, and `take` when it ends.
  2. The thread waits while the socket has too much unsent; the socket is not read while too many messages wait.
  3. After `leave` the thread meets `Gone` at its next step.
"""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import Callable, Sequence

from barnabas import limits
from barnabas.sql.postgres.channel import Gone
from barnabas.sql.postgres.messages import Message

GATHERED_BYTES = 64 * 1024  # of answers before they are handed to the loop
HEAD_BYTES = 64  # that a waiting message costs beyond its body


class Budget:
    """Bytes that all connections of a server hold. For any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.held = 0

    def add(self, size: int) -> bool:
        """Whether there is room for them; they count in any case."""
        with self._lock:
            self.held += size
            return self.held <= limits.MAX_POSTGRES_WAITING_BYTES


class Mailbox:
    """The `Channel` of a connection.

    Args:
        write: to the socket, called in the loop.
        read_on: called in the loop when the socket may be read again.
    """

    def __init__(
        self, loop: asyncio.AbstractEventLoop, budget: Budget, write: Callable[[bytes], None], read_on: Callable[[], None]
    ) -> None:
        self._loop, self._budget, self._write_to, self._read_on = loop, budget, write, read_on
        self._changed = threading.Condition()
        self._messages: deque[Message] = deque()
        self._held = 0
        self._gathered: list[bytes | memoryview] = []
        self._gathered_bytes = 0
        self._handed = 0
        self._paused = self._reading_stopped = self._left = False
        self.busy = False
        self.waits = False  # the thread, for a message

    def deliver(self, messages: Sequence[Message]) -> bool:
        """Give messages to the thread; True if one has to be started. For the loop."""
        size = sum(len(each.body) + HEAD_BYTES for each in messages)
        self._budget.add(size)
        with self._changed:
            self._messages.extend(messages)
            self._held += size
            self._changed.notify_all()
            starts = not self.busy and bool(messages)
            self.busy = self.busy or starts
            return starts

    @property
    def at_rest(self) -> bool:
        """Whether no thread runs, no message waits, and the socket takes more. For the loop."""
        return not (self.busy or self._paused or self._left)

    def stops_reading(self) -> bool:
        """Whether the socket must not be read for now. For the loop."""
        with self._changed:
            self._reading_stopped = self._held > limits.MAX_POSTGRES_READ_AHEAD_BYTES and len(self._messages) > 1
            return self._reading_stopped

    def begin(self) -> None:
        """A thread is started, without a message."""
        with self._changed:
            self.busy = True

    def pause(self, paused: bool) -> None:
        """Whether the socket's buffer is full. For the loop."""
        with self._changed:
            self._paused = paused
            self._changed.notify_all()

    def leave(self) -> bool:
        """The client is not served any more; True if no thread runs, so that the caller starts the last one. For the loop."""
        with self._changed:
            self._left = True
            self._budget.add(-self._held)
            self._held = 0
            self._messages.clear()
            self._changed.notify_all()
            idle, self.busy = not self.busy, True
            return idle

    def end(self) -> None:
        """The last thread has ended."""
        self.busy = False

    @property
    def left(self) -> bool:
        """Whether `leave` was called."""
        return self._left

    def take(self) -> Message | None:
        """The next message; None if there is none: then the thread ends. Raises Gone."""
        if not self._messages:
            self.flush()
        with self._changed:
            if self._left:
                raise Gone
            if self._messages:
                return self._pop()
            self.busy = False
            return None

    def has_more(self) -> bool:
        """Whether a message waits."""
        return bool(self._messages)

    def receive(self) -> Message:
        """The next message. Raises Gone."""
        if not self._messages:
            self.flush()
        with self._changed:
            while not self._messages and not self._left:
                self.waits = True
                self._changed.wait()
            self.waits = False
            if self._left:
                raise Gone
            return self._pop()

    def _pop(self) -> Message:
        message = self._messages.popleft()
        size = len(message.body) + HEAD_BYTES
        self._held -= size
        self._budget.add(-size)
        if self._reading_stopped and self._held <= limits.MAX_POSTGRES_READ_AHEAD_BYTES // 2:
            self._reading_stopped = False
            self._call(self._read_on)
        return message

    def send(self, data: bytes | memoryview) -> None:
        """Bytes for the client. Raises Gone."""
        self._gathered.append(data)
        self._gathered_bytes += len(data)
        if self._gathered_bytes >= GATHERED_BYTES:
            self.flush()

    def flush(self) -> None:
        """Hand to the loop all that `send` took. Raises Gone, also if the client reads nothing for too long."""
        if not self._gathered:
            return
        data = b"".join(self._gathered)
        self._gathered.clear()
        self._gathered_bytes = 0
        with self._changed:
            if self._left:
                raise Gone
            self._handed += len(data)
        self._call(self._write, data)
        with self._changed:
            while (self._paused or self._handed > limits.MAX_POSTGRES_UNSENT_BYTES) and not self._left:
                if not self._changed.wait(limits.POSTGRES_WRITE_TIMEOUT_S):
                    raise Gone

    def last_words(self, data: bytes) -> None:
        """Hand these over without waiting; what was gathered goes with them."""
        data = b"".join([*self._gathered, data])
        self._gathered.clear()
        if data:
            self._call(self._write_to, data)

    def _write(self, data: bytes) -> None:
        self._write_to(data)
        with self._changed:
            self._handed -= len(data)
            self._changed.notify_all()

    def _call(self, action: Callable[..., None], *arguments: bytes) -> None:
        try:
            self._loop.call_soon_threadsafe(action, *arguments)
        except RuntimeError:  # the loop is closed
            self._left = True
