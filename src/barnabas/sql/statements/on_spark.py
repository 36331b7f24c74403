"""Queries with `SET engine = spark`: the same statement on Spark, for what the memory of one machine does not hold."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

from sqlglot import exp

from barnabas.client.interruption import Interruption
from barnabas.engine.spark_queries import Question, SparkQueries, SparkQueryError
from barnabas.sql.catalog.topics import TopicRelation
from barnabas.sql.dialect import Statement
from barnabas.sql.interface import Notice, Result, SqlError
from barnabas.sql.planning.names import position_in, tables_of
from barnabas.sql.planning.query import relation_of
from barnabas.sql.results import Streamed
from barnabas.sql.statements.host import Host
from barnabas.sql.statements.ready import Ready
from barnabas.sql.statements.select import limited
from barnabas.sql.states import INTERNAL, not_supported
from barnabas.sql.views.layout import input_table

STARTS = "starting Spark; this takes some seconds"
UNKNOWN_FAULT = "58000"  # Postgres' code for a fault outside of it


def runs_on_spark(session: Host, tree: Any) -> bool:
    """Whether a query goes to Spark: the setting says so, and it reads tables that are topics."""
    if session.settings.get("engine") != "spark":
        return False
    relations = [relation_of(table, session.find) for table in tables_of(session.views.expanded(tree.copy()))]
    return bool(relations) and all(isinstance(each, TopicRelation) for each in relations)


def select_on_spark(session: Host, statement: Statement, tree: Any) -> Ready:
    """The query of a statement. Raises SqlError."""
    if tree.find(exp.Parameter, exp.Placeholder):
        raise not_supported("parameters on Spark are not supported", None, "SET engine = duckdb, or write the values")
    question, topics = _question(session, session.views.expanded(tree))
    queries = session.spark_queries()
    if not queries.is_started:
        session.notify(Notice(STARTS))
    try:
        with session.running.using(_Killed(queries)):
            schema = queries.schema(question)
    except SparkQueryError as error:
        raise _fault(session, error) from error

    def execute(_: Sequence[Any]) -> Result:
        for topic in topics:  # waits for the rows that the session wrote
            session.access.snapshot(topic)
        queries = session.spark_queries()
        batches = queries.rows(question)
        try:
            with session.running.using(_Killed(queries)):
                first = next(batches, None)  # Spark has all rows then
        except SparkQueryError as error:
            raise _fault(session, error) from error
        rows = itertools.chain([] if first is None else [first], batches)
        return Streamed(schema, limited(rows, session.max_rows), batches.close, lambda error: _fault(session, error))

    return Ready(statement.text, execute, schema, (), version=session.version)


class _Killed(Interruption):
    """Ends a query when its statement is cancelled."""

    def __init__(self, queries: SparkQueries) -> None:
        super().__init__()
        self._queries = queries

    def interrupt(self) -> None:
        self._queries.close()


def _question(session: Host, tree: Any) -> tuple[Question, set[str]]:
    """The query in Spark's words; its topics."""
    named = {each.name.lower() for each in tree.find_all(exp.Column)}
    tables, filled, topics = {}, {}, set()
    for number, table in enumerate(tables_of(tree)):
        relation = relation_of(table, session.find)
        assert isinstance(relation, TopicRelation)
        if relation.name in session.buffer.names():
            raise not_supported("a query on Spark does not see the rows of an open transaction", None, "COMMIT first")
        hidden = [name for name in relation.hidden.names if name.lower() in named]
        name = f"__{number}"
        tables[name] = input_table(relation, (*relation.columns.names, *hidden))
        if tables[name].format == "auto":
            raise not_supported(
                "a table with a schema of the registry on Spark is not supported", position_in(table), "SET engine = duckdb"
            )
        filled[name] = dict(relation.filled)
        topics.add(relation.topic)
        alias = table.alias or table.name
        table.set("db", None)
        table.set("catalog", None)
        table.set("this", exp.to_identifier(name, quoted=True))
        table.set("alias", exp.TableAlias(this=exp.to_identifier(alias, quoted=True)))
    return Question(tree.sql(dialect="spark"), tables, filled), topics


def _fault(session: Host, error: Exception) -> SqlError:
    if session.running.is_cancelled:
        return session.running.error()
    if isinstance(error, SparkQueryError):
        return SqlError(error.sqlstate or UNKNOWN_FAULT, f"Spark: {error.reason}")
    return SqlError(INTERNAL, f"Spark: {type(error).__name__}")
