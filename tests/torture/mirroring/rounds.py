"""Rounds: strike, see that copying goes on, take it back, wait until all is well, compare everything."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path

from barnabas.client.blocking import BlockingClient
from barnabas.client.errors import ClientError
from barnabas.client.results import LATEST
from barnabas.errors import KafkaError
from barnabas.testing.children import Guard
from tests.differential.mirroring.differ import Differ
from tests.differential.mirroring.load import PLAIN, Load
from tests.server.mirroring.clusters import create_link
from tests.spans import go_on_for, until_random_moment
from tests.torture.check import Broken
from tests.torture.cluster.network import Namespaces, Network
from tests.torture.mirroring import declared
from tests.torture.mirroring.clusters import KafkaSource, Source, Target
from tests.torture.mirroring.declared import Declared
from tests.torture.mirroring.distance import LongWay
from tests.torture.mirroring.faults import KINDS, Arena
from tests.torture.mirroring.groups import Groups, demand_in_copy, differing
from tests.waiting import wait_while

WITHIN_S = 120.0  # until everything works again
DWELL_S = 1.0  # before a fault, and between a kill and the restart
HOLD_S = 5.0
LOOK_AGAIN_S = 0.1
PAUSE_S = 0.05  # of each writer between two batches
GROW_EACH = 7  # rounds
LINK = {"refresh_topics_interval_seconds": "1", "sync_group_offsets_interval_seconds": "1", **declared.LINK}
SOURCES = {"barnabas": Source, "kafka": KafkaSource}
Partition = tuple[str, int]


@dataclass(frozen=True, slots=True)
class Round:
    """The result of a round.

    Args:
        resumed_s: from a kill until the copies had everything that the source had after it, while the broker was still down; 0 if the
            fault was no kill.
        batches: compared, over the wire and in the folders of six brokers.
        acknowledged: records in the source so far.
        offsets: of groups that were compared.
    """

    number: int
    told: str
    resumed_s: float
    batches: int
    acknowledged: int
    offsets: int


@dataclass(frozen=True, slots=True)
class Plan:
    rounds: int
    seed: int
    kinds: Sequence[str] = tuple(KINDS)
    hold_s: float = HOLD_S
    source: str = "barnabas"

    def kind_of(self, number: int) -> str:
        """Every kind in its turn."""
        return self.kinds[(number - 1) % len(self.kinds)]


def torture(plan: Plan, network: Network, folder: Path, guard: Guard) -> Iterator[Round]:
    """Yields each round when it is over; raises Broken or AssertionError."""
    rng = random.Random(plan.seed)
    source = SOURCES[plan.source](folder / "source", network, guard)
    target = Target(folder / "target", network, guard)
    long_way = LongWay(network, source.brokers, target.brokers, plan.seed) if isinstance(network, Namespaces) else nullcontext()
    try:
        with long_way as way:
            source.start()
            target.start()
            with (
                Load(source.bootstrap, plan.seed, pause_s=PAUSE_S, replicas=3) as load,
                Groups(source.bootstrap) as groups,
            ):
                declares = Declared(source.bootstrap, target.bootstrap, 3)
                create_link(target.bootstrap, source.bootstrap, **LINK)
                torment = _Torment(Arena(source, target, network, way), load, groups, declares, rng, plan)
                for number in range(1, plan.rounds + 1):
                    yield torment.round(number)
    finally:
        network.heal()
        source.stop()
        target.stop()


class _Torment:
    def __init__(self, arena: Arena, load: Load, groups: Groups, declares: Declared, rng: random.Random, plan: Plan) -> None:
        self._arena, self._load, self._groups, self._rng, self._plan = arena, load, groups, rng, plan
        self._declared = declares
        self._source, self._target = arena.source.bootstrap, arena.target.bootstrap
        self._differ = Differ(self._source, self._target, arena.source.folders, arena.target.folders)

    def round(self, number: int) -> Round:
        kind, resumed_s, before = self._plan.kind_of(number), 0.0, self._differ.batches
        self._wait_for_copies()
        until_random_moment(self._rng, DWELL_S)
        self._declared.change(self._rng, 2 * number)
        strike = KINDS[kind](self._arena, self._rng)
        began = time.monotonic()
        try:
            if kind.startswith("kill"):
                go_on_for(DWELL_S)
                self._wait_for_copies()
                resumed_s = time.monotonic() - began
            else:
                self._change_while_it_lags(number)
                go_on_for(self._plan.hold_s)
            if strike.stops_copying:
                demand_in_copy(self._target, self._load.partitions)
        finally:
            strike.undo()
        self._arena.source.wait_whole()
        self._arena.target.wait_whole()
        self._differ.compare_prefix(self._load.partitions)
        self._load.delete_most(self._rng)
        if number % GROW_EACH == 0:
            self._load.grow()
        offsets = self._compare()
        return Round(number, strike.told, resumed_s, self._differ.batches - before, self._load.ledger.count, offsets)

    def _change_while_it_lags(self, number: int) -> None:
        """Records that the copies may not have yet are deleted in the source, and what is declared there changes."""
        self._load.delete_most(self._rng)
        self._declared.change(self._rng, 2 * number + 1)

    def _compare(self) -> int:
        with self._load.pause():
            if self._groups.failures:
                raise Broken(f"a member of a group failed: {self._groups.failures[0]!r}")
            self._differ.compare(self._load.partitions, self._load.ledger)
            self._wait(self._declared.differing, "something does not follow")
            self._differ.compare_prefix(self._declared.partitions)
            self._wait(
                lambda: differing(self._source, self._target, self._load.partitions), "the offsets of groups are not copied"
            )
            return demand_in_copy(self._target, self._load.partitions)

    def _wait_for_copies(self) -> None:
        """Until the copies have everything that the source has now."""
        ends: dict[Partition, int] = {}
        self._wait(lambda: self._read_ends(ends), "the source does not answer")
        self._wait(lambda: self._missing(ends), "the copies do not go on")

    def _read_ends(self, ends: dict[Partition, int]) -> str:
        wanted = [each for each in self._load.partitions if each[0] == PLAIN]
        with BlockingClient.to(self._source) as client:
            ends |= {each: found.offset for each, found in client.list_offsets(dict.fromkeys(wanted, LATEST)).items()}
        return ""

    def _missing(self, ends: dict[Partition, int]) -> str:
        with BlockingClient.to(self._target) as client:
            found = client.list_offsets(dict.fromkeys(ends, LATEST))
        return next(
            (f"{each} ends at {found[each].offset}, {end} is wanted" for each, end in ends.items() if found[each].offset < end),
            "",
        )

    @staticmethod
    def _wait(look: Callable[[], str], what: str) -> None:
        """Until `look` returns ""; raises AssertionError with what it returned last."""

        def missing() -> str:
            try:
                return look()
            except (ClientError, KafkaError) as error:
                return str(error) or repr(error)

        wait_while(missing, what, within_s=WITHIN_S, look_again_s=LOOK_AGAIN_S)
