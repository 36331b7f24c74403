"""Queries: SELECT, VALUES, TABLE, WITH and set operations."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from barnabas.sql.dialect import Statement, parse
from barnabas.sql.duck.types import field_of
from barnabas.sql.interface import Result, SqlError
from barnabas.sql.planning.query import QueryPlan, check_values, plan_query
from barnabas.sql.results import Streamed, fitted
from barnabas.sql.statements.ready import Ready
from barnabas.sql.states import LIMIT_EXCEEDED

if TYPE_CHECKING:
    from barnabas.sql.session import SqlSession

BATCH_ROWS = 8_192  # a batch of results; DuckDB makes so many rows before the first is seen


def select(session: SqlSession, statement: Statement, given: Sequence[pa.DataType | None]) -> Ready:
    """The query of a statement."""
    plan = checked(session, parse(statement, spark_order=session.is_spark), statement.text, given)
    return Ready(
        statement.text,
        lambda values: run(session, plan, values, statement.text),
        plan.schema,
        plan.parameters,
        version=session.version,
    )


def checked(
    session: SqlSession,
    tree: Any,
    text: str,
    given: Sequence[pa.DataType | None] = (),
    known: dict[int, pa.DataType] | None = None,
) -> QueryPlan:
    """A plan whose names and types DuckDB has checked. Raises SqlError."""
    plan = plan_query(tree, session.find, session.facts(), session.settings.get, given, known)
    cursor = session.planner()
    try:
        for each in plan.inputs:
            cursor.register(each.alias, each.schema.empty_table())
        sql, values = plan.bound([None] * len(plan.parameters))
        found = cursor.sql(sql, params=values or None)
        plan.schema = pa.schema([field_of(name, kind) for name, kind in zip(found.columns, found.types, strict=True)])
    except SqlError:
        raise
    except Exception as error:  # noqa: BLE001 - DuckDB has many types of errors
        raise session.translated(error, text) from None
    finally:
        cursor.close()
    return plan


def run(session: SqlSession, plan: QueryPlan, values: Sequence[Any], text: str, tag: str = "SELECT") -> Result:
    """The rows of a plan."""
    check_values(plan, values)
    sql, bound = plan.bound(values)
    lease = session.borrow()
    try:
        for alias, dataset in session.datasets(plan.inputs):
            lease.cursor.register(alias, dataset)
        reader = lease.cursor.sql(sql, params=bound or None).to_arrow_reader(BATCH_ROWS)
    except BaseException as error:
        session.release(lease)
        if isinstance(error, Exception) and not isinstance(error, SqlError):
            raise session.translated(error, text) from error
        raise
    return Streamed(
        plan.schema,
        _limited(reader, session.max_rows),
        lambda: session.release(lease),
        lambda error: session.translated(error, text),
        tag,
    )


def _limited(reader: Any, most: int) -> Iterator[pa.RecordBatch]:
    rows = 0
    for batch in reader:
        rows += batch.num_rows
        if most and rows > most:
            raise SqlError(LIMIT_EXCEEDED, f"the result has more than {most} rows", hint="use LIMIT, or SET max_rows")
        yield batch


def collected(session: SqlSession, plan: QueryPlan, values: Sequence[Any], text: str) -> pa.Table:
    """All rows of a plan."""
    result = run(session, plan, values, text)
    assert result.schema is not None
    return pa.Table.from_batches([fitted(each, result.schema) for each in result.batches()], result.schema)
