"""The plan of a view."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import duckdb
import pyarrow as pa
from msgspec import Struct
from sqlglot import exp

from barnabas.incremental.plan import Column, Groups, Input, Named, Plan, Rows, quoted
from barnabas.sql.catalog.relations import Relation
from barnabas.sql.continuous.nodes import Nodes
from barnabas.sql.continuous.refusals import refuse
from barnabas.sql.dialect import to_duckdb
from barnabas.sql.duck.types import arrow_of, duckdb_of, with_marks
from barnabas.sql.interface import SqlError
from barnabas.sql.planning.query import QueryPlan
from barnabas.sql.states import DUPLICATE_COLUMN, of_duckdb

EVERYTHING = "each change recomputes the whole result"


class Planned(Struct, frozen=True):
    """A view.

    Args:
        plan: that keeps it. Its columns are those of the query, in their order, and after them the hidden ones.
        tables: the relations by the names of the plan's inputs.
        notices: what its owner should know.
        not_null: columns of the result that are never null.
    """

    plan: Plan
    tables: Mapping[str, Relation]
    notices: tuple[str, ...] = ()
    not_null: frozenset[str] = frozenset()


def plan_view(query: QueryPlan, cursor: Any, names: Sequence[str] = ()) -> Planned:
    """The plan that keeps the result of a query.

    Args:
        query: as `plan_query` made it, without rows of an open transaction.
        cursor: of a DuckDB that knows the functions of the dialect, such as `session.planner()`.
        names: of the first columns, instead of the query's own.

    Raises:
        SqlError: 0A000 if the result cannot be kept, 42701 if two columns have one name, and whatever DuckDB says about the query.
    """
    refuse(query)
    try:
        return _planned(query, cursor, names)
    except duckdb.Error as error:
        raise of_duckdb(error) from None


def _planned(query: QueryPlan, cursor: Any, names: Sequence[str]) -> Planned:
    nodes = Nodes(cursor)
    tables: dict[str, Relation] = {}
    inputs: dict[str, int] = {}
    for each in query.inputs:
        name = each.relation.name
        tables[name] = each.relation
        wanted = {field.name: field for made in query.inputs if made.relation.name == name for field in made.schema}
        inputs[each.alias] = nodes.add(Input(name, _columns(cursor, list(wanted.values())), bool(each.relation.keys)))
    tree = query.tree.copy()
    used: list[int] = []
    for table in list(tree.find_all(exp.Table)):
        made = next((each for each in query.inputs if each.alias == table.name and not table.args.get("db")), None)
        if made is None:
            continue
        number = inputs[made.alias]
        if number not in used:
            used.append(number)
        source = exp.select(*(exp.column(exp.to_identifier(field.name, quoted=True)) for field in made.schema), copy=False)
        made_of: Any = exp.Subquery(this=source.from_(f"input_{used.index(number)}", copy=False), alias=table.args.get("alias"))
        for clause in ("joins", "laterals", "pivots"):
            if table.args.get(clause):
                made_of.set(clause, table.args[clause])
        table.replace(made_of)
    text = to_duckdb(tree)
    found = nodes.kinds(text, [nodes.columns(each) for each in used])
    shown = _named([each.name for each in found], names)
    columns = tuple(Column(name, each.kind) for name, each in zip(shown, found, strict=True))
    last = nodes.add(Groups(tuple(used), ((),) * len(used), text, columns))
    last = _finished(nodes, cursor, last)
    return Planned(nodes.plan(last, None, ()), tables, (EVERYTHING,))


def _columns(cursor: Any, fields: Sequence[Any]) -> tuple[Column, ...]:
    cursor.register("__view_input", with_marks(pa.schema(fields)).empty_table())
    try:
        return tuple(Column(row[0], row[1]) for row in cursor.execute("DESCRIBE SELECT * FROM __view_input").fetchall())
    finally:
        cursor.unregister("__view_input")


def _named(own: Sequence[str], given: Sequence[str]) -> list[str]:
    if len(given) > len(own):
        raise SqlError("42601", "too many column names were specified")
    names = [*given, *own[len(given) :]]
    for place, name in enumerate(names):
        if name in names[:place]:
            raise SqlError(
                DUPLICATE_COLUMN, f'column "{name}" specified more than once', hint="give it another name: SELECT … AS name"
            )
    return names


def _finished(nodes: Nodes, cursor: Any, last: int) -> int:
    """The result with types that tables have."""
    columns = nodes.columns(last)
    kinds = [
        duckdb_of(arrow_of(kind)) for kind in cursor.sql(f"SELECT {', '.join(f'NULL::{each.kind}' for each in columns)}").types
    ]
    if kinds == [each.kind for each in columns]:
        return last
    made = tuple(Named(each.name, kind, quoted(each.name)) for each, kind in zip(columns, kinds, strict=True))
    return nodes.add(Rows(last, made))
