"""FROM schema and LIKE 'pattern' behind SHOW TABLES and its kin."""

from __future__ import annotations

import re
from collections.abc import Callable

from sqlglot.tokenizer_core import TokenType

from barnabas.sql.catalog.definitions import PUBLIC, parts_of_name
from barnabas.sql.dialect import Statement
from barnabas.sql.interface import SqlError
from barnabas.sql.statements.host import Host
from barnabas.sql.states import syntax_error

Filter = Callable[[str], bool]


def filter_of(session: Host, statement: Statement, at: int) -> Filter:
    """Whether a name is listed, by the words from a token to the end: [FROM | IN schema] [[LIKE] 'pattern']. Raises SqlError."""
    schema, pattern = None, None
    if statement.word(at) in ("FROM", "IN") and at + 1 < len(statement.tokens):
        schema = str(statement.tokens[at + 1].text)
        at += 2
        if schema != PUBLIC and schema.lower() != session.caller.database and schema not in session.definitions.schemas:
            raise SqlError("3F000", f'schema "{schema}" does not exist', position=statement.position(at - 1))
    at += statement.word(at) in ("LIKE", "ILIKE")
    if at < len(statement.tokens) and statement.tokens[at].token_type in (TokenType.STRING, TokenType.IDENTIFIER):
        pattern = _expression(str(statement.tokens[at].text))
        at += 1
    if at < len(statement.tokens):
        raise syntax_error(f'syntax error at or near "{statement.tokens[at].text}"', statement.position(at))
    wanted = PUBLIC if schema is not None and schema.lower() == session.caller.database else schema

    def is_listed(name: str) -> bool:
        own, plain = parts_of_name(name, session.definitions.schemas)
        return wanted in (None, own) and (pattern is None or pattern.fullmatch(plain) is not None)

    return is_listed


def _expression(pattern: str) -> re.Pattern[str]:
    """A pattern of SQL, or of Spark, whose star stands for any text."""
    parts = {"%": ".*", "*": ".*", "_": "."}
    return re.compile("".join(parts.get(each, re.escape(each)) for each in pattern), re.IGNORECASE | re.DOTALL)
