"""`idle`: the cost of a thousand unused partitions: memory, CPU, and the time to create them."""

from __future__ import annotations

import time
from collections.abc import Sequence

from bench.interpreter import Interpreter
from bench.meter import Figures, Meter
from bench.peers.peer import Message, Pace, Peer
from bench.peers.process import cpu_of, resident_mb
from bench.suite.case import Case, fresh_name
from bench.suite.measure import Measure, Options, View
from bench.suite.start import interpreter

PARTITIONS, RATE = 1_000, 1_000
ONE = Message(100, 1, 1)
SETTLE_S, IDLE_S = 2.0, 5.0


def _idle(peer: Peer, meter: Meter) -> Figures:
    topic = fresh_name("idle")
    began = time.perf_counter()
    peer.create(topic, PARTITIONS)
    made = time.perf_counter() - began
    # writes and reads one message per partition
    peer.end_to_end([topic], ONE, Pace(RATE, PARTITIONS / RATE), partitions=PARTITIONS)
    time.sleep(SETTLE_S)
    spent = cpu_of(peer.pids)
    time.sleep(IDLE_S)
    share = (cpu_of(peer.pids) - spent) / IDLE_S * 100
    figures = {"value": resident_mb(peer.pids), "cpu": share}
    return figures if peer.is_made_by_writing else {**figures, "made": made}


def _interpreter() -> Figures:
    """The figures of an interpreter, which has no partitions."""
    found = interpreter()
    return {"value": found["idle_mb"], "cpu": found["idle_cpu"]}


def _measures(options: Options) -> Sequence[Measure]:
    views = (
        View("cpu", f"CPU while {PARTITIONS:,} partitions are idle", "% of a core", "cpu", limit=1.0),
        View(
            "made",
            f"time to make a topic of {PARTITIONS:,} partitions",
            "s",
            "made",
            missing="they are made by their first message",
        ),
    )
    return [
        Measure(
            "memory",
            f"memory with {PARTITIONS:,} partitions, idle",
            "MB",
            _idle,
            higher_is_better=False,
            bare=_interpreter,
            bare_name=Interpreter.name,
            is_fresh=True,
            limit=80.0,
            views=views,
        )
    ]


IDLE = Case(
    "idle",
    "A thousand partitions",
    "One topic of 1,000 partitions (streams, queues) is made in a system that was just started. One message is written to each and "
    "read, all clients leave, and two seconds later the system is watched for five. The bare interpreter is Python with the same "
    "event loop, without partitions.",
    _measures,
    charts=("memory", "cpu"),
)
