"""`connections`: what a client costs that does next to nothing, and what many of them cost one that is busy."""

from __future__ import annotations

import fcntl
import os
import socket
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from bench.latency import STALLED_S
from bench.peers.peer import Message, Pace, Peer
from bench.peers.process import cpu_of, resident_mb
from bench.suite.case import Case, fresh_name
from bench.suite.kreps import percentiles
from bench.suite.measure import Figures, Measure, Meter, Options, View

OUT_OF_THE_WAY = 4_096  # descriptors from here on, so that those of the busy client are small enough for select
SETTLE_S, IDLE_S = 1.0, 2.0
RATE, RATE_S = 1_000, 3.0
ONE = Message(100, 1, 1)
SLOW = 5_000  # clients, from which one repetition takes minutes
LIMITS_MB = {10_000: 400.0}


@contextmanager
def crowd(peer: Peer, count: int) -> Iterator[list[int]]:
    """So many clients that have greeted, as descriptors."""
    held: list[int] = []
    try:
        for _ in range(count):
            with peer.greet() as line:
                held.append(fcntl.fcntl(line.fileno(), fcntl.F_DUPFD_CLOEXEC, OUT_OF_THE_WAY))
        yield held
    finally:
        for descriptor in held:
            os.close(descriptor)


def _nudge(peer: Peer, held: Sequence[int]) -> None:
    """Each client asks something small once."""
    if not peer.nudge:
        return
    for descriptor in held:
        with socket.socket(fileno=os.dup(descriptor)) as line:
            line.settimeout(STALLED_S)
            line.sendall(peer.nudge)
            line.recv(65_536)


def _crowded(count: int) -> Callable[[Peer, Meter], Figures]:
    def run(peer: Peer, meter: Meter) -> Figures:
        topic = fresh_name("crowd")
        peer.create(topic, 1)
        peer.end_to_end([topic], ONE, Pace(RATE, 1.0))
        alone = resident_mb(peer.pids)
        with crowd(peer, count) as held:
            _nudge(peer, held)
            time.sleep(SETTLE_S)
            crowded = resident_mb(peer.pids)
            spent = cpu_of(peer.pids)
            time.sleep(IDLE_S)
            share = (cpu_of(peer.pids) - spent) / IDLE_S * 100
            busy = fresh_name("busy")
            peer.create(busy, 1)
            delays = percentiles(peer.end_to_end([busy], ONE, Pace(RATE, RATE_S)))
            _nudge(peer, held)
        return {
            "value": crowded,
            "kb_each": max(crowded - alone, 0.0) * 1000 / count,
            "idle_cpu": share,
            "busy_p99": delays["p99"],
        }

    return run


def _measures(options: Options) -> Sequence[Measure]:
    return [
        Measure(
            f"memory-{count}",
            f"memory with {count:,} connections",
            "MB",
            _crowded(count),
            higher_is_better=False,
            is_fresh=True,
            rounds=1 if count > SLOW else min(options.rounds, 2),
            limit=LIMITS_MB.get(count),
            views=(
                View(f"each-{count}", f"memory of each of {count:,} connections", "kB", "kb_each"),
                View(f"cpu-{count}", f"CPU while {count:,} connections are idle", "% of a core", "idle_cpu"),
                View(f"busy-{count}", f"p99 of a client with {RATE:,} messages/s beside {count:,} others", "ms", "busy_p99"),
            ),
        )
        for count in options.connections
    ]


CONNECTIONS = Case(
    "connections",
    "Many connections",
    "Clients that connect, greet, ask something small, and stay.",
    _measures,
    charts=("memory-1000", "memory-10000"),
)
