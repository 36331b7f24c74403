"""A flow that computes the whole result at each step and compares it with the last: for tests, which compare other flows with it.

Late rows are left out of the tables when they come; by the same rule, but on values of Python.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import duckdb
import pyarrow as pa
from msgspec import Struct

from barnabas.functions.duck import Known
from barnabas.incremental import natives
from barnabas.incremental.interface import DELETED, KEY, ROW, FlowError, Size
from barnabas.incremental.plan import Input, OnTime, Plan, quoted

Key = tuple[Any, ...]
Rows = list[tuple[bytes | None, Mapping[str, Any]]]


class Looked(Struct):
    """What a lookup has seen and made."""

    seen: pa.Table
    made: pa.Table


class Open(Struct):
    """A step that is not committed."""

    number: int
    tables: dict[str, Rows]
    result: dict[Key, dict[str, Any]]
    marks: dict[int, Any]
    late: int
    looked: dict[int, Looked]
    note: str


class WholeFlow:
    """Keeps all rows of the tables in memory.

    Args:
        setup: statements that define functions which the plan uses.
    """

    def __init__(self, plan: Plan, setup: Sequence[str] = ()) -> None:
        self.plan, self.position = plan, -1
        self._connection = duckdb.connect()
        self._connection.execute("SET GLOBAL TimeZone = 'UTC'")
        natives.register(self._connection)
        for statement in setup:
            self._connection.execute(statement)
        Known(self._connection).learn(plan.functions)
        self._tables: dict[str, Rows] = {name: [] for name in plan.tables}
        self._result: dict[Key, dict[str, Any]] = {}
        self._marks: dict[int, Any] = dict.fromkeys(plan.marks)
        self._late = 0
        self._open: Open | None = None
        self.note = ""
        nothing: dict[str, Rows] = {name: [] for name in plan.tables}
        self._looked: dict[int, Looked] = {}
        self._looked = self._looking(nothing)
        self._schema = self._query(nothing, self._marks, self._looked).schema

    def step(self, number: int, inputs: Mapping[str, pa.Table], note: str = "") -> pa.Table:
        if number != self.position + 1:
            raise FlowError(f"step {number} does not follow step {self.position}")
        marks, late, on_time = dict(self._marks), 0, dict(inputs)
        for place, node in self.plan.marks.items():
            name = self._table_of(node)
            if name in inputs:
                on_time[name], marks[place] = self._on_time(node, inputs[name], marks[place])
                late += inputs[name].num_rows - on_time[name].num_rows
        tables = {name: self._applied(self.plan.tables[name], rows, on_time.get(name)) for name, rows in self._tables.items()}
        looked = self._looking(tables)
        result = self._by_key(self._query(tables, marks, looked))
        self._open = Open(number, tables, result, marks, self._late + late, looked, note)
        changed = [{**row, DELETED: False} for key, row in result.items() if self._result.get(key) != row]
        names = self.plan.key or (ROW,)
        gone = [{**{name: row[name] for name in names}, DELETED: True} for key, row in self._result.items() if key not in result]
        return pa.Table.from_pylist(changed + gone, self._changes_schema())

    def _looking(self, tables: Mapping[str, Any]) -> dict[int, Looked]:
        """The lookups after a step: the rows that came on the left meet those that are on the right now."""
        found: dict[int, Looked] = {}
        for number, node in self.plan.lookups.items():
            left = self._query(tables, self._marks, found, node.left)
            right = self._query(tables, self._marks, found, node.right)
            cursor = self._connection.cursor()
            try:
                old = self._looked.get(number, Looked(left.slice(0, 0), left.slice(0, 0)))
                for name, rows in (("seen", old.seen), ("now", left), ("beside", right)):
                    cursor.register(name, rows)
                made = cursor.sql(node.joined("SELECT * FROM now EXCEPT ALL SELECT * FROM seen", "SELECT * FROM beside"))
                rows = made.to_arrow_table()
                found[number] = Looked(left, pa.concat_tables([old.made, rows]) if number in self._looked else rows)
            finally:
                cursor.close()
        return found

    def _table_of(self, node: OnTime) -> str:
        found = self.plan.nodes[node.input]
        assert isinstance(found, Input)
        return found.table

    def _on_time(self, node: OnTime, rows: pa.Table, mark: Any) -> tuple[pa.Table, Any]:
        """The rows that are not late, and the watermark behind them."""
        cursor = self._connection.cursor()
        try:
            cursor.register("given", rows)
            columns = ", ".join(f"{quoted(each.name)}::{each.kind} AS {quoted(each.name)}" for each in node.columns)
            marks = cursor.execute(
                f"SELECT ({node.watermark})::{node.kind} FROM (SELECT {columns} FROM given) AS input_0"
            ).fetchall()
            times = rows.column(node.time).to_pylist()
            fits = [time is not None and (mark is None or time >= mark) for time in times]
            values = [value for (value,), is_kept in zip(marks, fits, strict=True) if is_kept and value is not None]
            return rows.filter(pa.array(fits)), max([*values, *([mark] if mark is not None else [])], default=None)
        finally:
            cursor.close()

    def _changes_schema(self) -> pa.Schema:
        fields = [each.with_nullable(True) for each in self._schema]
        if self.plan.key is None:
            fields.append(pa.field(ROW, pa.string()))
        return pa.schema([*fields, pa.field(DELETED, pa.bool_())])

    @staticmethod
    def _applied(node: Input, rows: Any, delta: pa.Table | None) -> Any:
        if delta is None:
            return rows
        names = [each.name for each in node.columns]
        found = list(rows)
        if not node.is_keyed:
            return found + [(None, {name: row[name] for name in names}) for row in delta.to_pylist()]
        newest = dict(found)
        for row in delta.to_pylist():
            newest.pop(row[KEY], None)
            if not row[DELETED]:
                newest[row[KEY]] = {name: row[name] for name in names}
        return list(newest.items())

    def _query(
        self, tables: Mapping[str, Any], marks: Mapping[int, Any], looked: Mapping[int, Looked], last: int | None = None
    ) -> pa.Table:
        cursor = self._connection.cursor()
        try:
            for number, each in looked.items():
                cursor.register(f"looked_{number}", each.made)
            if marks:
                columns = ", ".join(f"w{place} {node.kind}" for place, node in self.plan.marks.items())
                cursor.execute(f"CREATE OR REPLACE TEMP TABLE marks ({columns})")
                cursor.execute(f"INSERT INTO marks VALUES ({', '.join('?' for _ in marks)})", list(marks.values()))
            for name, node in self.plan.tables.items():
                columns = ", ".join(f"{quoted(each.name)} {each.kind}" for each in node.columns)
                cursor.execute(f"CREATE OR REPLACE TEMP TABLE {quoted(name)} ({columns})")
                if tables[name]:
                    empty = cursor.sql(f"FROM {quoted(name)}").to_arrow_table().schema
                    rows = pa.Table.from_pylist([dict(row) for _, row in tables[name]], empty)
                    cursor.register("given", rows)
                    cursor.execute(f"INSERT INTO {quoted(name)} FROM given")
            found: pa.Table = cursor.sql(self.plan.query(last)).to_arrow_table()
            return found
        except duckdb.Error as error:
            raise FlowError(str(error).splitlines()[0]) from error
        finally:
            cursor.close()

    def _by_key(self, rows: pa.Table) -> dict[Key, dict[str, Any]]:
        found: dict[Key, dict[str, Any]] = {}
        seen: Counter[str] = Counter()
        for row in rows.to_pylist():
            if self.plan.key is not None:
                key: Key = tuple(repr(value) if isinstance(value := row[name], (dict, list)) else value for name in self.plan.key)
                if key in found:
                    raise FlowError(f"two rows of the result have the key {key}")
            else:
                text = repr(sorted(row.items()))
                key = (f"{text} #{seen[text]}",)
                seen[text] += 1
                row[ROW] = key[0]
            found[key] = row
        return found

    def commit(self) -> None:
        assert self._open is not None
        self.position, self._tables, self._result = self._open.number, self._open.tables, self._open.result
        self._marks, self._late, self._looked = self._open.marks, self._open.late, self._open.looked
        self.note = self._open.note
        self._open = None

    def rollback(self) -> None:
        self._open = None

    def result(self) -> pa.Table:
        return pa.Table.from_pylist([{k: v for k, v in row.items() if k != ROW} for row in self._result.values()], self._schema)

    def snapshot(self) -> pa.Table:
        return pa.Table.from_pylist([{**row, DELETED: False} for row in self._result.values()], self._changes_schema())

    def release(self) -> None:
        """It keeps all."""

    def late(self) -> int:
        return self._late if self._open is None else self._open.late

    def size(self) -> Size:
        rows = sum(map(len, self._tables.values()))
        return Size(rows, 0)

    def close(self) -> None:
        self._connection.close()
