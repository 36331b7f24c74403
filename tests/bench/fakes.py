"""A system that needs no process: it counts what it is given, and takes as long as it is told."""

from __future__ import annotations

import socket
from array import array
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

from bench.load import Load
from bench.peers.peer import Amount, CannotDo, Delays, Message, Pace, PeerUnavailable, Setting


class FakePeer:
    """Takes `seconds_each` for a message; `largest_batch` is what a request can carry."""

    version = "1"
    settings: Sequence[Setting] = (Setting("sync", "never", "its documentation"),)
    address = ("127.0.0.1", 0)
    data_dir = Path()
    ready_after_s = 0.25
    is_made_by_writing = False
    nudge = b""
    largest_bytes = 1_000_000

    def __init__(self, seconds_each: float = 1e-6, largest_batch: int = 50, name: str = "fake") -> None:
        self.name = name
        self.seconds_each = seconds_each
        self.largest_batch = largest_batch
        self.asked: list[str] = []
        self.warm_ups: list[float] = []
        self.loads: list[tuple[int, Amount]] = []  # partitions and amount of each load
        self.topics: dict[str, int] = {}
        self.is_running = False

    @property
    def pids(self) -> Sequence[int]:
        return []

    def __enter__(self) -> Self:
        self.is_running = True
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.is_running = False

    def create(self, topic: str, partitions: int, *, largest_bytes: int = 0) -> None:
        if largest_bytes > self.largest_bytes:
            raise CannotDo("messages are smaller")
        self.topics[topic] = 0

    def delete(self, topic: str) -> None:
        del self.topics[topic]

    def produce(self, topic: str, message: Message, amount: Amount, *, partitions: int = 1, producers: int = 1) -> Load:
        if message.batch > self.largest_batch:
            raise CannotDo("it has no batches")
        self.asked.append(f"produce {message.batch}")
        self.loads.append((partitions, amount))
        records = int(amount.messages)
        self.topics[topic] += records
        return Load(records // message.batch, records, records * self.seconds_each)

    def consume(self, topic: str, message: Message, messages: int, *, partitions: int = 1, pull_bytes: int) -> Load:
        self.asked.append("consume")
        return Load(1, messages, messages * self.seconds_each)

    def end_to_end(self, topics: Sequence[str], message: Message, pace: Pace, *, partitions: int = 1, waiting: int = 0) -> Delays:
        self.asked.append(f"end to end {len(topics)} of {partitions}")
        self.warm_ups.append(pace.warm_up_s)
        return Delays(array("d", range(1, pace.total - pace.uncounted + 1)), caught_up=(waiting, 0.5))

    def stored(self, topic: str, partitions: int) -> int:
        return self.topics[topic]

    def greet(self) -> socket.socket:
        return socket.socket()


class AbsentPeer(FakePeer):
    """One that is not installed."""

    def __enter__(self) -> Self:
        raise PeerUnavailable("absent-server is not installed (Debian package: absent)")
