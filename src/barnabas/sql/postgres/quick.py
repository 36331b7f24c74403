"""Answers a client's query for one row by its key in the event loop: no thread, no DuckDB.

It is a special case of `connection.py`, which gives the same bytes. It takes one round of messages at a time, while the connection is at
rest, and gives it back if anything about it is unusual: then the thread of the session answers it.

| round | from |
|---|---|
| Bind, Execute, Sync | asyncpg, pgjdbc |
| Bind, Describe, Execute, Sync | libpq, with a prepared statement |
| Parse, Bind, Describe, Execute, Sync, with an unnamed statement | libpq, with parameters |
| Query | psql, psycopg2, libpq without parameters |
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass

from barnabas import limits
from barnabas.errors import BarnabasError
from barnabas.sql.interface import Looks, OneRow, ReadsOneRow
from barnabas.sql.postgres import answers, messages
from barnabas.sql.postgres.execution import Execution
from barnabas.sql.postgres.messages import DESCRIBE, PARSE, QUERY, Message
from barnabas.sql.postgres.parameters import values_of
from barnabas.sql.postgres.portals import Portal, Statement
from barnabas.sql.postgres.rows import RowWriter
from barnabas.sql.postgres.types import arrow_type, oids_of

MOST_BYTES = 10_000  # of a round
ROUNDS = frozenset({b"BES", b"BDES", b"PBES", b"PBDES"})
_UNNAMED_PORTAL, _ALL_ROWS = b"P\0", b"\0\0\0\0\0"
_READY = answers.ready("I")
_ONE, _NONE = answers.command_complete("SELECT 1"), answers.command_complete("SELECT 0")


@dataclass(slots=True)
class _Shape:
    """How the rows of a statement are written in some formats."""

    writer: RowWriter
    description: bytes
    kind: Hashable


@dataclass(slots=True)
class _Round:
    """A round of messages that waits for its answer.

    Args:
        head: the messages before the row.
        portal: the unnamed one that it makes; None for a simple query.
        is_parsed: whether its statement becomes the unnamed one.
    """

    messages: Sequence[Message]
    row: OneRow
    head: bytes
    portal: Portal | None = None
    is_parsed: bool = False


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
        self._shapes: dict[tuple[Hashable, tuple[int, ...]], _Shape] = {}
        self._waiting: _Round | None = None

    @property
    def is_waiting(self) -> bool:
        """Whether a round waits for its answer."""
        return self._waiting is not None

    def take(self, found: Sequence[Message]) -> bool:
        """Whether these messages are a round that will be answered here, or given back later."""
        kinds = b"".join([each.kind for each in found]) if len(found) <= 5 else b""
        if (kinds not in ROUNDS and kinds != QUERY) or self._execution.transaction.state == "E":
            return False
        if sum([len(each.body) for each in found]) > MOST_BYTES:
            return False
        try:
            return self._ask_query(found) if kinds == QUERY else self._ask_round(found, kinds)
        except BarnabasError:  # the thread finds it too, and tells the client
            return False

    def _ask_query(self, found: Sequence[Message]) -> bool:
        prepared = self._session.known(messages.parse_query(found[0].body))
        row = None if prepared is None else self._session.one_row(prepared, ())
        if row is None:
            return False
        shape = self._shape(row, ())
        return self._ask(_Round(found, row, shape.description), shape)

    def _ask_round(self, found: Sequence[Message], kinds: bytes) -> bool:
        parsed = self._parsed(found[0].body) if kinds.startswith(PARSE) else None
        if parsed is None and kinds.startswith(PARSE):
            return False
        if found[-2].body != _ALL_ROWS or (DESCRIBE in kinds and found[-3].body != _UNNAMED_PORTAL):
            return False
        bind = messages.parse_bind(found[0 if parsed is None else 1].body)
        statement = parsed if parsed is not None and not bind.statement else self._execution.statements.get(bind.statement)
        if statement is None or statement.prepared is None or bind.portal or len(bind.values) != len(statement.oids):
            return False
        if statement.action is not None or statement.binary_copy is not None:
            return False
        values = values_of(bind, statement.oids, () if statement.prepared is None else statement.prepared.parameters)
        row = self._session.one_row(statement.prepared, values)
        if row is None:
            return False
        shape = self._shape(row, tuple(bind.result_formats))
        head = (answers.PARSE_COMPLETE if parsed is not None else b"") + answers.BIND_COMPLETE
        if DESCRIBE in kinds:
            head += shape.description
        portal = Portal(statement, values, bind.result_formats, finished="SELECT 0")
        return self._ask(_Round(found, row, head, portal, parsed is not None), shape)

    def _parsed(self, body: bytes) -> Statement | None:
        """An unnamed statement that was checked before. Raises SqlError."""
        name, text, oids = messages.parse_parse(body)
        if name or len(self._execution.statements) >= limits.MAX_POSTGRES_STATEMENTS // 2:
            return None
        given = [arrow_type(oid) for oid in oids]
        prepared = self._session.known(text, given)
        return None if prepared is None else Statement(text, prepared, oids_of(prepared.parameters, oids), given=given)

    def _ask(self, made: _Round, shape: _Shape) -> bool:
        self._waiting = made
        row, writer = made.row, shape.writer

        def answer(is_known: bool, form: bytes | None) -> None:
            self._answer(made, form, is_known=is_known)

        if not row.ask(self._looks, shape.kind, lambda records: writer.each(row.rows(records)), answer):
            self._waiting = None
            return False
        return True

    def withdraw(self) -> Sequence[Message]:
        """The messages that wait for an answer; they get none from here any more."""
        made, self._waiting = self._waiting, None
        return () if made is None else made.messages

    def _shape(self, row: OneRow, formats: tuple[int, ...]) -> _Shape:
        """Raises SqlError if the formats do not fit the columns."""
        key, zone = (row.kind, formats), self._execution.zone
        found = self._shapes.get(key)
        if found is not None and found.writer.zone is zone:
            return found
        if len(self._shapes) >= limits.MAX_SQL_PLANS:
            self._shapes.clear()
        writer = RowWriter(row.schema, formats, zone)
        description = answers.row_description(writer.described())
        found = self._shapes[key] = _Shape(writer, description, ("postgres", row.kind, formats, str(zone)))
        return found

    def _answer(self, made: _Round, form: bytes | None, *, is_known: bool) -> None:
        if self._waiting is not made:
            return  # it was withdrawn
        self._waiting = None
        if not is_known:
            self._give_back(made.messages)
            return
        self._session.saw(made.row)
        execution = self._execution
        state = execution.transaction.state
        if made.portal is None:
            execution.drop_unnamed()
        else:
            if made.is_parsed:
                execution.statements.pop("", None)
                execution.statements[""] = made.portal.statement
            execution.close_portal("")
            if state == "T":  # otherwise it ends with Sync
                execution.portals[""] = made.portal
        self._write(
            b"".join((made.head, form or b"", _NONE if form is None else _ONE, _READY if state == "I" else answers.ready(state)))
        )
