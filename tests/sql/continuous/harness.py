"""Views over tables in memory: their flow beside the query itself, which DuckDB runs over all rows after each step."""

from __future__ import annotations

import datetime as dt
import json
import random
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from decimal import Decimal
from typing import Any

import duckdb
import pyarrow as pa

from barnabas.incremental import natives
from barnabas.incremental.flow import open_flow
from barnabas.incremental.interface import DELETED, KEY
from barnabas.incremental.macros import MACROS
from barnabas.incremental.plan import Plan
from barnabas.sql.catalog.definitions import ColumnDefinition, TableDefinition
from barnabas.sql.catalog.relations import Relation
from barnabas.sql.catalog.topics import declared
from barnabas.sql.continuous.planned import Planned, plan_view
from barnabas.sql.dialect import parse, statement_of
from barnabas.sql.duck.types import with_marks
from barnabas.sql.planning.query import QueryPlan, plan_query

EPOCH = dt.datetime(2024, 1, 1, tzinfo=dt.UTC)
MEMORY = 256 << 20
Row = dict[str, Any]


def table(name: str, columns: str, key: str = "") -> Relation:
    """A relation from `column type, column type not null`, with the columns of its primary key."""
    keys = tuple(each.strip() for each in key.split(",") if each.strip())
    found = []
    for each in re.split(r",\s+", columns):
        column, kind, *rest = each.split(None, 2)
        found.append(ColumnDefinition(column, kind, not rest and column not in keys))
    return declared(TableDefinition(name, name, tuple(found), keys, bool(keys)))


def connection() -> Any:
    """A DuckDB with the functions of the dialect."""
    made = duckdb.connect(config={"threads": "1"})
    natives.register(made)
    made.execute(MACROS)
    return made


CURSOR = connection()
FACTS: Mapping[str, Any] = {"current_user": "anna"}


def queried(text: str, tables: Mapping[str, Relation], *, is_spark: bool = True) -> QueryPlan:
    """A query as the engine plans it."""
    tree = parse(statement_of(text), spark_order=is_spark)
    return plan_query(tree, lambda parts, position: tables[parts[-1]], FACTS, lambda name: None, is_spark=is_spark)


def planned(text: str, tables: Mapping[str, Relation], *, is_spark: bool = True) -> tuple[QueryPlan, Planned]:
    """A query and its plan."""
    query = queried(text, tables, is_spark=is_spark)
    return query, plan_view(query, CURSOR.cursor())


class Rows:
    """The rows of tables, which change at random, with a seed."""

    def __init__(self, tables: Mapping[str, Relation], seed: int, most: int = 6) -> None:
        self.tables, self.random, self._most = tables, random.Random(seed), most
        self.rows: dict[str, dict[bytes, Row]] = {name: {} for name in tables}
        self._offset = 0

    def step(self, names: Sequence[str]) -> dict[str, list[Row]]:
        """Rows that come and go, of some tables."""
        found: dict[str, list[Row]] = {}
        for name in names:
            rows = [self._row(name) for _ in range(self.random.randint(0, self._most))]
            if rows:
                found[name] = rows
        return found

    def _row(self, name: str) -> Row:
        relation, own = self.tables[name], self.rows[name]
        if relation.keys and own and self.random.random() < 0.25:
            self._offset += 1
            key = self.random.choice(list(own))
            del own[key]
            return {**dict.fromkeys(relation.columns.names), **self._meta(), KEY: key, DELETED: True}
        return self.insert(name, {each.name: self._value(each) for each in relation.columns})

    def insert(self, name: str, row: Row) -> Row:
        """A row that is written to a table, as the view gets it."""
        relation, own = self.tables[name], self.rows[name]
        self._offset += 1
        key = repr([row[each] for each in relation.keys] if relation.keys else self._offset).encode()
        row |= self._meta()
        own.pop(key, None)
        own[key] = row
        return {**row, KEY: key, DELETED: False}

    def _meta(self) -> Row:
        return {"_partition": self._offset % 2, "_offset": self._offset, "_timestamp": EPOCH + dt.timedelta(seconds=self._offset)}

    def _value(self, field: pa.Field[Any]) -> Any:
        draw = self.random
        if field.nullable and draw.random() < 0.12:
            return None
        kind: Any = field.type
        if pa.types.is_boolean(kind):
            return draw.random() < 0.5
        if pa.types.is_integer(kind):
            return draw.randint(0, 6)
        if pa.types.is_floating(kind):
            return draw.randint(-8, 8) / 4
        if pa.types.is_decimal(kind):
            return Decimal(draw.randint(-300, 1000)) / 100
        if pa.types.is_timestamp(kind):
            value = EPOCH + dt.timedelta(seconds=draw.randint(0, 7_200))
            return value if kind.tz else value.replace(tzinfo=None)
        if pa.types.is_date(kind):
            return (EPOCH + dt.timedelta(days=draw.randint(0, 900))).date()
        if pa.types.is_list(kind):
            return [self._value(kind.value_field) for _ in range(draw.randint(0, 3))]
        if pa.types.is_struct(kind):
            return {each.name: self._value(each) for each in kind}
        if (field.metadata or {}).get(b"barnabas.type") == b"json":
            return json.dumps({"a": draw.randint(0, 3), "b": draw.choice("xyz")})
        return draw.choice(["a", "b", "c", "ab", "it's", ""])


class Watched:
    """A view while its tables change."""

    def __init__(self, text: str, tables: Mapping[str, Relation], *, is_spark: bool = True) -> None:
        self.query, self.planned = planned(text, tables, is_spark=is_spark)
        self.plan: Plan = self.planned.plan
        self.flow = open_flow(self.plan, None, MEMORY, 1, [MACROS])

    def step(self, given: Mapping[str, list[Row]]) -> pa.Table:
        """A step of the flow."""
        inputs = {}
        for name, node in self.plan.tables.items():
            rows = given.get(name)
            if rows:
                relation = self.planned.tables[name]
                fields = {each.name: each for each in (*relation.columns, *relation.hidden)}
                schema = pa.schema([fields[each.name] for each in node.columns if each.name in fields])
                schema = with_marks(pa.schema([each.with_nullable(True) for each in schema]))
                if node.is_keyed:
                    schema = schema.append(pa.field(KEY, pa.binary())).append(pa.field(DELETED, pa.bool_()))
                inputs[name] = pa.Table.from_pylist([{each: row.get(each) for each in schema.names} for row in rows], schema)
        changes = self.flow.step(self.flow.position + 1, inputs)
        self.flow.commit()
        return changes

    def result(self) -> Counter[str]:
        """The rows of the flow, as the view shows them."""
        rows = self.flow.result()
        names = [name for name in rows.column_names if name not in self.plan.hidden]
        return lines(rows.select(names).rename_columns([str(place) for place in range(len(names))]))

    def expected(self, rows: Rows) -> Counter[str]:
        """The rows of the query."""
        cursor = CURSOR.cursor()
        try:
            for each in self.query.inputs:
                schema = with_marks(pa.schema([one.with_nullable(True) for one in each.schema]))
                every = [{name: row[name] for name in schema.names} for row in rows.rows[each.relation.name].values()]
                cursor.register(each.alias, pa.Table.from_pylist(every, schema))
            found = cursor.sql(self.query.sql).to_arrow_table()
            return lines(found.rename_columns([str(place) for place in range(found.num_columns)]))
        finally:
            cursor.close()

    def close(self) -> None:
        self.flow.close()


def lines(rows: pa.Table) -> Counter[str]:
    """Rows as a multiset; numbers by their value, to ten digits."""
    return Counter(repr({name: plain(value) for name, value in row.items()}) for row in rows.to_pylist())


def plain(value: Any) -> Any:
    """A value without its type."""
    match value:
        case bool():
            return value
        case float() | int() | Decimal():
            return f"{float(value):.9g}".replace("-0", "0") if float(value) == 0 else f"{float(value):.9g}"
        case list():
            return [plain(each) for each in value]
        case dict():
            return {name: plain(each) for name, each in value.items()}
    return str(value) if value is not None else None


@contextmanager
def watched(text: str, tables: Mapping[str, Relation], *, is_spark: bool = True) -> Iterator[Watched]:
    """A view that is closed in the end."""
    found = Watched(text, tables, is_spark=is_spark)
    try:
        yield found
    finally:
        found.close()


def follow(text: str, tables: Mapping[str, Relation], seed: int, steps: int = 5, *, is_spark: bool = True) -> Planned:
    """Compare the view with its query after each of some steps; gives the plan."""
    rows = Rows(tables, seed)
    with watched(text, tables, is_spark=is_spark) as view:
        for number in range(steps):
            view.step(rows.step(list(view.plan.tables)))
            mine, wanted = view.result(), view.expected(rows)
            assert mine == wanted, f"step {number}: missing {wanted - mine}, too many {mine - wanted}"
        return view.planned
