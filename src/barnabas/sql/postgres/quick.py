"""Answers a client's query for one row by its key in the event loop: no thread, no DuckDB.

It is a special case of `connection.py`, which gives the same bytes. It takes one round of messages at a time, while the connection is at
rest, and gives it back if anything about it is unusual: then the thread of the session answers it.

| round | from |
|---|---|
| Bind, Execute, Sync | asyncpg, pgjdbc |
| Bind, Describe, Execute, Sync | libpq, with a prepared statement |
| Parse, Bind, Describe, Execute, Sync | libpq, with parameters |
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from barnabas import limits
from barnabas.errors import BarnabasError
from barnabas.sql.interface import Looks, OneRow, Prepared, ReadsOneRow
from barnabas.sql.postgres import answers, messages
from barnabas.sql.postgres.execution import Execution
from barnabas.sql.postgres.messages import BIND, DESCRIBE, EXECUTE, PARSE, SYNC, Message, format_of
from barnabas.sql.postgres.parameters import value_of
from barnabas.sql.postgres.portals import Portal, Statement
from barnabas.sql.postgres.rows import RowWriter

MOST_MESSAGES, MOST_BYTES = 5, 10_000  # of a round
_UNNAMED_PORTAL = b"P\0"
_ALL_ROWS = b"\0\0\0\0\0"
_READY = answers.ready("I")
_ONE, _NONE = answers.command_complete("SELECT 1"), answers.command_complete("SELECT 0")


@dataclass(slots=True)
class _Shape:
    """How the rows of a statement are written in some formats."""

    prepared: Prepared
    writer: RowWriter
    description: bytes
    kind: Hashable
    make: Callable[[pa.RecordBatch], Sequence[bytes]]


@dataclass(slots=True)
class _Round:
    """A round of messages that waits for its answer."""

    messages: Sequence[Message]
    statement: Statement
    row: OneRow
    shape: _Shape
    values: Sequence[Any]
    formats: Sequence[int]
    is_parsed: bool
    is_described: bool


class Quick:
    """That of one connection. All methods are for the event loop, while no thread runs the session.

    Args:
        write: bytes to the client.
        give_back: messages to the thread.
    """

    def __init__(
        self,
        session: ReadsOneRow,
        execution: Execution,
        looks: Looks,
        write: Callable[[bytes], None],
        give_back: Callable[[Sequence[Message]], None],
    ) -> None:
        self._session, self._execution, self._looks = session, execution, looks
        self._write, self._give_back = write, give_back
        self._shapes: dict[tuple[int, tuple[int, ...]], _Shape] = {}
        self._waiting: _Round | None = None

    @property
    def is_waiting(self) -> bool:
        """Whether a round waits for its answer."""
        return self._waiting is not None

    def take(self, found: Sequence[Message]) -> bool:
        """Whether these messages are a round that will be answered here, or given back later."""
        if not 3 <= len(found) <= MOST_MESSAGES or found[-1].kind != SYNC or self._execution.transaction.state != "I":
            return False
        try:
            made = self._round(found)
        except BarnabasError:  # the thread finds it too, and tells the client
            return False
        if made is None:
            return False
        self._waiting = made

        def answer(is_known: bool, form: bytes | None) -> None:
            self._answer(made, form, is_known=is_known)

        if not made.row.ask(self._looks, made.shape.kind, made.shape.make, answer):
            self._waiting = None
            return False
        return True

    def withdraw(self) -> Sequence[Message]:
        """The messages that wait for an answer; they get none from here any more."""
        made, self._waiting = self._waiting, None
        return () if made is None else made.messages

    def _round(self, found: Sequence[Message]) -> _Round | None:
        """The messages as a query for one row. Raises SqlError for bad ones."""
        kinds = b"".join(each.kind for each in found)
        if kinds not in (b"BES", b"BDES"):
            return None
        if sum(len(each.body) for each in found) > MOST_BYTES or found[-2].body != _ALL_ROWS:
            return None
        is_described = len(found) == 4
        if is_described and found[1].body != _UNNAMED_PORTAL:
            return None
        bind = messages.parse_bind(found[0].body)
        statement = self._execution.statements.get(bind.statement)
        if statement is None or bind.portal or len(bind.values) != len(statement.oids):
            return None
        return self._made(found, statement, bind, is_described=is_described)

    def _made(self, found: Sequence[Message], statement: Statement, bind: messages.Bind, *, is_described: bool) -> _Round | None:
        prepared = statement.prepared
        if prepared is None or statement.action is not None or statement.binary_copy is not None:
            return None
        values = [
            value_of(value, oid, format_of(bind.formats, index))
            for index, (value, oid) in enumerate(zip(bind.values, statement.oids, strict=True))
        ]
        row = self._session.one_row(prepared, values)
        if row is None:
            return None
        shape = self._shape(prepared, row, tuple(bind.result_formats))
        return _Round(found, statement, row, shape, values, bind.result_formats, False, is_described)

    def _shape(self, prepared: Prepared, row: OneRow, formats: tuple[int, ...]) -> _Shape:
        """Raises SqlError if the formats do not fit the columns."""
        key, zone = (id(prepared), formats), self._execution.zone
        found = self._shapes.get(key)
        if found is not None and found.prepared is prepared and found.writer.zone is zone:
            return found
        if len(self._shapes) >= limits.MAX_SQL_PLANS:
            self._shapes.clear()
        writer = RowWriter(row.schema, formats, zone)
        description = answers.row_description(writer.described())
        kind = ("postgres", row.kind, formats, str(zone))
        found = self._shapes[key] = _Shape(prepared, writer, description, kind, lambda records: writer.each(row.rows(records)))
        return found

    def _answer(self, made: _Round, form: bytes | None, *, is_known: bool) -> None:
        if self._waiting is not made:
            return  # it was withdrawn
        self._waiting = None
        if not is_known:
            self._give_back(made.messages)
            return
        self._session.saw(made.row)
        parts = [answers.BIND_COMPLETE]
        if made.is_described:
            parts.append(made.shape.description)
        parts += [_NONE] if form is None else [form, _ONE]
        parts.append(_READY)
        self._write(b"".join(parts))
