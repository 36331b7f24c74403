"""Rounds: strike, wait, take it back, wait until all is well, check."""

from __future__ import annotations

import random
import time
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from barnabas.testing.children import Guard
from tests.spans import go_on_for, until_random_moment
from tests.torture.cluster.check import Checker
from tests.torture.cluster.clusters import Cluster
from tests.torture.cluster.faults import HOLD_S, KINDS
from tests.torture.cluster.load import LANGUAGES, Book, Load
from tests.torture.cluster.network import Network

WITHIN_S = 120.0  # until everything works again
DWELL_S = 1.0  # before a fault, and between a kill and the restart


@dataclass(frozen=True, slots=True)
class Round:
    number: int
    kind: str
    node: str
    unwritable_s: float  # the longest time in which a partition took no record with acks=all
    acknowledged: int  # records of the load in this round


@dataclass(frozen=True, slots=True)
class Plan:
    rounds: int
    seed: int
    kinds: Sequence[str] = tuple(KINDS)
    hold_s: float = HOLD_S
    languages: Sequence[str] = LANGUAGES

    def kind_of(self, number: int) -> str:
        """Every kind in its turn."""
        return self.kinds[(number - 1) % len(self.kinds)]


def torture(cluster: Cluster, network: Network, folder: Path, guard: Guard, plan: Plan) -> Iterator[Round]:
    """Yields each round when it is over; raises Broken or AssertionError."""
    rng = random.Random(plan.seed)
    try:
        cluster.start()
        with Load(cluster, folder, guard, plan.languages) as load:
            checker = Checker(cluster.bootstrap, load.book)
            _wait_for_progress(load)
            for number in range(1, plan.rounds + 1):
                yield _round(number, plan, cluster, network, load, checker, rng)
            load.stop_producers()
            checker.check_end()
            load.wait_for("groups read everything", lambda: _is_read(checker), WITHIN_S)
            checker.check_commits()
    finally:
        network.heal()
        cluster.stop()


def _round(
    number: int, plan: Plan, cluster: Cluster, network: Network, load: Load, checker: Checker, rng: random.Random
) -> Round:
    kind, before = plan.kind_of(number), sum(load.progress().values())
    until_random_moment(rng, DWELL_S)
    began = time.monotonic()
    strike = KINDS[kind](cluster, network, rng)
    try:
        if strike.is_kill:
            load.wait_for("all partitions are written to", lambda: _written_since(load.book, began + DWELL_S), WITHIN_S)
            go_on_for(DWELL_S)
        else:
            go_on_for(plan.hold_s)
    finally:
        strike.undo()
    cluster.wait_whole()
    _wait_for_progress(load)
    ended = time.monotonic()
    load.wait_for("all partitions are written to", lambda: _written_since(load.book, ended), WITHIN_S)
    checker.check()
    return Round(number, kind, strike.node, longest_gap(load.book, began, ended), sum(load.progress().values()) - before)


def _wait_for_progress(load: Load) -> None:
    before = load.progress()
    load.wait_for(
        "every producer is heard in every partition", lambda: all(n > before[k] for k, n in load.progress().items()), WITHIN_S
    )


def _is_read(checker: Checker) -> bool:
    checker.check()
    return not checker.unread()


def _written_since(book: Book, moment: float) -> bool:
    return all(times and times[-1] > moment for times in book.written.values())


def longest_gap(book: Book, began: float, ended: float) -> float:
    """The longest time between two records of the probe in one partition, of the times that overlap [began, ended]."""
    longest = 0.0
    for times in book.written.values():
        first = max(0, bisect_left(times, began) - 1)
        last = bisect_left(times, ended) + 1
        near = times[first:last]
        longest = max([longest, *(after - before for before, after in pairwise(near))])
    return longest
