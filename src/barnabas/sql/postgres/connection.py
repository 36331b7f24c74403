"""The state machine of one connection after its log-in: messages in, answers out by its channel. No sockets.

Rules
  1. It runs in one thread at a time, and blocks there. `cancel` alone may come from others.
  2. An error of the extended protocol skips messages until Sync; one of a simple query ends the query.
  3. An error that is no SqlError is a fault of the server: the client is told XX000, and the log has the rest.
  4. Portals end with their transaction; a cursor WITH HOLD ends with the session.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from barnabas import limits
from barnabas.sql.interface import Looks, ReadsOneRow, Session, SqlError
from barnabas.sql.postgres import answers, messages
from barnabas.sql.postgres.binary_copy import binary_copy_of
from barnabas.sql.postgres.channel import Channel, Gone
from barnabas.sql.postgres.cursors import Declare, action_of
from barnabas.sql.postgres.execution import Execution
from barnabas.sql.postgres.fitting import fitted
from barnabas.sql.postgres.messages import Fatal, Message
from barnabas.sql.postgres.parameters import values_of
from barnabas.sql.postgres.portals import Portal, Statement
from barnabas.sql.postgres.quick import Quick
from barnabas.sql.postgres.transaction_block import ImplicitBlock
from barnabas.sql.postgres.types import arrow_type, oids_of

logger = logging.getLogger(__name__)


def told(failure: Exception) -> SqlError:
    """The error for the client."""
    if isinstance(failure, SqlError):
        return failure
    if isinstance(failure, MemoryError):
        return SqlError("53200", "out of memory")
    if isinstance(failure, RecursionError):
        return SqlError("54001", "the statement is too deep")
    logger.error("event=sql-internal-error", exc_info=failure)
    return SqlError("XX000", "internal error")


@dataclass(slots=True)
class _Failure:
    """Where the text of the failed statement begins in the client's text, in characters."""

    offset: int = 0


class Connection:
    """Answers the messages of one client."""

    def __init__(self, session: Session, channel: Channel) -> None:
        self._session, self._channel = session, channel
        self._execution = Execution(session, channel)
        self._skipping = False
        self._lock = threading.Lock()
        self._running = False
        self._handlers: dict[bytes, Callable[[bytes], None]] = {
            messages.PARSE: self._parse, messages.BIND: self._bind, messages.DESCRIBE: self._describe,
            messages.EXECUTE: self._execute, messages.CLOSE: self._close, messages.FLUSH: self._flush,
        }  # fmt: skip

    @property
    def state(self) -> str:
        """Of the transaction."""
        return self._execution.transaction.state

    def quick(
        self,
        looks_of: Callable[[ReadsOneRow], Looks],
        write: Callable[[bytes], None],
        give_back: Callable[[Sequence[Message]], None],
    ) -> Quick | None:
        """Its way to answer without a thread; None if the session has none."""
        session = self._session
        return Quick(session, self._execution, looks_of(session), write, give_back) if isinstance(session, ReadsOneRow) else None

    def begin(self) -> None:
        """Tell the client the settings, and that it may send statements."""
        self._execution.tell_settings()
        self._channel.send(answers.ready(self.state))

    def handle(self, message: Message) -> bool:
        """Answer one message; False if it was the last. Raises Gone, and Fatal for an error that ends the connection."""
        kind, body = message
        if kind == messages.TERMINATE:
            return False
        with self._lock:
            self._running = True
            self._execution.cancelled = False
        try:
            self._dispatch(kind, body)
        finally:
            with self._lock:
                self._running = False
        return True

    def cancel(self) -> None:
        """End the statement that runs, if one does. For any thread."""
        with self._lock:
            if not self._running:
                return
            self._execution.cancelled = True
            self._session.cancel()

    def close(self) -> None:
        """Release everything."""
        self._execution.close()
        self._session.close()

    def _dispatch(self, kind: bytes, body: bytes) -> None:
        if kind == messages.SYNC:
            self._skipping = False
            self._execution.end_of_round()
            self._channel.send(answers.ready(self.state))
        elif self._skipping or kind in (messages.COPY_DATA, messages.COPY_DONE, messages.COPY_FAIL):
            return  # the data of a COPY that failed
        elif kind == messages.QUERY:
            self._query(body)
        elif kind in self._handlers:
            self._skipping = not self._guarded(lambda: self._handlers[kind](body), _Failure())
        elif kind == messages.FUNCTION_CALL:
            self._guarded(self._function_call, _Failure())
            self._channel.send(answers.ready(self.state))
        else:
            raise Fatal("08P01", f"unexpected message of type {kind[0]}")

    def _guarded(self, action: Callable[[], None], failure: _Failure) -> bool:
        """Run it, and answer its error; whether it succeeded."""
        try:
            action()
        except (Gone, Fatal):
            raise
        except Exception as error:  # noqa: BLE001 - a fault of the engine must not end the server's other sessions
            self._execution.transaction.fail()
            self._channel.send(answers.error(told(error), offset=failure.offset))
            return False
        return True

    def _query(self, body: bytes) -> None:
        failure = _Failure()
        self._guarded(lambda: self._run_all(messages.parse_query(body), failure), failure)
        self._execution.end_of_round()
        self._channel.send(answers.ready(self.state))

    def _run_all(self, text: str, failure: _Failure) -> None:
        execution = self._execution
        execution.drop_unnamed()
        statements = self._session.statements(text)
        if not statements:
            self._channel.send(answers.EMPTY_QUERY)
        block, at = ImplicitBlock(self._session, execution.transaction, statements), 0
        try:
            for each in statements:
                found = text.find(each, at)
                failure.offset, at = (found, found + len(each)) if found >= 0 else (0, at)
                block.before(each)
                self._run_one(each)
            failure.offset = 0
            block.end()
        except BaseException:
            block.fail()
            raise
        finally:
            execution.transaction.is_implicit = False
            if len(statements) > 1:
                execution.tell_settings()  # the end of the block ends those of SET LOCAL

    def _run_one(self, text: str) -> None:
        execution = self._execution
        statement = self._prepared(text, ())
        if statement.oids:
            raise SqlError("42P02", "there is no parameter $1")
        portal = Portal(statement)
        try:
            execution.run(portal, None, describe=True)
        finally:
            portal.close()

    def _prepared(self, text: str, oids: list[int] | tuple[()]) -> Statement:
        text = self._execution.transaction.admitted(text)
        action = action_of(text)
        if action is not None and not isinstance(action, Declare):
            return Statement(text, None, (), action)
        given = [arrow_type(oid) for oid in oids]
        binary_copy = binary_copy_of(text)
        query = action.query if action is not None else binary_copy.text if binary_copy is not None else text
        try:
            prepared = self._session.prepare(query, given)
        except SqlError as error:
            if action is not None and error.position is not None:
                error.position += action.at
            elif binary_copy is not None:
                error.position = None
            raise
        return Statement(text, prepared, oids_of(prepared.parameters, oids), action, binary_copy, given)

    def _parse(self, body: bytes) -> None:
        name, text, oids = messages.parse_parse(body)
        statements = self._execution.statements
        if name and name in statements:
            raise SqlError("42P05", f'prepared statement "{name}" already exists')
        statements.pop("", None)
        if len(statements) >= limits.MAX_POSTGRES_STATEMENTS:
            raise SqlError(
                "54000", f"there are {len(statements)} prepared statements already", hint="DEALLOCATE those not needed."
            )
        if sum(len(each.text) for each in statements.values()) + len(text) > limits.MAX_POSTGRES_STATEMENT_CHARACTERS:
            raise SqlError("54000", "the prepared statements are too long together", hint="DEALLOCATE those not needed.")
        statements[name] = self._prepared(text, list(oids))
        self._channel.send(answers.PARSE_COMPLETE)

    def _bind(self, body: bytes) -> None:
        bind = messages.parse_bind(body)
        execution = self._execution
        statement = execution.statement(bind.statement)
        if bind.portal and bind.portal in execution.portals:
            raise SqlError("42P03", f'cursor "{bind.portal}" already exists')
        execution.transaction.admitted(statement.text)
        if len(bind.values) != len(statement.oids):
            raise SqlError(
                "08P01", f"bind message supplies {len(bind.values)} parameters, "
                f'but prepared statement "{bind.statement}" requires {len(statement.oids)}',
            )  # fmt: skip
        values = values_of(bind, statement.oids, () if statement.prepared is None else statement.prepared.parameters)
        statement = self._fitted(statement, values)
        execution.add_portal(bind.portal, Portal(statement, values, bind.result_formats))
        self._channel.send(answers.BIND_COMPLETE)

    def _fitted(self, statement: Statement, values: Sequence[Any]) -> Statement:
        """The statement, checked again if the declared types do not fit the values."""
        types = fitted(statement.given, values)
        if types is None or statement.prepared is None:
            return statement
        return replace(statement, prepared=self._session.prepare(statement.prepared.text, types), given=types)

    def _describe(self, body: bytes) -> None:
        kind, name = messages.parse_target(body)
        if kind == b"S":
            statement = self._execution.statement(name)
            self._channel.send(answers.parameter_description(statement.oids))
            self._execution.describe(Portal(statement))
        else:
            self._execution.describe(self._execution.portal(name))

    def _execute(self, body: bytes) -> None:
        name, most_rows = messages.parse_execute(body)
        self._execution.run(self._execution.portal(name), most_rows or None, describe=False)

    def _close(self, body: bytes) -> None:
        kind, name = messages.parse_target(body)
        if kind == b"S":
            self._execution.statements.pop(name, None)
        else:
            self._execution.close_portal(name)
        self._channel.send(answers.CLOSE_COMPLETE)

    def _flush(self, body: bytes) -> None:
        self._channel.flush()

    def _function_call(self) -> None:
        raise SqlError("0A000", "function calls of the protocol are not supported", hint="Call functions with SELECT.")
