"""SUBSCRIBE [TO] name [WITH (SNAPSHOT = on | off, FROM = 'offsets')]."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlglot.tokenizer_core import TokenType

from barnabas.sql.catalog.topics import TopicRelation
from barnabas.sql.dialect import Statement
from barnabas.sql.interface import Result, SqlError
from barnabas.sql.statements.host import Host
from barnabas.sql.statements.naming import name_at
from barnabas.sql.statements.ready import Ready
from barnabas.sql.states import WRONG_OBJECT, syntax_error
from barnabas.sql.views.subscription import Subscription, names_of, positions_of, schema_of
from barnabas.tables.memory_scan import can_be_made

FORM = "SUBSCRIBE [TO] name [WITH (SNAPSHOT = on | off, FROM = 'offsets')]"


def subscribe(session: Host, statement: Statement, _: Any) -> Ready:
    """The rows of a table or a view, and then each change; a cancellation ends it."""
    at = 2 if statement.word(1) in ("TO", "FROM") else 1
    parts, end = name_at(statement, at)
    options = _options(statement, end)
    relation = session.find(parts, statement.position(at))
    if not isinstance(relation, TopicRelation) or (relation.definition is not None and relation.definition.is_plain_view):
        text = f'"{relation.name}" is no table and no materialized view'
        raise SqlError(
            WRONG_OBJECT, text, position=statement.position(at), hint="CREATE MATERIALIZED VIEW keeps the result of a query"
        )
    if names_of(relation) or not can_be_made(relation.layout, relation.columns.names):
        raise SqlError("0A000", f'"{relation.name}" has columns that a subscription cannot have', position=statement.position(at))
    start = positions_of(options["FROM"]) if "FROM" in options else None
    with_snapshot = _is_on(options.get("SNAPSHOT", "off" if start is not None else "on"), statement)
    if with_snapshot and start is not None:
        raise SqlError("22023", "a subscription begins with a snapshot or at offsets, not with both", hint=FORM)

    def run(_: Sequence[Any]) -> Result:
        return Subscription(session, relation, start, with_snapshot=with_snapshot, text=statement.text)

    return Ready(statement.text, run, schema_of(relation), version=session.version)


def _options(statement: Statement, at: int) -> dict[str, str]:
    """The words behind WITH. Raises SqlError."""
    found: dict[str, str] = {}
    if at == len(statement.tokens):
        return found
    tokens = statement.tokens
    if statement.word(at) != "WITH" or at + 1 >= len(tokens) or tokens[at + 1].token_type != TokenType.L_PAREN:
        raise syntax_error(f"the statement is {FORM}", statement.position(at))
    at += 2
    while at < len(tokens) and tokens[at].token_type != TokenType.R_PAREN:
        name = statement.word(at)
        at += 1
        at += at < len(tokens) and tokens[at].token_type == TokenType.EQ
        if name not in ("SNAPSHOT", "FROM") or at >= len(tokens):
            raise syntax_error(f"the statement is {FORM}", statement.position(min(at, len(tokens) - 1)))
        found[name] = str(tokens[at].text)
        at += 1
        at += at < len(tokens) and tokens[at].token_type == TokenType.COMMA
    if at != len(tokens) - 1:
        raise syntax_error(f"the statement is {FORM}", statement.position(at))
    return found


def _is_on(value: str, statement: Statement) -> bool:
    if value.lower() not in ("on", "off", "true", "false"):
        raise syntax_error(f"SNAPSHOT is on or off, not {value}", statement.position(0))
    return value.lower() in ("on", "true")
