"""A flow that computes the whole result at each step and compares it with the last: for tests, which compare other flows with it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

import duckdb
import pyarrow as pa

from barnabas.functions.duck import Known
from barnabas.incremental.interface import DELETED, KEY, ROW, FlowError, Size
from barnabas.incremental.plan import Input, Plan, quoted

Key = tuple[Any, ...]


class WholeFlow:
    """Keeps all rows of the tables in memory."""

    def __init__(self, plan: Plan) -> None:
        self.plan, self.position = plan, -1
        self._connection = duckdb.connect()
        Known(self._connection).learn(plan.functions)
        self._tables: dict[str, list[tuple[bytes | None, Mapping[str, Any]]]] = {name: [] for name in plan.tables}
        self._result: dict[Key, dict[str, Any]] = {}
        self._open: tuple[int, dict[str, list[tuple[bytes | None, Mapping[str, Any]]]], dict[Key, dict[str, Any]]] | None = None
        self._schema = self._query({name: [] for name in plan.tables}).schema

    def step(self, number: int, inputs: Mapping[str, pa.Table]) -> pa.Table:
        if number != self.position + 1:
            raise FlowError(f"step {number} does not follow step {self.position}")
        tables = {name: self._applied(self.plan.tables[name], rows, inputs.get(name)) for name, rows in self._tables.items()}
        result = self._by_key(self._query(tables))
        self._open = number, tables, result
        changed = [{**row, DELETED: False} for key, row in result.items() if self._result.get(key) != row]
        names = self.plan.key or (ROW,)
        gone = [{**dict(zip(names, key, strict=True)), DELETED: True} for key in self._result if key not in result]
        return pa.Table.from_pylist(changed + gone, self._changes_schema())

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

    def _query(self, tables: Mapping[str, Any]) -> pa.Table:
        cursor = self._connection.cursor()
        try:
            for name, node in self.plan.tables.items():
                columns = ", ".join(f"{quoted(each.name)} {each.kind}" for each in node.columns)
                cursor.execute(f"CREATE OR REPLACE TEMP TABLE {quoted(name)} ({columns})")
                if tables[name]:
                    empty = cursor.sql(f"FROM {quoted(name)}").to_arrow_table().schema
                    rows = pa.Table.from_pylist([dict(row) for _, row in tables[name]], empty)
                    cursor.register("given", rows)
                    cursor.execute(f"INSERT INTO {quoted(name)} FROM given")
            found: pa.Table = cursor.sql(self.plan.query()).to_arrow_table()
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
                key: Key = tuple(row[name] for name in self.plan.key)
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
        self.position, self._tables, self._result = self._open
        self._open = None

    def rollback(self) -> None:
        self._open = None

    def result(self) -> pa.Table:
        return pa.Table.from_pylist([{k: v for k, v in row.items() if k != ROW} for row in self._result.values()], self._schema)

    def snapshot(self) -> pa.Table:
        return pa.Table.from_pylist([{**row, DELETED: False} for row in self._result.values()], self._changes_schema())

    def size(self) -> Size:
        rows = sum(map(len, self._tables.values()))
        return Size(rows, 0)

    def close(self) -> None:
        self._connection.close()
