"""Queries with `SET engine = spark`: the same statement on Spark, for what the memory of one machine does not hold."""

from __future__ import annotations

import itertools
from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.types as pt
from sqlglot import exp

from barnabas.client.interruption import Interruption
from barnabas.engine.jobs import InputTable
from barnabas.engine.spark_queries import Question, SparkQueries, SparkQueryError
from barnabas.functions.definition import PYTHON
from barnabas.schemas.arrow.columns import RegistryAddress
from barnabas.sql.catalog.topics import TopicRelation
from barnabas.sql.dialect import Statement
from barnabas.sql.interface import Notice, Result, SqlError
from barnabas.sql.planning.enums import has_labels, refuse_order
from barnabas.sql.planning.names import tables_of
from barnabas.sql.planning.parameters import infer, parameters_of
from barnabas.sql.planning.query import check_values, relation_of
from barnabas.sql.planning.spark_values import spark_kind, spark_text, spark_value
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


def select_on_spark(session: Host, statement: Statement, tree: Any, given: Sequence[pa.DataType | None] = ()) -> Ready:
    """The query of a statement. Raises SqlError."""
    whole, functions = session.routines.expanded(session.views.expanded(tree))
    if any(each.language == PYTHON for each in functions):
        raise not_supported("functions in Python on Spark are not supported", None, "SET engine = duckdb")
    asked = _asked(session, whole, given)
    question = asked.question([None] * len(asked.types), session.zone.duckdb)
    queries = session.spark_queries()
    if not queries.is_started:
        session.notify(Notice(STARTS))
    try:
        with session.running.using(_Killed(queries)):
            schema = in_utc(queries.schema(question))
    except SparkQueryError as error:
        raise _fault(session, error) from error

    def execute(values: Sequence[Any]) -> Result:
        check_values(asked.types, values)
        for topic in asked.topics:  # waits for the rows that the session wrote
            session.access.snapshot(topic)
        queries = session.spark_queries()
        batches = queries.rows(asked.question(values, session.zone.duckdb))
        try:
            with session.running.using(_Killed(queries)):
                first = next(batches, None)  # Spark has all rows then
        except SparkQueryError as error:
            raise _fault(session, error) from error
        rows = itertools.chain([] if first is None else [first], batches)
        return Streamed(schema, limited(rows, session.max_rows), batches.close, lambda error: _fault(session, error))

    return Ready(statement.text, execute, schema, asked.types, version=session.version)


class _Killed(Interruption):
    """Ends a query when its statement is cancelled."""

    def __init__(self, queries: SparkQueries) -> None:
        super().__init__()
        self._queries = queries

    def interrupt(self) -> None:
        self._queries.close()


class _Asked(NamedTuple):
    """A query for Spark, without the values of its parameters.

    Args:
        tree: of the query, over the names of `tables`.
        types: of the parameters.
        topics: that it reads.
    """

    tree: Any
    tables: Mapping[str, InputTable]
    filled: Mapping[str, Mapping[str, str]]
    types: Sequence[pa.DataType]
    topics: Collection[str]
    registry: RegistryAddress | None

    def question(self, values: Sequence[Any], zone: str) -> Question:
        """The query in Spark's words. Values go beside the text, as texts that it casts."""
        tree = self.tree.copy()
        texts: dict[str, str | None] = {}
        for number, nodes in parameters_of(tree).items():
            name, value = f"p{number}", values[number - 1]
            texts[name] = spark_text(value)
            for node in nodes:
                node.replace(spark_value(name, spark_kind(self.types[number - 1], value), node.parent))
        return Question(
            tree.sql(dialect="spark"), self.tables, self.filled, values=texts, registry=self.registry, zone=zone
        )  # fmt: skip


def _asked(session: Host, tree: Any, given: Sequence[pa.DataType | None]) -> _Asked:
    """The query over the names that Spark has for its tables. Raises SqlError."""
    named = {each.name.lower() for each in tree.find_all(exp.Column)}
    tables, filled, topics = {}, {}, set()
    relations = {id(each): relation_of(each, session.find) for each in tables_of(tree)}
    if any(has_labels(each) for each in relations.values()):
        refuse_order(tree, relations)
    columns: dict[str, pa.DataType] = {}
    for number, table in enumerate(tables_of(tree)):
        relation = relations[id(table)]
        assert isinstance(relation, TopicRelation)
        for each in (*relation.hidden, *relation.columns):
            columns[each.name.lower()] = each.type
        if relation.name in session.buffer.names():
            raise not_supported("a query on Spark does not see the rows of an open transaction", None, "COMMIT first")
        hidden = [name for name in relation.hidden.names if name.lower() in named]
        name = f"__{number}"
        tables[name] = input_table(relation, (*relation.columns.names, *hidden))
        filled[name] = dict(relation.filled)
        topics.add(relation.topic)
        alias = table.alias or table.name
        table.set("db", None)
        table.set("catalog", None)
        table.set("this", exp.to_identifier(name, quoted=True))
        table.set("alias", exp.TableAlias(this=exp.to_identifier(alias, quoted=True)))
    types = infer(parameters_of(tree), given, lambda column: columns.get(column.name.lower()))
    return _Asked(tree, tables, filled, types, topics, session.access.registry)


def in_utc(schema: pa.Schema) -> pa.Schema:
    """The columns as other queries give them: Spark names its time zone in their types."""
    return pa.schema([each.with_type(_in_utc(each.type)) for each in schema])


def _in_utc(kind: pa.DataType) -> pa.DataType:
    if pt.is_timestamp(kind):
        return pa.timestamp(kind.unit, "UTC") if kind.tz is not None else kind
    if pt.is_map(kind):
        return pa.map_(_in_utc(kind.key_type), _in_utc(kind.item_type))
    if pt.is_list(kind):
        return pa.list_(kind.value_field.with_type(_in_utc(kind.value_type)))
    if pt.is_struct(kind):
        return pa.struct([each.with_type(_in_utc(each.type)) for each in kind])
    return kind


def _fault(session: Host, error: Exception) -> SqlError:
    if session.running.is_cancelled:
        return session.running.error()
    if isinstance(error, SparkQueryError):
        return SqlError(error.sqlstate or UNKNOWN_FAULT, f"Spark: {error.reason}")
    return SqlError(INTERNAL, f"Spark: {type(error).__name__}")
