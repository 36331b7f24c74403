"""The plan of a view."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import duckdb
import pyarrow as pa
from msgspec import Struct
from msgspec.structs import replace

from barnabas.functions.definition import Function
from barnabas.incremental.append_only import NO_STREAM, UNBOUND, reason_against
from barnabas.incremental.interface import DELETED, ROW
from barnabas.incremental.plan import Column, Input, Named, OnTime, Plan, Rows, quoted
from barnabas.sql.catalog.relations import KEY, META, Relation
from barnabas.sql.continuous.nodes import Nodes
from barnabas.sql.continuous.parts import Made, NotSplit, free_name
from barnabas.sql.continuous.planner import Planner
from barnabas.sql.continuous.refusals import refuse
from barnabas.sql.continuous.watermarks import with_waiting_rows, with_watermarks
from barnabas.sql.duck.types import arrow_of, duckdb_of, with_marks
from barnabas.sql.interface import SqlError
from barnabas.sql.planning.inputs import Input as Reading
from barnabas.sql.planning.query import QueryPlan
from barnabas.sql.states import DUPLICATE_COLUMN, not_supported, of_duckdb
from barnabas.tables.scan import OFFSET, PARTITION

META_NAMES = (*(each.name for each in META), KEY, ROW, DELETED)  # columns that topics and results have
_OWN = re.compile(r"_([whrno]|k\d+|text|after|count|come|total|same|row|deleted)")  # names in the tables of a state
JOB = "a job"
VIEW = "CREATE MATERIALIZED VIEW keeps such a query"
_HINTS = {
    NO_STREAM: "read a stream: FROM STREAM t",
    UNBOUND: "ON … AND b.at BETWEEN a.at - INTERVAL '5 minutes' AND a.at + INTERVAL '5 minutes', over streams that both have a WATERMARK",
}
ONLY = "_only"  # the key of a result that has one row


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


def plan_view(query: QueryPlan, cursor: Any, names: Sequence[str] = (), *, is_final: bool = False) -> Planned:
    """The plan that keeps the result of a query.

    Args:
        query: as `plan_query` made it, without rows of an open transaction.
        cursor: of a DuckDB that knows the functions of the dialect, such as `session.planner()`.
        names: of the first columns, instead of the query's own.
        is_final: whether the view gives a row when it cannot change any more.

    Raises:
        SqlError: 0A000 if the result cannot be kept, 42701 if two columns have one name, and whatever DuckDB says about the query.
    """
    refuse(query)
    try:
        found = _planned(query, cursor, names)
    except duckdb.Error as error:
        raise of_duckdb(error) from None
    return replace(found, plan=with_watermarks(_with_functions(found.plan, query.in_python), is_final=is_final))


def _with_functions(plan: Plan, functions: Sequence[Function]) -> Plan:
    """The plan with those of the functions in Python that it calls."""
    used = tuple(each for each in functions if each.call in plan.query().lower()) if functions else ()
    return replace(plan, functions=used) if used else plan


class Filled(Struct, frozen=True):
    """Columns that a job adds to those of its query, or puts in their place.

    Args:
        columns: expressions over the columns before them. They may call a clock.
        functions: of users in Python, which the expressions call.
    """

    columns: Sequence[Named]
    functions: Sequence[Function] = ()


def plan_appends(query: QueryPlan, cursor: Any, more: Sequence[Filled] = (), *, is_final: bool = False) -> Planned:
    """The plan whose rows are appended: nothing identifies a row, and a row that comes late is appended like any other.

    Args:
        query, cursor: as for `plan_view`.
        more: further columns, in steps; a step sees the columns of the steps before it.
        is_final: whether a row is appended when it cannot change any more. Then rows that come late are left out, as in a join of streams.

    Raises:
        SqlError: as `plan_view`, and 0A000 if a later row could take back what an earlier one made.
    """
    refuse(query, JOB)
    try:
        found = _planned(query, cursor, (), identifies=False, judges_time=is_final)
    except duckdb.Error as error:
        raise of_duckdb(error) from None
    if is_final:
        found = replace(found, plan=replace(with_watermarks(found.plan, is_final=True), until=None))
    reason = reason_against(found.plan)
    if reason == UNBOUND and not is_final:
        found, reason = _joined_streams(query, cursor)
    if reason is not None:
        why = f": {found.notices[0]}" if found.notices and reason.startswith("a part") else ""
        raise not_supported(f"a job cannot append the rows of this query: {reason}{why}", hint=_HINTS.get(reason, VIEW))
    plan = found.plan
    for step in more:
        changed = {each.name: each for each in step.columns}
        own = [changed.pop(each.name, Named(each.name, each.kind, quoted(each.name))) for each in plan.columns]
        plan = Plan((*plan.nodes, Rows(len(plan.nodes) - 1, (*own, *changed.values()))))
    functions = {each.call: each for each in (*query.in_python, *(each for step in more for each in step.functions))}
    return replace(found, plan=_with_functions(plan, list(functions.values())))


def _joined_streams(query: QueryPlan, cursor: Any) -> tuple[Planned, str | None]:
    """The plan of a query that joins streams, and why its rows cannot be appended. Rows behind a watermark have no part in it."""
    found = _planned(query, cursor, (), identifies=False)
    reason = reason_against(replace(found.plan, nodes=with_watermarks(found.plan).nodes))
    if reason == UNBOUND:
        return found, reason
    made = replace(found, plan=with_waiting_rows(found.plan))
    return made, reason_against(made.plan)


def _planned(
    query: QueryPlan, cursor: Any, names: Sequence[str], *, identifies: bool = True, judges_time: bool = True
) -> Planned:
    nodes = Nodes(cursor)
    tables = {each.relation.name: each.relation for each in query.inputs}
    inputs = {each.alias: _input(query, each, nodes, judges_time=judges_time) for each in query.inputs}
    planner = Planner(nodes, inputs)
    try:
        made = planner.query(query.tree.copy(), {})
    except NotSplit as error:
        if isinstance(error.__cause__, duckdb.Error):
            raise error.__cause__ from None
        raise not_supported(f"a view cannot have {error}") from None
    if not identifies:
        made = Made(made.node, made.names, (), made.not_null)
    return _finished(nodes, made, _named([name for name, _ in made.names], names), tables, planner.notices)


def _input(query: QueryPlan, one: Reading, nodes: Nodes, *, judges_time: bool) -> Made:
    """The node of a table, and what one name of it shows. The columns of the primary key are always there.

    Args:
        judges_time: whether rows behind the watermark of the table are left out.
    """
    relation = one.relation
    wanted = {field.name: field for each in query.inputs if each.relation.name == relation.name for field in each.schema}
    everything = {field.name: field for field in (*relation.hidden, *relation.columns)}  # a key of a view may be hidden
    for name in relation.keys:
        wanted.setdefault(name, everything[name])
    is_stream = getattr(relation, "is_stream", False)
    mark = getattr(getattr(relation, "definition", None), "watermark", None) if judges_time else None
    if mark is not None:
        wanted.setdefault(mark.column, everything[mark.column])
    if KEY in wanted and relation.keys:
        text = f'a view cannot have the column "{KEY}" of a table whose rows can change'
        raise not_supported(text, hint="an update takes it away; STREAM t has it, and so has a table with APPEND ONLY")
    for name in wanted:
        if name != ROW or name not in relation.keys:  # a view without a key has rows with this one
            _check_name(name)
    node = nodes.add(Input(relation.name, _columns(nodes.cursor, list(wanted.values())), bool(relation.keys), is_stream))
    if mark is not None:
        value = f"input_0.{quoted(mark.column)}{f' - {mark.delay}' if mark.delay else ''}"
        node = nodes.add(OnTime(node, nodes.columns(node), mark.column, value))
    unique = [frozenset(relation.keys)] if relation.keys else []
    if PARTITION in wanted and OFFSET in wanted:
        unique.append(frozenset((PARTITION, OFFSET)))
    not_null = frozenset(name for name, field in wanted.items() if not field.nullable)  # the key of a view may be null
    return Made(node, tuple((field.name, field.name) for field in one.schema), tuple(unique), not_null)


def _finished(nodes: Nodes, made: Made, names: Sequence[str], tables: Mapping[str, Relation], notices: Sequence[str]) -> Planned:
    """The columns of the result with types that tables have, those that identify a row, and no others."""
    kinds = {each.name: each.kind for each in nodes.columns(made.node)}
    shown = [column for _, column in made.names]
    key = min(made.unique, key=lambda each: (len(each - set(shown)), len(each - made.not_null), sorted(each)), default=None)
    pairs = [*zip(shown, names, strict=True), *_hidden(sorted((key or frozenset()) - set(shown)), names)]
    wanted = _table_kinds(nodes.cursor, [kinds[column] for column, _ in pairs])
    columns = [Named(name, kind, quoted(column)) for (column, name), kind in zip(pairs, wanted, strict=True)]
    hidden = tuple(name for _, name in pairs[len(shown) :])
    never = {name for column, name in pairs if column in made.not_null}
    found = None if key is None else tuple({column: name for column, name in reversed(pairs) if column in key}.values())[::-1]
    if key == frozenset():
        found = hidden = (free_name(ONLY, [*names, *META_NAMES]),)
        columns.append(Named(found[0], "INTEGER", "0"))
        never.add(found[0])
    last = made.node
    if [(each.name, each.kind) for each in columns] != list(kinds.items()):
        last = nodes.add(Rows(made.node, tuple(columns)))
    plan = nodes.plan(last, found, hidden)
    if any(not plan.only_grows(each.left) for each in plan.lookups.values()):
        raise not_supported(
            "FOR SYSTEM_TIME AS OF PROCTIME() needs rows on the left that are only added",
            hint="CREATE TABLE … APPEND ONLY, or CREATE STREAM; or leave the words out, and the join follows the changes of both sides",
        )
    return Planned(plan, tables, tuple(notices), frozenset(never))


def _hidden(columns: Sequence[str], shown: Sequence[str]) -> list[tuple[str, str]]:
    """Columns that identify a row, with names that no other column has."""
    found: list[tuple[str, str]] = []
    for each in columns:
        found.append((each, free_name(each, [*shown, *META_NAMES, *(name for _, name in found)])))
    return found


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
        _check_name(name)
        if name.lower() in map(str.lower, names[:place]):  # DuckDB's names differ in more than their case
            raise SqlError(
                DUPLICATE_COLUMN, f'column "{name}" specified more than once', hint="give it another name: SELECT … AS name"
            )
    return names


def _check_name(name: str) -> None:
    if _OWN.fullmatch(name.lower()):
        raise not_supported(f'a view cannot have the column "{name}"', hint="the state of views has columns of this name")


def _table_kinds(cursor: Any, kinds: Sequence[str]) -> list[str]:
    found = cursor.sql(f"SELECT {', '.join(f'NULL::{each}' for each in kinds)}").types
    return [duckdb_of(arrow_of(each)) for each in found]
