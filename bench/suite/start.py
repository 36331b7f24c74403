"""`start`: the time from the start of the process to its first answers and to the first delivered message, and the idle
memory."""

from __future__ import annotations

import socket
import time
from collections.abc import Sequence

from bench.interpreter import Interpreter
from bench.meter import Figures, Meter
from bench.peers.peer import Amount, Message, Peer
from bench.peers.process import cpu_of, resident_mb
from bench.suite.case import Case, fresh_name
from bench.suite.measure import Measure, Options, View

FIRST = Message(100, 1, 1)
SETTLE_S, IDLE_S = 1.0, 3.0
PULL_BYTES = 10_000


def _start(peer: Peer, meter: Meter) -> Figures:
    topic = fresh_name("first")
    began = time.perf_counter()
    peer.create(topic, 1)
    peer.produce(topic, FIRST, Amount(1, 10.0))
    peer.consume(topic, FIRST, 1, pull_bytes=PULL_BYTES)
    first = time.perf_counter() - began
    time.sleep(SETTLE_S)
    spent = cpu_of(peer.pids)
    time.sleep(IDLE_S)
    share = (cpu_of(peer.pids) - spent) / IDLE_S * 100
    ready = peer.ready_after_s
    return {"value": ready, "first": ready + first, "idle_mb": resident_mb(peer.pids), "idle_cpu": share}


def interpreter() -> Figures:
    """The same for a minimal server in Python; a byte is used instead of the first message."""
    with Interpreter() as least:
        began = time.perf_counter()
        with socket.create_connection(least.address) as line:
            line.sendall(b"1")
            line.recv(1)
        first = time.perf_counter() - began
        time.sleep(SETTLE_S)
        spent = cpu_of([least.pid])
        time.sleep(IDLE_S)
        share = (cpu_of([least.pid]) - spent) / IDLE_S * 100
        ready = least.ready_after_s
        return {"value": ready, "first": ready + first, "idle_mb": resident_mb([least.pid]), "idle_cpu": share}


def _measures(options: Options) -> Sequence[Measure]:
    views = (
        View("first", "time until the first message is through", "s", "first"),
        View("idle", "memory while idle after that", "MB", "idle_mb", limit=60.0),
        View("idle-cpu", "CPU while idle after that", "% of a core", "idle_cpu", limit=1.0),
    )
    ready = Measure(
        "ready",
        "time to ready",
        "s",
        _start,
        higher_is_better=False,
        bare=interpreter,
        bare_name=Interpreter.name,
        is_fresh=True,
        limit=0.3,
        views=views,
    )
    return [ready]


START = Case(
    "start",
    "Start",
    "Times run from the start of the process with an empty folder, until it answers, and until a topic was made and a message was "
    "written and read. Memory in RAM is taken four seconds later. The bare interpreter is Python with the same event loop. It "
    "listens and repeats what it receives.",
    _measures,
    charts=("ready", "idle"),
)
