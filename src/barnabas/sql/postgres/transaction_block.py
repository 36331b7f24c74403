"""The state of a session's transaction, with the failures of the protocol itself.

Any error within a transaction fails it, as in Postgres: also one that the session never sees, such as a value that cannot be read or
a cursor that does not exist. The session would go on; so COMMIT becomes ROLLBACK here, and other statements get 25P02.
"""

from __future__ import annotations

from collections.abc import Sequence

from barnabas.sql.interface import Notice, Session, SqlError
from barnabas.sql.postgres.cursors import first_word

ENDS = frozenset({"ROLLBACK", "ABORT", "COMMIT", "END"})
COMMITS = frozenset({"COMMIT", "END"})
BEGINS = frozenset({"BEGIN", "START"})
WRITES = frozenset({"INSERT", "UPDATE", "DELETE", "MERGE", "COPY", "WITH", "DECLARE"})


class Transaction:
    """Watches one session."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._failed = False
        self.is_implicit = False  # that of the statements of one simple query

    @property
    def state(self) -> str:
        """As ReadyForQuery has it."""
        state = self._session.state
        return "E" if self._failed and state == "T" else state

    def fail(self) -> None:
        """A statement failed."""
        self._failed = self._session.state == "T"

    def admitted(self, text: str) -> str:
        """The statement to run instead of this one. Raises SqlError 25P02."""
        if self.state != "E":
            self._failed = False
            return text
        word = first_word(text)
        if word not in ENDS:
            raise SqlError("25P02", "current transaction is aborted, commands ignored until end of transaction block")
        if self._failed:
            return "ROLLBACK" if word in COMMITS else text
        return text

    def warning(self, text: str) -> Notice | None:
        """Postgres' warning about BEGIN within a transaction, and about COMMIT and ROLLBACK outside of one."""
        word, state = first_word(text), self._session.state
        if word in BEGINS and state == "T" and not self.is_implicit:
            return Notice("there is already a transaction in progress", "WARNING", "25001")
        if word in ENDS and state == "I":
            return Notice("there is no transaction in progress", "WARNING", "25P01")
        return None

    def went_on(self, text: str) -> None:
        """A statement succeeded; ROLLBACK TO makes a failed transaction whole."""
        if self._failed and first_word(text) in ENDS:
            self._failed = False


class ImplicitBlock:
    """The transaction around the statements of one simple query, where there are several and one of them may write.

    BEGIN among them makes it a transaction that goes on after the query; COMMIT and ROLLBACK end it, and the next statement begins
    another.
    """

    def __init__(self, session: Session, transaction: Transaction, statements: Sequence[str]) -> None:
        self._session, self._transaction = session, transaction
        self._wanted = len(statements) > 1 and any(first_word(each) in WRITES for each in statements)
        self._open = False

    def before(self, text: str) -> None:
        """A statement comes. Raises SqlError."""
        word = first_word(text)
        self._transaction.is_implicit = self._open
        if word in BEGINS or word in ENDS:
            self._open = False
        elif self._wanted and self._session.state == "I":
            self._run("BEGIN")
            self._open = True

    def end(self) -> None:
        """All statements succeeded. Raises SqlError."""
        if self._open:
            self._open = False
            self._run("COMMIT")

    def fail(self) -> None:
        """One failed."""
        if self._open and self._session.state != "I":
            self._run("ROLLBACK")

    def _run(self, text: str) -> None:
        self._session.execute(self._session.prepare(text)).close()
