"""The session, as its statements need it."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol, TypeVar

import pyarrow as pa

from barnabas.client.blocking import BlockingClient
from barnabas.engine.spark_queries import SparkQueries
from barnabas.functions.definition import Function
from barnabas.sql.catalog.access import Access
from barnabas.sql.catalog.function_store import FunctionStore
from barnabas.sql.catalog.relations import Relation
from barnabas.sql.catalog.sequence_store import SequenceStore
from barnabas.sql.catalog.store import DefinitionStore
from barnabas.sql.catalog.topics import TopicRelation
from barnabas.sql.dialect import Statement
from barnabas.sql.duck.pool import Lease
from barnabas.sql.interface import Caller, Notice, SqlError
from barnabas.sql.live.rows import NO_CHOICE, Choice
from barnabas.sql.numbers import SessionNumbers
from barnabas.sql.planning.inputs import Input
from barnabas.sql.planning.query import QueryPlan
from barnabas.sql.planning.routines import Routines
from barnabas.sql.planning.views import Views
from barnabas.sql.running import Running
from barnabas.sql.settings import Settings
from barnabas.sql.statements.ready import Ready
from barnabas.sql.views.jobs import ViewJobs
from barnabas.sql.views.waiting import CatchingUp
from barnabas.sql.writing.buffer import Buffer
from barnabas.sql.writing.producing import Records
from barnabas.sql.zones import Zone

R = TypeVar("R")


class Host(Protocol):
    """The session that a statement runs in.

    `client` acts with the caller's rights. `buffer` has the rows of the open transaction. `prepared` are the statements with names.
    """

    caller: Caller
    settings: Settings
    client: BlockingClient
    running: Running
    buffer: Buffer
    views: Views
    routines: Routines
    access: Access
    catching_up: CatchingUp
    numbers: SessionNumbers
    prepared: dict[str, tuple[Statement, Sequence[pa.DataType | None]]]

    @property
    def state(self) -> str:
        """As in `interface.Session`."""

    @property
    def is_spark(self) -> bool:
        """Whether Spark's rules hold where Postgres has others."""

    @property
    def zone(self) -> Zone:
        """The time zone in which statements compute."""

    def in_utc(self) -> AbstractContextManager[None]:
        """Let all that is planned and run within compute in UTC, whatever the session's time zone is."""

    @property
    def version(self) -> object:
        """Of all that plans depend on."""

    @property
    def max_rows(self) -> int:
        """Of a result; 0 for no limit."""

    @property
    def view_jobs(self) -> ViewJobs:
        """The jobs of views."""

    @property
    def definitions(self) -> DefinitionStore:
        """The declared tables of the cluster."""

    @property
    def sequences(self) -> SequenceStore:
        """The sequences of the cluster."""

    def ready(self, statement: Statement, given: Sequence[pa.DataType | None]) -> Ready:
        """Check a statement within a statement. Raises SqlError."""

    def names(self) -> list[str]:
        """The names of all tables."""

    def find(self, parts: Sequence[str], position: int | None) -> Relation:
        """The relation of a name. Raises SqlError 42P01."""

    def temporary_name(self, name: str) -> str:
        """The name of a temporary table as its definition has it; from now on `find` knows it by the plain name."""

    def drop_temporary(self) -> None:
        """Drop the temporary tables."""

    def facts(self) -> dict[str, Any]:
        """The values of functions about the session."""

    def planner(self, functions: Sequence[Function] = ()) -> Any:
        """A cursor to check statements with, which knows the types of users' functions."""

    @property
    def functions(self) -> FunctionStore:
        """The functions of users."""

    def check_functions(self, functions: Sequence[Function]) -> None:
        """Raises SqlError if this server runs no functions of users in Python."""

    def check_code(self) -> None:
        """Raises SqlError 42501 if the caller may not choose code that servers run."""

    def borrow(self) -> Lease:
        """An instance of DuckDB for a query."""

    def release(self, lease: Lease) -> None:
        """Give it back."""

    def datasets(
        self, inputs: Sequence[Input], memory: Mapping[str, pa.Table], chosen: Mapping[str, Choice] = NO_CHOICE
    ) -> list[tuple[str, Any]]:  # fmt: skip
        """The data for each input, as DuckDB scans it."""

    def point(self, plan: QueryPlan, values: Sequence[Any]) -> pa.Table | None:
        """The rows that a query for one key needs; None if it needs others, or the table is not in memory."""

    def translated(self, error: Exception, text: str) -> SqlError:
        """An error of DuckDB or of the cluster as a `SqlError`."""

    def check_readable(self, relation: Relation) -> None:
        """Raises PartitionError if the caller may not read a table."""

    def check_writable(self, name: str | None = None) -> None:
        """Raises SqlError 25006 in a read-only transaction, unless the name is that of a temporary table's definition."""

    def change(self, relation: TopicRelation, action: Callable[[], R]) -> R:
        """Run a statement that changes rows of a relation: again, if another session has changed one of them meanwhile."""

    def lock_rows(self, relation: TopicRelation, *parts: pa.Table, waits: bool = True) -> None:
        """Keep other sessions from changing rows that the statement has read, within `change`; it runs again if they did."""

    def lock(self, topic: str, names: Iterable[Hashable] | None, *, waits: bool = True) -> bool:
        """Keep other sessions from changing rows, within `change`. Whether one of them may have changed since the statement began."""

    def write(self, relation: TopicRelation, rows: pa.Table, *, deleted: bool = False) -> None:
        """Write rows, or their deletions: now, or at the end of the transaction."""

    def write_all(self, relation: TopicRelation, rows: pa.Table, deleted: pa.Table) -> None:
        """Write rows and deletions together."""

    def tell_time(self) -> None:
        """Write the time into the topic of the clock of views."""

    def send_one(self, topic: str, key: bytes | None, value: bytes) -> None:
        """Write one record at once, outside of a transaction."""

    def send(self, records: Iterable[Records]) -> None:
        """Write records, all or none."""

    def existing(self, relation: TopicRelation, keys: Sequence[bytes]) -> set[bytes]:
        """Those of the keys that a row has."""

    def spark_queries(self) -> SparkQueries:
        """Spark, for the queries of this session. Raises SqlError 53300 if too many sessions have it."""

    def notify(self, notice: Notice) -> None:
        """Tell the caller something with the statement that runs."""

    def begin(self) -> None:
        """Open a transaction."""

    def commit(self) -> bool:
        """Write the transaction's rows; False if it had failed."""

    def rollback(self) -> None:
        """Forget the transaction's rows."""

    def recover(self) -> None:
        """A transaction that failed goes on."""

    def forget(self) -> None:
        """As a session that just began."""
