"""LOCK TABLE: other sessions of this server change no row of a table until the transaction ends."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import pyarrow as pa
from sqlglot.tokenizer_core import TokenType

from barnabas.sql.catalog.topics import TopicRelation
from barnabas.sql.dialect import Statement, parse_tokens
from barnabas.sql.interface import Result, SqlError
from barnabas.sql.results import Done
from barnabas.sql.statements.host import Host
from barnabas.sql.statements.prepared import tokens_around
from barnabas.sql.statements.ready import Ready
from barnabas.sql.statements.target import target_of
from barnabas.sql.states import LOCK_NOT_AVAILABLE, not_supported, syntax_error

_WEAK = ("ACCESS SHARE", "ROW SHARE", "ROW EXCLUSIVE")  # they let others change rows
_MODES = (*_WEAK, "SHARE UPDATE EXCLUSIVE", "SHARE", "SHARE ROW EXCLUSIVE", "EXCLUSIVE", "ACCESS EXCLUSIVE")
NO_TRANSACTION = "25P01"


def lock_table(session: Host, statement: Statement, _: Sequence[pa.DataType | None]) -> Ready:
    """LOCK [TABLE] name, … [IN mode MODE] [NOWAIT]. The stronger modes lock alike; readers wait for none of them."""
    at = 2 if statement.word(1) == "TABLE" else 1
    end = len(statement.tokens)
    waits = statement.word(end - 1) != "NOWAIT"
    end -= not waits
    mode = "ACCESS EXCLUSIVE"
    start = next((place for place in range(at, end) if statement.word(place) == "IN"), None)
    if start is not None:
        mode = " ".join(statement.word(place) for place in range(start + 1, end - 1))
        if mode not in _MODES or statement.word(end - 1) != "MODE":
            raise syntax_error(
                "the statement is LOCK TABLE name IN mode MODE", statement.position(start), f"modes: {', '.join(_MODES)}"
            )
        end = start
    relations = [_target(session, statement, part) for part in _parts(statement, at, end)]

    def take(relation: TopicRelation) -> Result:
        try:
            session.lock(relation.topic, None, waits=waits)
        except SqlError as error:
            if waits or error.sqlstate != LOCK_NOT_AVAILABLE:
                raise
            raise SqlError(LOCK_NOT_AVAILABLE, f'could not obtain lock on relation "{relation.name}"') from None
        return Done("LOCK TABLE")

    def run(_: Sequence[Any]) -> Result:
        if session.state != "T":
            raise SqlError(NO_TRANSACTION, "LOCK TABLE can only be used in transaction blocks")
        for relation in relations if mode not in _WEAK else ():
            session.change(relation, partial(take, relation))
        return Done("LOCK TABLE")

    return Ready(statement.text, run)


def _parts(statement: Statement, at: int, end: int) -> list[tuple[int, int]]:
    """Where the names of the tables begin and end. Raises SqlError."""
    found, start = [], at
    for place in range(at, end + 1):
        if place == end or statement.tokens[place].token_type == TokenType.COMMA:
            if place == start:
                raise syntax_error("the name of a table is missing", statement.position(place))
            found.append((start, place))
            start = place + 1
    return found


def _target(session: Host, statement: Statement, part: tuple[int, int]) -> TopicRelation:
    """A table that can be locked. Raises SqlError."""
    first, last = part
    while last - first > 1 and (statement.word(first) == "ONLY" or statement.word(last - 1) == "*"):
        first, last = (first + 1, last) if statement.word(first) == "ONLY" else (first, last - 1)
    tree = parse_tokens(statement.text, tokens_around("SELECT * FROM", statement.tokens[first:last]))
    relation = target_of(session, tree.args["from_"].this)
    if not relation.is_keyed or relation.has_row_names:
        raise not_supported(
            f'LOCK TABLE of "{relation.name}" is not supported: it has no primary key', statement.position(first),
            "a table with a primary key can be locked",
        )  # fmt: skip
    return relation
