"""The result: from weights to rows that come, change and go."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from barnabas.incremental.bag import HASH
from barnabas.incremental.changes import WEIGHT, Change, Step, lines_of, listing, merging, nothing, same
from barnabas.incremental.database import Database
from barnabas.incremental.interface import DELETED, ROW, FlowError
from barnabas.incremental.marks import MARKS, has_moved, is_released
from barnabas.incremental.plan import Column, Node, Sums, Until, quoted
from barnabas.incremental.sums import SummedRows

TABLE = "state.result"


def empty(step: Step, columns: Sequence[Column], *, has_row: bool = False) -> pa.Table:
    """The changes of a step that has none."""
    row = f", NULL::VARCHAR AS {ROW}" if has_row else ""
    return step.database.table(f"SELECT {nothing(columns)}{row}, true AS {DELETED} WHERE false")


def gone(columns: Sequence[Column], key: Sequence[str], source: str) -> str:
    """The keys of rows that are gone."""
    parts = [f"{quoted(each.name)}" if each.name in key else nothing([each]) for each in columns]
    return f"SELECT {', '.join(parts)}, true AS {DELETED} FROM {source}"


def let_go(database: Database, until: Until) -> None:
    """Forget the rows of the result that cannot change."""
    going = f"SELECT input_0.rowid FROM {TABLE} AS input_0, {MARKS} WHERE {until.condition}"
    database.run(f"DELETE FROM {TABLE} WHERE rowid IN ({going})")


def forget(step: Step, until: Until | None) -> None:
    """The same after a step, if they are needed no more."""
    if until is not None and is_released(step.database) and has_moved(step, until):
        let_go(step.database, until)


class SummedResult:
    """A result whose key is the key of the groups of its last node. It needs no state, since no two groups have one key."""

    def __init__(self, node: SummedRows, columns: Sequence[Column], key: Sequence[str]) -> None:
        self._node, self._columns, self._key = node, columns, key
        node.is_read = False

    def create(self, database: Database) -> None:
        """The node keeps all."""

    def rehash(self, database: Database) -> None:
        """It has no hashes."""

    def keep(self, step: Step) -> None:
        """The node keeps all."""

    def change(self, step: Step) -> pa.Table:
        come = self._node.come(step)
        if come is None:
            return empty(step, self._columns)
        went = gone(self._columns, self._key, f"({self._node.gone()})")
        return step.database.table(f"SELECT *, false AS {DELETED} FROM ({come}) UNION ALL {went}")

    def forget(self, step: Step) -> None:
        """The node keeps all."""

    def rows(self) -> str:
        """All rows, as a query."""
        return self._node.rows()


def is_of_groups(node: Node, key: Sequence[str]) -> bool:
    """Whether the key of a result is that of the groups."""
    if not isinstance(node, Sums) or not node.keys:
        return False
    shown = {each.name: each for each in node.columns}
    used = [
        one
        for name in key
        for one in node.keys
        if shown[name].sql in (one.name, quoted(one.name)) and shown[name].kind == one.kind
    ]
    return len(used) == len(key) and {one.name for one in used} == {one.name for one in node.keys}


class KeyedResult:
    """A result whose rows have a key. A line of the state is a row with a hash of its key."""

    def __init__(self, node: int, columns: Sequence[Column], key: Sequence[str], until: Until | None = None) -> None:
        self._node, self._columns, self._key, self._until = node, columns, key, until
        self._keys = ", ".join(quoted(name) for name in key) or "1"

    def create(self, database: Database) -> None:
        columns = "".join(f"{quoted(each.name)} {each.kind}, " for each in self._columns)
        database.run(f"CREATE TABLE {TABLE} ({columns}{HASH} UBIGINT)")

    def rehash(self, database: Database) -> None:
        """Compute all hashes anew."""
        database.run(f"UPDATE {TABLE} SET {HASH} = hash({self._keys})")

    def change(self, step: Step) -> pa.Table:
        """The rows of the step. Raises FlowError: two rows have one key."""
        change = step.changes[self._node]
        names = listing(self._columns)
        rows = f"SELECT {names}, {WEIGHT} FROM {change.relation}"
        if change.lowest < 0:
            rows = merging(self._columns, rows)
        if change.rows == 0 or step.make("_result_new", f"SELECT *, hash({self._keys}) AS {HASH} FROM ({rows})") == 0:
            return empty(step, self._columns)
        hashes = f"SELECT {HASH} FROM _result_new"
        step.make("_result_old", lines_of(TABLE, f"{HASH} IN ({hashes})", change.rows))
        self._count(step)
        come = f"SELECT {names}, false AS {DELETED} FROM _result_new WHERE {WEIGHT} > 0"
        went = gone(self._columns, self._key, "_result_keys WHERE _total <= 0 AND _come = 0 AND _r IS NOT NULL")
        return step.database.table(f"{come} UNION ALL {went}")

    def _count(self, step: Step) -> None:
        """Counts the rows of each key after the step."""
        names = ", ".join(f"{quoted(name)}" for name in self._key)
        prefix = f"{names}, " if names else ""
        new = f"SELECT {prefix}{WEIGHT}, NULL::BIGINT AS _r FROM _result_new"
        old = f"SELECT {prefix}1 AS {WEIGHT}, _r FROM _result_old"
        come = f"coalesce(sum({WEIGHT}) FILTER (WHERE {WEIGHT} > 0 AND _r IS NULL), 0) AS _come"
        grouped = f" GROUP BY {names}" if names else ""
        sql = f"SELECT {prefix}sum({WEIGHT}) AS _total, {come}, max(_r) AS _r FROM ({new} UNION ALL {old}){grouped}"
        step.make("_result_keys", sql)
        twice = step.database.table(f"SELECT {names or '1'} FROM _result_keys WHERE _total > 1 OR _come > 1 LIMIT 1")
        if twice.num_rows:
            raise FlowError(f"two rows of the result have the key {tuple(twice.to_pylist()[0].values()) if names else ()}")

    def keep(self, step: Step) -> None:
        if not step.made("_result_keys"):
            return
        going = "SELECT _r FROM _result_keys WHERE _r IS NOT NULL AND (_come > 0 OR _total <= 0)"
        step.database.run(f"DELETE FROM {TABLE} WHERE rowid IN ({going})")
        step.database.run(f"INSERT INTO {TABLE} SELECT * EXCLUDE {WEIGHT} FROM _result_new WHERE {WEIGHT} > 0")

    def forget(self, step: Step) -> None:
        """Forget rows that cannot change, if they are needed no more."""
        forget(step, self._until)

    def rows(self) -> str:
        """All rows, as a query."""
        return f"SELECT {listing(self._columns)} FROM {TABLE}"


class CountedResult:
    """A result whose rows have no key. A line of the state is a row with its count, and a text that stands for the row.

    The text with a number is the key `_row` of each of several equal rows.
    """

    def __init__(self, node: int, columns: Sequence[Column], until: Until | None = None) -> None:
        self._node, self._columns, self._until = node, columns, until

    def create(self, database: Database) -> None:
        columns = "".join(f"{quoted(each.name)} {each.kind}, " for each in self._columns)
        database.run(f"CREATE TABLE {TABLE} ({columns}{WEIGHT} BIGINT, _text VARCHAR, {HASH} UBIGINT)")

    def rehash(self, database: Database) -> None:
        """Compute all hashes anew."""
        database.run(f"UPDATE {TABLE} SET {HASH} = hash({listing(self._columns)})")

    def change(self, step: Step) -> pa.Table:
        change = step.merged(self._node, self._columns)
        if change.rows == 0:
            return empty(step, self._columns, has_row=True)
        self._count(step, change)
        text = "_text || ' ' || _place"
        come = "(SELECT *, unnest(range(_count, _after)) + 1 AS _place FROM _result_next WHERE _after > _count)"
        went = "(SELECT *, unnest(range(greatest(_after, 0), _count)) + 1 AS _place FROM _result_next WHERE _after < _count)"
        added = self._shown(listing(self._columns), text, "false", come)
        removed = self._shown(nothing(self._columns), text, "true", went)
        return step.database.table(f"{added} UNION ALL {removed}")

    def _count(self, step: Step, change: Change) -> None:
        """The lines of the rows in the change, with their counts before and after."""
        names = listing(self._columns)
        new = (
            f"SELECT {names}, sum({WEIGHT})::BIGINT AS {WEIGHT}, hash({names}) AS {HASH} FROM {change.relation} GROUP BY {names}"
        )
        step.make("_result_new", new)
        step.make("_result_old", lines_of(TABLE, f"{HASH} IN (SELECT {HASH} FROM _result_new)", change.rows))
        equal = same("n", "o", [each.name for each in self._columns])
        text = f"CASE WHEN o._r IS NULL THEN md5(row({listing(self._columns, 'n')})::VARCHAR) ELSE o._text END AS _text"
        counts = f"coalesce(o.{WEIGHT}, 0) AS _count, coalesce(o.{WEIGHT}, 0) + n.{WEIGHT} AS _after"
        columns = f"{listing(self._columns, 'n')}, {text}, n.{HASH}, o._r, {counts}"
        step.make(
            "_result_next",
            f"SELECT {columns} FROM _result_new AS n LEFT JOIN _result_old AS o ON n.{HASH} = o.{HASH} AND {equal}",
        )

    @staticmethod
    def _shown(columns: str, row: str, is_deleted: str, source: str) -> str:
        return f"SELECT {columns}, {row} AS {ROW}, {is_deleted} AS {DELETED} FROM {source}"

    def keep(self, step: Step) -> None:
        if not step.made("_result_next"):
            return
        step.database.run(f"DELETE FROM {TABLE} WHERE rowid IN (SELECT _r FROM _result_next WHERE _r IS NOT NULL)")
        columns = f"{listing(self._columns)}, _after, _text, {HASH}"
        step.database.run(f"INSERT INTO {TABLE} SELECT {columns} FROM _result_next WHERE _after > 0")

    def forget(self, step: Step) -> None:
        """Forget rows that cannot change, if they are needed no more."""
        forget(step, self._until)

    def rows(self) -> str:
        """All rows with their keys, as a query."""
        places = f"(SELECT *, unnest(range({WEIGHT})) + 1 AS _place FROM {TABLE})"
        return f"SELECT {listing(self._columns)}, _text || ' ' || _place AS {ROW} FROM {places}"
