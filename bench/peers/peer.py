"""The interface of a system for the suite: a process with fresh data, sending and receiving messages, and the kernel's figures
of the process.

Rules
  1. A peer runs on loopback with its data in a temporary folder, and leaves nothing behind.
  2. Its settings are those that its documentation recommends for many messages. If a setting differs from the default, a `Setting` gives
     the reason and its source. No peer syncs to disk for each message.
  3. If a system cannot do a case, it raises `CannotDo`, and the tables show a dash. If it is not installed, it raises
     `PeerUnavailable` with one line of text.
  4. The arrival of every sent message is checked; a missing one is a `BadAnswer`. Without acknowledgements, the system itself
     counts the messages after a load. With them, the peer checks the answers (Kafka's protocol, ActiveMQ), or the system counts
     too.
"""

from __future__ import annotations

import socket
import time
from array import array
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Protocol, Self

from bench.load import Load
from bench.wire import BadAnswer

SETTLE_TIMEOUT_S = 120.0
POLL_S = 0.01  # between two checks of the stored messages, each of which takes time of the system


class CannotDo(Exception):
    """The system does not have this feature."""


class PeerUnavailable(RuntimeError):
    """The system is not installed or does not start; the text is one line."""


@dataclass(frozen=True, slots=True)
class Setting:
    """A setting that differs from the system's default, and the source of this advice."""

    name: str
    value: str
    why: str


@dataclass(frozen=True, slots=True)
class Message:
    """The messages of a load: `batch` messages of `value_bytes` in a request. With `acks` 0 there is no answer, otherwise the
    server answers.

    `codec` names the compression of a batch. Only Kafka's protocol sends it to a server.
    """

    value_bytes: int = 100
    batch: int = 1
    acks: int = 1
    codec: str = "none"


@dataclass(frozen=True, slots=True)
class Amount:
    """The end of a load: after this number of messages or of seconds, the earlier one."""

    messages: float
    seconds: float


@dataclass(frozen=True, slots=True)
class Pace:
    """A schedule of `rate` messages a second for `seconds`; it begins `warm_up_s` seconds earlier, with messages that do not
    count."""

    rate: int
    seconds: float
    warm_up_s: float = 0.0

    @property
    def uncounted(self) -> int:
        """The number of messages before those that count."""
        return int(self.rate * self.warm_up_s)

    @property
    def total(self) -> int:
        """The number of all messages, including those that do not count."""
        return self.uncounted + int(self.rate * self.seconds)


@dataclass(frozen=True, slots=True)
class Delays:
    """The milliseconds from each message's planned sending until a consumer had it, sorted.

    Fields:
        caught_up: if messages were waiting at the start, the number of messages and the seconds until the consumers had caught
            up with the producers.
    """

    consumed: array[float]
    generator_late_p99_ms: float = 0.0
    caught_up: tuple[int, float] = (0, 0.0)


class Peer(Protocol):
    """A system; it runs between `__enter__` and `__exit__`."""

    @property
    def name(self) -> str: ...

    @property
    def settings(self) -> Sequence[Setting]: ...

    @property
    def version(self) -> str: ...

    @property
    def pids(self) -> Sequence[int]:
        """The ids of its current processes."""
        ...

    @property
    def address(self) -> tuple[str, int]: ...

    @property
    def data_dir(self) -> Path: ...

    @property
    def ready_after_s(self) -> float:
        """The seconds from the start of the process until it serves."""
        ...

    @property
    def is_made_by_writing(self) -> bool:
        """Whether `create` does nothing, because the first message creates a partition."""
        ...

    def create(self, topic: str, partitions: int, *, largest_bytes: int = 0) -> None:
        """Create a topic; raises CannotDo if the system does not accept messages of `largest_bytes`."""
        ...

    def delete(self, topic: str) -> None: ...

    def produce(self, topic: str, message: Message, amount: Amount, *, partitions: int = 1, producers: int = 1) -> Load:
        """Send messages; raises CannotDo for a message that the system does not accept."""
        ...

    def consume(self, topic: str, message: Message, messages: int, *, partitions: int = 1, pull_bytes: int) -> Load:
        """Read `messages` messages from the beginning, about `pull_bytes` at a time."""
        ...

    def end_to_end(self, topics: Sequence[str], message: Message, pace: Pace, *, partitions: int = 1, waiting: int = 0) -> Delays:
        """Send messages by a fixed schedule to topics with names of the same length; each partition has `waiting` messages at
        the start."""
        ...

    def stored(self, topic: str, partitions: int) -> int:
        """The number of messages that the system reports."""
        ...

    @property
    def nudge(self) -> bytes:
        """A small request with an answer, for a client after its greeting; empty if the protocol has none."""
        ...

    def greet(self) -> socket.socket:
        """A client that has sent its first requests, as clients do, and sends nothing more."""
        ...

    def __enter__(self) -> Self: ...

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None: ...


def wait_for_stored(name: str, stored: Callable[[], int], messages: int) -> None:
    """Wait until `name` has all messages that were sent to it; raises BadAnswer if some do not arrive."""
    deadline = time.monotonic() + SETTLE_TIMEOUT_S
    while stored() < messages:
        if time.monotonic() > deadline:
            raise BadAnswer(f"{name} has {stored():,} of {messages:,} messages that were sent")
        time.sleep(POLL_S)
