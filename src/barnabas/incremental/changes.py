"""Changes between nodes: temporary tables of the node's columns and `_w`, how often a row comes (or goes, below 0)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pyarrow as pa
from msgspec import Struct

from barnabas.incremental.database import Database
from barnabas.incremental.plan import Column, quoted

WEIGHT = "_w"
MANY = 50_000


class Change(Struct, frozen=True):
    """The change of one node.

    Args:
        relation: that has the rows.
        lowest, highest: bounds of the weights; 0 without rows.
    """

    relation: str
    rows: int
    lowest: int
    highest: int

    @property
    def is_plain(self) -> bool:
        """Whether every weight is 1."""
        return self.lowest == self.highest == 1


NOTHING = Change("", 0, 0, 0)


class Step:
    """One step while it is computed.

    Args:
        number: of the step.
        inputs: the rows of the tables.
    """

    def __init__(self, database: Database, number: int, inputs: Mapping[str, pa.Table]) -> None:
        self.database, self.number, self.inputs = database, number, inputs
        self.changes: dict[int, Change] = {}
        self._merged: dict[int, Change] = {}
        self._made: list[str] = []

    @property
    def is_first(self) -> bool:
        return self.number == 0

    def make(self, name: str, sql: str) -> int:
        """A temporary table of this step; gives its rows."""
        rows = self.database.one(f"CREATE TEMP TABLE {name} AS {sql}")[0]
        self._made.append(name)
        return int(rows)

    def change(self, name: str, sql: str, bounds: tuple[int, int] | None = None) -> Change:
        """A change from a query that has the column `_w`; `bounds` of the weights, if they are known."""
        rows = self.make(name, sql)
        if rows == 0:
            return NOTHING
        lowest, highest = bounds or self.database.one(f"SELECT min({WEIGHT}), max({WEIGHT}) FROM {name}")
        return Change(name, rows, lowest, highest)

    def merged(self, node: int, columns: Sequence[Column]) -> Change:
        """The change of a node without rows that come and go at once."""
        change = self.changes[node]
        if change.rows == 0 or change.lowest > 0:
            return change
        if node not in self._merged:
            self._merged[node] = self.change(f"_merged_{node}", merging(columns, f"SELECT * FROM {change.relation}"))
        return self._merged[node]

    def made(self, name: str) -> bool:
        """Whether the step made a temporary table."""
        return name in self._made

    def drop(self) -> None:
        """Drop what the step made."""
        if self._made:
            self.database.run("; ".join(f"DROP TABLE {name}" for name in self._made))
        self._made.clear()


def merging(columns: Sequence[Column], sql: str) -> str:
    """Rows with their weights added up, without those that add up to 0."""
    names = listing(columns)
    return f"SELECT {names}, sum({WEIGHT})::BIGINT AS {WEIGHT} FROM ({sql}) GROUP BY {names} HAVING sum({WEIGHT}) <> 0"


def repeating(columns: Sequence[Column], change: Change) -> str:
    """Each row as often as its weight says; none for a weight below 1."""
    names = listing(columns)
    if change.rows == 0:
        return f"SELECT {nothing(columns)} WHERE false"
    if change.is_plain:
        return f"SELECT {names} FROM {change.relation}"
    return f"SELECT * EXCLUDE _n FROM (SELECT {names}, unnest(range({WEIGHT})) AS _n FROM {change.relation} WHERE {WEIGHT} > 0)"


def nothing(columns: Sequence[Column]) -> str:
    """Columns of a SELECT, null in all rows."""
    return ", ".join(f"NULL::{each.kind} AS {quoted(each.name)}" for each in columns)


def lines_of(table: str, wanted: str, number: int) -> str:
    """The lines of a table of the state that fit a condition on its hashes, with their places `_r`.

    Args:
        number: of the wanted hashes. For few of them the other columns are read for the lines found alone, which DuckDB does if it knows
            their row numbers: 26 ms of processor time instead of 53 for 100 lines of a million.
    """
    if number < MANY:
        wanted = f"rowid IN (SELECT rowid FROM {table} WHERE {wanted})"
    return f"SELECT rowid AS _r, * FROM {table} WHERE {wanted}"


def listing(columns: Sequence[Column], relation: str = "") -> str:
    """The names of columns, with commas."""
    prefix = f"{relation}." if relation else ""
    return ", ".join(prefix + quoted(each.name) for each in columns)


def same(left: str, right: str, names: Sequence[str]) -> str:
    """Whether columns of two relations are equal; nulls are."""
    found = [f"{left}.{quoted(name)} IS NOT DISTINCT FROM {right}.{quoted(name)}" for name in names]
    return " AND ".join(found) or "true"
