"""`connections`: the cost of an almost idle client, and the effect of many such clients on a busy client."""

from __future__ import annotations

import fcntl
import itertools
import multiprocessing
import os
import signal
import socket
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from multiprocessing.sharedctypes import Synchronized

from barnabas.signals import die_with_parent
from bench.interpreter import Interpreter
from bench.latency import STALLED_S
from bench.meter import Figures, Meter
from bench.peers.peer import Message, Pace, Peer
from bench.peers.process import cpu_of, resident_mb
from bench.relay import Relay
from bench.suite.case import Case, fresh_name
from bench.suite.kreps import percentiles, relayed
from bench.suite.measure import Measure, Options, View
from bench.wire import BadAnswer

# the idle connections get descriptors from here on, so that those of the busy client are small enough for select
OUT_OF_THE_WAY = 4_096
SETTLE_S, IDLE_S = 1.0, 2.0
RATE, RATE_S = 1_000, 3.0
TRICKLE_PER_S = 500
ONE = Message(100, 1, 1)
REPEATED = b"something small"
LIMITS_MB = {10_000: 400.0}


@contextmanager
def crowd(greet: Callable[[], socket.socket], count: int) -> Iterator[list[int]]:
    """`count` clients after their greeting, as descriptors."""
    held: list[int] = []
    try:
        for _ in range(count):
            with greet() as line:
                held.append(fcntl.fcntl(line.fileno(), fcntl.F_DUPFD_CLOEXEC, OUT_OF_THE_WAY))
        yield held
    finally:
        for descriptor in held:
            os.close(descriptor)


def _nudge(nudge: bytes, held: Sequence[int]) -> None:
    """Send one small request from each client."""
    for descriptor in held:
        with socket.socket(fileno=os.dup(descriptor)) as line:
            line.settimeout(STALLED_S)
            line.sendall(nudge)
            if not line.recv(65_536):
                raise BadAnswer("the server closed a connection of the crowd")


def _trickle(nudge: bytes, held: Sequence[int], asked: Synchronized[int]) -> None:
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    die_with_parent()
    began = time.monotonic()
    for number in itertools.count():
        time.sleep(max(began + number / TRICKLE_PER_S - time.monotonic(), 0))
        _nudge(nudge, [held[number % len(held)]])
        asked.value = number + 1


@contextmanager
def trickling(nudge: bytes, held: Sequence[int]) -> Iterator[Synchronized[int]]:
    """During the block, another process sends a small request from one client after the other; gives the number of answers.

    Raises:
        BadAnswer: a request got no answer.
    """
    forked = multiprocessing.get_context("fork")
    asked = forked.Value("q", 0)
    process = forked.Process(target=_trickle, args=(nudge, held, asked), daemon=True)
    process.start()
    try:
        yield asked
    finally:
        process.terminate()
        process.join()
    if process.exitcode != -signal.SIGTERM:
        raise BadAnswer("a client of the crowd was not answered")


def _share_of_core(pids: Sequence[int]) -> float:
    spent = cpu_of(pids)
    time.sleep(IDLE_S)
    return (cpu_of(pids) - spent) / IDLE_S * 100


def _busy_p99(peer: Peer) -> float:
    busy = fresh_name("busy")
    peer.create(busy, 1)
    return percentiles(peer.end_to_end([busy], ONE, Pace(RATE, RATE_S)))["p99"]


def _relayed_p99() -> float:
    return relayed([fresh_name("busy")], ONE, Pace(RATE, RATE_S))["p99"]


def _crowded(count: int) -> Callable[[Peer, Meter], Figures]:
    def run(peer: Peer, meter: Meter) -> Figures:
        topic = fresh_name("crowd")
        peer.create(topic, 1)
        peer.end_to_end([topic], ONE, Pace(RATE, 1.0))
        alone = resident_mb(peer.pids)
        with crowd(peer.greet, count) as held:
            if peer.nudge:
                _nudge(peer.nudge, held)
            time.sleep(SETTLE_S)
            crowded = resident_mb(peer.pids)
            figures = {
                "value": crowded,
                "kb_each": max(crowded - alone, 0.0) * 1000 / count,
                "idle_cpu": _share_of_core(peer.pids),
                "busy_p99": _busy_p99(peer),
            }
            if peer.nudge:
                with trickling(peer.nudge, held) as asked:
                    began = time.monotonic()
                    figures |= {"trickling_cpu": _share_of_core(peer.pids), "trickling_p99": _busy_p99(peer)}
                    figures["asked_per_s"] = asked.value / (time.monotonic() - began)
                figures["trickling_mb"] = resident_mb(peer.pids)
                _nudge(peer.nudge, held)
        return figures

    return run


def _interpreter(count: int) -> Callable[[], Figures]:
    """The same with an interpreter that repeats what it receives; the busy client uses a relay that only forwards."""

    def run() -> Figures:
        with Interpreter() as least:
            pids, alone = [least.pid], resident_mb([least.pid])
            with crowd(lambda: socket.create_connection(least.address), count) as held:
                _nudge(REPEATED, held)
                time.sleep(SETTLE_S)
                crowded = resident_mb(pids)
                figures = {
                    "value": crowded,
                    "kb_each": max(crowded - alone, 0.0) * 1000 / count,
                    "idle_cpu": _share_of_core(pids),
                    "busy_p99": _relayed_p99(),
                }
                with trickling(REPEATED, held):
                    figures |= {"trickling_cpu": _share_of_core(pids), "trickling_p99": _relayed_p99()}
                figures["trickling_mb"] = resident_mb(pids)
        return figures

    return run


def _views(count: int) -> tuple[View, ...]:
    asking = f"{count:,} connections that ask something small in turn, up to {TRICKLE_PER_S} a second in all"
    no_nudge = "no small request of its protocol is known here"
    return (
        View(f"each-{count}", f"memory of each of {count:,} connections", "kB", "kb_each"),
        View(f"cpu-{count}", f"CPU while {count:,} connections are idle", "% of a core", "idle_cpu"),
        View(
            f"busy-{count}",
            f"p99 of a client with {RATE:,} messages/s beside {count:,} others",
            "ms",
            "busy_p99",
            bare_name=Relay.name,
        ),
        View(f"trickling-memory-{count}", f"memory with {asking}", "MB", "trickling_mb", missing=no_nudge),
        View(f"trickling-cpu-{count}", f"CPU with {asking}", "% of a core", "trickling_cpu", missing=no_nudge),
        View(
            f"trickling-busy-{count}",
            f"p99 of the busy client beside {asking}",
            "ms",
            "trickling_p99",
            missing=no_nudge,
            bare_name=Relay.name,
        ),
    )


def _measures(options: Options) -> Sequence[Measure]:
    return [
        Measure(
            f"memory-{count}",
            f"memory with {count:,} connections",
            "MB",
            _crowded(count),
            higher_is_better=False,
            bare=_interpreter(count),
            bare_name=Interpreter.name,
            is_fresh=True,
            limit=LIMITS_MB.get(count),
            views=_views(count),
        )
        for count in options.connections
    ]


CONNECTIONS = Case(
    "connections",
    "Many connections",
    "Clients connect, greet, send a small request and stay: idle at first, then with small requests one after the other, sent by a "
    "process of its own. The bare interpreter is Python with the same event loop, which repeats what it receives. Beside the busy "
    "client, it is a loop of system calls that writes what arrives to a file and passes it on.",
    _measures,
    charts=("memory-1000", "memory-10000"),
)
