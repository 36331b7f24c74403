"""`groups`: the time until every partition has a consumer in a group of many members, at its start and after a member has
left."""

from __future__ import annotations

import time
from collections.abc import Sequence

from confluent_kafka import Consumer

from bench.meter import Figures, Meter
from bench.peers.peer import Peer
from bench.suite.case import Case, fresh_name
from bench.suite.measure import Measure, Options, View
from bench.wire import BadAnswer

MEMBERS, PARTITIONS = 100, 1_000
TIMEOUT_S = 180.0
POLL_S = 0.005


def _wait_assigned(members: Sequence[Consumer], began: float) -> float:
    """The seconds from `began` until the members together have each partition once, in shares that differ by at most one."""
    while time.perf_counter() - began < TIMEOUT_S:
        for member in members:
            member.poll(0)
        shares = [len(member.assignment()) for member in members]
        if sum(shares) == PARTITIONS and max(shares) - min(shares) <= 1:
            return time.perf_counter() - began
        time.sleep(POLL_S)
    raise BadAnswer(f"a group of {len(members)} was not stable after {TIMEOUT_S:g} s")


def _form(peer: Peer, meter: Meter) -> Figures:
    topic = fresh_name("group")
    peer.create(topic, PARTITIONS)
    settings = {"bootstrap.servers": "{}:{}".format(*peer.address), "group.id": topic, "auto.offset.reset": "earliest"}
    members = [Consumer(settings) for _ in range(MEMBERS)]
    try:
        with meter:
            began = time.perf_counter()
            for member in members:
                member.subscribe([topic])
            stable = _wait_assigned(members, began)
            left = time.perf_counter()
            members.pop().close()
            after = _wait_assigned(members, left)
    finally:
        for member in members:
            member.close()
        peer.delete(topic)
    return {"value": stable, "after_leave": after}


def _measures(options: Options) -> Sequence[Measure]:
    return [
        Measure(
            "form",
            f"{MEMBERS} members, {PARTITIONS:,} partitions: time to stable",
            "s",
            _form,
            higher_is_better=False,
            views=(View("leave", "stable again after one has left", "s", "after_leave"),),
        )
    ]


GROUPS = Case(
    "groups",
    "A group of a hundred",
    "Members of librdkafka, all in one process, subscribe to one topic at the same moment. Both servers first wait 3 s for more "
    "members (`group.initial.rebalance.delay.ms`).",
    _measures,
    only=("barnabas", "kafka"),
    why="no groups that share partitions",
    charts=("form",),
)
