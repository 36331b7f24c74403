"""The options of COPY: the list in parentheses, and the older words without it."""

from __future__ import annotations

from typing import NamedTuple

from sqlglot.tokenizer_core import TokenType

from barnabas.sql.dialect import Statement
from barnabas.sql.interface import SqlError
from barnabas.sql.states import INVALID_PARAMETER, not_supported, syntax_error

_FLAGS = ("HEADER", "FREEZE")
_VALUES = ("FORMAT", "DELIMITER", "NULL", "QUOTE", "ESCAPE", "ENCODING", "DEFAULT")


class CopyOptions(NamedTuple):
    """How rows are written. `null` stands for a null."""

    is_csv: bool = False
    delimiter: str = "\t"
    null: str = "\\N"
    quote: str = '"'
    escape: str = '"'
    header: bool = False
    force_quote: tuple[str, ...] | None = ()


def options_of(statement: Statement, at: int) -> CopyOptions:
    """The options from a word on. Raises SqlError."""
    found: dict[str, str] = {}
    forced: tuple[str, ...] | None = ()
    if statement.word(at) == "WITH":
        at += 1
    in_list = at < len(statement.tokens) and statement.tokens[at].token_type == TokenType.L_PAREN
    at += in_list
    while at < len(statement.tokens):
        kind, word = statement.tokens[at].token_type, statement.word(at)
        if kind in (TokenType.COMMA, TokenType.R_PAREN) or word == "AS":
            at += 1
            continue
        if word in ("CSV", "TEXT", "BINARY") and not in_list:
            found["FORMAT"] = word.lower()
            at += 1
        elif word == "FORCE_QUOTE" or (word == "FORCE" and statement.word(at + 1) == "QUOTE"):
            at, forced = _names(statement, at + (1 if word == "FORCE_QUOTE" else 2))
        elif word in _FLAGS:
            at, found[word] = _flag(statement, at)
        elif word in _VALUES:
            at += 2 if statement.word(at + 1) == "AS" else 1
            if at >= len(statement.tokens):
                raise syntax_error(f"the option {word} needs a value", statement.position(at))
            found[word] = str(statement.tokens[at].text)
            at += 1
        else:
            raise SqlError(
                "42601", f'option "{statement.tokens[at].text.lower()}" not recognized', position=statement.position(at),
                hint=f"COPY takes {', '.join((*_VALUES, *_FLAGS, 'FORCE_QUOTE'))}",
            )  # fmt: skip
    return _checked(found, forced)


def _flag(statement: Statement, at: int) -> tuple[int, str]:
    value = statement.word(at + 1)
    if value in ("TRUE", "FALSE", "ON", "OFF", "MATCH"):
        return at + 2, value
    if at + 1 < len(statement.tokens) and str(statement.tokens[at + 1].text) in ("0", "1"):
        return at + 2, "TRUE" if statement.tokens[at + 1].text == "1" else "FALSE"
    return at + 1, "TRUE"


def _names(statement: Statement, at: int) -> tuple[int, tuple[str, ...] | None]:
    """Column names; None for all."""
    names: list[str] = []
    is_list = at < len(statement.tokens) and statement.tokens[at].token_type == TokenType.L_PAREN
    at += is_list
    while at < len(statement.tokens):
        kind = statement.tokens[at].token_type
        if kind == TokenType.STAR:
            return at + 1 + is_list, None
        if kind == TokenType.R_PAREN:
            return at + 1, tuple(names)
        if kind != TokenType.COMMA:
            names.append(str(statement.tokens[at].text))
        elif not is_list:
            return at, tuple(names)
        at += 1
    return at, tuple(names)


def _checked(found: dict[str, str], forced: tuple[str, ...] | None) -> CopyOptions:
    form = found.get("FORMAT", "text").lower()
    if form == "binary":
        raise not_supported("COPY in the binary format is not supported", hint="use the text format or CSV")
    if form not in ("text", "csv"):
        raise SqlError(INVALID_PARAMETER, f'COPY format "{form}" not recognized')
    is_csv = form == "csv"
    if found.get("ENCODING", "UTF8").upper().replace("-", "") not in ("UTF8", "UNICODE"):
        raise not_supported(f"the encoding {found['ENCODING']} is not supported", hint="use UTF8")
    if found.get("HEADER") == "MATCH":
        raise not_supported("HEADER MATCH is not supported", hint="HEADER leaves the first line out")
    if "DEFAULT" in found:
        raise not_supported("the option DEFAULT of COPY is not supported", hint="leave the column out")
    delimiter = found.get("DELIMITER", "," if is_csv else "\t")
    quote = found.get("QUOTE", '"')
    options = CopyOptions(
        is_csv, delimiter, found.get("NULL", "" if is_csv else "\\N"), quote, found.get("ESCAPE", quote),
        found.get("HEADER", "FALSE") not in ("FALSE", "OFF"), forced,
    )  # fmt: skip
    for name, value in (("delimiter", delimiter), ("quote", quote), ("escape", options.escape)):
        if len(value.encode()) != 1 or value in "\r\n":
            raise SqlError(INVALID_PARAMETER, f"COPY {name} must be a single one-byte character")
    if not is_csv and ({"QUOTE", "ESCAPE"} & found.keys() or forced != ()):
        raise SqlError(INVALID_PARAMETER, "COPY quote, escape and force_quote are only for CSV")
    if is_csv and delimiter == quote:
        raise SqlError(INVALID_PARAMETER, "COPY delimiter and quote must be different")
    if not is_csv and (delimiter in "\\.abcdefghijklmnopqrstuvwxyz0123456789"):
        raise SqlError(INVALID_PARAMETER, f'COPY delimiter cannot be "{delimiter}"')
    return options
