"""The common code of the peers with a protocol of their own: lines and receivers on plain sockets, one stream for each
partition, one loop.

A `Line` (see `bench.load`) sends; a `Receiver` requests and counts. For the delay from end to end: the n-th received message of
a stream is the n-th that was sent to it, so its time follows from the counts.
"""

from __future__ import annotations

import select
import socket
import time
from array import array
from collections.abc import Iterable, Sequence
from contextlib import closing
from typing import Any, Protocol

from bench.latency import SLACK_S, STALLED_S, undisturbed, wake_in_time
from bench.load import Line, Load, drive
from bench.peers.peer import Amount, Delays, Message, Pace, wait_for_stored
from bench.peers.process import OwnProcess
from bench.wire import BadAnswer

RECEIVE_BYTES, MOST_BYTES = 1024 * 1024, 64 * 1024 * 1024
WINDOW_BYTES = 4_000_000  # bytes in flight, as for Kafka's protocol
ONE_WINDOW, BATCH_WINDOW, CHUNKS = 256, 64, 4
ALL_WINDOWS = 16_384  # requests in flight on all connections; when the time is up, the run still waits for their responses
PULL = 1_000  # messages per request of a consumer in end-to-end measurements, if the protocol counts messages


class Receiver(Protocol):
    """One connection of a consumer."""

    @property
    def socket(self) -> socket.socket: ...

    def begin(self) -> None:
        """Request the first messages."""
        ...

    def take(self, received: memoryview) -> tuple[int, int]:
        """The number of messages in the whole answers at the beginning of `received`, and their size in bytes; requests more."""
        ...


class StreamPeer(OwnProcess):
    """The part of a `Peer` that uses lines, receivers and a count."""

    name = ""
    nudge = b""

    def line(self, streams: Sequence[str], message: Message, requests: int, window: int) -> Line:
        """A producer that sends its requests to `streams` in turn."""
        raise NotImplementedError

    def greet(self) -> socket.socket:
        raise NotImplementedError

    def receiver(self, stream: str, message: Message, pull: int) -> Receiver:
        """Args: pull: the number of messages in one request."""
        raise NotImplementedError

    def leave(self, receivers: Sequence[Receiver]) -> None:
        """Remove the system's state of consumers after their connections are closed."""

    def stored(self, topic: str, partitions: int) -> int:
        raise NotImplementedError

    def written(self, topic: str, partitions: int) -> int:
        """The number of messages that the system has accepted so far, including messages that were removed by reading."""
        return self.stored(topic, partitions)

    def produce(self, topic: str, message: Message, amount: Amount, *, partitions: int = 1, producers: int = 1) -> Load:
        fits = min(WINDOW_BYTES // (message.value_bytes * message.batch), ALL_WINDOWS // producers)
        window = max(2, min(ONE_WINDOW if message.batch == 1 else BATCH_WINDOW, fits))
        chunk = max(1, min(window // CHUNKS, int(amount.messages // message.batch) or 1))
        streams = streams_of(topic, partitions)
        shares = [streams[number % partitions :: producers] for number in range(producers)]
        most = max(map(len, shares))
        lines = [self.line(share, message, max(chunk, most), max(window, most)) for share in shares]
        before = self.written(topic, partitions)

        def all_stored(requests: int) -> None:
            wait_for_stored(self.name, lambda: self.written(topic, partitions), before + requests * message.batch)

        def settle(requests: int) -> None:
            if message.acks == 0:
                all_stored(requests)

        requests, seconds = drive(lines, amount.seconds, amount.messages / message.batch, settle)
        all_stored(requests)
        return Load(requests, requests * message.batch, seconds)

    def consume(self, topic: str, message: Message, messages: int, *, partitions: int = 1, pull_bytes: int) -> Load:
        pull = max(pull_bytes // message.value_bytes // partitions, 1)
        with closing(Watch()) as watch:
            receivers = [self.receiver(stream, message, pull) for stream in streams_of(topic, partitions)]
            load = read(watch, receivers, messages)
        self.leave(receivers)
        return load

    def end_to_end(self, topics: Sequence[str], message: Message, pace: Pace, *, partitions: int = 1, waiting: int = 0) -> Delays:
        streams = [stream for topic in topics for stream in streams_of(topic, partitions)]
        one = Message(message.value_bytes, 1, message.acks)
        with closing(Watch()) as watch:
            lines = [self.line([stream], one, 1, ONE_WINDOW) for stream in streams]
            receivers = [self.receiver(stream, one, PULL) for stream in streams]
            with undisturbed():
                found = on_schedule(watch, lines, receivers, pace, waiting)
        self.leave(receivers)
        return found


def connect(address: tuple[str, int]) -> socket.socket:
    line = socket.create_connection(address, timeout=STALLED_S)
    line.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return line


def streams_of(topic: str, partitions: int) -> list[str]:
    return [f"{topic}-{number}" for number in range(partitions)]


class _Inbox:
    """The received bytes of a socket, and the function that consumes them."""

    def __init__(self, of: Any) -> None:
        self.socket = of.socket
        self._take = of.take
        self._buffer = memoryview(bytearray(RECEIVE_BYTES * 2))
        self._filled = 0

    def receive(self) -> int:
        """Receive; returns the number of complete answers or messages."""
        size = self.socket.recv_into(self._buffer[self._filled :])
        if not size:
            raise BadAnswer("the server closed the connection")
        self._filled += size
        count: int
        count, used = self._take(self._buffer[: self._filled])
        if used:
            rest = bytes(self._buffer[used : self._filled])
            self._filled = len(rest)
            self._buffer[: len(rest)] = rest
        elif self._filled == len(self._buffer):
            self._grow()
        return count

    def _grow(self) -> None:
        """Double the buffer for an incomplete answer."""
        if self._filled > MOST_BYTES:
            raise BadAnswer("an answer that does not end")
        grown = memoryview(bytearray(2 * self._filled))
        grown[: self._filled] = self._buffer
        self._buffer = grown


class Watch:
    """Waits for data on many sockets, with the time precision of `select`.

    Create it before the sockets: `select` accepts only small descriptors, and epoll waits in whole milliseconds.
    """

    def __init__(self) -> None:
        self._poller = select.epoll()

    def add(self, sockets: Iterable[socket.socket]) -> None:
        for each in sockets:
            self._poller.register(each.fileno(), select.EPOLLIN)

    def readable(self, seconds: float) -> list[int]:
        if not select.select([self._poller], (), (), seconds)[0]:
            return []
        return [descriptor for descriptor, _ in self._poller.poll(0)]

    def close(self) -> None:
        self._poller.close()


def read(watch: Watch, receivers: Sequence[Receiver], messages: int) -> Load:
    """Read until `messages` messages have arrived."""
    inboxes = {receiver.socket.fileno(): _Inbox(receiver) for receiver in receivers}
    try:
        watch.add(receiver.socket for receiver in receivers)
        began = time.perf_counter()
        for receiver in receivers:
            receiver.begin()
        came = 0
        while came < messages:
            readable = watch.readable(STALLED_S)
            if not readable:
                raise BadAnswer(f"{came} of {messages} messages came, then none for {STALLED_S:g} s")
            came += sum(inboxes[descriptor].receive() for descriptor in readable)
        return Load(len(receivers), came, time.perf_counter() - began)
    finally:
        for receiver in receivers:
            receiver.socket.close()


def on_schedule(watch: Watch, lines: Sequence[Line], receivers: Sequence[Receiver], pace: Pace, waiting: int = 0) -> Delays:
    """Send one message after the other to the lines in turn. Receiver i reads the stream that line i writes to; this stream has
    `waiting` messages at the start."""
    wake_in_time()
    try:
        watch.add([*(line.socket for line in lines), *(receiver.socket for receiver in receivers)])
        return _Schedule(lines, receivers, pace, waiting).run(watch)
    finally:
        for line in lines:
            line.socket.close()
        for receiver in receivers:
            receiver.socket.close()


class _Schedule:
    """One run of `on_schedule`."""

    def __init__(self, lines: Sequence[Line], receivers: Sequence[Receiver], pace: Pace, waiting: int) -> None:
        self._lines, self._receivers = lines, receivers
        self._rate, self._total, self._waiting, self._uncounted = pace.rate, pace.total, waiting, pace.uncounted
        self._counts_from = 0.0
        self._answers = {line.socket.fileno(): _Inbox(line) for line in lines}
        self._inboxes = {receiver.socket.fileno(): (number, _Inbox(receiver)) for number, receiver in enumerate(receivers)}
        self._meant: list[array[float]] = [array("d") for _ in lines]
        self._taken = [-waiting] * len(lines)  # messages of this run that each line has taken; negative while older ones are left
        self._delays: array[float] = array("d")
        self._sent = self._came = 0

    def run(self, watch: Watch) -> Delays:
        began = time.perf_counter() + 0.01
        self._counts_from = began + self._uncounted / self._rate
        for receiver in self._receivers:
            receiver.begin()
        backlog, caught_up = self._waiting * len(self._lines), (0, 0.0)
        while self._came < backlog + self._total:
            self._send(began)
            due = began + self._sent / self._rate - time.perf_counter()
            readable = watch.readable(max(due, 0) if self._sent < self._total else STALLED_S)
            if not readable and self._sent == self._total:
                raise BadAnswer(f"{self._came - backlog} of {self._total} messages came, then none for {STALLED_S:g} s")
            for descriptor in readable:
                if descriptor in self._answers:
                    self._answers[descriptor].receive()
                else:
                    self._take(*self._inboxes[descriptor])
            if backlog and not caught_up[0] and self._came >= backlog + self._sent - self._rate * SLACK_S:
                caught_up = self._came, time.perf_counter() - began
        return Delays(array("d", sorted(self._delays)), caught_up=caught_up)

    def _send(self, began: float) -> None:
        now = time.perf_counter()
        while self._sent < self._total and began + self._sent / self._rate <= now:
            number = self._sent % len(self._lines)
            self._meant[number].append(began + self._sent / self._rate)
            self._lines[number].socket.sendall(self._lines[number].chunk)
            self._sent += 1

    def _take(self, number: int, inbox: _Inbox) -> None:
        count, now = inbox.receive(), time.perf_counter()
        before, after = self._taken[number], self._taken[number] + count
        came = self._meant[number][max(before, 0) : max(after, 0)]
        self._delays.extend((now - at) * 1000 for at in came if at >= self._counts_from)
        self._taken[number] = after
        self._came += count
