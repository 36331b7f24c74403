"""Watermarks: one line of the state has those of all tables, and how many of their rows came too late.

Rules
  1. A row is judged by the watermark of the steps before. Then the rows of the step raise the watermark.
  2. Nodes forget by the watermarks after the step. So the rows that close a window also bring its result.
"""

from __future__ import annotations

from collections.abc import Sequence

from barnabas.incremental.changes import NOTHING, WEIGHT, Change, Step, listing
from barnabas.incremental.database import Database
from barnabas.incremental.plan import Column, OnTime, Plan, Until

TABLE = "state.marks"
MARKS = f"{TABLE} AS marks"
BEFORE = "_marks_before"


class Marks:
    """The line of the state. It also says whether rows of the result that cannot change are needed no more (`released`)."""

    def __init__(self, plan: Plan) -> None:
        self._nodes = plan.marks

    def __bool__(self) -> bool:
        return bool(self._nodes)

    def create(self, database: Database) -> None:
        if not self._nodes:
            return
        columns = [f"w{number} {each.kind}" for number, each in self._nodes.items()]
        columns += [f"late{number} BIGINT" for number in self._nodes]
        database.run(f"CREATE TABLE {TABLE} ({', '.join(columns)}, released BOOLEAN)")
        nulls = ", ".join([*("NULL" for _ in self._nodes), *("0" for _ in self._nodes)])
        database.run(f"INSERT INTO {TABLE} VALUES ({nulls}, false)")

    def begin(self, step: Step) -> None:
        """Keep the watermarks before the step."""
        if self._nodes:
            step.make(BEFORE, f"SELECT * FROM {TABLE}")

    def late(self, database: Database) -> int:
        """How many rows came too late, in all."""
        if not self._nodes:
            return 0
        total = " + ".join(f"late{number}" for number in self._nodes)
        return int(database.one(f"SELECT {total} FROM {TABLE}")[0])

    def release(self, database: Database) -> None:
        """Remember that the result is needed no more."""
        database.run(f"UPDATE {TABLE} SET released = true")


def is_released(database: Database) -> bool:
    """Whether the result is needed no more."""
    return bool(database.one(f"SELECT released FROM {TABLE}")[0])


def has_moved(step: Step, until: Until) -> bool:
    """Whether the step has moved a bound."""
    after, before = f"(SELECT {until.bound} FROM {MARKS})", f"(SELECT {until.bound} FROM {BEFORE} AS marks)"
    return bool(step.database.one(f"SELECT {after} IS DISTINCT FROM {before}")[0])


class OnTimeRows:
    """The rows that do not come too late."""

    def __init__(self, number: int, node: OnTime) -> None:
        self._number, self._node = number, node

    def change(self, step: Step) -> Change:
        change = step.changes[self._node.input]
        if change.rows == 0:
            return NOTHING
        mark, node = f"w{self._number}", self._node
        late = node.is_late(f"marks.{mark}")
        rows = f"SELECT {listing(node.columns, 'input_0')}, input_0.{WEIGHT} FROM {change.relation} AS input_0, {MARKS} WHERE NOT {late}"
        kept = step.change(f"_change_{self._number}", rows, (1, 1))
        if kept.rows < change.rows:
            step.database.run(f"UPDATE {TABLE} SET late{self._number} = late{self._number} + {change.rows - kept.rows}")
        if kept.rows:
            highest = f"SELECT max(({node.watermark})::{node.kind}) FROM {kept.relation} AS input_0"
            step.database.run(f"UPDATE {TABLE} SET {mark} = greatest({mark}, ({highest}))")  # nulls do not count
        return kept

    def create(self, database: Database) -> None:
        """The watermarks keep all."""

    def rehash(self, database: Database) -> None:
        """It has no hashes."""

    def keep(self, step: Step) -> None:
        """The watermarks keep all."""


def below(columns: Sequence[Column], relation: str, until: Until, *, is_below: bool = True) -> str:
    """The rows of a relation that cannot change any more, with their weights; or the others."""
    condition = f"coalesce({until.condition}, false)"
    names = listing(columns, "input_0")
    where = condition if is_below else f"NOT {condition}"
    return f"SELECT {names}, input_0.{WEIGHT} FROM {relation} AS input_0, {MARKS} WHERE {where}"
