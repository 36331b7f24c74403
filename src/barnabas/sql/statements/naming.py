"""Names in statements that are read by their tokens."""

from __future__ import annotations

from sqlglot.tokenizer_core import TokenType

from barnabas.sql.dialect import Statement
from barnabas.sql.states import syntax_error


def name_at(statement: Statement, at: int) -> tuple[list[str], int]:
    """The parts of a name from a token on, and where it ends. Raises SqlError."""
    if at >= len(statement.tokens):
        raise syntax_error("a name is missing", statement.position(at))
    parts = [str(statement.tokens[at].text)]
    while at + 2 < len(statement.tokens) and statement.tokens[at + 1].token_type == TokenType.DOT:
        at += 2
        parts.append(str(statement.tokens[at].text))
    return parts, at + 1
