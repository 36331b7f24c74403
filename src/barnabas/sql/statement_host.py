"""The session as its statements see it: what they find, read, write and tell.

Owns the caller's connections to the cluster, the parameters, the open transaction, the temporary tables, and the offsets that the session
wrote: its next statement waits until they can be read.
"""

from __future__ import annotations

import datetime as dt
import uuid
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, TypeVar

import duckdb
import pyarrow as pa

from barnabas import limits
from barnabas.client.blocking import BlockingClient
from barnabas.client.results import TopicPartition
from barnabas.engine.clock import CLOCK, make_topic, record
from barnabas.engine.spark_queries import SparkQueries
from barnabas.errors import BarnabasError
from barnabas.functions.definition import PYTHON, Function
from barnabas.sql import states
from barnabas.sql.catalog.access import TEMPORARY, Access
from barnabas.sql.catalog.function_store import FunctionStore, may_alter_cluster
from barnabas.sql.catalog.postgres.relations import is_of_catalogue
from barnabas.sql.catalog.relations import Relation
from barnabas.sql.catalog.sequence_store import SequenceStore
from barnabas.sql.catalog.store import DefinitionStore
from barnabas.sql.catalog.topics import TopicRelation
from barnabas.sql.dialect import Statement, parse, statement_of, with_own_functions
from barnabas.sql.duck.pool import Lease
from barnabas.sql.interface import Caller, Notice, SqlError
from barnabas.sql.live.rows import NO_CHOICE, Choice
from barnabas.sql.numbers import SessionNumbers
from barnabas.sql.planning.inputs import Input
from barnabas.sql.planning.names import parts_of
from barnabas.sql.planning.outputs import with_names
from barnabas.sql.planning.query import QueryPlan
from barnabas.sql.planning.routines import Routines
from barnabas.sql.planning.views import Views
from barnabas.sql.running import Running
from barnabas.sql.settings import SERVER_VERSION, Settings
from barnabas.sql.shared import Shared
from barnabas.sql.statements.families import ready as checked
from barnabas.sql.statements.ready import Ready
from barnabas.sql.temporary import drop_temporary
from barnabas.sql.views.jobs import ViewJobs
from barnabas.sql.views.waiting import CatchingUp
from barnabas.sql.writing.buffer import Buffer
from barnabas.sql.writing.producing import Producers, Records
from barnabas.sql.writing.records import keys_of, records_of
from barnabas.sql.zones import UTC_ZONE, Zone
from barnabas.tables.row_names import ROW

R = TypeVar("R")
VERSION = f"PostgreSQL {SERVER_VERSION} (barnabas)"


class StatementHost:
    """Keeps the seam `statements.host.Host` for one session.

    Args:
        number: of the session.
    """

    def __init__(self, shared: Shared, caller: Caller, number: int) -> None:
        self._shared, self.caller, self.number = shared, caller, number
        self._notices: list[Notice] = []
        self._listener: Callable[[Notice], None] | None = None
        self.settings = Settings(caller.parameters, user=caller.user, dialect=shared.dialect, notify=self.notify)
        self.running = Running(shared.deadlines)
        self.client = BlockingClient(replace(shared.config_of(caller), interruption=self.running.interruption))
        self.access = Access(shared, self.client, caller.user, self.settings, self.running)
        self.numbers = SessionNumbers(
            shared, self.client, self.running, self.find, self.check_writable, has_rights=bool(caller.settings)
        )
        self.producers = Producers(self.client)
        self.buffer = Buffer()
        self._locks = shared.locks.holder()
        self._is_changing = False  # within `change`
        self._stays_in_utc = False  # within `in_utc`
        self.prepared: dict[str, tuple[Statement, Sequence[pa.DataType | None]]] = {}
        self.views = Views(self._lasting_view)
        self.routines = Routines(self._functions_named, self._fields_of, self.views.expanded, self._parsed)
        self.temporary = self.access.temporary
        self.catching_up = CatchingUp(self)
        self._spark: SparkQueries | None = None
        self._state = "I"

    @property
    def state(self) -> str:
        return self._state

    @property
    def is_spark(self) -> bool:
        """Whether Spark's rules hold where Postgres has others: the division of integers, the place of nulls."""
        return self.settings.get("sql_dialect") == "spark"

    @property
    def zone(self) -> Zone:
        """The time zone in which statements compute."""
        return UTC_ZONE if self._stays_in_utc else self.settings.zone

    @contextmanager
    def in_utc(self) -> Iterator[None]:
        """Let all that is planned and run within compute in UTC, whatever the session's time zone is."""
        before, self._stays_in_utc = self._stays_in_utc, True
        try:
            yield
        finally:
            self._stays_in_utc = before

    @property
    def version(self) -> tuple[object, ...]:
        """Of all that plans depend on: a prepared statement is checked again when it has changed."""
        shared = self._shared
        return (
            shared.definitions.version, shared.functions.version, self.buffer.generation, self.views.version, self.is_spark,
            self.settings.zone.is_utc,
        )  # fmt: skip

    @property
    def definitions(self) -> DefinitionStore:
        """The declared tables of the cluster."""
        return self._shared.definitions

    @property
    def sequences(self) -> SequenceStore:
        """The sequences of the cluster."""
        return self._shared.sequences

    @property
    def functions(self) -> FunctionStore:
        """The functions of users."""
        return self._shared.functions

    def _functions_named(self, name: str) -> Sequence[Function]:
        if not self.functions.named(name):
            self.functions.refresh(self.running)
        return self.functions.named(name)

    def _fields_of(self, table: Any) -> Sequence[pa.Field[Any]]:
        relation = self.find(parts_of(table), None)
        return [*relation.columns, *relation.hidden]

    def _statement(self, text: str) -> Statement:
        """The statement of a text, with users' functions in mind."""
        found = statement_of(text)
        return with_own_functions(found, self.functions.by_name.keys()) if self.functions.stored else found

    def _parsed(self, text: str) -> Any:
        return parse(self._statement(text), spark_order=self.is_spark)

    def check_functions(self, functions: Sequence[Function]) -> None:
        """Raises SqlError if this server runs no functions of users in Python."""
        if not self._shared.runs_python and any(each.language == PYTHON for each in functions):
            raise states.not_supported(
                "this server runs no functions in Python", hint="its operator turns them on: sql.python.functions=true"
            )

    def check_code(self) -> None:
        """Raises SqlError 42501 if the caller may not choose code that servers run, KafkaError, ClientError."""
        if not self._shared.runs_python:
            raise SqlError(
                states.INSUFFICIENT_PRIVILEGE, "this server takes no functions in Python",
                hint="its operator turns them on: sql.python.functions=true",
            )  # fmt: skip
        if not may_alter_cluster(self.client):
            raise SqlError(
                states.INSUFFICIENT_PRIVILEGE, "a function in Python needs the right ALTER on the cluster",
                hint="its code runs in the servers",
            )  # fmt: skip

    @property
    def view_jobs(self) -> ViewJobs:
        """The jobs of views."""
        return self._shared.views

    def _lasting_view(self, parts: Sequence[str]) -> tuple[Sequence[str], Any] | None:
        """The columns and the query of a lasting view; None for every other name."""
        if is_of_catalogue(parts[-2] if len(parts) > 1 else None, parts[-1]):
            return None
        found = self.access.plain_view(parts, self.caller.database)
        if found is None or found.view is None:
            return None
        query = with_names(self._parsed(found.view.query))
        return [each.name for each in found.columns], query

    def check_readable(self, relation: Relation) -> None:
        """Raises PartitionError if the caller may not read a table."""
        if isinstance(relation, TopicRelation):
            self.access.check_readable(relation.topic)

    @property
    def max_rows(self) -> int:
        """Of a result; 0 for no limit."""
        own = int(self.settings.get("max_rows") or 0)
        most = self._shared.limits.rows
        return min(own or most, most or own)

    def spark_queries(self) -> SparkQueries:
        """Spark, for the queries of this session. Raises SqlError 53300 if too many sessions have it."""
        if self._spark is None:
            if not self._shared.spark_places.acquire(blocking=False):
                most = limits.MAX_SQL_SPARK_SESSIONS
                raise SqlError(
                    states.TOO_MANY, f"{most} sessions use Spark already", hint="SET engine = duckdb, or try again later"
                )
            servers = ",".join(f"{host}:{port}" for host, port in self._shared.config.bootstrap_servers)
            self._spark = SparkQueries({"bootstrap.servers": servers, **self.caller.settings})
        return self._spark

    def _end_spark(self) -> None:
        found, self._spark = self._spark, None
        if found is not None:
            found.close()
            self._shared.spark_places.release()

    def notify(self, notice: Notice) -> None:
        """Tell the caller something with the statement that runs."""
        if self._listener is not None:
            self._listener(notice)
            return
        if len(self._notices) < limits.MAX_SQL_NOTICES:
            self._notices.append(notice)

    def forget(self) -> None:
        """As a session that just began."""
        self.settings.reset()
        self.prepared.clear()
        self.views.clear()
        self.numbers.clear()
        self._end_spark()
        self.drop_temporary()

    def temporary_name(self, name: str) -> str:
        """The name of a temporary table as its definition has it; from now on `find` knows it by the plain name."""
        self.numbers.forget_names()
        return self.temporary.setdefault(name, f"{TEMPORARY}{uuid.uuid4().hex[:12]}.{name}")

    def drop_temporary(self) -> None:
        """Drop the temporary tables and sequences."""
        if self.temporary:
            drop_temporary(self._shared, self.client.config, set(self.temporary.values()))
            self.temporary.clear()

    def facts(self) -> dict[str, Any]:
        """The values of functions about the session."""
        user = self.caller.user
        return {
            **dict.fromkeys(("current_user", "session_user", "user", "current_role"), user),
            **dict.fromkeys(("current_database", "current_catalog"), self.caller.database),
            "current_schema": next(iter(self.access.path()), None),
            "current_schemas": self.access.path(),
            "version": VERSION,
            "pg_backend_pid": self.number,
        }

    def ready(self, statement: Statement, given: Sequence[pa.DataType | None]) -> Ready:
        """Check a statement within a statement. Raises SqlError."""
        return checked(self, statement, given)

    def names(self) -> list[str]:
        """The names of all tables."""
        return self.access.names()

    def find(self, parts: Sequence[str], position: int | None) -> Relation:
        """The relation of a name. Raises SqlError 42P01."""
        own = self.temporary.get(parts[-1]) or self.temporary.get(parts[-1].lower())
        known = own in self.definitions.tables or own in self.sequences.sequences
        if own is not None and known and (len(parts) == 1 or parts[-2].lower() == "pg_temp"):
            parts = [own]
        return self.access.find(parts, position, self.caller.database)

    def planner(self, functions: Sequence[Function] = ()) -> Any:
        """A cursor to check statements with, which knows the types of users' functions."""
        return self._shared.instances.planner(functions)

    def borrow(self) -> Lease:
        """An instance of DuckDB for a query."""
        lease = self._shared.instances.borrow(lambda: self.running.is_cancelled, self.zone.duckdb)
        lease.calls.numbers = self.numbers
        lease.functions.is_cancelled, lease.functions.note = lambda: self.running.is_cancelled, self.running.note
        self.running.hold(lease)
        return lease

    def release(self, lease: Lease) -> None:
        """Give it back."""
        self.running.release(lease)

    def datasets(
        self, inputs: Sequence[Input], memory: Mapping[str, pa.Table], chosen: Mapping[str, Choice] = NO_CHOICE
    ) -> list[tuple[str, Any]]:  # fmt: skip
        """The data for each input, as DuckDB scans it."""
        self._catch_up(inputs)
        return self.access.datasets(inputs, self.buffer, memory, chosen)

    def point(self, plan: QueryPlan, values: Sequence[Any]) -> pa.Table | None:
        """The rows that a query for one key needs; None if it needs others, or the table is not in memory."""
        if plan.point is None:
            return None
        key = plan.point.key(values)
        relation = plan.inputs[0].relation
        if key is None or not isinstance(relation, TopicRelation):
            return None
        self._catch_up(plan.inputs)
        return self.access.point(relation, plan.inputs[0].schema.names, key)

    def _catch_up(self, inputs: Sequence[Input]) -> None:
        """Let views and streams have what the session wrote, if it wants that."""
        names = {each.relation.topic for each in inputs if isinstance(each.relation, TopicRelation) and each.relation.has_job}
        if self.access.writes and names and self.settings.get("read_your_writes") == "on":
            self.catching_up.before_reading(names)

    def _must_catch_up(self, view: str) -> bool:
        return self.settings.get("read_your_writes") == "on" and not self.catching_up.is_done(view)

    def check_writable(self, name: str | None = None) -> None:
        if self.settings.is_read_only and (name is None or name not in self.temporary.values()):
            raise SqlError(states.READ_ONLY, "the statement cannot write: the transaction is read-only")

    def change(self, relation: TopicRelation, action: Callable[[], R]) -> R:
        """Run a statement that changes rows of a relation: again, if another session has changed one of them since the statement read it.

        The rows stay locked until they are written: to the end of the statement, or of the transaction. Raises SqlError.
        """
        if self._is_changing:
            return action()
        self._is_changing = True
        try:
            while True:
                self._locks.look()
                self._see_others(relation.topic)
                try:
                    return action()
                except _RowsChanged:
                    self.running.check()
        finally:
            self._is_changing = False
            if self._state == "I":
                self._locks.release(changed=True)

    def _see_others(self, topic: str) -> None:
        """Let the next snapshot of a topic have what other sessions wrote."""
        topic_id = self.access.topic_id(topic)
        if topic_id is not None:
            self.access.must_see(topic, self._shared.locks.ends((topic, topic_id)))

    def lock(self, topic: str, names: Iterable[Hashable] | None, *, waits: bool = True) -> bool:
        """Keep other sessions from changing rows, within `change`. Whether one of them may have changed since the statement began.

        Args:
            names: the keys of records, or values of UNIQUE constraints; None for the whole topic.
            waits: whether it waits for other sessions, rather than to fail with 55P03.

        Raises:
            SqlError: 40P01, 55P03, 57014.
        """
        assert self._is_changing
        longest_s = self.settings.milliseconds("lock_timeout") / 1000 or None
        is_newer = self._locks.take(topic, names, self.running.check, longest_s if waits else 0)
        if is_newer:
            self._see_others(topic)
        return is_newer

    def lock_rows(self, relation: TopicRelation, *parts: pa.Table, waits: bool = True) -> None:
        """Keep other sessions from changing rows that the statement has read, within `change`; the statement runs again if they did."""
        if not (self._is_changing and relation.is_keyed):
            return
        named = [each for each in parts if not relation.has_row_names or ROW in each.schema.names]
        count = sum(each.num_rows for each in named)
        keys = (key for each in named for key in keys_of(relation, each) if key is not None)
        if count and self.lock(relation.topic, None if count > limits.MAX_SQL_ROW_LOCKS else keys, waits=waits):
            raise _RowsChanged

    def write(self, relation: TopicRelation, rows: pa.Table, *, deleted: bool = False) -> None:
        """Write rows, or their deletions: now, or at the end of the transaction. Raises SqlError, KafkaError, ClientError."""
        self.check_writable(relation.name)
        if not rows.num_rows:
            return
        self.lock_rows(relation, rows)
        if self._state == "T":
            self.buffer.add(relation, rows, deleted=deleted)
        else:
            self.send([(relation.topic, records_of(relation, rows, deleted))])

    def write_all(self, relation: TopicRelation, rows: pa.Table, deleted: pa.Table) -> None:
        """Write rows and deletions together. Raises SqlError, KafkaError, ClientError."""
        self.check_writable(relation.name)
        self.lock_rows(relation, rows, deleted)
        if self._state == "T":
            self.write(relation, rows)
            self.write(relation, deleted, deleted=True)
        elif rows.num_rows or deleted.num_rows:
            self.send([(relation.topic, [*records_of(relation, rows), *records_of(relation, deleted, True)])])

    def send(self, records: Iterable[Records]) -> None:
        """Write records, all or none."""
        self.running.check()
        self._wrote(self.producers.write(records))

    def _wrote(self, ends: Mapping[TopicPartition, int]) -> None:
        for (topic, partition), end in ends.items():
            self.access.wrote(topic, {partition: end})
            topic_id = self.access.topic_id(topic)
            if topic_id is not None and not self._locks.is_empty:
                self._shared.locks.wrote((topic, topic_id), {partition: end})

    def send_one(self, topic: str, key: bytes | None, value: bytes) -> None:
        """Write one record at once, outside of a transaction. Raises SqlError, KafkaError, ClientError."""
        self.running.check()
        self._wrote(self.producers.write_one(topic, key, value))

    def tell_time(self) -> None:
        """Write the time into the topic of the clock of views. Raises KafkaError, ClientError."""
        make_topic(self.client)
        self.send_one(CLOCK, None, record(dt.datetime.now(dt.UTC)))

    def existing(self, relation: TopicRelation, keys: Sequence[bytes]) -> set[bytes]:
        """Those of the keys that a row has, the open transaction's rows among them."""
        own = self.buffer.keys(relation.name)
        unknown = [key for key in keys if key not in own]
        found = self.access.existing(relation, unknown) if unknown else set()
        return found.union(key for key in keys if own.get(key))

    def begin(self) -> None:
        """Open a transaction."""
        self._state = "T"
        self.settings.begin_transaction()

    def commit(self) -> bool:
        """Write the transaction's rows; False if it had failed, and nothing was written. Raises SqlError, KafkaError, ClientError."""
        failed = self._state == "E"
        is_written = False
        try:
            if not failed and self.buffer:
                self.send(self.buffer.records())
            is_written = not failed
        finally:
            self._end(is_committed=is_written)
        return not failed

    def rollback(self) -> None:
        """Forget the transaction's rows, and the settings that it changed."""
        self._end(is_committed=False)

    def _end(self, *, is_committed: bool) -> None:
        self.buffer.clear()
        self._locks.release(changed=True)
        self.settings.end_transaction(is_committed=is_committed)
        self._state = "I"

    def recover(self) -> None:
        """A transaction that failed goes on: it went back to a savepoint."""
        self._state = "T"

    def translated(self, error: Exception, text: str) -> SqlError:
        """An error of DuckDB or of the cluster as a `SqlError`."""
        if isinstance(error, SqlError):
            return error
        if self.running.is_cancelled:
            return self.running.error()
        cause = self.running.fault or _cause(error)
        if cause is not None:
            return states.of_failure(cause)
        if isinstance(error, (duckdb.Error, OSError, RuntimeError, pa.ArrowException)):
            found = states.of_duckdb(error, text)
            found.message = self.functions.readable(found.message)
            return found
        return SqlError(states.INTERNAL, f"{type(error).__name__}: {error}")


class _RowsChanged(Exception):
    """Another session has changed a row since the statement read it."""


def _cause(error: BaseException | None) -> BarnabasError | None:
    """The error of barnabas that a library has wrapped."""
    for _ in range(10):
        if error is None or isinstance(error, BarnabasError):
            return error
        error = error.__cause__ or error.__context__
    return None
