"""Queries that a view cannot keep: their result does not follow from the rows of their tables alone."""

from __future__ import annotations

import re
from typing import Any

from sqlglot import exp

from barnabas.sql.catalog.topics import TopicRelation
from barnabas.sql.dialect import WRITTEN, to_duckdb
from barnabas.sql.interface import SqlError
from barnabas.sql.planning.names import position_in
from barnabas.sql.planning.query import QueryPlan
from barnabas.sql.states import not_supported
from barnabas.tables.scan import HEADERS

CLOCK = frozenset((
    "now", "today", "current_timestamp", "current_date", "current_time", "localtime", "localtimestamp", "current_localtime",
    "current_localtimestamp", "get_current_timestamp", "get_current_time", "transaction_timestamp", "proctime", "mz_now",
))  # fmt: skip
CHANCE = frozenset(("random", "rand", "randn", "gen_random_uuid", "uuid", "uuidv4", "uuidv7", "setseed", "shuffle"))
OTHER = frozenset(
    ("nextval", "currval", "lastval", "setval", "txid_current", "pg_sleep", "sleep_ms", "current_query", "write_log")
)
TEMPORARY = "pg_temp_"
_WORD = re.compile(r"\w+")


def refuse(query: QueryPlan, what: str = "a view") -> None:
    """Raises SqlError 0A000 for a query whose result cannot be kept. One without tables has a result that never changes.

    Args:
        what: keeps it, as the first words of the error.
    """
    if query.numbers:
        raise not_supported(f"{what} cannot have parameters", hint="write the value into the query")
    if query.changes:
        raise not_supported(f"{what} cannot change settings")
    for each in query.functions:
        if each.volatility == "volatile":
            raise not_supported(
                f"{what} cannot call {each.name}, because it is declared as VOLATILE", hint="declare it as IMMUTABLE if it is"
            )
    _refuse_tables(query, what)
    for node in query.tree.walk():
        _refuse_node(node, what)


def _refuse_tables(query: QueryPlan, what: str) -> None:
    for each in query.inputs:
        relation = each.relation
        source = relation.source if isinstance(relation, TopicRelation) else relation.name
        if source.startswith(TEMPORARY):
            name = source.rpartition(".")[2]
            raise not_supported(f'{what} cannot read the temporary table "{name}"', hint="it ends with its session")
        if not isinstance(relation, TopicRelation):
            raise not_supported(f'{what} cannot read "{relation.name}"', hint="it is not a topic, so nothing tells its changes")
        if HEADERS in each.schema.names:
            raise not_supported(f"{what} cannot read {HEADERS}", hint="put what you need into columns of the table")


def _refuse_node(node: Any, what: str) -> None:
    if isinstance(node, exp.TableSample):
        raise not_supported(
            f"{what} cannot take a sample", _place(node), "a condition such as id % 10 = 0 chooses the same rows each time"
        )
    if isinstance(node, exp.With) and node.args.get("recursive") and any(map(_is_recursive, node.expressions)):
        raise not_supported(f"{what} cannot be recursive", _place(node))
    if isinstance(node, (exp.Func, exp.Anonymous)):
        _refuse_function(node, what)


def _is_recursive(common: Any) -> bool:
    return any(table.name.lower() == common.alias.lower() for table in common.this.find_all(exp.Table))


def _refuse_function(node: Any, what: str) -> None:
    found = _WORD.match(str(node.this) if isinstance(node, exp.Anonymous) else to_duckdb(node))
    name = found[0].lower() if found else ""
    shown = node.meta.get(WRITTEN) or name
    if name in CLOCK or (name == "age" and len(list(node.iter_expressions())) == 1):
        reason = f"{what} cannot call {shown}, because its result would change without a change of a table"
        raise _refused(node, reason, "compare with it in WHERE or HAVING, or call it in the query that reads the view")
    if name in CHANCE:
        raise _refused(node, f"{what} cannot call {shown}, because it gives another value at each call", None)
    if name in OTHER:
        raise _refused(node, f"{what} cannot call {shown}, because its result depends on more than the tables", None)


def _refused(node: Any, message: str, hint: str | None) -> SqlError:
    return not_supported(message, _place(node), hint)


def _place(node: Any) -> int | None:
    start = node.meta.get("start")
    return int(start) + 1 if start is not None else position_in(node)
