"""Runs portals and answers with their rows. Owns the statements, the portals and the cursors of one connection."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator, Sequence
from datetime import UTC, tzinfo

import pyarrow as pa

from barnabas import limits
from barnabas.sql.interface import Notice, Notifies, Prepared, Result, Session, SqlError
from barnabas.sql.postgres import answers
from barnabas.sql.postgres.binary_copy import lines_in, rows_out
from barnabas.sql.postgres.channel import Channel, Gone
from barnabas.sql.postgres.copying import CopyFormat, Incoming, outgoing
from barnabas.sql.postgres.cursors import CloseCursor, Deallocate, Declare, DiscardAll, Fetch, Unlisten
from barnabas.sql.postgres.messages import BINARY, TEXT
from barnabas.sql.postgres.portals import Portal, Rows, Statement
from barnabas.sql.postgres.rows import RowWriter
from barnabas.sql.postgres.transaction_block import Transaction
from barnabas.sql.zones import zone_of

REPORTED = {  # settings that clients follow, and what they are where the session does not say
    "server_version": "16.0", "server_encoding": "UTF8", "client_encoding": "UTF8", "application_name": "", "DateStyle": "ISO, MDY",
    "IntervalStyle": "postgres", "TimeZone": "UTC", "integer_datetimes": "on", "standard_conforming_strings": "on",
    "is_superuser": "off", "session_authorization": "", "default_transaction_read_only": "off", "in_hot_standby": "off",
}  # fmt: skip
CHANGING = frozenset({"SET", "RESET", "DISCARD ALL", "COMMIT", "ROLLBACK"})  # tags of statements that may change settings
_CHANGES = re.compile("set_config", re.IGNORECASE)  # in a query that may


class Execution:
    """The statements and portals of one connection, and how they run."""

    def __init__(self, session: Session, channel: Channel) -> None:
        self._session, self._channel = session, channel
        self._notifies = session if isinstance(session, Notifies) else None
        if self._notifies is not None:
            self._notifies.send_notices_to(self._notice)
        self.transaction = Transaction(session)
        self.statements: dict[str, Statement] = {}
        self.portals: dict[str, Portal] = {}
        self.cancelled = False
        self._told: dict[str, str] = {}
        self._zone: tzinfo = UTC
        self._writer: RowWriter | None = None  # the last one: many statements are the same as the one before

    @property
    def zone(self) -> tzinfo:
        """Of timestamps in text."""
        return self._zone

    def tell_settings(self) -> None:
        """Send those that the client does not know yet."""
        for name, default in REPORTED.items():
            value = self._session.parameter(name)
            value = default if value is None else value
            if self._told.get(name) != value:
                self._told[name] = value
                self._channel.send(answers.parameter_status(name, value))
        try:
            self._zone = zone_of(self._told["TimeZone"]).info
        except (ValueError, OSError):  # the session of another engine
            self._zone = UTC

    def statement(self, name: str) -> Statement:
        """Raises SqlError 26000."""
        found = self.statements.get(name)
        if found is None:
            raise SqlError(
                "26000", f'prepared statement "{name}" does not exist' if name else "unnamed prepared statement does not exist"
            )
        return found

    def portal(self, name: str) -> Portal:
        """Raises SqlError 34000."""
        found = self.portals.get(name)
        if found is None:
            raise SqlError("34000", f'portal "{name}" does not exist')
        return found

    def add_portal(self, name: str, portal: Portal) -> None:
        """Raises SqlError 54000 if there are too many."""
        self.close_portal(name)
        if len(self.portals) >= limits.MAX_POSTGRES_PORTALS:
            raise SqlError("54000", f"there are {len(self.portals)} portals already", hint="CLOSE those not needed.")
        self.portals[name] = portal

    def close_portal(self, name: str) -> None:
        """Does nothing where there is none."""
        if (found := self.portals.pop(name, None)) is not None:
            found.close()

    def drop_unnamed(self) -> None:
        """A simple query ends the unnamed statement and portal."""
        self.statements.pop("", None)
        self.close_portal("")

    def end_of_round(self) -> None:
        """Outside of a transaction, portals end with Sync and with a simple query."""
        if self._session.state == "I" and self.portals:
            for name in [name for name, each in self.portals.items() if not each.holds]:
                self.close_portal(name)

    def close(self) -> None:
        """Close all portals."""
        for name in list(self.portals):
            self.close_portal(name)

    def schema(self, statement: Statement) -> pa.Schema | None:
        """The columns of its rows; None if it has none."""
        if isinstance(statement.action, Fetch):
            cursor = self._cursor(statement.action.name)
            return None if statement.action.moves or cursor.rows is None else cursor.rows.schema
        if (
            statement.prepared is None
            or statement.action is not None
            or statement.binary_copy is not None
            or statement.prepared.copy
        ):
            return None
        return statement.prepared.schema

    def describe(self, portal: Portal) -> None:
        """Answer with the columns of a portal. A cursor has those of its query."""
        schema = portal.rows.schema if portal.rows is not None else self.schema(portal.statement)
        if schema is None:
            self._channel.send(answers.NO_DATA)
        else:
            self._send_description(portal, self._writer_of(schema, portal.formats))

    def _writer_of(self, schema: pa.Schema, formats: Sequence[int]) -> RowWriter:
        """Writes rows with this schema."""
        writer = self._writer
        if writer is None or writer.schema is not schema or writer.formats != tuple(formats) or writer.zone is not self._zone:
            writer = self._writer = RowWriter(schema, formats, self._zone)
        return writer

    def _send_description(self, portal: Portal, writer: RowWriter) -> None:
        portal.described = [each.described.oid for each in writer.codecs]
        self._channel.send(answers.row_description(writer.described()))

    def run(self, portal: Portal, most: int | None, *, describe: bool) -> None:
        """Run a portal on, for at most so many rows. Raises SqlError.

        Args:
            describe: send a RowDescription before the rows, as a simple query does.
        """
        self.transaction.admitted(portal.statement.text)
        self._check_cancelled()
        if (warning := self.transaction.warning(portal.statement.text)) is not None:
            self._channel.send(answers.notice(warning))
        action = portal.statement.action
        if portal.finished is not None:
            self._channel.send(answers.command_complete(portal.finished))
        elif isinstance(action, Fetch):
            self._fetch(portal, action, describe=describe)
        elif action is not None:
            self._serve(portal)
        elif portal.statement.binary_copy is not None or (
            portal.statement.prepared is not None and portal.statement.prepared.copy
        ):
            self._copy(portal)
        else:
            self._run_prepared(portal, most, describe=describe)

    def _run_prepared(self, portal: Portal, most: int | None, *, describe: bool) -> None:
        if portal.rows is None:
            prepared = portal.statement.prepared
            assert prepared is not None
            result = self._session.execute(prepared, portal.values)
            self.transaction.went_on(portal.statement.text)
            if result.schema is None:
                self._complete(portal, result)
                return
            portal.rows = Rows(result, result.schema)
            writer = self._writer_of(result.schema, portal.formats)
            if describe:
                self._send_description(portal, writer)
            elif portal.described is not None and portal.described != [each.described.oid for each in writer.codecs]:
                raise SqlError("0A000", "cached plan must not change result type", hint="Prepare the statement again.")
        else:
            writer = self._writer_of(portal.rows.schema, portal.formats)
        self._send_rows(portal.rows, writer, most)
        if not portal.rows.ended and most is not None and portal.rows.taken == most:
            self._channel.send(answers.PORTAL_SUSPENDED)
        else:
            self._complete(portal, portal.rows.result, portal.rows.taken)

    def _notice(self, notice: Notice) -> None:
        """Send it at once: a statement may wait long after it."""
        with contextlib.suppress(Gone):  # the statement's next answer meets it
            self._channel.send(answers.notice(notice))
            self._channel.flush()

    def _check_cancelled(self) -> None:
        if self.cancelled:
            raise SqlError("57014", "canceling statement due to user request")

    def _send_rows(self, rows: Rows, writer: RowWriter, most: int | None, *, until_idle: bool = False) -> None:
        for batch in rows.take(most, until_idle=until_idle):
            for piece in writer.pieces(batch):
                self._check_cancelled()
                self._channel.send(piece)
            if rows.is_live:  # a batch without rows comes now and then
                self._check_cancelled()
                self._channel.flush()

    def _complete(self, portal: Portal, result: Result, rows: int = 0) -> None:
        tag = result.tag
        if self._notifies is not None:
            for notice in self._notifies.take_notices():
                self._channel.send(answers.notice(notice))
        if portal.rows is None:
            result.close()
        if not tag:
            self._channel.send(answers.EMPTY_QUERY)
            portal.finished = ""
            return
        counted = tag == "SELECT"
        if tag in CHANGING or (counted and _CHANGES.search(portal.statement.text)):
            self.tell_settings()
        portal.finished = "SELECT 0" if counted else tag
        self._channel.send(answers.command_complete(f"SELECT {rows}" if counted else tag))

    def _cursor(self, name: str) -> Portal:
        found = self.portals.get(name)
        if found is None or found.rows is None:
            raise SqlError("34000", f'cursor "{name}" does not exist')
        return found

    def _fetch(self, portal: Portal, action: Fetch, *, describe: bool) -> None:
        cursor = self._cursor(action.name)
        assert cursor.rows is not None
        if action.moves:
            for _ in cursor.rows.take(action.rows, until_idle=True):
                self._check_cancelled()
        else:
            writer = self._writer_of(cursor.rows.schema, portal.formats or cursor.formats)
            if describe:
                self._send_description(portal, writer)
            self._send_rows(cursor.rows, writer, action.rows, until_idle=True)
        self._finish(portal, f"{'MOVE' if action.moves else 'FETCH'} {cursor.rows.taken}")

    def _serve(self, portal: Portal) -> None:
        """The statements of `cursors.py` that have no rows."""
        action = portal.statement.action
        if isinstance(action, Declare):
            self._declare(portal, action)
            self._finish(portal, "DECLARE CURSOR")
        elif isinstance(action, CloseCursor):
            if action.name is None:
                self.close()
            else:
                self._cursor(action.name)
                self.close_portal(action.name)
            self._finish(portal, "CLOSE CURSOR" + ("" if action.name is not None else " ALL"))
        elif isinstance(action, Deallocate):
            self._deallocate(portal, action)
        elif isinstance(action, Unlisten):
            self._finish(portal, "UNLISTEN")
        elif isinstance(action, DiscardAll):
            self.close()
            self.statements.clear()
            self._pass_on(portal)

    def _declare(self, portal: Portal, action: Declare) -> None:
        if not action.holds and self._session.state == "I":
            raise SqlError(
                "25P01", "DECLARE CURSOR can only be used in transaction blocks", hint="Declare it WITH HOLD, or BEGIN."
            )
        if action.name in self.portals:
            raise SqlError("42P03", f'cursor "{action.name}" already exists')
        prepared = portal.statement.prepared
        assert prepared is not None
        result = self._session.execute(prepared, portal.values)
        if result.schema is None:
            result.close()
            raise SqlError("42601", "DECLARE CURSOR needs a query")
        cursor = Portal(portal.statement, formats=(BINARY,) if action.binary else (), holds=action.holds)
        cursor.rows = Rows(result, result.schema)
        try:
            self.add_portal(action.name, cursor)
        except SqlError:
            result.close()
            raise

    def _deallocate(self, portal: Portal, action: Deallocate) -> None:
        """A statement of the protocol, or else one of SQL's PREPARE."""
        if action.name is None:
            self.statements.clear()
            self._pass_on(portal)
        elif self.statements.pop(action.name, None) is not None:
            self._finish(portal, "DEALLOCATE")
        else:
            self._pass_on(portal)

    def _pass_on(self, portal: Portal) -> None:
        """The session has its own part of it."""
        result = self._session.execute(self._session.prepare(portal.statement.text))
        self._complete(portal, result)

    def _finish(self, portal: Portal, tag: str) -> None:
        portal.finished = tag
        self._channel.send(answers.command_complete(tag))

    def _copy(self, portal: Portal) -> None:
        statement, prepared = portal.statement, portal.statement.prepared
        assert prepared is not None
        columns = prepared.schema if prepared.schema is not None else pa.schema([])
        if prepared.copy == "in":
            self._copy_in(portal, prepared, columns)
        elif statement.binary_copy is not None:
            result = self._session.execute(prepared, portal.values)
            try:
                self._copy_out(portal, rows_out(columns, result.batches()), BINARY, columns)
            finally:
                result.close()
        else:
            form = CopyFormat(prepared.text)
            pieces = self._session.copy_out(prepared)
            self._copy_out(portal, outgoing(pieces, form), TEXT, columns, -int(form.has_header))

    def _copy_in(self, portal: Portal, prepared: Prepared, columns: pa.Schema) -> None:
        is_binary = portal.statement.binary_copy is not None
        self._channel.send(answers.copy_response(b"G", BINARY if is_binary else TEXT, len(columns)))
        self._channel.flush()
        incoming = Incoming(self._channel)
        result = self._session.copy_in(prepared, lines_in(columns, incoming) if is_binary else iter(incoming))
        incoming.drop()
        self._complete(portal, result)

    def _copy_out(
        self, portal: Portal, messages: Iterator[tuple[bytes | memoryview, int]], form: int, columns: pa.Schema, count: int = 0
    ) -> None:
        self._channel.send(answers.copy_response(b"H", form, len(columns)))
        for data, rows in messages:
            self._check_cancelled()
            count += rows
            self._channel.send(data)
        self._channel.send(answers.COPY_DONE)
        self._finish(portal, f"COPY {max(0, count)}")
