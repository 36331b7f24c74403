"""The guarantees of assignors, for any groups and topics."""

from __future__ import annotations

from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.coordination.consumer.assignors import (
    ASSIGNORS,
    Assignor,
    MemberSpec,
    assign_range,
    assign_uniform,
    assignor_names,
)
from barnabas.coordination.consumer.member import Assignment

IDS = [UUID(int=n) for n in range(1, 6)]
NAMES = [f"m{n}" for n in range(7)]
COUNTS = st.dictionaries(st.sampled_from(IDS), st.integers(0, 12), min_size=1)
SUBSCRIPTIONS = st.dictionaries(st.sampled_from(NAMES), st.frozensets(st.sampled_from(IDS)), min_size=1)
Assigned = dict[str, Assignment]


def specs(subscriptions: dict[str, frozenset[UUID]], former: Assigned | None = None) -> dict[str, MemberSpec]:
    """Every third member is static."""
    return {
        m: MemberSpec(topics, (former or {}).get(m, {}), f"i{m}" if int(m[1:]) % 3 == 0 else None)
        for m, topics in subscriptions.items()
    }


def places(assigned: Assignment) -> set[tuple[UUID, int]]:
    return {(t, p) for t, partitions in assigned.items() for p in partitions}


def check_complete(assigned: Assigned, subscriptions: dict[str, frozenset[UUID]], counts: dict[UUID, int]) -> None:
    given_away = [place for each in assigned.values() for place in places(each)]
    wanted = {(t, p) for t, count in counts.items() for p in range(count) if any(t in s for s in subscriptions.values())}
    assert len(given_away) == len(set(given_away)), "nothing twice"
    assert set(given_away) == wanted
    for member_id, each in assigned.items():
        assert each.keys() <= subscriptions[member_id]
        assert all(each.values()), "no empty sets"
    assert assigned.keys() == subscriptions.keys()


def load(assigned: Assignment) -> int:
    return len(places(assigned))


def check_balanced(assigned: Assigned, subscriptions: dict[str, frozenset[UUID]]) -> None:
    for member_id, each in assigned.items():
        for topic_id in each:
            least = min(load(assigned[m]) for m, topics in subscriptions.items() if topic_id in topics)
            assert load(assigned[member_id]) <= least + 1


@pytest.mark.parametrize("assign", ASSIGNORS.values(), ids=ASSIGNORS.keys())
@given(subscriptions=SUBSCRIPTIONS, counts=COUNTS)
def test_each_partition_goes_to_one_subscriber(
    assign: Assignor, subscriptions: dict[str, frozenset[UUID]], counts: dict[UUID, int]
) -> None:
    check_complete(assign(specs(subscriptions), counts), subscriptions, counts)


@pytest.mark.parametrize("assign", ASSIGNORS.values(), ids=ASSIGNORS.keys())
@given(subscriptions=SUBSCRIPTIONS, counts=COUNTS)
def test_the_order_of_members_and_topics_means_nothing(
    assign: Assignor, subscriptions: dict[str, frozenset[UUID]], counts: dict[UUID, int]
) -> None:
    turned = {m: frozenset(sorted(subscriptions[m], reverse=True)) for m in reversed(subscriptions)}
    assert assign(specs(subscriptions), counts) == assign(specs(turned), dict(reversed(counts.items())))


@given(members=st.sets(st.sampled_from(NAMES), min_size=1), counts=COUNTS)
def test_uniform_is_even_where_all_read_the_same(members: set[str], counts: dict[UUID, int]) -> None:
    loads = [load(each) for each in assign_uniform(specs(dict.fromkeys(members, frozenset(counts))), counts).values()]
    assert max(loads) - min(loads) <= 1


@given(subscriptions=SUBSCRIPTIONS, counts=COUNTS)
def test_uniform_is_as_even_as_subscriptions_allow(subscriptions: dict[str, frozenset[UUID]], counts: dict[UUID, int]) -> None:
    check_balanced(assign_uniform(specs(subscriptions), counts), subscriptions)


@given(subscriptions=SUBSCRIPTIONS, counts=COUNTS, later=SUBSCRIPTIONS, later_counts=COUNTS)
def test_uniform_holds_what_it_promises_after_any_change(
    subscriptions: dict[str, frozenset[UUID]],
    counts: dict[UUID, int],
    later: dict[str, frozenset[UUID]],
    later_counts: dict[UUID, int],
) -> None:
    former = assign_uniform(specs(subscriptions), counts)
    assigned = assign_uniform(specs(later, former), later_counts)
    check_complete(assigned, later, later_counts)
    check_balanced(assigned, later)
    assert assign_uniform(specs(later, assigned), later_counts) == assigned, "without a change nothing moves"


@given(members=st.sets(st.sampled_from(NAMES), min_size=2), counts=COUNTS, data=st.data())
def test_uniform_moves_only_what_somebody_left_or_a_newcomer_gets(
    members: set[str], counts: dict[UUID, int], data: st.DataObject
) -> None:
    topics = frozenset(counts)
    former = assign_uniform(specs(dict.fromkeys(members, topics)), counts)
    gone = data.draw(st.sampled_from(sorted(members)))
    stay = members - {gone}
    after = assign_uniform(specs(dict.fromkeys(stay, topics), former), counts)
    assert all(places(former[m]) <= places(after[m]) for m in stay), "who stays loses nothing when another goes"
    back = assign_uniform(specs(dict.fromkeys(members, topics), after), counts)
    assert all(places(back[m]) <= places(after[m]) for m in stay), "who stays gets nothing when another comes"


def test_range_gives_runs_in_the_order_of_members() -> None:
    topics = frozenset(IDS[:2])
    assigned = assign_range(
        {"b": MemberSpec(topics), "a": MemberSpec(topics), "z": MemberSpec(topics, {}, "i")}, {IDS[0]: 4, IDS[1]: 2}
    )
    assert assigned == {
        "z": {IDS[0]: frozenset({0, 1}), IDS[1]: frozenset({0})},
        "a": {IDS[0]: frozenset({2}), IDS[1]: frozenset({1})},
        "b": {IDS[0]: frozenset({3})},
    }


def test_assignors_have_kafkas_names() -> None:
    of_kafka = "org.apache.kafka.coordinator.group.assignor.RangeAssignor"
    assert assignor_names((of_kafka, "uniform", "range")) == ("range", "uniform")
