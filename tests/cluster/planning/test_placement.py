"""Replicas of new partitions over brokers and racks."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from barnabas.cluster.metadata.image import BrokerRegistration
from barnabas.cluster.planning.placement import Ring


@settings(max_examples=100, deadline=None)
@given(
    racks=st.lists(st.sampled_from(["a", "b", "c", None]), min_size=1, max_size=9),
    partitions=st.integers(1, 40),
    factor=st.integers(1, 5),
    start=st.integers(0, 100),
)
def test_placement_spreads_leaders_and_racks(racks: list[str | None], partitions: int, factor: int, start: int) -> None:
    live = {n: BrokerRegistration(n, (), rack) for n, rack in enumerate(racks)}
    factor = min(factor, len(live))
    placed = Ring(live).place(partitions=partitions, replication_factor=factor, start=start)
    led = [sum(replicas[0] == n for replicas in placed) for n in live]
    assert max(led) - min(led) <= 1
    for replicas in placed:
        assert len(set(replicas)) == factor
        assert len({racks[n] for n in replicas}) == min(factor, len(set(racks)))


def test_with_equal_racks_replicas_are_even_too() -> None:
    live = {n: BrokerRegistration(n, (), f"rack-{n % 3}") for n in range(6)}
    placed = Ring(live).place(partitions=60, replication_factor=3, start=0)
    held = [sum(n in replicas for replicas in placed) for n in live]
    assert max(held) - min(held) <= 1
