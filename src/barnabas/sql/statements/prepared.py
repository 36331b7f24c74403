"""PREPARE, EXECUTE and DEALLOCATE: statements with names, in SQL."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
from sqlglot import exp
from sqlglot.tokenizer_core import TokenType

from barnabas import limits
from barnabas.sql.dialect import Statement, parse_tokens, tokens_of
from barnabas.sql.duck.types import declared
from barnabas.sql.interface import Result, SqlError
from barnabas.sql.planning.user_types import resolve_types
from barnabas.sql.statements.host import Host
from barnabas.sql.statements.ready import Ready, done
from barnabas.sql.statements.select import checked, collected
from barnabas.sql.states import DUPLICATE_PREPARED, INVALID_PREPARED, LIMIT_EXCEEDED, syntax_error


def prepare(session: Host, statement: Statement, _: Any) -> Ready:
    """PREPARE name [(types)] AS statement."""
    name = _name(statement, 1)
    at, types = 2, []
    if at < len(statement.tokens) and statement.tokens[at].token_type == TokenType.L_PAREN:
        end = _closing(statement, at)
        types = [_type(session, statement, part) for part in _parts(statement, at + 1, end)]
        at = end + 1
    if statement.word(at) != "AS":
        raise syntax_error("PREPARE needs AS and a statement", statement.position(at))
    inner = Statement(statement.text, statement.tokens[at + 1 :])

    def run() -> None:
        if name in session.prepared:
            raise SqlError(DUPLICATE_PREPARED, f'prepared statement "{name}" already exists')
        if len(session.prepared) >= limits.MAX_SQL_PREPARED:
            raise SqlError(LIMIT_EXCEEDED, f"a session has at most {limits.MAX_SQL_PREPARED} prepared statements")
        session.prepared[name] = inner, types
        try:
            session.ready(inner, types)
        except BaseException:
            del session.prepared[name]
            raise

    return done(statement.text, "PREPARE", run)


def execute(session: Host, statement: Statement, given: Sequence[pa.DataType | None]) -> Ready:
    """EXECUTE name [(values)]."""
    name = _name(statement, 1)
    if name not in session.prepared:
        raise SqlError(INVALID_PREPARED, f'prepared statement "{name}" does not exist', position=statement.position(1))
    inner = session.ready(*session.prepared[name])
    arguments: list[Any] = []
    if len(statement.tokens) > 2:
        end = _closing(statement, 2)
        arguments = [
            parse_tokens(statement.text, tokens_around("SELECT", part)).expressions[0] for part in _parts(statement, 3, end)
        ]
    if len(arguments) != len(inner.parameters):
        raise SqlError(
            "42601",
            f'wrong number of parameters for prepared statement "{name}"',
            detail=f"Expected {len(inner.parameters)} parameters but got {len(arguments)}.",
        )
    plan = checked(session, exp.select(*arguments, copy=False), statement.text, given) if arguments else None

    def run(values: Sequence[Any]) -> Result:
        if plan is None:
            return inner.run(())
        rows = collected(session, plan, values, statement.text)
        return inner.run([column[0].as_py() for column in rows.columns])

    return Ready(statement.text, run, inner.schema, plan.parameters if plan else (), version=session.version)


def deallocate(session: Host, statement: Statement, _: Any) -> Ready:
    """DEALLOCATE [PREPARE] name | ALL."""
    at = 2 if statement.word(1) == "PREPARE" and len(statement.tokens) > 2 else 1
    if statement.word(at) == "ALL":
        return done(statement.text, "DEALLOCATE ALL", session.prepared.clear)
    name = _name(statement, at)

    def run() -> None:
        if session.prepared.pop(name, None) is None:
            raise SqlError(INVALID_PREPARED, f'prepared statement "{name}" does not exist')

    return done(statement.text, "DEALLOCATE", run)


def _name(statement: Statement, at: int) -> str:
    if at >= len(statement.tokens):
        raise syntax_error("the name of a prepared statement is missing", statement.position(at))
    token = statement.tokens[at]
    return str(token.text) if token.token_type == TokenType.IDENTIFIER else str(token.text).lower()


def _closing(statement: Statement, at: int) -> int:
    """The place of the bracket that closes the one at `at`."""
    if statement.tokens[at].token_type != TokenType.L_PAREN:
        raise syntax_error(f'syntax error at or near "{statement.tokens[at].text}"', statement.position(at))
    depth = 0
    for place in range(at, len(statement.tokens)):
        kind = statement.tokens[place].token_type
        depth += (kind == TokenType.L_PAREN) - (kind == TokenType.R_PAREN)
        if not depth:
            return place
    raise syntax_error("syntax error at end of input", len(statement.text) + 1)


def _parts(statement: Statement, start: int, end: int) -> list[Sequence[Any]]:
    """The tokens between commas."""
    parts: list[list[Any]] = [[]]
    depth = 0
    for token in statement.tokens[start:end]:
        depth += (token.token_type == TokenType.L_PAREN) - (token.token_type == TokenType.R_PAREN)
        if token.token_type == TokenType.COMMA and not depth:
            parts.append([])
        else:
            parts[-1].append(token)
    return [part for part in parts if part]


def tokens_around(before: str, part: Sequence[Any], after: str = "") -> list[Any]:
    """Tokens of a text with words around them."""
    return [*tokens_of(before), *part, *tokens_of(after)]


def _type(session: Host, statement: Statement, part: Sequence[Any]) -> pa.DataType | None:
    text = statement.text[part[0].start : part[-1].end + 1]
    if text.lower() == "unknown":
        return None
    cast = f"SELECT CAST(NULL AS {text})"
    tree = parse_tokens(cast, tokens_of(cast))
    resolve_types(tree, session.access.types())
    return declared(tree.expressions[0].to)
