"""Keeps a window of requests in flight on some connections, and counts the answers.

The generator shares the machine with the server, so it must use little CPU. It joins requests to chunks before the clock
starts, sends a chunk with one system call, and checks many answers together. The form of a request depends on the protocol: a
`Line` builds the bytes and counts the answers. The `Line` of Kafka's protocol is here, the others are in `bench.peers`.
"""

from __future__ import annotations

import select
import socket
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import cycle, islice
from typing import Any, Protocol

from bench.wire import AnswerShape, BadAnswer, produce_frame

RECEIVE_BYTES = 256 * 1024
STALLED_S = 30.0  # without a response for this time, the server counts as hanging
SOCKET_BUFFER_BYTES = 4 * 1024 * 1024
DEADLINE_CHECK_S = 0.05
Address = tuple[str, int]
Connect = Callable[[Address], Any]  # returns a socket or an object with the same methods


@dataclass(frozen=True, slots=True)
class Pattern:
    """One kind of load.

    At most `window` requests are in flight on each connection; `chunk` of them are sent together. With `acks=0` there are no
    answers, and a request counts when it is sent.
    """

    connections: int
    batch: bytes
    records_per_batch: int
    acks: int
    window: int
    chunk: int


@dataclass(frozen=True, slots=True)
class Load:
    """The number of answers, and the seconds from the first byte to the last answer."""

    requests: int
    records: int
    seconds: float

    @property
    def records_per_s(self) -> float:
        return self.records / self.seconds


class Line(Protocol):
    """One connection of a producer: the requests that it repeats, and the counting of their answers."""

    @property
    def socket(self) -> Any: ...

    @property
    def chunk(self) -> bytes:
        """The bytes of `requests` requests, joined."""
        ...

    @property
    def requests(self) -> int: ...

    @property
    def window(self) -> int: ...

    @property
    def is_answered(self) -> bool: ...

    def take(self, received: memoryview) -> tuple[int, int]:
        """The number of whole answers at the beginning of `received`, and their size in bytes; raises BadAnswer for a bad one."""
        ...


class KafkaLine:
    """Produce requests of one batch to one partition, or to several partitions in turn."""

    def __init__(self, address: Address, pattern: Pattern, topic: str, partitions: Sequence[int], connect: Connect) -> None:
        frames = [
            produce_frame(topic, partition, pattern.batch, acks=pattern.acks, correlation_id=i)
            for i, partition in enumerate(islice(cycle(partitions), pattern.chunk))
        ]
        self.chunk = b"".join(frames)
        self.requests, self.window = pattern.chunk, pattern.window
        self.is_answered = pattern.acks != 0
        self.socket = connect(address)
        self._shape = AnswerShape(topic, pattern.chunk)
        self._next_id = 0

    def take(self, received: memoryview) -> tuple[int, int]:
        answers = len(received) // self._shape.size
        whole = answers * self._shape.size
        if answers:
            self._shape.check(received[:whole], answers, self._next_id)
            self._next_id = (self._next_id + answers) % self._shape.cycle
        return answers, whole


class _Pipe:
    """One connection: the unsent rest of the current chunk, and the number of requests without an answer."""

    def __init__(self, line: Line) -> None:
        self._chunk = memoryview(line.chunk)
        self._left = self._chunk[:0]
        self._line = line
        self._received = bytearray(RECEIVE_BYTES)
        self._filled = 0
        self.sent = 0
        self.answered = 0
        self.socket = line.socket
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if len(self._chunk) > RECEIVE_BYTES:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SOCKET_BUFFER_BYTES)
        self.socket.setblocking(False)

    @property
    def is_idle(self) -> bool:
        return not self._left and self.sent == self.answered

    def send(self, *, more: bool) -> bool:
        """Fill the window, with new chunks only if `more`; returns whether the socket is full."""
        line = self._line
        while True:
            if not self._left:
                if not line.is_answered:
                    self.answered = self.sent
                if not more or self.sent - self.answered + line.requests > line.window:
                    return False
                self._left = self._chunk
                self.sent += line.requests
            try:
                self._left = self._left[self.socket.send(self._left) :]
            except BlockingIOError:
                return True
            if not line.is_answered:
                return True  # without responses, only the time ends the loop, so the caller must check the time

    def receive(self) -> None:
        view = memoryview(self._received)
        try:
            size = self.socket.recv_into(view[self._filled :])
        except BlockingIOError:
            return
        if not size:
            raise BadAnswer("the server closed the connection")
        self._filled += size
        answers, used = self._line.take(view[: self._filled])
        if used:
            self.answered += answers
            rest = bytes(view[used : self._filled])
            self._filled = len(rest)
            view[: len(rest)] = rest


def produce(
    address: Address,
    topic: str,
    partitions: int,
    pattern: Pattern,
    seconds: float,
    most_bytes: float = float("inf"),
    connect: Connect = socket.create_connection,
) -> Load:
    """Send load for `seconds` or until `most_bytes` were sent, then wait for the requests in flight. Connection i writes to
    partition i modulo `partitions`.

    Raises:
        BadAnswer: an answer has an error, is out of order, or does not come.
    """
    return produce_to([address] * partitions, topic, pattern, seconds, most_bytes, connect)


def produce_to(
    leaders: Sequence[Address],
    topic: str,
    pattern: Pattern,
    seconds: float,
    most_bytes: float = float("inf"),
    connect: Connect = socket.create_connection,
) -> Load:
    """Like `produce`; the writes to partition i go to `leaders[i]`."""
    count = len(leaders)
    lines = [KafkaLine(leaders[i % count], pattern, topic, [i % count], connect) for i in range(pattern.connections)]
    requests, elapsed = drive(lines, seconds, most_bytes / len(pattern.batch))
    return Load(requests, requests * pattern.records_per_batch, elapsed)


def drive(
    lines: Sequence[Line],
    seconds: float,
    most_requests: float = float("inf"),
    settle: Callable[[int], None] = lambda requests: None,
) -> tuple[int, float]:
    """Send load for `seconds` or until `most_requests` were sent; returns the number of answered requests and the seconds.
    Closes the lines.

    Args:
        settle: waits until the server has this number of requests, if there are no answers; this time counts.
    """
    pipes = [_Pipe(line) for line in lines]
    try:
        began = time.perf_counter()
        _run(pipes, seconds, most_requests)
        settle(sum(pipe.answered for pipe in pipes))
        elapsed = time.perf_counter() - began
    finally:
        for pipe in pipes:
            pipe.socket.close()
    return sum(pipe.answered for pipe in pipes), elapsed


def _run(pipes: Sequence[_Pipe], seconds: float, most_requests: float) -> None:
    by_descriptor = {pipe.socket.fileno(): pipe for pipe in pipes}
    last_answer = time.perf_counter()
    deadline = last_answer + seconds
    more = True
    with select.epoll() as poller:
        for descriptor in by_descriptor:
            poller.register(descriptor, select.EPOLLIN | select.EPOLLOUT)
        watched = dict.fromkeys(by_descriptor, True)  # whether epoll watches the socket for room to send
        sent = 0  # a running total: summing over 1,000 pipes takes longer than serving one pipe
        while more or not all(pipe.is_idle for pipe in pipes):
            ready = poller.poll(DEADLINE_CHECK_S)
            now = time.perf_counter()
            more = now < deadline and sent < most_requests
            if not ready and now - last_answer > STALLED_S:
                raise BadAnswer(f"no answer for {STALLED_S:g} s")
            for descriptor, event in ready:
                pipe = by_descriptor[descriptor]
                if event & ~select.EPOLLOUT:
                    pipe.receive()
                    last_answer = now
                before = pipe.sent
                full = pipe.send(more=more)
                sent += pipe.sent - before
                if full != watched[descriptor]:
                    watched[descriptor] = full
                    poller.modify(descriptor, select.EPOLLIN | (select.EPOLLOUT if full else 0))
