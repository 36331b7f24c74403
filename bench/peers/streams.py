"""What the peers with a protocol of their own share: lines and receivers on plain sockets, as many streams as partitions, one loop.

A `Line` (see `bench.load`) sends, a `Receiver` asks and counts. End to end, the n-th message of a stream is the n-th that was sent to it,
so its time follows from the counts.
"""

from __future__ import annotations

import select
import socket
import time
from array import array
from collections.abc import Sequence
from typing import Any, Protocol

from bench.latency import STALLED_S, undisturbed, wake_in_time
from bench.load import Line, Load, drive
from bench.peers.peer import Amount, Delays, Message, wait_for_stored
from bench.peers.process import OwnProcess
from bench.wire import BadAnswer

RECEIVE_BYTES = 1024 * 1024
WINDOW_BYTES = 4_000_000  # in flight at most, as for Kafka's protocol
ONE_WINDOW, BATCH_WINDOW, CHUNKS = 256, 64, 4


class Receiver(Protocol):
    """One connection of a consumer."""

    @property
    def socket(self) -> socket.socket: ...

    def begin(self) -> None:
        """Ask for the first messages."""
        ...

    def take(self, received: memoryview) -> tuple[int, int]:
        """Messages in the whole answers at the beginning of `received`, and their bytes; asks for more."""
        ...


class StreamPeer(OwnProcess):
    """The part of a `Peer` that follows from lines, receivers and a count."""

    name = ""
    nudge = b""

    def line(self, stream: str, message: Message, requests: int, window: int) -> Line:
        raise NotImplementedError

    def receiver(self, stream: str, message: Message, pull: int) -> Receiver:
        """Args: pull: messages to ask for at a time."""
        raise NotImplementedError

    def stored(self, topic: str, partitions: int) -> int:
        raise NotImplementedError

    def produce(self, topic: str, message: Message, amount: Amount, *, partitions: int = 1, producers: int = 1) -> Load:
        fits = WINDOW_BYTES // (message.value_bytes * message.batch)
        window = max(2, min(ONE_WINDOW if message.batch == 1 else BATCH_WINDOW, fits))
        chunk = max(1, min(window // CHUNKS, int(amount.messages // message.batch) or 1))
        before = self.stored(topic, partitions)
        streams = streams_of(topic, partitions)
        lines = [self.line(streams[number % partitions], message, chunk, window) for number in range(producers)]

        def settle(requests: int) -> None:
            if message.acks == 0:
                wait_for_stored(self.name, lambda: self.stored(topic, partitions), before + requests * message.batch)

        requests, seconds = drive(lines, amount.seconds, amount.messages / message.batch, settle)
        if self.stored(topic, partitions) < before + requests * message.batch:
            raise BadAnswer(f"{self.name} does not have all messages that it acknowledged")
        return Load(requests, requests * message.batch, seconds)

    def consume(self, topic: str, message: Message, messages: int, *, partitions: int = 1, pull_bytes: int) -> Load:
        pull = max(pull_bytes // message.value_bytes // partitions, 1)
        return read([self.receiver(stream, message, pull) for stream in streams_of(topic, partitions)], messages)

    def end_to_end(self, topic: str, message: Message, rate: int, seconds: float, *, partitions: int = 1) -> Delays:
        streams = streams_of(topic, partitions)
        one = Message(message.value_bytes, 1, message.acks)
        lines = [self.line(stream, one, 1, ONE_WINDOW) for stream in streams]
        receivers = [self.receiver(stream, one, ONE_WINDOW) for stream in streams]
        with undisturbed():
            return on_schedule(lines, receivers, rate, int(rate * seconds))


def connect(address: tuple[str, int]) -> socket.socket:
    line = socket.create_connection(address, timeout=STALLED_S)
    line.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return line


def streams_of(topic: str, partitions: int) -> list[str]:
    return [f"{topic}-{number}" for number in range(partitions)]


class _Inbox:
    """What a socket has brought, and what is to be made of it."""

    def __init__(self, of: Any) -> None:
        self.socket = of.socket
        self._take = of.take
        self._buffer = memoryview(bytearray(RECEIVE_BYTES * 2))
        self._filled = 0

    def receive(self) -> int:
        """Answers or messages that are whole now."""
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
            raise BadAnswer("an answer that is larger than what was asked for")
        return count


def read(receivers: Sequence[Receiver], messages: int) -> Load:
    """Until `messages` came."""
    inboxes = {receiver.socket.fileno(): _Inbox(receiver) for receiver in receivers}
    try:
        began = time.perf_counter()
        for receiver in receivers:
            receiver.begin()
        came = 0
        while came < messages:
            readable, _, _ = select.select(inboxes, (), (), STALLED_S)
            if not readable:
                raise BadAnswer(f"{came} of {messages} messages came, then none for {STALLED_S:g} s")
            came += sum(inboxes[descriptor].receive() for descriptor in readable)
        return Load(len(receivers), came, time.perf_counter() - began)
    finally:
        for receiver in receivers:
            receiver.socket.close()


def on_schedule(lines: Sequence[Line], receivers: Sequence[Receiver], rate: int, total: int) -> Delays:
    """Send one message after the other to the lines in turn; receiver i is of the stream that line i writes to."""
    wake_in_time()
    answers = {line.socket.fileno(): _Inbox(line) for line in lines}
    came = {receiver.socket.fileno(): (number, _Inbox(receiver)) for number, receiver in enumerate(receivers)}
    meant: list[array[float]] = [array("d") for _ in lines]
    taken = [0] * len(lines)
    delays: array[float] = array("d")
    try:
        for receiver in receivers:
            receiver.begin()
        began = time.perf_counter() + 0.01
        sent = 0
        while len(delays) < total:
            now = time.perf_counter()
            while sent < total and began + sent / rate <= now:
                number = sent % len(lines)
                meant[number].append(began + sent / rate)
                lines[number].socket.sendall(lines[number].chunk)
                sent += 1
            wait = began + sent / rate - time.perf_counter() if sent < total else STALLED_S
            readable, _, _ = select.select([*came, *answers], (), (), max(wait, 0))
            if not readable and sent == total:
                raise BadAnswer(f"{len(delays)} of {total} messages came, then none for {STALLED_S:g} s")
            for descriptor in readable:
                if descriptor in answers:
                    answers[descriptor].receive()
                    continue
                number, inbox = came[descriptor]
                count, now = inbox.receive(), time.perf_counter()
                delays.extend((now - at) * 1000 for at in meant[number][taken[number] : taken[number] + count])
                taken[number] += count
    finally:
        for line in lines:
            line.socket.close()
        for receiver in receivers:
            receiver.socket.close()
    return Delays(array("d", sorted(delays)))
