"""Tables that rows come from."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from barnabas.incremental.bag import HASH, Bag
from barnabas.incremental.changes import NOTHING, WEIGHT, Change, Step, lines_of, listing, same
from barnabas.incremental.database import Database
from barnabas.incremental.interface import DELETED, KEY, FlowError
from barnabas.incremental.plan import Input, quoted

ORDER = "_o"


def given(step: Step, table: str, columns: list[str]) -> pa.Table | None:
    """The rows of a table in this step; None if there are none."""
    rows = step.inputs.get(table)
    if rows is None or rows.num_rows == 0:
        return None
    missing = [name for name in columns if name not in rows.column_names]
    if missing:
        raise FlowError(f"table {table!r} has no column {missing[0]!r}")
    return rows.select(columns)


class AddedRows:
    """A table whose rows are only added."""

    def __init__(self, number: int, node: Input) -> None:
        self._number, self._node = number, node

    def change(self, step: Step) -> Change:
        rows = given(step, self._node.table, [each.name for each in self._node.columns])
        if rows is None:
            return NOTHING
        name = f"_given_{self._number}"
        step.database.give(name, rows)
        try:
            return step.change(f"_change_{self._number}", f"SELECT {_cast(self._node)}1::BIGINT AS {WEIGHT} FROM {name}", (1, 1))
        finally:
            step.database.take_back(name)

    def create(self, database: Database) -> None:
        """It keeps nothing."""

    def rehash(self, database: Database) -> None:
        """It has no hashes."""

    def keep(self, step: Step) -> None:
        """It keeps nothing."""


class KeyedRows(Bag):
    """A table of which the newest row of each key counts. Its state is a bag for the nodes above it, too."""

    def __init__(self, number: int, node: Input) -> None:
        super().__init__(number, node.columns)
        self._node = node
        self._new, self._old = f"_new_{number}", f"_old_{number}"

    def create(self, database: Database) -> None:
        super().create(database)
        database.run(f"ALTER TABLE {self.table} ADD COLUMN {KEY} BLOB")

    def line_hash(self) -> str:
        return f"hash({KEY})"

    def change(self, step: Step) -> Change:
        """A new row, and the old one that it replaces with a weight below 0; nothing for a row that stays the same."""
        rows = given(step, self._node.table, [*(each.name for each in self.columns), KEY, DELETED])
        if rows is None:
            return NOTHING
        self._read(step, rows)
        equal = same("n", "s", [each.name for each in self.columns])
        lines = lines_of(self.table, f"{HASH} IN (SELECT {HASH} FROM {self._new})", rows.num_rows)
        pairs = f"s JOIN {self._new} AS n ON s.{HASH} = n.{HASH} AND s.{KEY} = n.{KEY}"
        old = f"WITH s AS MATERIALIZED ({lines}) SELECT s._r, {_s(self.columns)}s.{KEY}, NOT n.{DELETED} AND {equal} AS _same FROM {pairs}"
        replaced = step.make(self._old, old)
        gone = f"SELECT {_s(self.columns, '')}-1::BIGINT AS {WEIGHT} FROM {self._old} WHERE NOT _same"
        come = f"SELECT {_s(self.columns, '')}1::BIGINT AS {WEIGHT} FROM {self._new} WHERE {self._comes()}"
        if not replaced:
            return step.change(f"_change_{self.node}", come, (1, 1))
        return step.change(f"_change_{self.node}", f"{gone} UNION ALL {come}", (-1, 1))

    def _read(self, step: Step, rows: pa.Table) -> None:
        name = f"_given_{self.node}"
        order: Any = pa.array(np.arange(rows.num_rows))
        step.database.give(name, rows.append_column(ORDER, order))
        newest = f"SELECT max({ORDER}) FROM {name} GROUP BY {KEY}"
        sql = f"SELECT {_cast(self._node)}{KEY}, {DELETED}, hash({KEY}) AS {HASH} FROM {name} WHERE {ORDER} IN ({newest})"
        try:
            step.make(self._new, sql)
        finally:
            step.database.take_back(name)

    def _comes(self) -> str:
        return f"NOT {DELETED} AND {KEY} NOT IN (SELECT {KEY} FROM {self._old} WHERE _same)"

    def keep(self, step: Step) -> None:
        if step.changes[self.node].rows == 0:
            return
        step.database.run(f"DELETE FROM {self.table} WHERE rowid IN (SELECT _r FROM {self._old} WHERE NOT _same)")
        rows = f"SELECT {_s(self.columns, '')}1::BIGINT AS {WEIGHT}, {HASH}, {KEY} FROM {self._new} WHERE {self._comes()}"
        step.database.run(f"INSERT INTO {self.table} BY NAME {self.with_keys(rows)}")


def _s(columns: Any, relation: str = "s") -> str:
    return "".join(f"{listing([each], relation)}, " for each in columns)


def _cast(node: Input) -> str:
    return "".join(f"{quoted(each.name)}::{each.kind} AS {quoted(each.name)}, " for each in node.columns)
