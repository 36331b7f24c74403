"""EXPLAIN: DuckDB's plan, and what the topics had to give."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
from sqlglot import exp
from sqlglot.tokenizer_core import TokenType

from barnabas.engine.jobs import STREAMING, ViewWork
from barnabas.sql.catalog.relations import Rows
from barnabas.sql.catalog.topics import TopicRelation
from barnabas.sql.continuous.explain import explain as explain_plan
from barnabas.sql.continuous.explain import explain_appends
from barnabas.sql.dialect import Statement, parse
from barnabas.sql.interface import Result, SqlError
from barnabas.sql.planning.query import QueryPlan, check_values
from barnabas.sql.results import Listing
from barnabas.sql.statements.create import tree_of
from barnabas.sql.statements.emit import taken_emit, without_emit
from barnabas.sql.statements.host import Host
from barnabas.sql.statements.inserting import Insert, planned_insert, reads_stream, without_options
from barnabas.sql.statements.materialized import planned, without_data
from barnabas.sql.statements.naming import name_at
from barnabas.sql.statements.ready import Ready
from barnabas.sql.statements.select import checked
from barnabas.sql.statements.streams import as_table, planned_stream, without_start
from barnabas.sql.statements.view_control import view_named
from barnabas.sql.states import not_supported, syntax_error
from barnabas.sql.views.insert_jobs import job_of_stream

_QUERIES = ("SELECT", "WITH", "VALUES", "TABLE", "(", "FROM", "INSERT", "UPDATE", "DELETE", "MERGE", "CREATE")
_SCHEMA = pa.schema([pa.field("QUERY PLAN", pa.string())])


def explain(session: Host, statement: Statement, given: Sequence[pa.DataType | None]) -> Ready:
    """EXPLAIN [ANALYZE] [(options)] query. With ANALYZE the query runs, and each topic tells what was fetched and skipped.

    EXPLAIN CREATE MATERIALIZED VIEW …, EXPLAIN name: how a view is kept. EXPLAIN CREATE STREAM … AS, EXPLAIN INSERT … FROM STREAM, and the
    name of a stream: how rows are appended.
    """
    at, analyze = _options(statement)
    inner = Statement(statement.text, statement.tokens[at:])
    if not inner.tokens:
        raise syntax_error("EXPLAIN needs a query", statement.position(at))
    if inner.word(0) == "CREATE" and inner.word((inner.word(1) == "OR" and 3) or 1) == "MATERIALIZED":
        return _of_new_view(session, inner)
    if (inner.word(0), inner.word(1)) == ("CREATE", "STREAM"):
        return _of_new_stream(session, inner)
    if inner.word(0) not in _QUERIES:
        return _of_view(session, inner)
    told, is_final = taken_emit(inner) if inner.word(0) == "INSERT" else (inner, False)
    told, given_options = without_options(told) if inner.word(0) == "INSERT" else (inner, {})
    tree = parse(told, spark_order=session.is_spark)
    if isinstance(tree, exp.Insert) and (reads_stream(tree.args.get("expression")) or reads_stream(tree.args.get("with_"))):
        return _of_insert(session, statement, planned_insert(session, told, tree, given_options, is_final=is_final))
    if not isinstance(tree, (exp.Query, exp.Values)):
        raise not_supported(f"EXPLAIN {inner.word(0)} is not supported", inner.position(0), "explain its SELECT")
    plan = checked(session, tree, statement.text, given)

    def run(values: Sequence[Any]) -> Result:
        check_values(plan.parameters, values)
        return Listing.of("EXPLAIN", {"QUERY PLAN": _lines(session, plan, values, statement.text, analyze=analyze)})

    return Ready(statement.text, run, _SCHEMA, plan.parameters, version=session.version)


def _of_new_view(session: Host, statement: Statement) -> Ready:
    """How a view would be kept; nothing is created."""
    statement, _ = without_data(statement)
    tree = parse(without_emit(statement), spark_order=session.is_spark)
    if not isinstance(tree, exp.Create) or not isinstance(tree.args.get("expression"), (exp.Query, exp.Values)):
        raise not_supported("this form of CREATE MATERIALIZED VIEW is not supported", statement.position(0))
    view = planned(session, statement, tree)
    if view.work is None or view.planned is None:
        lines = ["the query reads no table: its rows are written once"]
    else:
        lines = [*explain_plan(view.work.plan).split("\n"), *(f"note: {each}" for each in view.planned.notices)]
    return Ready(
        statement.text, lambda _: Listing.of("EXPLAIN", {"QUERY PLAN": lines}), _SCHEMA, version=session.version
    )  # fmt: skip


def _of_new_stream(session: Host, statement: Statement) -> Ready:
    """How the job of a stream would append its rows; nothing is created."""
    told, is_final = taken_emit(statement)
    told, late = without_start(told)
    tree = tree_of(as_table(told, 1))
    if not isinstance(tree.args.get("expression"), (exp.Query, exp.Values)):
        raise not_supported("EXPLAIN of a stream without a query is not supported", statement.position(0))
    return _of_insert(session, statement, planned_stream(session, told, tree, late=late, is_final=is_final).insert)


def _of_insert(session: Host, statement: Statement, insert: Insert) -> Ready:
    """How a job would append rows; nothing is created."""
    lines = [*explain_appends(insert.work.plan).split("\n"), *(f"note: {each}" for each in insert.planned.notices)]
    return Ready(statement.text, lambda _: Listing.of("EXPLAIN", {"QUERY PLAN": lines}), _SCHEMA, version=session.version)


def _of_view(session: Host, statement: Statement) -> Ready:
    """How a view is kept, and what its last micro-batch did."""
    at = 2 if (statement.word(0), statement.word(1)) == ("MATERIALIZED", "VIEW") else 0
    parts, end = name_at(statement, at)
    if end < len(statement.tokens):
        raise not_supported(f"EXPLAIN {statement.word(0)} is not supported", statement.position(0), "explain its SELECT")
    relation = session.find(parts, statement.position(at))
    definition = relation.definition if at == 0 and isinstance(relation, TopicRelation) and relation.has_job else None
    if definition is None or definition.is_plain_view:
        definition = view_named(session, parts, statement.position(at))

    def run(_: Sequence[Any]) -> Result:
        jobs = session.view_jobs.jobs()
        job = jobs.get(definition.topic) if definition.stream is None else job_of_stream(jobs, definition.name)
        lines = ["it has no job"]
        if job is not None and isinstance(job.work, STREAMING):
            words = explain_plan if isinstance(job.work, ViewWork) else explain_appends
            lines = words(job.work.plan).split("\n")
        told = session.view_jobs.progress().get(job.name) if job is not None else None
        if job is not None and told is not None and told.generation == job.generation:
            lines.append(f"state: {told.state_rows} rows, {told.state_bytes} bytes")
            lines.append(f"last micro-batch: {told.rows_in} rows in, {told.rows_out} changes, {told.took_ms:g} ms")
        return Listing.of("EXPLAIN", {"QUERY PLAN": lines})

    return Ready(statement.text, run, _SCHEMA, version=session.version)


def _options(statement: Statement) -> tuple[int, bool]:
    """Where the query begins, and whether it runs."""
    at, analyze = 1, False
    if (
        at < len(statement.tokens)
        and statement.tokens[at].token_type == TokenType.L_PAREN
        and statement.word(at + 1) not in ("SELECT", "WITH", "VALUES", "(")
    ):
        at += 1
        while at < len(statement.tokens) and statement.tokens[at].token_type != TokenType.R_PAREN:
            word, value = statement.word(at), statement.word(at + 1)
            analyze = analyze or (word == "ANALYZE" and value not in ("FALSE", "OFF"))
            if word == "FORMAT" and value != "TEXT":
                raise not_supported(f"EXPLAIN with FORMAT {value} is not supported", statement.position(at), "FORMAT TEXT")
            at += 1
        at += 1
    while statement.word(at) in ("ANALYZE", "ANALYSE", "VERBOSE", "EXTENDED", "FORMATTED"):
        analyze = analyze or statement.word(at).startswith("ANALY")
        at += 1
    return at, analyze


def _lines(session: Host, plan: QueryPlan, values: Sequence[Any], text: str, *, analyze: bool) -> list[str]:
    sql, bound = plan.bound(values)
    lease = session.borrow()
    try:
        lease.functions.learn(plan.in_python)
        datasets = session.datasets(plan.inputs, {})
        for alias, dataset in datasets:
            lease.cursor.register(alias, dataset)
        found = lease.cursor.sql("EXPLAIN " + sql, params=bound or None).fetchall()
        lines = [line.rstrip() for row in found for line in str(row[-1]).split("\n") if line.strip()]
        if analyze:
            count = sum(batch.num_rows for batch in lease.cursor.sql(sql, params=bound or None).to_arrow_reader(8_192))
            lines.append(f"rows: {count}")
        return lines + _sources(plan, dict(datasets))
    except SqlError:
        raise
    except Exception as error:
        raise session.translated(error, text) from error
    finally:
        session.release(lease)


def _sources(plan: QueryPlan, datasets: dict[str, Any]) -> list[str]:
    lines = []
    for each in plan.inputs:
        dataset = datasets[each.alias]
        if not isinstance(each.relation, TopicRelation):
            continue
        lines.append(f"{each.relation.name}: topic {each.relation.topic}, columns {', '.join(each.schema.names)}")
        if not isinstance(dataset, Rows):
            lines.append("  its rows are in memory; what was written since the last look was fetched")
            continue
        for reading in dataset.readings:
            lines += [f"  {line}" for line in str(reading.explain()).split("\n")]
    return lines
