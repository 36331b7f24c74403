"""Clauses behind the columns of CREATE TABLE that sqlglot does not know: APPEND ONLY, and ON CONFLICT, as RisingWave has it."""

from __future__ import annotations

from typing import Any

from sqlglot import exp
from sqlglot.tokenizer_core import TokenType

from barnabas.sql.dialect import Statement
from barnabas.sql.states import not_supported, syntax_error

OVERWRITE, NOTHING = "overwrite", "nothing"
_ACTIONS = {
    ("OVERWRITE",): OVERWRITE,
    ("DO", "UPDATE", "FULL"): OVERWRITE,
    ("DO", "UPDATE"): OVERWRITE,
    ("DO", "NOTHING"): NOTHING,
    ("IGNORE",): NOTHING,
}


def taken_clauses(statement: Statement) -> tuple[Statement, dict[str, str]]:
    """The statement without these clauses, and the options that they stand for. Raises SqlError."""
    tokens, options = list(statement.tokens), dict[str, str]()
    depth, at = 0, 0
    while at < len(tokens):
        depth += (tokens[at].token_type == TokenType.L_PAREN) - (tokens[at].token_type == TokenType.R_PAREN)
        left = Statement(statement.text, tokens)
        words = (left.word(at), left.word(at + 1))
        if depth == 0 and words == ("APPEND", "ONLY"):
            options["append_only"] = "true"
            del tokens[at : at + 2]
        elif depth == 0 and words == ("ON", "CONFLICT"):
            options["on_conflict"], end = _action(left, at + 2)
            del tokens[at:end]
        elif depth == 0 and words[0] in ("AS", "SELECT"):
            break
        else:
            at += 1
    return Statement(statement.text, tokens), options


def _action(statement: Statement, at: int) -> tuple[str, int]:
    for words, action in _ACTIONS.items():
        if tuple(statement.word(at + place) for place in range(len(words))) == words:
            end = at + len(words)
            if statement.word(end) == "IF":
                raise not_supported("ON CONFLICT DO UPDATE IF NOT NULL is not supported", statement.position(end), "OVERWRITE")
            if (statement.word(end), statement.word(end + 1)) == ("WITH", "VERSION"):
                raise not_supported("WITH VERSION COLUMN is not supported", statement.position(end))
            return action, end
    raise syntax_error("ON CONFLICT of a table takes OVERWRITE, IGNORE or DO NOTHING", statement.position(at))


def say(tree: Any, options: dict[str, str]) -> None:
    """Give a CREATE TABLE these options."""
    properties = tree.args.get("properties") or exp.Properties(expressions=[])
    for name, value in options.items():
        properties.append("expressions", exp.Property(this=exp.var(name), value=exp.Literal.string(value)))
    if options:
        tree.set("properties", properties)
