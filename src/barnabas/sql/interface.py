"""The seam between SQL sessions and the ways to reach them: the Postgres protocol, HTTP and the shell take any `Engine`.

Rules
  1. A session belongs to one caller and runs one statement at a time. Its methods block; callers run them in a thread.
  2. `cancel` may be called from any thread at any time.
  3. Errors are `SqlError`s with an SQLSTATE. After an error the session can be used again.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol, TypeGuard, runtime_checkable

from barnabas.errors import BarnabasError

if TYPE_CHECKING:
    import pyarrow as pa


class SqlError(BarnabasError):
    """A statement that failed.

    Args:
        sqlstate: five characters, as Postgres has them.
        position: of the fault in the statement's text, from 1 on, in characters; None if it has none.
        table, column, constraint: the names of those that a row does not fit.
    """

    def __init__(
        self, sqlstate: str, message: str, *, position: int | None = None, detail: str | None = None, hint: str | None = None,
        table: str | None = None, column: str | None = None, constraint: str | None = None,
    ) -> None:  # fmt: skip
        super().__init__(message)
        self.sqlstate, self.message, self.position, self.detail, self.hint = sqlstate, message, position, detail, hint
        self.table, self.column, self.constraint = table, column, constraint


@dataclass(frozen=True, slots=True)
class Caller:
    """The owner of a session.

    Args:
        user: the name that logged in.
        database: the name that the client asked for.
        settings: of the client's connection to the cluster, such as `sasl.username`; the session acts with these rights. They
            can have a password.
        parameters: of the session, as a Postgres client sends them at the start.
    """

    user: str = "anonymous"
    database: str = "barnabas"
    settings: Mapping[str, str] = field(default_factory=dict, repr=False)
    parameters: Mapping[str, str] = field(default_factory=dict)


class Result(Protocol):
    """The outcome of a statement. Rows are made as they are taken; `close` ends a statement whose rows are not all wanted.

    A result with the attribute `is_live` (true) does not end by itself. Its rows are sent at once, and a batch without rows means that
    there are none at this moment.
    """

    @property
    def schema(self) -> pa.Schema | None:
        """Its columns; None for a statement without rows."""

    @property
    def tag(self) -> str:
        """As Postgres' CommandComplete has it, such as `INSERT 0 3`. A `SELECT` has the word alone: the caller appends the
        count of rows that it took."""

    def batches(self) -> Iterator[pa.RecordBatch]:
        """The rows. Raises SqlError."""

    def close(self) -> None:
        """Release its memory; safe to call twice."""


class Prepared(Protocol):
    """A statement that was checked.

    `parameters` are the types of `$1`, `$2`, … ; pa.null() where nothing tells the type. `schema` are the columns of its rows, None if
    it has none; of a COPY, the columns of its data. `copy` is `in` or `out` for a COPY from or to the client, else None.
    """

    @property
    def text(self) -> str: ...

    @property
    def parameters(self) -> Sequence[pa.DataType]: ...

    @property
    def schema(self) -> pa.Schema | None: ...

    @property
    def copy(self) -> str | None: ...


class Session(Protocol):
    """One caller's session."""

    @property
    def state(self) -> str:
        """`I` outside of a transaction, `T` within one, `E` within one that failed (Postgres' ReadyForQuery)."""

    @property
    def is_fresh(self) -> bool:
        """Whether it is as it began, so that another request of its caller can have it: no transaction is open, no setting was changed,
        no statement has a name, there is no temporary table."""

    def statements(self, text: str) -> list[str]:
        """The single statements of a text, without comments around them. Raises SqlError."""

    def prepare(self, text: str, parameters: Sequence[pa.DataType | None] = ()) -> Prepared:
        """Check one statement. An empty text gives a statement with the tag ``. Raises SqlError."""

    def execute(self, prepared: Prepared, values: Sequence[Any] = ()) -> Result:
        """Run it with Python values for its parameters. Raises SqlError."""

    def copy_in(self, prepared: Prepared, data: Iterator[bytes]) -> Result:
        """Run a COPY from the client. Raises SqlError."""

    def copy_out(self, prepared: Prepared) -> Iterator[bytes]:
        """Run a COPY to the client: its rows in the format that it names. Raises SqlError."""

    def parameter(self, name: str) -> str | None:
        """The value of a setting, as SHOW has it; None if there is none."""

    def cancel(self) -> None:
        """End the statement that runs, with the SQLSTATE 57014."""

    def close(self) -> None:
        """Roll back what is open and release everything; safe to call twice."""


@dataclass(frozen=True, slots=True)
class Notice:
    """Something that a caller should know, though its statement succeeded.

    Args:
        severity: NOTICE, WARNING, INFO, LOG or DEBUG.
        sqlstate: 00000 for a notice, 01000 for a warning, unless there is a closer one.
    """

    message: str
    severity: str = "NOTICE"
    sqlstate: str = "00000"
    hint: str | None = None


@runtime_checkable
class Notifies(Protocol):
    """A session that has notices."""

    def take_notices(self) -> Sequence[Notice]:
        """Those since the last call, the oldest first."""

    def send_notices_to(self, listener: Callable[[Notice], None] | None) -> None:
        """Let `listener` have each notice at once, in the thread of the statement, instead of `take_notices`."""


class Looks(Protocol):
    """How one event loop looks at tables in memory; made by a session, for all sessions of its engine."""

    async def close(self) -> None:
        """Release the connections to the cluster."""


class OneRow(Protocol):
    """A query for one row of a table in memory.

    `schema` are its columns, and `kind` tells the query from others over the same table, whatever the key.
    """

    @property
    def schema(self) -> pa.Schema: ...

    @property
    def kind(self) -> Hashable: ...

    def rows(self, records: pa.RecordBatch) -> pa.RecordBatch:
        """The rows of some records of the table, one of each. Raises an error if the general way must make them."""

    def ask(
        self,
        looks: Looks,
        kind: Hashable,
        make: Callable[[pa.RecordBatch], Sequence[bytes]],
        answer: Callable[[bool, bytes | None], None],
    ) -> bool:
        """Whether `answer` will be called, in the event loop: with whether there is an answer, and the form of the row, None without a row.

        Args:
            kind: of the form.
            make: the forms of records, one of each.
        """


@runtime_checkable
class ReadsOneRow(Protocol):
    """A session that tells which queries an event loop can answer by itself."""

    def looks(self) -> Looks:
        """For the event loop that calls."""

    def known(self, text: str, parameters: Sequence[pa.DataType | None] = ()) -> Prepared | None:
        """A statement that was checked before, and need not be again; None for others. Called while no statement runs; it does not wait."""

    def one_row(self, prepared: Prepared, values: Sequence[Any]) -> OneRow | None:
        """The statement as a query for one row of a table in memory; None if it must run by `execute`, as always with an error. Called
        while no statement runs; it does not wait."""

    def saw(self, row: OneRow) -> None:
        """The query was answered."""


_reading: dict[type, bool] = {}  # classes of sessions, since a look at all methods takes long


def reads_one_row(session: Session) -> TypeGuard[ReadsOneRow]:
    """Whether a session is a `ReadsOneRow`."""
    kind = type(session)
    found = _reading.get(kind)
    if found is None:
        found = _reading[kind] = isinstance(session, ReadsOneRow)
    return found


class Engine(Protocol):
    """Makes sessions."""

    def session(self, caller: Caller) -> Session:
        """A session. Raises SqlError, for example 53300 if there are too many."""

    def close(self) -> None:
        """End all sessions."""
