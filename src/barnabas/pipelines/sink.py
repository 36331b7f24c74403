"""The writer classes that Spark calls, for batch and stream; they only call `writing` and `exactly_once`.

The processes of the calls:
    in the driver's process, before the tasks: the constructor, and `__getstate__`, since the tasks get the pickled object
    in the tasks: `write`
    in another process of the driver, after the tasks: the constructor, then `commit` or `abort`

Ugly: Spark creates a stream's writer for the tasks and another one for `commit` and `abort`, and both look the same. It pickles
only the one for the tasks, so the pickling prepares the sink; the constructor only checks.
"""

from __future__ import annotations

import logging
import pickle
import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from pyspark.sql.datasource import DataSourceArrowWriter, DataSourceStreamArrowWriter, WriterCommitMessage
from pyspark.taskcontext import TaskContext

from barnabas.client import operations
from barnabas.errors import BarnabasError
from barnabas.pipelines.clients import borrowed_client
from barnabas.pipelines.exactly_once import protocol
from barnabas.pipelines.exactly_once.protocol import Handout, Wrote
from barnabas.pipelines.exactly_once.state import UNNUMBERED
from barnabas.pipelines.sink_options import SinkOptions, sink_options

if TYPE_CHECKING:
    from pyarrow import RecordBatch
    from pyspark.sql.types import StructType

    from barnabas.client.blocking import BlockingClient
    from barnabas.client.config import ClientConfig
    from barnabas.pipelines.writing import Attempt

logger = logging.getLogger(__name__)

R = TypeVar("R")
BATCH_ID, QUERY_ID = (
    "streaming.sql.batchId",
    "sql.streaming.queryId",
)  # local properties of Spark for the tasks of a stream
NO_TWO_PHASE = (
    "the brokers have no two-phase commit (transaction.two.phase.commit.enable): if a driver of this sink is "
    "killed, it must restart within kafka.transaction.timeout.ms, else its decided batch is "
    "written again and a part of it may be in the topics twice"
)
IS_THERE = "its rows are in the topics already, as after a restart: this task writes none"
_asked: set[tuple[ClientConfig, str]] = set()  # sinks whose two-phase commit this process has already checked


@dataclass
class Written(WriterCommitMessage):
    """The result of a task; exactly-once sinks set `wrote`."""

    rows: int
    wrote: Wrote | None = None


class NotPrepared(BarnabasError, pickle.PickleError):
    """The sink cannot be written now. It is a PickleError, because it is raised while Spark pickles the writer, and Spark hides
    all other errors there."""

    def __init__(self, sink: str, reason: str) -> None:
        super().__init__(sink, reason)
        self.sink, self.reason = sink, reason

    def __str__(self) -> str:
        return f"the sink '{self.sink}' could not be prepared: {self.reason}"


class _Writer:
    """The common part of both writers."""

    def __init__(self, options: SinkOptions) -> None:
        self._options = options
        self._handout: Handout | None = None

    def __getstate__(self) -> dict[str, Any]:
        self.prepare()
        return self.__dict__.copy()

    def prepare(self) -> Handout | None:
        """Become the owner of the sink, unless a handout is there; returns the handout. Raises NotPrepared."""
        if self._options.name is not None and self._handout is None:
            try:
                self._handout = self._run(protocol.prepare(self._options.name))
                self._warn_of_timeouts(self._options.name)
            except BarnabasError as error:
                raise NotPrepared(self._options.name, str(error)) from error
        return self._handout

    def _warn_of_timeouts(self, name: str) -> None:
        """Log a warning, once in a process: Spark reuses the process for later batches."""
        sink = self._options.task.client, name
        if sink in _asked:
            return
        if not self._run(protocol.has_two_phase(name)):
            timeout_ms = self._options.task.transaction_timeout_ms
            logger.warning("event=no-two-phase-commit sink=%r transaction_timeout_ms=%d note=%r", name, timeout_ms, NO_TWO_PHASE)
        _asked.add(sink)

    def check_topic(self) -> None:
        """Raises PartitionError if the topic of the options does not exist, and brokers do not create it."""
        topic = self._options.task.topic
        if topic is not None:
            with borrowed_client(self._options.task.client) as client:
                creates = self._options.task.creates_topics
                client.run(operations.topics_to_write(client.config, client.cluster, [topic], creates=creates))

    def _run(self, steps: protocol.Steps[R]) -> R:
        """Run a driver's part of the protocol."""
        with borrowed_client(self._options.task.client) as client:
            return self._carry(client, steps)

    def _carry(self, client: BlockingClient, steps: protocol.Steps[R]) -> R:
        from barnabas.pipelines.exactly_once.executor import InstructionExecutor

        assert self._options.name is not None
        return InstructionExecutor(client, self._options.name, self._options.task.transaction_timeout_ms).run(steps)

    def _write(self, batches: Iterator[RecordBatch], query: str, batch: int) -> Written:
        from barnabas.pipelines.writing import open_idempotent, write_batches

        handout = self._handout
        if handout is None:
            return Written(write_batches(self._options.task, batches, open_idempotent(self._options.task))[0])
        if protocol.is_written(handout, query, batch):
            logger.warning("event=batch-not-repeated sink=%r query=%r batch=%d note=%r", handout.sink, query, batch, IS_THERE)
            for _ in batches:
                pass  # Spark saves the state of a stateful query only after all rows were consumed; otherwise the query fails
            return Written(0, Wrote(handout, query, batch))
        rows, attempt = write_batches(self._options.task, batches, lambda client: self._open(client, handout))
        claims = {}
        if attempt is not None:
            assert attempt.transactional_id is not None
            assert attempt.owner is not None
            claims = {attempt.transactional_id: attempt.owner}
        return Written(rows, Wrote(handout, query, batch, rows, claims))

    def _open(self, client: BlockingClient, handout: Handout) -> Attempt:
        from barnabas.pipelines.writing import Attempt

        task = TaskContext.get()
        slot = 0 if task is None else task.partitionId()
        place = self._carry(client, protocol.attempt(handout, slot, uuid.uuid4().hex))
        return Attempt(place.owner, place.transactional_id)

    def hand_out(self, kept: Handout | None) -> None:
        """Use the handout from the commit of the previous batch, so that no preparation is necessary."""
        self._handout = kept

    def decide(self, messages: Sequence[WriterCommitMessage | None]) -> Handout | None:
        """Commit; returns the handout for the next batch in this process."""
        if self._options.name is None:
            return None
        return self._run(protocol.commit([each.wrote for each in messages if isinstance(each, Written) and each.wrote]))

    def _abort(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        if self._options.name is not None:
            wrote = [each.wrote for each in messages if isinstance(each, Written) and each.wrote]
            self._run(protocol.recover(self._options.name, wrote[0].handout.token if wrote else None))

    def undo(self) -> None:
        """After a failure, in the process that pickled this writer: abort the transactions of tasks, unless another driver owns
        the sink now."""
        if self._handout is not None:
            self._run(protocol.recover(self._handout.sink, self._handout.token))


def _columns(schema: StructType) -> dict[str, str]:
    return {field.name: field.dataType.simpleString() for field in schema.fields}


class BatchWriter(_Writer, DataSourceArrowWriter):
    """`df.write.format("barnabas")`."""

    def __init__(self, options: Mapping[str, str], schema: StructType) -> None:
        super().__init__(sink_options(options, _columns(schema), streaming=False))

    def write(self, iterator: Iterator[RecordBatch]) -> Written:  # type: ignore[override]  # Spark narrows the types too
        batch = self._options.batch_id
        return self._write(iterator, "", UNNUMBERED if batch is None else batch)

    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        self.decide(messages)

    def abort(self, messages: list[WriterCommitMessage | None]) -> None:
        self._abort(messages)


class StreamWriter(_Writer, DataSourceStreamArrowWriter):
    """`df.writeStream.format("barnabas")`."""

    def __init__(self, options: Mapping[str, str], schema: StructType) -> None:
        super().__init__(sink_options(options, _columns(schema), streaming=True))

    def write(self, iterator: Iterator[RecordBatch]) -> Written:  # type: ignore[override]  # Spark narrows the types too
        task = TaskContext.get()
        assert task is not None
        query, batch = task.getLocalProperty(QUERY_ID), task.getLocalProperty(BATCH_ID)
        assert query is not None
        assert batch is not None
        return self._write(iterator, query, int(batch))

    def write_here(self, batches: Iterator[RecordBatch], query: str, batch: int) -> Written:
        """Write a micro-batch in this process, outside of Spark's tasks, after `prepare`; `decide` takes the result."""
        return self._write(batches, query, batch)

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:
        self.decide(messages)

    def abort(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:
        self._abort(messages)
