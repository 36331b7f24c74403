"""The options of a sequence: of CREATE and ALTER SEQUENCE, and of identity columns."""

from __future__ import annotations

import uuid
from typing import NamedTuple

from sqlglot.tokenizer_core import TokenType

from barnabas import limits
from barnabas.sql.catalog.sequences import BOUNDS, Sequence, check
from barnabas.sql.dialect import Statement
from barnabas.sql.interface import SqlError
from barnabas.sql.states import not_supported, syntax_error

KINDS = {
    **dict.fromkeys(("SMALLINT", "INT2"), "smallint"),
    **dict.fromkeys(("INTEGER", "INT", "INT4"), "integer"),
    **dict.fromkeys(("BIGINT", "INT8"), "bigint"),
}


class SequenceOptions(NamedTuple):
    """The options that a statement gives; None for those that it does not name.

    Args:
        minimum, maximum: `no` for the type's own.
        restart: a number; `start` for the start of the sequence.
        owner: a table and a column; `none` for no owner.
        name: of the sequence of an identity column.
    """

    kind: str | None = None
    increment: int | None = None
    minimum: int | str | None = None
    maximum: int | str | None = None
    start: int | None = None
    restart: int | str | None = None
    cache: int | None = None
    cycle: bool | None = None
    owner: tuple[str, ...] | str | None = None
    name: str | None = None


def options_in(statement: Statement, at: int = 0) -> SequenceOptions:
    """The options from a token to the end. Raises SqlError."""
    found: dict[str, object] = {}
    while at < len(statement.tokens):
        began = at
        name, value, at = _with_number(statement, at) or _with_words(statement, at)
        if name in found:
            raise syntax_error("conflicting or redundant options", statement.position(began))
        found[name] = value
    return SequenceOptions(**found)  # type: ignore[arg-type]  # each has the type of its option


_NUMBERS = {
    "INCREMENT": "increment",
    "START": "start",
    "RESTART": "restart",
    "MINVALUE": "minimum",
    "MAXVALUE": "maximum",
    "CACHE": "cache",
}
_REFUSED = ("OWNER", "RENAME", "SET", "LOGGED", "UNLOGGED")


def _with_number(statement: Statement, at: int) -> tuple[str, object, int] | None:
    """An option with a number, and the place behind it; None if another stands here."""
    name = _NUMBERS.get(statement.word(at))
    if name is None:
        return None
    at += 1
    has_word = statement.word(at) == {"increment": "BY", "start": "WITH", "restart": "WITH"}.get(name)
    if name == "restart" and not has_word and not _is_number(statement, at):
        return name, "start", at
    value, at = _number(statement, at + has_word)
    return name, value, at


def _with_words(statement: Statement, at: int) -> tuple[str, object, int]:
    """An option with words, and the place behind it. Raises SqlError."""
    match statement.word(at), statement.word(at + 1):
        case "AS", word if word in KINDS:
            return "kind", KINDS[word], at + 2
        case "NO", ("MINVALUE" | "MAXVALUE") as word:
            return _NUMBERS[word], "no", at + 2
        case "NO", "CYCLE":
            return "cycle", False, at + 2
        case "CYCLE", _:
            return "cycle", True, at + 1
        case "OWNED", "BY":
            owner, at = _owner(statement, at + 2)
            return "owner", owner, at
        case "SEQUENCE", "NAME":
            parts, at = name_at(statement, at + 2)
            return "name", parts[-1], at
        case word, _ if word in _REFUSED:
            raise not_supported(f"{word} of a sequence is not supported", statement.position(at), "make another sequence")
    raise _unexpected(statement, at)


def _unexpected(statement: Statement, at: int) -> SqlError:
    if at >= len(statement.tokens):
        return syntax_error("syntax error at end of input", statement.position(at))
    return syntax_error(f'syntax error at or near "{statement.tokens[at].text}"', statement.position(at))


def _is_number(statement: Statement, at: int) -> bool:
    tokens = statement.tokens[at : at + 2]
    if tokens and tokens[0].token_type in (TokenType.DASH, TokenType.PLUS):
        tokens = tokens[1:]
    return bool(tokens) and tokens[0].token_type == TokenType.NUMBER and str(tokens[0].text).isdigit()


def _number(statement: Statement, at: int) -> tuple[int, int]:
    if not _is_number(statement, at):
        raise _unexpected(statement, at)
    kind = statement.tokens[at].token_type
    at += kind in (TokenType.DASH, TokenType.PLUS)
    number = int(statement.tokens[at].text)
    return (-number if kind == TokenType.DASH else number), at + 1


def name_at(statement: Statement, at: int) -> tuple[list[str], int]:
    """A name with its schema, and the place behind it; folded to lower case unless it is quoted. Raises SqlError."""
    parts: list[str] = []
    while True:
        if not statement.word(at):
            raise _unexpected(statement, at)
        token = statement.tokens[at]
        parts.append(str(token.text) if token.token_type == TokenType.IDENTIFIER else str(token.text).lower())
        at += 1
        if at >= len(statement.tokens) or statement.tokens[at].token_type != TokenType.DOT:
            return parts, at
        at += 1


def _owner(statement: Statement, at: int) -> tuple[tuple[str, ...] | str, int]:
    position = statement.position(at)
    parts, at = name_at(statement, at)
    if parts == ["none"]:
        return "none", at
    if len(parts) < 2:
        raise syntax_error("OWNED BY needs table.column or NONE", position)
    return tuple(parts), at


def new_sequence(name: str, options: SequenceOptions, kind: str = "bigint") -> Sequence:
    """A sequence that begins. Raises SqlError.

    Args:
        kind: without the option.
    """
    if not name or len(name) > limits.MAX_SQL_NAME:
        raise SqlError("42602", f"the name of a sequence has 1 to {limits.MAX_SQL_NAME} characters")
    kind = options.kind or kind
    increment = 1 if options.increment is None else options.increment
    minimum, maximum = bounds_of(kind, increment, options.minimum, options.maximum)
    start = (minimum if increment > 0 else maximum) if options.start is None else options.start
    made = Sequence(
        name, uuid.uuid4().hex, kind, start, increment, minimum, maximum, start,
        cache=1 if options.cache is None else options.cache, cycle=bool(options.cycle),
    )  # fmt: skip
    check(made)
    return made


def bounds_of(kind: str, increment: int, minimum: int | str | None, maximum: int | str | None) -> tuple[int, int]:
    most = BOUNDS[kind]
    least = minimum if isinstance(minimum, int) else 1 if increment > 0 else -most - 1
    return least, maximum if isinstance(maximum, int) else most if increment > 0 else -1
