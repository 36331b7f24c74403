"""The rules of every flow, wherever its state lies."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from barnabas.incremental.interface import DELETED, KEY, Flow, FlowError
from barnabas.incremental.plan import Column, Groups, Input, Join, Named, Node, Plan, Rows, Sum, Sums, Union
from barnabas.incremental.whole import WholeFlow
from tests.incremental.flows import Follower, lines, opened, stepped

Opener = Callable[[Plan], Flow]
PEOPLE = Input("people", (Column("id", "INTEGER"), Column("name", "VARCHAR")), is_keyed=True)
BIDS = Input("bids", (Column("id", "INTEGER"), Column("price", "BIGINT")))


@pytest.fixture(params=["whole", "memory", "file"])
def opener(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Opener]:
    made: list[Flow] = []

    def opening(plan: Plan) -> Flow:
        flow: Flow = (
            WholeFlow(plan) if request.param == "whole" else opened(plan, tmp_path / "s" if request.param == "file" else None)
        )
        made.append(flow)
        return flow

    yield opening
    for each in made:
        each.close()


def people(*rows: tuple[bytes, int | None, str | None] | bytes) -> dict[str, pa.Table]:
    """Rows with a key, or keys that are deleted."""
    found = [
        {KEY: row, DELETED: True, "id": None, "name": None}
        if isinstance(row, bytes)
        else {KEY: row[0], DELETED: False, "id": row[1], "name": row[2]}
        for row in rows
    ]
    kinds: dict[str, pa.DataType] = {"id": pa.int32(), "name": pa.string(), KEY: pa.binary(), DELETED: pa.bool_()}
    return {"people": pa.Table.from_pylist(found, pa.schema(kinds))}


def bids(*rows: tuple[int | None, int | None]) -> dict[str, pa.Table]:
    schema = pa.schema([("id", pa.int32()), ("price", pa.int64())])
    return {"bids": pa.Table.from_pylist([{"id": id_, "price": price} for id_, price in rows], schema)}


def planned(*nodes: Node, key: tuple[str, ...] | None = ("id",)) -> Plan:
    return Plan(nodes, key)


def named(name: str, kind: str, sql: str | None = None) -> Named:
    return Named(name, kind, sql or name)


def values(rows: pa.Table) -> list[tuple[Any, ...]]:
    return sorted((tuple(row.values()) for row in rows.to_pylist()), key=repr)


SUMMED = Sums(
    0,
    (named("id", "INTEGER"),),
    (Sum("n", "BIGINT", "count"), Sum("total", "HUGEINT", "sum", "price", "price > 0"), Sum("best", "BIGINT", "max", "price")),
    (named("id", "INTEGER"), named("n", "BIGINT"), named("total", "BIGINT"), named("best", "BIGINT")),
)
JOINED = Join(
    0, 1, "input_0.id = input_1.id", (named("id", "INTEGER", "input_0.id"), named("name", "VARCHAR"), named("price", "BIGINT"))
)


def test_the_note_of_a_step_is_there_once_it_is_committed(opener: Opener) -> None:
    flow = opener(planned(BIDS, SUMMED))
    assert flow.note == ""
    flow.step(0, bids((1, 2)), "first")
    flow.rollback()
    assert flow.note == ""
    flow.step(0, bids((1, 2)), "second")
    flow.commit()
    assert flow.note == "second"


def test_newest_row_of_each_key(opener: Opener) -> None:
    flow = opener(planned(PEOPLE))
    first = stepped(flow, people((b"1", 1, "old"), (b"2", 2, "b"), (b"1", 1, "new"), (b"3", 3, "c"), b"3"))
    assert values(first) == [(1, "new", False), (2, "b", False)]
    assert values(stepped(flow, people((b"2", 2, "b"), b"9"))) == []
    assert values(stepped(flow, people(b"2", (b"1", 1, None)))) == [(1, None, False), (2, None, True)]
    assert values(flow.result()) == [(1, None)]


def test_key_that_moves_to_another_row(opener: Opener) -> None:
    flow = opener(planned(PEOPLE))
    stepped(flow, people((b"1", 1, "a"), (b"2", 2, "b")))
    assert values(stepped(flow, people((b"1", 2, "a"), (b"2", 1, "b")))) == [(1, "b", False), (2, "a", False)]


def test_equal_rows_without_a_key(opener: Opener) -> None:
    flow, follower = (
        opener(planned(PEOPLE, Rows(0, (named("name", "VARCHAR"),), "id > 0"), key=None)),
        Follower(planned(PEOPLE, key=None)),
    )
    follower.take(stepped(flow, people((b"1", 1, "a"), (b"2", 2, "a"), (b"3", 3, "a"), (b"4", 0, "a"))))
    assert values(flow.result()) == [("a",)] * 3
    follower.take(stepped(flow, people(b"1", b"3", (b"5", 1, "b"), (b"6", 1, None))))
    assert values(flow.result()) == [("a",), ("b",), (None,)]
    assert follower.lines == lines(flow.result())
    follower = Follower(planned(PEOPLE, key=None))
    follower.take(flow.snapshot())
    assert follower.lines == lines(flow.result())
    follower.take(stepped(flow, people((b"7", 1, "b"), b"6")))  # the keys of the snapshot go on
    assert follower.lines == lines(flow.result())
    assert flow.snapshot().schema.names == ["name", "_row", "_deleted"]


def test_sums_by_group_and_nulls_are_a_group(opener: Opener) -> None:
    flow = opener(planned(BIDS, SUMMED))
    assert values(stepped(flow, bids((1, 5), (1, -7), (None, None)))) == [(1, 2, 5, 5, False), (None, 1, None, None, False)]
    assert values(stepped(flow, bids((None, 3), (2, -1)))) == [(2, 1, None, -1, False), (None, 2, 3, 3, False)]
    assert values(flow.result()) == [(1, 2, 5, 5), (2, 1, None, -1), (None, 2, 3, 3)]


def test_group_that_loses_its_rows(opener: Opener) -> None:
    price = Rows(0, (named("id", "INTEGER"), named("price", "BIGINT", "length(name)")))
    summed = Sums(1, SUMMED.keys, SUMMED.sums, SUMMED.columns)
    flow = opener(planned(PEOPLE, price, summed))
    stepped(flow, people((b"1", 1, "aaa"), (b"2", 1, "a"), (b"3", 2, "aa")))
    assert values(stepped(flow, people(b"1", b"3"))) == [(1, 1, 1, 1, False), (2, None, None, None, True)]
    assert values(flow.result()) == [(1, 1, 1, 1)]


def test_one_row_without_groups_from_the_first_step(opener: Opener) -> None:
    sums = (Sum("n", "BIGINT", "count"), Sum("best", "VARCHAR", "max", "name"))
    flow = opener(planned(PEOPLE, Sums(0, (), sums, (named("n", "BIGINT"), named("best", "VARCHAR"))), key=()))
    assert values(stepped(flow, {})) == [(0, None, False)]
    assert values(stepped(flow, {})) == []
    assert values(stepped(flow, people((b"1", 1, "a"), (b"2", 2, "b")))) == [(2, "b", False)]
    stepped(flow, people(b"1", b"2"))
    assert values(flow.result()) == [(0, None)]


def test_join_when_both_sides_change(opener: Opener) -> None:
    flow = opener(planned(PEOPLE, BIDS, JOINED, key=None))
    stepped(flow, {**people((b"1", 1, "a"), (b"n", None, "n")), **bids((1, 5), (1, 5), (2, 6), (None, 7))})
    assert values(flow.result()) == [(1, "a", 5), (1, "a", 5)]
    stepped(flow, {**people((b"2", 2, "b"), (b"1", 1, "c")), **bids((1, 8))})
    assert values(flow.result()) == [(1, "c", 5), (1, "c", 5), (1, "c", 8), (2, "b", 6)]
    stepped(flow, people(b"1"))
    assert values(flow.result()) == [(2, "b", 6)]


def test_outer_join_by_key(opener: Opener) -> None:
    columns = (Column("id", "INTEGER"), Column("name", "VARCHAR"), Column("price", "BIGINT"))
    query = "SELECT a.id, a.name, b.price FROM input_0 AS a LEFT JOIN input_1 AS b ON a.id = b.id"
    flow = opener(planned(PEOPLE, BIDS, Groups((0, 1), (("id",), ("input_1.id::BIGINT",)), query, columns), key=None))
    stepped(flow, people((b"1", 1, "a"), (b"n", None, "n")))
    assert values(flow.result()) == [(1, "a", None), (None, "n", None)]
    stepped(flow, bids((1, 5), (1, 6), (None, 7)))
    assert values(flow.result()) == [(1, "a", 5), (1, "a", 6), (None, "n", None)]


def test_query_without_keys(opener: Opener) -> None:
    top = Groups((0,), ((),), "SELECT id, price FROM input_0 ORDER BY price DESC, id LIMIT 2", BIDS.columns)
    flow = opener(planned(BIDS, top))
    assert values(stepped(flow, bids((1, 5), (2, 6)))) == [(1, 5, False), (2, 6, False)]
    assert values(stepped(flow, bids((3, 9)))) == [(1, None, True), (3, 9, False)]


def test_union_has_the_names_of_the_first(opener: Opener) -> None:
    length = Rows(0, (named("id", "INTEGER"), named("length", "BIGINT", "length(name)")))
    flow = opener(planned(PEOPLE, BIDS, length, Union((1, 2, 1)), key=None))
    stepped(flow, {**people((b"1", 1, "abc")), **bids((1, 5))})
    assert flow.result().column_names == ["id", "price"]
    assert values(flow.result()) == [(1, 3), (1, 5), (1, 5)]


def test_rows_made_of_a_list(opener: Opener) -> None:
    split = Rows(
        0, (named("id", "INTEGER"), named("word", "VARCHAR")), "word <> ''", "input_0, unnest(string_split(name, ' ')) AS t(word)"
    )
    flow = opener(planned(PEOPLE, split, key=("id", "word")))
    stepped(flow, people((b"1", 1, "to be")))
    assert values(stepped(flow, people((b"1", 1, "be  it")))) == [(1, "it", False), (1, "to", True)]
    assert values(flow.result()) == [(1, "be"), (1, "it")]


def test_two_rows_with_one_key(opener: Opener) -> None:
    flow = opener(planned(PEOPLE))
    stepped(flow, people((b"1", 1, "a")))
    with pytest.raises(FlowError, match=r"two rows of the result have the key \(1,\)"):
        flow.step(1, people((b"2", 1, "b")))
    assert values(flow.result()) == [(1, "a")]
    assert values(stepped(flow, people((b"2", 2, "b")))) == [(2, "b", False)]


def test_expression_that_fails_leaves_nothing(opener: Opener) -> None:
    number = Rows(0, (named("id", "INTEGER"), named("number", "INTEGER", "name::INTEGER")))
    flow = opener(planned(PEOPLE, number))
    stepped(flow, people((b"1", 1, "1")))
    with pytest.raises(FlowError) as caught:
        flow.step(1, people((b"2", 2, "two"), b"1"))
    assert "two" in str(caught.value)
    assert "\n" not in str(caught.value)
    assert (flow.position, values(flow.result())) == (0, [(1, 1)])
    assert values(stepped(flow, people((b"2", 2, "2")))) == [(2, 2, False)]


def test_sum_beyond_its_type_fails(opener: Opener) -> None:
    flow = opener(planned(BIDS, SUMMED))
    with pytest.raises(FlowError):
        flow.step(0, bids((1, 2**63 - 1), (1, 2**63 - 1)))
    assert flow.position == -1


def test_steps_follow_one_another(opener: Opener) -> None:
    flow = opener(planned(PEOPLE))
    for number in (-1, 1):
        with pytest.raises(FlowError, match=f"step {number} does not follow step -1"):
            flow.step(number, {})


def test_open_step_is_not_in_the_result(opener: Opener) -> None:
    flow = opener(planned(PEOPLE))
    stepped(flow, people((b"1", 1, "a")))
    flow.step(1, people((b"2", 2, "b")))
    assert (flow.position, values(flow.result())) == (0, [(1, "a")])
    flow.rollback()
    flow.rollback()
    assert (flow.position, values(flow.result())) == (0, [(1, "a")])
    flow.step(1, people((b"3", 3, "c")))
    assert values(flow.step(1, people((b"2", 2, "b")))) == [(2, "b", False)]
    flow.commit()
    assert (flow.position, values(flow.result())) == (1, [(1, "a"), (2, "b")])
    assert flow.size().rows > 0
