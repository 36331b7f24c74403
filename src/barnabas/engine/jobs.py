"""Jobs, their states and their progress, as records of compacted topics have them. The key of each record is the job's name.

    _barnabas_jobs             what should run: written by `CREATE MATERIALIZED VIEW`, `barnabas job …` and other callers
    _barnabas_job_states       what became of it: written by the engine that runs it
    _barnabas_job_progress     how far it has come: written with the rows of each micro-batch, in the same transaction
    _barnabas_job_assignments  which engine runs a task of a connector: written by the active engine

Rules
  1. The engine converges to the jobs. A job with another `generation` starts from nothing, and the state of the old one is removed; a job
     with another `restarts` starts again from its state.
  2. A record is JSON; fields that a version does not know are ignored.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Any, Literal, TypeVar

import msgspec
from msgspec import Struct

from barnabas.errors import BarnabasError
from barnabas.incremental.plan import Plan

JOBS, STATES, PROGRESS = "_barnabas_jobs", "_barnabas_job_states", "_barnabas_job_progress"
ASSIGNMENTS = "_barnabas_job_assignments"
T = TypeVar("T")


class Desired(StrEnum):
    """The wish for a job."""

    RUNNING = "running"
    PAUSED = "paused"


class State(StrEnum):
    """The present activity of a job."""

    STARTING = "starting"
    RUNNING = "running"
    PAUSED = "paused"
    WAITING = "waiting"  # it failed, and starts again at `next_try_ms`
    FAILED = "failed"  # it failed, and starts again only on request
    COMPLETED = "completed"  # a pipeline that has ended


class InputTable(Struct, frozen=True):
    """A table that a view reads, in the words of `tables.declared.columns_of`.

    Args:
        columns, key: declarations such as `id bigint, name text`; None: the format's own.
        is_keyed: whether a record replaces the one with the same key.
        names: the columns that the plan reads, in the order of its node.
        renamed: the format's names of columns that the plan names otherwise.
        skips_deletions: whether records without a key or a value are left out.
    """

    topic: str
    format: str
    names: tuple[str, ...]
    columns: str | None = None
    key: str | None = None
    mode: str = "permissive"
    is_keyed: bool = False
    renamed: Mapping[str, str] = {}
    skips_deletions: bool = False


class ViewWork(Struct, frozen=True, tag="view"):
    """Keeps the result of a query in a compacted topic.

    Args:
        sql: the query, for people.
        tables: by the names of the plan's inputs.
        topic: of the result; it exists.
        key: a declaration of the columns of the record's key, as `columns_of` takes it.
        columns: a declaration of the columns of the record's value.
        schema_id: of the schema in the registry that values are written with; 0: they are JSON.
        most_rows: of one micro-batch.
    """

    sql: str
    plan: Plan
    tables: Mapping[str, InputTable]
    topic: str
    key: str
    columns: str
    most_rows: int = 500_000
    schema_id: int = 0


class InsertWork(Struct, frozen=True, tag="insert"):
    """Writes the rows that a query makes of the records of streams. No row that it wrote is taken back.

    Args:
        sql: the statement, for people.
        plan: of rows that can be appended (`incremental.append_only`).
        tables: by the names of the plan's inputs.
        target: the topic that gets the rows, which exists, and the form of its records. Its names are the plan's columns.
        required: columns that are never null.
        creates: the stream that was created with the job, and that it ends with; None if there is none.
        start: by topic and partition (as text) the offsets at which streams begin; others begin with all that is there.
        most_rows: of one micro-batch.
    """

    sql: str
    plan: Plan
    tables: Mapping[str, InputTable]
    target: InputTable
    required: tuple[str, ...] = ()
    creates: str | None = None
    start: Mapping[str, Mapping[str, int]] = {}
    most_rows: int = 100_000

    @property
    def topic(self) -> str:
        """The topic that gets the rows."""
        return self.target.topic


STREAMING = ViewWork, InsertWork  # queries over topics


class ConnectorWork(Struct, frozen=True, tag="connector"):
    """Runs one task of a connector.

    Args:
        connector: its name.
        task, tasks: the number of this task, from 0, and how many there are.
        plugin: class name of the source or sink.
        config: of the task, with the keys of the connector. References to config providers are not resolved.
        worker: settings of the Connect workers that the task needs, such as `key.converter` and `offset.storage.topic`.
        needs_spark: whether the class works with a Spark session.
    """

    connector: str
    task: int
    tasks: int
    kind: Literal["source", "sink"]
    plugin: str
    config: Mapping[str, str]
    worker: Mapping[str, str] = {}
    needs_spark: bool = False


DRIVEN = *STREAMING, ConnectorWork  # works that a loop of jobs runs, in the driver or in a runner


class PipelineWork(Struct, frozen=True, tag="pipeline"):
    """Runs a script or a project, as `barnabas pipeline run` does.

    Args:
        target: path of the script or of the project's specification, on the machine of the engine.
        every_s: seconds between two updates of a project; None: one update.
    """

    target: str
    arguments: tuple[str, ...] = ()
    every_s: float | None = None


class Job(Struct, frozen=True):
    """A job.

    Args:
        generation: grows when the job must start from nothing.
        restarts: grows when somebody asks for a restart.
        pool: Spark's scheduling pool; jobs of one pool share its part of the cores. None: one of its own.
        conf: Spark settings of its own, for pipelines.
    """

    name: str
    work: ViewWork | InsertWork | PipelineWork | ConnectorWork

    @property
    def kind(self) -> str:
        """The kind of its work, in a word."""
        match self.work:
            case ViewWork():
                return "view"
            case InsertWork(creates=creates):
                return "insert" if creates is None else "stream"
            case ConnectorWork():
                return "connector"
        return "pipeline"

    desired: Desired = Desired.RUNNING
    generation: int = 0
    restarts: int = 0
    pool: str | None = None
    conf: Mapping[str, str] = {}
    created_ms: int = 0

    @property
    def is_shared(self) -> bool:
        """Whether any engine of the cluster may run it. The active engine runs the others."""
        return isinstance(self.work, ConnectorWork) and not self.work.needs_spark


class JobState(Struct, frozen=True):
    """The state of a job.

    Args:
        since_ms: since when, in milliseconds since the epoch.
        tries: failed starts in a row.
        error: the last one, in one line; it stays until the job runs again.
        next_try_ms: for a waiting job.
        worker: for a task of a connector, the id of the engine that runs it, or may still run it; None: no engine does.
        url: of the HTTP interface of this engine, which has the log.
        worker_id: of this engine, as Kafka Connect writes it: host and port.
    """

    name: str
    generation: int
    restarts: int
    state: State
    since_ms: int
    tries: int = 0
    error: str | None = None
    next_try_ms: int | None = None
    worker: str | None = None
    url: str | None = None
    worker_id: str | None = None


class Assignment(Struct, frozen=True):
    """The engine that runs a task of a connector.

    Args:
        worker: its id in the group of the engines.
    """

    name: str
    worker: str


class JobProgress(Struct, frozen=True):
    """How far a job has come.

    Args:
        batch: number of the last micro-batch.
        offsets: by topic and partition (as text) the next offset that it reads.
        rows_in, rows_out: of the last micro-batch; `total_in`, `total_out` since the generation began.
        state_rows, state_bytes: that it keeps.
        took_ms: of the last micro-batch, from its planning to its last write.
        at_ms: when it was written, in milliseconds since the epoch.
        lag: records behind the ends of the topics, for a pipeline; None for a view, whose offsets say it.
        late_rows: that came behind a watermark and were dropped, since the generation began.
        topics: that a task of a connector has read or written.
    """

    name: str
    generation: int
    batch: int
    offsets: Mapping[str, Mapping[str, int]]
    rows_in: int = 0
    rows_out: int = 0
    total_in: int = 0
    total_out: int = 0
    state_rows: int = 0
    state_bytes: int = 0
    took_ms: float = 0.0
    at_ms: int = 0
    lag: int | None = None
    late_rows: int = 0
    topics: tuple[str, ...] = ()


class BadRecord(BarnabasError):
    """A record of a job topic that this version cannot read."""


# made at import: msgspec may end the process when two threads decode a type for the first time at once
_DECODERS: Mapping[type, msgspec.json.Decoder[Any]] = {
    each: msgspec.json.Decoder(each) for each in (Job, JobState, JobProgress, Assignment)
}


def encode(record: Job | JobState | JobProgress | Assignment) -> bytes:
    """The value of its record."""
    return msgspec.json.encode(record)


def decode(payload: bytes, kind: type[T]) -> T:
    """Raises BadRecord."""
    try:
        found: T = _DECODERS[kind].decode(payload)
        return found
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise BadRecord(str(error)) from None
