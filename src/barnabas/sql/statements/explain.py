"""EXPLAIN: DuckDB's plan, and what the topics had to give."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
from sqlglot import exp
from sqlglot.tokenizer_core import TokenType

from barnabas.sql.catalog.relations import Rows
from barnabas.sql.catalog.topics import TopicRelation
from barnabas.sql.dialect import Statement, parse
from barnabas.sql.interface import Result, SqlError
from barnabas.sql.planning.query import QueryPlan, check_values
from barnabas.sql.results import Listing
from barnabas.sql.statements.host import Host
from barnabas.sql.statements.ready import Ready
from barnabas.sql.statements.select import checked
from barnabas.sql.states import not_supported, syntax_error

_SCHEMA = pa.schema([pa.field("QUERY PLAN", pa.string())])


def explain(session: Host, statement: Statement, given: Sequence[pa.DataType | None]) -> Ready:
    """EXPLAIN [ANALYZE] [(options)] query. With ANALYZE the query runs, and each topic tells what was fetched and skipped."""
    at, analyze = _options(statement)
    inner = Statement(statement.text, statement.tokens[at:])
    if not inner.tokens:
        raise syntax_error("EXPLAIN needs a query", statement.position(at))
    tree = parse(inner, spark_order=session.is_spark)
    if not isinstance(tree, (exp.Query, exp.Values)):
        raise not_supported(f"EXPLAIN {inner.word(0)} is not supported", inner.position(0), "explain its SELECT")
    plan = checked(session, tree, statement.text, given)

    def run(values: Sequence[Any]) -> Result:
        check_values(plan.parameters, values)
        return Listing.of("EXPLAIN", {"QUERY PLAN": _lines(session, plan, values, statement.text, analyze=analyze)})

    return Ready(statement.text, run, _SCHEMA, plan.parameters, version=session.version)


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
