"""Queries: SELECT, VALUES, TABLE, WITH and set operations."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa
from sqlglot import exp

from barnabas.engine.clock import CLOCK
from barnabas.sql.catalog.postgres.relations import CatalogueRelation
from barnabas.sql.catalog.relations import MemoryRelation, Relation
from barnabas.sql.catalog.topics import TopicRelation
from barnabas.sql.dialect import Statement
from barnabas.sql.duck.types import field_of, with_marks
from barnabas.sql.interface import Result, SqlError
from barnabas.sql.live.rows import NO_CHOICE, Choice
from barnabas.sql.planning.clock import DEFINITION, read_clock
from barnabas.sql.planning.query import QueryPlan, check_values, marked, plan_query
from barnabas.sql.results import Listing, Streamed
from barnabas.sql.statements.host import Host
from barnabas.sql.statements.key_read import KeyRead
from barnabas.sql.statements.ready import Ready
from barnabas.sql.states import LIMIT_EXCEEDED, UNDEFINED_COLUMN, UNDEFINED_TABLE, syntax_error
from barnabas.sql.writing.fitting import shown_labels

HINTED_COLUMNS = 12  # of a hint
BATCH_ROWS = 8_192  # a batch of results; DuckDB makes so many rows before the first is seen


def select(session: Host, statement: Statement, given: Sequence[pa.DataType | None], tree: Any) -> Ready:
    """The query of a statement."""
    if not isinstance(tree, (exp.Query, exp.Values)):
        raise syntax_error(f'syntax error at or near "{statement.tokens[0].text}"', statement.position(0))
    plan = checked(session, tree, statement.text, given)

    def execute(values: Sequence[Any]) -> Result:
        check_values(plan.parameters, values)
        for name, value, is_local in plan.changes:
            session.settings.set(name, value, is_local=is_local)
        return run(session, plan, values, statement.text)

    lasts = plan.point is not None and plan.point.outputs is not None
    ready = Ready(statement.text, execute, plan.schema, plan.parameters, version=session.version, lasts=lasts)
    ready.key_read = key_read = KeyRead.of(plan)
    if key_read is not None:
        ready.plain = lambda values: execute(values) if key_read.key(values) is not None else None
    return ready


def checked(
    session: Host,
    tree: Any,
    text: str,
    given: Sequence[pa.DataType | None] = (),
    memory: Mapping[str, MemoryRelation] | None = None,
    *,
    with_pending: bool = True,
    with_clock: bool = False,
    for_job: bool = False,
) -> QueryPlan:
    """A plan whose names and types DuckDB has checked. Raises SqlError.

    Args:
        with_pending: whether it reads the rows of the open transaction.
        memory: relations that exist for this statement only, by name.
        with_clock: whether conditions read the clock of views in place of `now()`.
        for_job: whether the plan outlives the types of users that it names, which may get more labels: their values are then texts.
    """

    def find(parts: Sequence[str], position: int | None) -> Relation:
        if with_clock and parts[-1] == CLOCK:
            return session.access.relation_of(DEFINITION)
        found = memory.get(parts[0]) if memory and len(parts) == 1 else None
        return found or session.find(parts, position)

    tree, functions = session.routines.expanded(session.views.expanded(tree))
    session.check_functions(functions)
    if with_clock:
        read_clock(tree)
    plan = plan_query(
        tree,
        find,
        session.facts(),
        session.settings.get,
        given,
        is_spark=session.is_spark,
        is_utc=session.zone.is_utc,
        pending=session.buffer.names() if with_pending else (),
        functions=functions,
        types=session.access.types,
        labels_are_texts=for_job,
    )
    cursor = session.planner(plan.in_python)
    try:
        plan.schema = _schema(cursor, plan)
    except SqlError:
        raise
    except Exception as error:  # noqa: BLE001 - DuckDB has many types of errors
        raise _hinted(session.translated(error, text), plan, text) from None
    finally:
        cursor.close()
    return plan


def _schema(cursor: Any, plan: QueryPlan) -> pa.Schema:
    """The rows of a plan, by an instance of DuckDB with empty relations. Raises errors of DuckDB."""
    for each in plan.inputs:
        cursor.register(each.alias, with_marks(each.schema).empty_table())
        if each.is_pending:
            cursor.register(each.pending_alias, each.pending_schema.empty_table())
    sql, values = plan.bound([None] * len(plan.parameters))
    found = cursor.sql(sql, params=values or None)
    of_catalogue = any(isinstance(each.relation, CatalogueRelation) for each in plan.inputs)
    fields = [field_of(name, kind, of_catalogue=of_catalogue) for name, kind in zip(found.columns, found.types, strict=True)]
    return pa.schema([marked(field, plan) for field in fields])


def _hinted(fault: SqlError, plan: QueryPlan, text: str) -> SqlError:
    """An error about a name, with what the user may mean."""
    if fault.sqlstate == UNDEFINED_COLUMN:
        fault.hint = _column_hint(fault, plan, text)
    elif fault.sqlstate == UNDEFINED_TABLE:
        fault.hint = _table_hint(fault, plan)
    return fault


def _table_hint(fault: SqlError, plan: QueryPlan) -> str | None:
    """`value.item` means a table `value`; the user may mean a part of a column with JSON."""
    found = re.search(r'for table "(.+)"', fault.message)
    columns = {name for each in plan.inputs for name in each.relation.columns.names}
    return f"a part of JSON is {found[1]}->>'name'" if found is not None and found[1] in columns else fault.hint


def _column_hint(fault: SqlError, plan: QueryPlan, text: str) -> str | None:
    """The column that the user may mean by one that is not there. DuckDB knows those columns alone that the statement names."""
    found = re.search(r'column "(.+)" does not exist', fault.message)
    relations = [each.relation for each in plan.inputs if not isinstance(each.relation, CatalogueRelation)]
    columns = list(dict.fromkeys(name for relation in relations for name in relation.columns.names))
    near = difflib.get_close_matches(found[1].lower(), columns, 1) if found is not None else []
    if near:
        return f'perhaps you mean "{near[0]}"'
    if fault.position is not None and text[fault.position - 2 : fault.position - 1] == '"':
        return "double quotes are for names; a text has single quotes"
    more = ", …" if len(columns) > HINTED_COLUMNS else ""
    return f"there are {', '.join(columns[:HINTED_COLUMNS])}{more}" if columns else fault.hint


def run(
    session: Host,
    plan: QueryPlan,
    values: Sequence[Any],
    text: str,
    memory: Mapping[str, pa.Table] | None = None,
    chosen: Mapping[str, Choice] = NO_CHOICE,
) -> Streamed | Listing:
    """The rows of a plan.

    Args:
        memory: the rows of its relations in memory.
        chosen: by topic, where it does not need all rows.
    """
    row = session.point(plan, values)
    if row is not None and plan.point is not None and plan.point.outputs is not None:
        columns = [shown_labels(row.column(name), field) for name, field in zip(plan.point.outputs, plan.schema, strict=True)]
        if [each.type for each in columns] == plan.schema.types:
            return Listing("SELECT", plan.schema, pa.Table.from_arrays(columns, schema=plan.schema))
    sql, bound = plan.bound(values)
    chosen = chosen or _chosen(session, plan, values)
    lease = session.borrow()
    try:
        lease.functions.learn(plan.in_python)
        datasets = [(plan.inputs[0].alias, row)] if row is not None else session.datasets(plan.inputs, memory or {}, chosen)
        for alias, dataset in datasets:
            lease.cursor.register(alias, dataset)
        reader = lease.cursor.sql(sql, params=bound or None).to_arrow_reader(BATCH_ROWS)
    except BaseException as error:
        session.release(lease)
        if isinstance(error, Exception) and not isinstance(error, SqlError):
            raise session.translated(error, text) from error
        raise
    return Streamed(
        plan.schema,
        limited(reader, session.max_rows),
        lambda: session.release(lease),
        lambda error: session.translated(error, text),
    )


def _chosen(session: Host, plan: QueryPlan, values: Sequence[Any]) -> Mapping[str, Choice]:
    """The row that a query names by the values of a UNIQUE constraint."""
    found = plan.by_values.key_values(values) if plan.by_values is not None else None
    if found is None or plan.by_values is None:
        return NO_CHOICE
    relation = plan.inputs[0].relation
    assert isinstance(relation, TopicRelation)
    columns = [field.name for field, _, _ in plan.by_values.values]
    return {relation.topic: session.access.having(relation, columns, {tuple(found)})}


def limited(reader: Iterable[pa.RecordBatch], most: int) -> Iterator[pa.RecordBatch]:
    """The batches; raises SqlError when there are more rows than `most`, if that is not 0."""
    rows = 0
    for batch in reader:
        rows += batch.num_rows
        if most and rows > most:
            raise SqlError(LIMIT_EXCEEDED, f"the result has more than {most} rows", hint="use LIMIT, or SET max_rows")
        yield batch


def collected(
    session: Host,
    plan: QueryPlan,
    values: Sequence[Any],
    text: str,
    memory: Mapping[str, pa.Table] | None = None,
    chosen: Mapping[str, Choice] = NO_CHOICE,
) -> pa.Table:
    """All rows of a plan. Arguments are those of `run`."""
    result = run(session, plan, values, text, memory, chosen)
    return pa.Table.from_batches(list(result.batches()), result.schema)
