"""Random plans, and random rows for their tables. Every node has the same columns, so that any node can read any other."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa
from hypothesis import strategies as st
from hypothesis.strategies import DrawFn

from barnabas.incremental.interface import DELETED, KEY
from barnabas.incremental.plan import Column, Groups, Input, Join, Named, Node, Plan, Rows, Sum, Sums, Union

COLUMNS = (
    Column("k", "INTEGER"),
    Column("v", "BIGINT"),
    Column("s", "VARCHAR"),
    Column("d", "DOUBLE"),
    Column("e", "DECIMAL(12,2)"),
)
KINDS: Mapping[str, pa.DataType] = {
    "k": pa.int32(),
    "v": pa.int64(),
    "s": pa.string(),
    "d": pa.float64(),
    "e": pa.decimal128(12, 2),
}
SCHEMA = pa.schema(KINDS)
KEYED = pa.schema({**KINDS, KEY: pa.binary(), DELETED: pa.bool_()})
INPUTS = (Input("people", COLUMNS, True), Input("bids", COLUMNS), Input('odd "name"\'s', COLUMNS, True))


def made(**expressions: str) -> tuple[Named, ...]:
    """Columns of a node; those without an expression keep their value."""
    return tuple(Named(each.name, each.kind, expressions.get(each.name, each.name)) for each in COLUMNS)


ROWS: tuple[tuple[tuple[Named, ...], str | None, str], ...] = (
    (made(), "k > 0", "input_0"),
    (made(v="v + 1", s="upper(s)"), None, "input_0"),
    (made(k="v % 3"), "s IS NOT NULL", "input_0"),
    (made(v="0", d="0", e="0"), None, "input_0"),
    (made(v="x"), None, "input_0, unnest([v, k, v]) AS t(x)"),
    (made(v="x"), "x > 0", "input_0, LATERAL (SELECT unnest([v, k])) AS t(x)"),
    (made(s="unnest(['a', s])"), None, "input_0"),
)
LEFT = {each.name: f"input_0.{each.name}" for each in COLUMNS}
JOINS: tuple[tuple[str | None, tuple[Named, ...]], ...] = (
    ("input_0.k = input_1.k", made(**{**LEFT, "s": "input_1.s"})),
    ("input_0.k = input_1.k AND input_0.v < input_1.v", made(**LEFT)),
    ("input_0.k IS NOT DISTINCT FROM input_1.k AND input_0.s = input_1.s", made(**{**LEFT, "v": "input_0.v - input_1.v"})),
    ("input_0.v = input_1.k", made(**{**LEFT, "d": "input_1.d"})),
    ("input_0.v < input_1.v AND input_0.k > input_1.k", made(**LEFT)),
)
ALL = "k, v, s, d, e"
GROUPS: tuple[tuple[int, tuple[str, ...], str], ...] = (
    (1, ("k",), f"SELECT DISTINCT {ALL} FROM input_0"),
    (1, ("k",), f"SELECT {ALL} FROM input_0 QUALIFY row_number() OVER (PARTITION BY k ORDER BY {ALL}) <= 2"),
    (1, ("k", "s"), "SELECT k, count(DISTINCT v), s, avg(d), max(e) FROM input_0 GROUP BY k, s"),
    (2, ("k",), "SELECT a.k, b.v, a.s, b.d, a.e FROM input_0 AS a LEFT JOIN input_1 AS b ON a.k = b.k"),
    (
        2,
        ("k",),
        "SELECT coalesce(a.k, b.k), a.v, b.s, a.d, b.e FROM input_0 AS a FULL JOIN input_1 AS b ON a.k = b.k AND a.v < b.v",
    ),
    (2, ("s",), "SELECT * FROM input_0 WHERE NOT EXISTS (FROM input_1 WHERE input_1.s IS NOT DISTINCT FROM input_0.s)"),
    (2, ("k",), "WITH every AS (FROM input_0 UNION FROM input_1) SELECT * FROM every"),
    (1, (), f"SELECT {ALL} FROM input_0 ORDER BY {ALL} LIMIT 3"),
    (1, (), "SELECT count(*), sum(v), max(s), median(d), 0 FROM input_0"),
    (2, (), "SELECT k, v, s, (SELECT max(d) FROM input_1), e FROM input_0"),
)
FILTERS = st.sampled_from([None, None, "v > 1", "s IS NOT NULL"])
KEYS = {
    "k": (Named("g", "INTEGER", "k"), Named("h", "VARCHAR", "NULL")),
    "k, s": (Named("g", "INTEGER", "k"), Named("h", "VARCHAR", "s")),
    "computed": (Named("g", "INTEGER", "v % 2"), Named("h", "VARCHAR", "lower(s)")),
    "one": (Named("g", "INTEGER", "k"),),
    "none": (),
}


@st.composite
def sums(draw: DrawFn, read: int) -> Sums:
    """Aggregates by some keys."""
    keys = KEYS[draw(st.sampled_from(sorted(KEYS)))]
    whole = draw(st.sampled_from([("count", None), ("count", "v"), ("sum", "v"), ("min", "v"), ("max", "k")]))
    text = draw(st.sampled_from([("min", "s"), ("max", "s")]))
    real = draw(st.sampled_from([("sum", "d"), ("count", "d"), ("sum", "e"), ("max", "d")]))
    exact = draw(st.sampled_from([("sum", "e"), ("min", "e"), ("bool_and", "v > 0"), ("bool_or", "s = 'a'"), ("count", "e")]))
    if draw(st.booleans()):
        text = ("count", "s")
    kinds = {"count": "BIGINT", "sum": "HUGEINT", "bool_and": "BOOLEAN", "bool_or": "BOOLEAN"}
    of = {"v": "BIGINT", "k": "INTEGER", "s": "VARCHAR", "d": "DOUBLE", "e": "DECIMAL(12,2)"}
    wanted = []
    for name, (call, argument) in {"a": whole, "b": text, "c": real, "f": exact}.items():
        kind = kinds.get(call) or of[str(argument)]
        if call == "sum" and argument in ("d", "e"):
            kind = {"d": "DOUBLE", "e": "DECIMAL(38,2)"}[argument]
        wanted.append(Sum(name, kind, call, argument, draw(FILTERS)))
    group = "g" if keys else "0"
    second = "coalesce(h, b::VARCHAR)" if len(keys) > 1 else "b::VARCHAR"
    return Sums(read, keys, tuple(wanted), made(k=group, v="a", s=second, d="c", e="f::INTEGER" if "bool" in exact[0] else "f"))


@st.composite
def nodes(draw: DrawFn, before: int, joins: int) -> Node:
    """A node that reads some of the nodes before it."""
    one = st.integers(0, before - 1)
    kind = draw(st.sampled_from(["rows", "join", "sums", "sums", "groups", "groups", "union"]))
    if kind == "join" and joins < 2:
        on, columns = draw(st.sampled_from(JOINS))
        return Join(draw(one), draw(one), on, columns)
    if kind == "sums":
        return draw(sums(draw(one)))
    if kind == "groups":
        inputs, keys, query = draw(st.sampled_from(GROUPS))
        return Groups(tuple(draw(one) for _ in range(inputs)), (keys,) * inputs, query, COLUMNS)
    if kind == "union":
        return Union(tuple(draw(st.lists(one, min_size=1, max_size=3))))
    columns, where, source = draw(st.sampled_from(ROWS))
    return Rows(draw(one), columns, where, source)


@st.composite
def plans(draw: DrawFn) -> Plan:
    """Plans of up to five nodes over three tables."""
    found: list[Node] = [*INPUTS]
    for _ in range(draw(st.integers(1, 5))):
        found.append(draw(nodes(len(found), sum(isinstance(each, Join) for each in found))))
    key = draw(st.sampled_from([None, None, ("k",), ("k", "s")]))
    return Plan(tuple(found), key)


REALS = st.none() | st.integers(-8, 8).map(lambda whole: whole / 4)
VALUES = st.fixed_dictionaries({
    "k": st.none() | st.integers(0, 3),
    "v": st.none() | st.integers(-2, 4),
    "s": st.sampled_from([None, "a", "b", "NULL", "it's"]),
    "d": REALS,
    "e": REALS,
})  # fmt: skip


@st.composite
def steps(draw: DrawFn) -> dict[str, pa.Table]:
    """Rows of some of the tables."""
    found = {}
    for table in INPUTS:
        rows: list[dict[str, Any]] = draw(st.lists(VALUES, max_size=4))
        if table.is_keyed:
            for row in rows:
                row[KEY] = draw(st.sampled_from([b"1", b"2", b"3", b"4", b""]))
                row[DELETED] = draw(st.sampled_from([False, False, True]))
                if row[DELETED]:
                    row.update(dict.fromkeys(SCHEMA.names))
        if rows:
            found[table.table] = arrow(rows, is_keyed=table.is_keyed)
    return found


def arrow(rows: list[dict[str, Any]], *, is_keyed: bool) -> pa.Table:
    """Rows as a step has them."""
    schema = KEYED if is_keyed else SCHEMA
    columns = {
        field.name: pa.array([row[field.name] for row in rows], pa.float64() if field.name == "e" else field.type)
        for field in schema
    }
    return pa.table(columns).cast(schema)
