"""Latency under a fixed rate: requests are sent by a fixed schedule, independent of the answers.

The latency counts from the planned time of sending. So the stall of a server counts for all requests that it delays. The result
also contains the largest delay of the generator itself. The generator gets priority on the machine if the system allows it
(`undisturbed`), because real clients have machines of their own.
"""

from __future__ import annotations

import ctypes
import os
import select
import socket
import time
from array import array
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from bench.wire import AnswerReader, AnswerShape, BadAnswer, produce_frame

CONNECTIONS = 8
_PR_SET_TIMERSLACK = 29
_SLACK_NS = 1_000  # the kernel's default, 50 us, would be a large part of the measured time
STALLED_S = 10.0
SLACK_S = 0.01  # consumers have caught up when at most the records of this time are missing
PERCENTILES = (50.0, 99.0, 99.9)


@dataclass(frozen=True, slots=True)
class Latency:
    """The milliseconds by percentile, the maximum, and the largest delay of the generator itself."""

    requests: int
    by_percentile: dict[str, float]
    max_ms: float
    generator_late_p99_ms: float


class _Line:
    def __init__(self, address: tuple[str, int], topic: str, partition: int, batch: bytes, acks: int) -> None:
        self.socket = socket.create_connection(address)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.socket.setblocking(False)
        self._frame = produce_frame(topic, partition, batch, acks=acks)
        self._answers = AnswerReader(self.socket, AnswerShape(topic, 1))
        self._meant: deque[float] = deque()

    def send(self, meant: float) -> None:
        self._meant.append(meant)
        if self.socket.send(self._frame) != len(self._frame):
            raise BadAnswer("the server does not read: its socket is full")

    def receive(self, latencies: array[float]) -> None:
        answers, now = self._answers.receive()
        for _ in range(answers):
            latencies.append((now - self._meant.popleft()) * 1000)


def wake_in_time() -> None:
    """Make the kernel end waits of this thread exactly in time, instead of up to 50 us later."""
    ctypes.CDLL(None).prctl(_PR_SET_TIMERSLACK, _SLACK_NS, 0, 0, 0)


@contextmanager
def undisturbed() -> Iterator[None]:
    """In this context the thread runs as soon as it has work, if the system allows it; otherwise like any other thread."""
    before = os.sched_getscheduler(0), os.sched_getparam(0)
    try:
        os.sched_setscheduler(0, os.SCHED_RR | os.SCHED_RESET_ON_FORK, os.sched_param(1))
    except PermissionError:
        yield
        return
    try:
        yield
    finally:
        os.sched_setscheduler(0, before[0] & ~os.SCHED_RESET_ON_FORK, before[1])


def percentile(ordered: Sequence[float], percent: float) -> float:
    return ordered[min(int(len(ordered) * percent / 100), len(ordered) - 1)]


def measure(
    address: tuple[str, int], topic: str, *, partitions: int, batch: bytes, acks: int, rate: int, seconds: float
) -> Latency:
    """Send `rate` one-batch requests a second for `seconds`, spread over `CONNECTIONS`."""
    wake_in_time()
    lines = [_Line(address, topic, i % partitions, batch, acks) for i in range(CONNECTIONS)]
    latencies: array[float] = array("d")
    late: array[float] = array("d")
    try:
        with undisturbed():
            _run(lines, latencies, late, rate, int(rate * seconds))
    finally:
        for line in lines:
            line.socket.close()
    ordered, late_ordered = sorted(latencies), sorted(late)
    return Latency(
        len(ordered),
        {f"p{p:g}": percentile(ordered, p) for p in PERCENTILES},
        ordered[-1],
        late_ordered[int(len(late_ordered) * 0.99)],
    )


def _run(lines: list[_Line], latencies: array[float], late: array[float], rate: int, total: int) -> None:
    by_descriptor = {line.socket.fileno(): line for line in lines}
    began = time.perf_counter() + 0.01
    sent = 0
    while len(latencies) < total:
        now = time.perf_counter()
        while sent < total and began + sent / rate <= now:
            meant = began + sent / rate
            late.append((now - meant) * 1000)
            lines[sent % len(lines)].send(meant)
            sent += 1
        wait = began + sent / rate - time.perf_counter() if sent < total else STALLED_S
        readable, _, _ = select.select(by_descriptor, (), (), max(wait, 0))
        if not readable and sent == total:
            raise BadAnswer(f"no answer for {STALLED_S:g} s")
        for descriptor in readable:
            by_descriptor[descriptor].receive(latencies)
