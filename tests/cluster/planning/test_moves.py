"""Plans of moves: what they promise, on assignments of any shape."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.cluster.planning.moves import PARTITION_BYTES, Assignment, CannotPlace, balance, changes, drain, resize

BROKERS = (1, 2, 3, 4, 5)


# assignment, racks of brokers, bytes of partitions
Cluster = tuple[Assignment, dict[int, str | None], dict[tuple[str, int], int]]


@st.composite
def clusters(draw: st.DrawFn) -> Cluster:
    factor = draw(st.integers(1, 3))
    replicas = st.lists(st.sampled_from(BROKERS), min_size=factor, max_size=factor, unique=True).map(tuple)
    assignment = {("t", n): draw(replicas) for n in range(draw(st.integers(1, 30)))}
    racks: dict[int, str | None] = {broker: draw(st.sampled_from(["a", "b", "c", None])) for broker in BROKERS}
    sizes = {partition: draw(st.integers(0, 10**8)) for partition in assignment}
    return assignment, racks, sizes


def weights(assignment: Assignment, sizes: dict[tuple[str, int], int]) -> Counter[int]:
    found: Counter[int] = Counter(dict.fromkeys(BROKERS, 0))
    for partition, replicas in assignment.items():
        for broker in replicas:
            found[broker] += sizes.get(partition, 0) + PARTITION_BYTES
    return found


def is_sound(before: Assignment, after: Assignment) -> bool:
    return before.keys() == after.keys() and all(len(set(replicas)) == len(replicas) for replicas in after.values())


@given(clusters(), st.sampled_from(BROKERS))
def test_a_drained_broker_has_nothing_and_the_others_keep_what_they_had(cluster: Cluster, leaving: int) -> None:
    assignment, racks, sizes = cluster
    after = drain(assignment, {leaving}, racks, sizes)
    assert is_sound(assignment, after)
    for partition, replicas in assignment.items():
        assert leaving not in after[partition]
        assert [new for old, new in zip(replicas, after[partition], strict=True) if old != leaving] == [
            old for old in replicas if old != leaving
        ]
    assert changes(assignment, after) == {p: after[p] for p, replicas in assignment.items() if leaving in replicas}


@given(clusters(), st.integers(1, 5))
def test_the_leader_stays_whatever_the_number_of_replicas(cluster: Cluster, factor: int) -> None:
    assignment, racks, sizes = cluster
    after = resize(assignment, factor, racks, sizes)
    assert is_sound(assignment, after)
    for partition, replicas in after.items():
        assert len(replicas) == factor
        assert replicas[0] == assignment[partition][0]
        assert set(replicas) <= set(assignment[partition]) or set(replicas) >= set(assignment[partition])


@given(clusters())
def test_balancing_never_makes_it_worse_and_comes_to_an_end(cluster: Cluster) -> None:
    assignment, racks, sizes = cluster
    after = balance(assignment, racks, sizes)
    assert is_sound(assignment, after)
    before_weights, after_weights = weights(assignment, sizes), weights(after, sizes)
    assert max(after_weights.values()) <= max(before_weights.values())
    assert min(after_weights.values()) >= min(before_weights.values())
    assert balance(after, racks, sizes) == after
    for partition, replicas in assignment.items():
        assert len({racks[b] for b in after[partition]}) >= len({racks[b] for b in replicas})


@st.composite
def few_partitions(draw: st.DrawFn) -> Assignment:
    replicas = st.lists(st.sampled_from(BROKERS), min_size=1, max_size=3, unique=True).map(tuple)
    return {("t", n): draw(replicas) for n in range(draw(st.integers(1, 7)))}


def squares(leaders: Iterable[int]) -> int:
    """The smaller, the more evenly the partitions are led; the smallest there is where numbers differ by one at most."""
    return sum(led * led for led in Counter(leaders).values())


@given(few_partitions())
def test_no_choice_of_leaders_is_more_even(assignment: Assignment) -> None:
    after = balance(assignment, dict.fromkeys(BROKERS))
    choices = [Counter(choice) for choice in product(*after.values())]
    leaders = [replicas[0] for replicas in after.values()]
    assert squares(leaders) == min(squares(choice.elements()) for choice in choices)
    led = [leaders.count(broker) for broker in BROKERS]
    if any(max(choice[b] for b in BROKERS) - min(choice[b] for b in BROKERS) <= 1 for choice in choices):
        assert max(led) - min(led) <= 1


def test_leaders_are_handed_on_along_a_chain() -> None:
    """Broker 4 gets one from 2 or 3, which get one from 1: none that 1 leads has a replica on 4."""
    assignment = {("t", n): replicas for n, replicas in enumerate([(1, 3), (2, 4), (3, 4), (1, 2)])}
    after = balance(assignment, dict.fromkeys((1, 2, 3, 4)))
    assert sorted(replicas[0] for replicas in after.values()) == [1, 2, 3, 4]
    assert {partition: set(replicas) for partition, replicas in after.items()} == {p: set(r) for p, r in assignment.items()}
    assert len(changes(assignment, after)) == 2


def test_a_broker_that_joins_gets_its_share() -> None:
    assignment = {("t", n): (1 + n % 3, 1 + (n + 1) % 3) for n in range(24)}
    after = balance(assignment, dict.fromkeys((1, 2, 3, 4)))
    assert set(Counter(broker for replicas in after.values() for broker in replicas).values()) == {12}
    assert set(Counter(replicas[0] for replicas in after.values()).values()) == {6}
    moved = sum(len(set(after[p]) - set(assignment[p])) for p in assignment)
    assert moved == 12  # only the replicas that broker 4 gets


def test_a_replica_goes_to_a_rack_that_has_none() -> None:
    racks = {1: "a", 2: "b", 3: "b", 4: "c"}
    assert drain({("t", 0): (1, 2)}, {1}, racks) == {("t", 0): (4, 2)}


def test_what_is_too_much_is_dropped_where_it_would_have_to_leave() -> None:
    assert drain({("t", 0): (3, 1, 2)}, {3}, dict.fromkeys((1, 2, 3)), factor=2) == {("t", 0): (1, 2)}
    assert drain({("t", 0): (3, 4, 1)}, {3, 4}, dict.fromkeys((1, 2, 3, 4)), factor=2) == {("t", 0): (2, 1)}


def test_too_few_brokers_are_named() -> None:
    with pytest.raises(CannotPlace, match="t-0 needs more brokers than the 2 that may hold it"):
        drain({("t", 0): (1, 2, 3)}, {3}, dict.fromkeys((1, 2, 3)))
    with pytest.raises(CannotPlace):
        resize({("t", 0): (1,)}, 4, dict.fromkeys((1, 2, 3)))
