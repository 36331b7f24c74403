"""Plans moves of replicas for operators of a cluster. Pure.

There are three plans: move all replicas off some brokers (`drain`), change the number of replicas (`resize`), and share the
load evenly (`balance`). Each changes as little as possible: other replicas stay, in their order, because the first replica
leads.

The weight of a partition is its bytes plus a constant, because an empty partition costs too. Among possible brokers, one in a
rack without a replica of the partition comes first, then the one with the least weight.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence
from itertools import pairwise

Partition = tuple[str, int]
Replicas = tuple[int, ...]
Assignment = Mapping[Partition, Replicas]
Racks = Mapping[int, str | None]  # broker id -> rack, of the brokers that may hold replicas

PARTITION_BYTES = 1_000_000  # the constant weight of a partition
EVEN = 0.05  # share of the mean weight of a broker: a smaller difference does not justify a move


class CannotPlace(ValueError):
    """There are too few brokers for a partition's replicas."""

    def __init__(self, partition: Partition, brokers: int) -> None:
        super().__init__(f"{partition[0]}-{partition[1]} needs more brokers than the {brokers} that may hold it")


class _Weights:
    """The weight of each broker."""

    def __init__(self, assignment: Assignment, sizes: Mapping[Partition, int]) -> None:
        self._sizes = sizes
        self.of_broker: Counter[int] = Counter()
        for partition, replicas in assignment.items():
            for broker in replicas:
                self.of_broker[broker] += self.of(partition)

    def of(self, partition: Partition) -> int:
        return self._sizes.get(partition, 0) + PARTITION_BYTES

    def move(self, partition: Partition, source: int | None, target: int | None) -> None:
        for broker, sign in ((source, -1), (target, 1)):
            if broker is not None:
                self.of_broker[broker] += sign * self.of(partition)

    def best(self, partition: Partition, others: Sequence[int], racks: Racks) -> int:
        """The broker for one more replica, beside those on `others`; raises CannotPlace."""
        used = {racks.get(broker) for broker in others} - {None}
        candidates = [broker for broker in racks if broker not in others]
        if not candidates:
            raise CannotPlace(partition, len(racks))
        return min(candidates, key=lambda broker: (racks[broker] in used, self.of_broker[broker], broker))


def changes(before: Assignment, after: Assignment) -> dict[Partition, Replicas]:
    """The partitions whose replicas differ in `after`."""
    return {partition: replicas for partition, replicas in after.items() if before[partition] != replicas}


def drain(
    assignment: Assignment,
    leaving: Collection[int],
    racks: Racks,
    sizes: Mapping[Partition, int] | None = None,
    *,
    factor: int | None = None,
) -> dict[Partition, Replicas]:
    """The assignment without `leaving`; raises CannotPlace.

    Args:
        racks: of all live brokers; those in `leaving` are skipped.
        sizes: known bytes of replicas.
        factor: the wanted number of replicas; surplus replicas in `leaving` are dropped, not moved.
    """
    left = {broker: rack for broker, rack in racks.items() if broker not in leaving}
    weights = _Weights(assignment, sizes or {})
    after = dict(assignment)
    for partition in sorted(assignment, key=weights.of, reverse=True):
        replicas = list(assignment[partition])
        too_many = 0 if factor is None else max(len(replicas) - max(factor, 1), 0)
        for broker in [each for each in reversed(replicas) if each in leaving][:too_many]:
            replicas.remove(broker)
            weights.move(partition, broker, None)
        for place, broker in enumerate(replicas):
            if broker in leaving:
                replicas[place] = weights.best(partition, [other for other in replicas if other != broker], left)
                weights.move(partition, broker, replicas[place])
        after[partition] = tuple(replicas)
    return after


def resize(
    assignment: Assignment, factor: int, racks: Racks, sizes: Mapping[Partition, int] | None = None
) -> dict[Partition, Replicas]:
    """The assignment with `factor` replicas of each partition; the leader stays. Raises CannotPlace."""
    weights = _Weights(assignment, sizes or {})
    after = {}
    for partition, before in assignment.items():
        replicas = list(before)
        while len(replicas) > max(factor, 1):
            last = max(replicas[1:], key=lambda broker: weights.of_broker[broker])
            replicas.remove(last)
            weights.move(partition, last, None)
        while len(replicas) < factor:
            added = weights.best(partition, replicas, racks)
            replicas.append(added)
            weights.move(partition, None, added)
        after[partition] = tuple(replicas)
    return after


def balance(assignment: Assignment, racks: Racks, sizes: Mapping[Partition, int] | None = None) -> dict[Partition, Replicas]:
    """The assignment with evenly shared weights and leaderships, by the fewest moves that a greedy search finds."""
    after = dict(assignment)
    weights = _Weights(assignment, sizes or {})
    for broker in racks:
        weights.of_broker[broker] += 0
    while (step := _next_move(after, racks, weights)) is not None:
        partition, source, target = step
        after[partition] = tuple(target if broker == source else broker for broker in after[partition])
        weights.move(partition, source, target)
    _spread_leaders(after, racks)
    return after


def _next_move(assignment: Assignment, racks: Racks, weights: _Weights) -> tuple[Partition, int, int] | None:
    """The largest partition whose move makes two brokers more equal, with its source and its target; None without one."""
    by_weight = sorted(racks, key=lambda broker: weights.of_broker[broker])
    tolerated = max(PARTITION_BYTES, EVEN * sum(weights.of_broker[broker] for broker in racks) / max(len(racks), 1))
    for source in reversed(by_weight):
        held = sorted((p for p, replicas in assignment.items() if source in replicas), key=weights.of, reverse=True)
        for target in by_weight:
            difference = weights.of_broker[source] - weights.of_broker[target]
            if difference <= tolerated:
                break
            for partition in held:
                fits = weights.of(partition) < difference and target not in assignment[partition]
                if fits and _keeps_racks(assignment[partition], source, target, racks):
                    return partition, source, target
    return None


def _keeps_racks(replicas: Replicas, source: int, target: int, racks: Racks) -> bool:
    """Whether the partition is in at least as many racks after the move."""
    after = [target if broker == source else broker for broker in replicas]
    return len({racks.get(broker) for broker in after}) >= len({racks.get(broker) for broker in replicas})


def _spread_leaders(assignment: dict[Partition, Replicas], racks: Racks) -> None:
    """Change first replicas until no change improves the distribution of leaderships."""
    leaders = _Leaders(assignment, racks)
    unsettled = set(leaders.led)
    while unsettled:
        source = max(unsettled, key=lambda broker: (leaders.led[broker], broker))
        chain = leaders.chain_from(source)
        if len(chain) == 1:
            unsettled.remove(source)  # final: all brokers with more leaderships are done, so no broker in reach will get fewer
        for giver, taker in pairwise(chain):
            leaders.hand_over(giver, taker)


class _Leaders:
    """The number of leaderships of each broker, and the partitions that a broker can pass to another one that has a replica."""

    def __init__(self, assignment: dict[Partition, Replicas], racks: Racks) -> None:
        self._assignment = assignment
        self._racks = racks
        self.led: Counter[int] = Counter(dict.fromkeys(racks, 0))
        self._for: defaultdict[int, defaultdict[int, dict[Partition, None]]] = defaultdict(lambda: defaultdict(dict))
        for partition, replicas in assignment.items():
            if replicas:
                self._leads(partition, replicas)

    def chain_from(self, source: int) -> list[int]:
        """The shortest chain of brokers along which `source` can pass a leadership to the broker with the fewest. It has only
        `source` if no broker in reach has at least two leaderships fewer."""
        before = {source: source}
        reached = [source]
        for broker in reached:
            for other, partitions in self._for[broker].items():
                if partitions and other not in before:
                    before[other] = broker
                    reached.append(other)
        target = min(reached, key=lambda broker: self.led[broker])  # of several, the one reached first
        chain = [target if self.led[source] - self.led[target] > 1 else source]
        while chain[0] != source:
            chain.insert(0, before[chain[0]])
        return chain

    def hand_over(self, giver: int, taker: int) -> None:
        partition = next(iter(self._for[giver][taker]))
        replicas = self._assignment[partition]
        for broker in replicas[1:]:
            self._for[giver][broker].pop(partition, None)
        self.led[giver] -= 1
        self._assignment[partition] = (taker, *(broker for broker in replicas if broker != taker))
        self._leads(partition, self._assignment[partition])

    def _leads(self, partition: Partition, replicas: Replicas) -> None:
        leader, *others = replicas
        self.led[leader] += 1
        for broker in others:
            if broker in self._racks:
                self._for[leader][broker][partition] = None
