"""Plans, and the rows of their tables."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from barnabas.incremental.interface import DELETED, KEY
from barnabas.incremental.plan import Column, Groups, Input, Join, Named, Plan, Rows, Sum, Sums

GROUPS = 100_000
FILLED = 500_000  # rows of one step that fills the state
CHANCE = np.random.default_rng(1)
Inputs = Mapping[str, pa.Table]


@dataclass(frozen=True)
class Case:
    """A plan with its rows.

    Args:
        fill: the steps that fill the state to a number of rows.
        step: a step of some rows, against a state of so many.
    """

    title: str
    plan: Plan
    fill: Callable[[int], Iterator[Inputs]]
    step: Callable[[int, int], Inputs]


def named(name: str, kind: str, sql: str | None = None) -> Named:
    return Named(name, kind, sql or name)


EVENTS = (Column("who", "BIGINT"), Column("amount", "BIGINT"), Column("price", "DOUBLE"), Column("name", "VARCHAR"))
KEYED = (Column("id", "BIGINT"), Column("v", "BIGINT"), Column("name", "VARCHAR"))
LEFT, RIGHT = Input("left", KEYED, is_keyed=True), Input("right", KEYED, is_keyed=True)
SUMS = (Sum("n", "BIGINT", "count"), Sum("total", "HUGEINT", "sum", "amount"), Sum("best", "DOUBLE", "max", "price"))
SUMMED = tuple(named(name, kind) for name, kind in (("who", "BIGINT"), ("n", "BIGINT"), ("total", "HUGEINT"), ("best", "DOUBLE")))
BOTH = (named("id", "BIGINT", "input_0.id"), named("v", "BIGINT", "input_0.v"), named("name", "VARCHAR", "input_1.name"))
OUTER = "SELECT a.id, a.v, b.name FROM input_0 AS a LEFT JOIN input_1 AS b ON a.id = b.id"


def events(rows: int, groups: int = GROUPS) -> Inputs:
    names: Any = pa.array([f"name {number}" for number in CHANCE.integers(0, GROUPS, rows)])
    table: Any = {
        "who": CHANCE.integers(0, groups, rows),
        "amount": CHANCE.integers(0, 1_000, rows),
        "price": CHANCE.random(rows),
        "name": names,
    }
    return {"events": pa.table(table)}


def keyed(numbers: Any) -> pa.Table:
    values = CHANCE.integers(0, 1 << 40, len(numbers))
    table: Any = {
        "id": numbers,
        "v": values + numbers,
        "name": pa.array([f"name {number}" for number in numbers]),
        KEY: pa.array([b"%d" % number for number in numbers]),
        DELETED: np.zeros(len(numbers), bool),
    }
    return pa.table(table)


def _changing(rows: int, total: int) -> Any:
    return CHANCE.choice(total, min(rows, total), replace=False)


def _blocks(total: int) -> Iterator[Any]:
    for first in range(0, total, FILLED):
        yield np.arange(first, min(first + FILLED, total))


CASES = {
    "sums": Case(
        f"sums by {GROUPS:,} keys",
        Plan((Input("events", EVENTS), Sums(0, (named("who", "BIGINT"),), SUMS, SUMMED)), ("who",)),
        lambda total: (events(len(block)) for block in _blocks(total)),
        lambda rows, total: events(rows),
    ),
    "groups": Case(
        "sums by as many keys as the state has rows",
        Plan((Input("events", EVENTS), Sums(0, (named("who", "BIGINT"),), SUMS, SUMMED)), ("who",)),
        lambda total: (events(len(block), total) for block in _blocks(total)),
        lambda rows, total: events(rows, total),
    ),
    "newest": Case(
        "the newest row of each key",
        Plan((LEFT, Rows(0, (named("id", "BIGINT"), named("v", "BIGINT"), named("name", "VARCHAR")))), ("id",)),
        lambda total: ({"left": keyed(block)} for block in _blocks(total)),
        lambda rows, total: {"left": keyed(_changing(rows, total))},
    ),
    "join": Case(
        "inner join of two keyed tables",
        Plan((LEFT, RIGHT, Join(0, 1, "input_0.id = input_1.id", BOTH)), ("id",)),
        lambda total: ({"left": keyed(block), "right": keyed(block)} for block in _blocks(total)),
        lambda rows, total: {"left": keyed(_changing(rows, total))},
    ),
    "outer": Case(
        "outer join of two keyed tables",
        Plan((LEFT, RIGHT, Groups((0, 1), (("id",), ("id",)), OUTER, KEYED)), ("id",)),
        lambda total: ({"left": keyed(block), "right": keyed(block)} for block in _blocks(total)),
        lambda rows, total: {"left": keyed(_changing(rows, total))},
    ),
}
