"""The rows of a node, as a node above it needs them: each with its count.

Equal rows may lie in several lines, whose counts add up. So rows that come are appended; a row that goes is looked up by its hash, and its
lines become one. There is no index: a scan of the hashes is cheap, and an index would slow down each step with many rows.
"""

from __future__ import annotations

from collections.abc import Sequence

from barnabas.incremental.changes import WEIGHT, Change, Step, lines_of, listing, merging
from barnabas.incremental.database import Database
from barnabas.incremental.marks import MARKS, has_moved
from barnabas.incremental.plan import Column, Until

HASH = "_h"


class Bag:
    """The rows of one node in a table of the state: its columns, `_w`, `_h` and a hash for each list of keys.

    Args:
        node: its number.
        table: the table's name; None: the one that all nodes share.
    """

    def __init__(self, node: int, columns: Sequence[Column], table: str | None = None) -> None:
        self.node, self.columns, self.table = node, columns, table or f"state.rows_{node}"
        self._keys: list[tuple[str, str]] = []
        self._untils: list[Until | None] = []

    def lets_go(self, until: Until | None) -> None:
        """A node that reads the bag needs its rows until then; None: always. A row is forgotten when no node needs it."""
        self._untils.append(until)

    def key(self, alias: str, expressions: Sequence[str]) -> str:
        """Keep a hash of expressions over the rows, whose relation is `alias`; gives the name of its column."""
        wanted = alias, f"hash({', '.join(expressions)})"
        if wanted not in self._keys:
            self._keys.append(wanted)
        return f"_k{self._keys.index(wanted)}"

    def create(self, database: Database) -> None:
        columns = "".join(f"{listing([each])} {each.kind}, " for each in self.columns)
        keys = "".join(f", _k{place} UBIGINT" for place in range(len(self._keys)))
        database.run(f"CREATE TABLE {self.table} ({columns}{WEIGHT} BIGINT, {HASH} UBIGINT{keys})")

    def rehash(self, database: Database) -> None:
        """Compute all hashes anew."""
        database.run(f"UPDATE {self.table} SET {HASH} = {self.line_hash()}")
        for place, (alias, expression) in enumerate(self._keys):
            database.run(f"UPDATE {self.table} AS {alias} SET _k{place} = {expression}")

    def line_hash(self) -> str:
        """The hash of a line, over the columns of the table."""
        return self.row_hash()

    def with_keys(self, sql: str) -> str:
        """Rows of the node with the hashes of their keys."""
        for place, (alias, expression) in enumerate(self._keys):
            sql = f"SELECT *, {expression} AS _k{place} FROM ({sql}) AS {alias}"
        return sql

    def hashed(self, sql: str) -> str:
        """Rows of the node with `_w` as lines of the table."""
        return self.with_keys(f"SELECT {listing(self.columns)}, {WEIGHT}, {self.row_hash()} AS {HASH} FROM ({sql})")

    def row_hash(self) -> str:
        """The hash of a row's columns."""
        return f"hash({listing(self.columns) or '0'})"

    def weighted(self) -> str:
        """The lines as a query with the node's columns and `_w`."""
        return f"SELECT {listing(self.columns)}, {WEIGHT} FROM {self.table}"

    def lines(self, database: Database) -> Change:
        """All lines, as a change of nothing to them."""
        rows, lowest, highest = database.one(f"SELECT count(*), min({WEIGHT}), max({WEIGHT}) FROM {self.table}")
        return Change(self.table, rows, lowest or 0, highest or 0)

    def keep(self, step: Step) -> None:
        """Bring the table up to the step."""
        change = step.merged(self.node, self.columns)
        if change.rows == 0:
            return
        added = f"SELECT * FROM {change.relation}"
        if change.lowest < 0:
            added = self._take_out(step, change)
        step.database.run(f"INSERT INTO {self.table} {self.hashed(added)}")

    def forget(self, step: Step) -> None:
        """Forget the rows that no node needs after the step."""
        wanted = [each for each in self._untils if each is not None]
        if not wanted or len(wanted) < len(self._untils) or not any(has_moved(step, each) for each in wanted):
            return
        conditions = " AND ".join(each.condition for each in wanted)
        going = f"SELECT input_0.rowid FROM {self.table} AS input_0, {MARKS} WHERE {conditions}"
        step.database.run(f"DELETE FROM {self.table} WHERE rowid IN ({going})")

    def _take_out(self, step: Step, change: Change) -> str:
        """Take out the lines of rows that go; gives the lines that come."""
        found = f"_found_{self.table.rpartition('.')[2]}"
        going = f"SELECT {self.row_hash()} FROM {change.relation} WHERE {WEIGHT} < 0"
        names = f"{listing(self.columns)}, {WEIGHT}"
        step.make(found, f"SELECT _r, {names} FROM ({lines_of(self.table, f'{HASH} IN ({going})', change.rows)})")
        step.database.run(f"DELETE FROM {self.table} WHERE rowid IN (SELECT _r FROM {found})")
        return merging(self.columns, f"SELECT {names} FROM {found} UNION ALL SELECT {names} FROM {change.relation}")
