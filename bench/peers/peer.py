"""The interface of a system for the suite: a process of its own with fresh data; messages in and out; the kernel's figures of it.

Rules
  1. A peer runs on loopback with its data in a temporary folder, and leaves nothing behind.
  2. Its settings are those that its documentation recommends for many messages. If a setting differs from the default, a `Setting` gives
     the reason and its source. No peer syncs to disk for each message.
  3. If a system cannot do a case, it raises `CannotDo`, which is a dash in the tables. If it is not installed, it raises `PeerUnavailable`
     with one line of text.
  4. Every sent message is accounted for; otherwise it is a `BadAnswer`. Without acknowledgements, the system itself counts after a load.
     With them, the answers are checked (Kafka's protocol, ActiveMQ), or the system counts as well.
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
    """The system has no such thing."""


class PeerUnavailable(RuntimeError):
    """It is not installed or does not start; the text is one line."""


@dataclass(frozen=True, slots=True)
class Setting:
    """A setting that differs from the system's default, and the source of the advice."""

    name: str
    value: str
    why: str


@dataclass(frozen=True, slots=True)
class Message:
    """The load: `batch` messages of `value_bytes` in a request. With `acks` 0 no answer is awaited, otherwise the server's.

    `codec` names the compression of a batch. Only Kafka's protocol tells it to a server.
    """

    value_bytes: int = 100
    batch: int = 1
    acks: int = 1
    codec: str = "none"


@dataclass(frozen=True, slots=True)
class Amount:
    """When a load ends: after so many messages or so many seconds, whichever comes first."""

    messages: float
    seconds: float


@dataclass(frozen=True, slots=True)
class Pace:
    """A schedule of `rate` messages a second for `seconds`; it begins `warm_up_s` earlier, with messages that do not count."""

    rate: int
    seconds: float
    warm_up_s: float = 0.0

    @property
    def uncounted(self) -> int:
        """Messages before those that count."""
        return int(self.rate * self.warm_up_s)

    @property
    def total(self) -> int:
        """Messages, with those that do not count."""
        return self.uncounted + int(self.rate * self.seconds)


@dataclass(frozen=True, slots=True)
class Delays:
    """Milliseconds from when each message was meant to leave until a consumer had it, in order of size.

    Fields:
        caught_up: how many messages had come, and in how many seconds, when consumers had come up to producers first, where messages
            were waiting.
    """

    consumed: array[float]
    generator_late_p99_ms: float = 0.0
    caught_up: tuple[int, float] = (0, 0.0)


class Peer(Protocol):
    """A system that runs between `__enter__` and `__exit__`."""

    @property
    def name(self) -> str: ...

    @property
    def settings(self) -> Sequence[Setting]: ...

    @property
    def version(self) -> str: ...

    @property
    def pids(self) -> Sequence[int]:
        """Its processes now."""
        ...

    @property
    def address(self) -> tuple[str, int]: ...

    @property
    def data_dir(self) -> Path: ...

    @property
    def ready_after_s(self) -> float:
        """From the start of the process until it serves."""
        ...

    @property
    def is_made_by_writing(self) -> bool:
        """Whether `create` has nothing to do, since a partition is there with its first message."""
        ...

    def create(self, topic: str, partitions: int, *, largest_bytes: int = 0) -> None:
        """Raises CannotDo where no message of `largest_bytes` is taken."""
        ...

    def delete(self, topic: str) -> None: ...

    def produce(self, topic: str, message: Message, amount: Amount, *, partitions: int = 1, producers: int = 1) -> Load:
        """Raises CannotDo for a message that the system cannot take."""
        ...

    def consume(self, topic: str, message: Message, messages: int, *, partitions: int = 1, pull_bytes: int) -> Load:
        """Read so many from the beginning, about `pull_bytes` at a time."""
        ...

    def end_to_end(self, topics: Sequence[str], message: Message, pace: Pace, *, partitions: int = 1, waiting: int = 0) -> Delays:
        """Messages on a schedule made beforehand, to topics with names of one length; in each partition `waiting` lie already."""
        ...

    def stored(self, topic: str, partitions: int) -> int:
        """The messages that the system says it has."""
        ...

    @property
    def nudge(self) -> bytes:
        """A small request with an answer, for a client that has greeted; empty where the protocol has none."""
        ...

    def greet(self) -> socket.socket:
        """A client that has done what clients do first, and sends nothing more."""
        ...

    def __enter__(self) -> Self: ...

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None: ...


def wait_for_stored(name: str, stored: Callable[[], int], messages: int) -> None:
    """Wait until `name` has what was sent to it; raises BadAnswer where it does not come."""
    deadline = time.monotonic() + SETTLE_TIMEOUT_S
    while stored() < messages:
        if time.monotonic() > deadline:
            raise BadAnswer(f"{name} has {stored():,} of {messages:,} messages that were sent")
        time.sleep(POLL_S)
