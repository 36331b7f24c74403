"""`write_stream`: streams to topics in every output mode of Spark, including `update`, exactly once.

Spark does not offer the update mode to Python sinks: it refuses `writeStream.format("barnabas").outputMode("update")` before it
calls barnabas. So a function in the driver receives each micro-batch (`foreachBatch`), and tasks write it like the tasks of the
stream sink.

How it works
    The function prepares the sink, runs `StreamWriter.write` over the partitions of the micro-batch, and decides the result.
    These are the steps of the stream sink, by the same protocol, but all in the driver's own process. Spark's own writer of a
    DataFrame would start a process to plan each micro-batch. The result of a task is a row of the job's result, from the
    attempt that Spark accepted. Since one process prepares and commits, it prepares the sink only for the first batch, after a
    failure and after a pause. Otherwise the commit of the previous batch returned the handout.

Rules
  1. The name of the sink, the number of the batch and the id of the query are those of the stream sink: a query may change from
     one to the other and continue from its checkpoint.
  2. Options, columns and topic are checked before the query starts.
  3. An error has only a few lines. When a query is stopped, Spark searches the error text for an interruption, with a pattern
     that overflows the thread's stack if the text is long. The error of a stop contains the words that this pattern matches.
"""

from __future__ import annotations

import logging
import pickle
import time
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from pyspark.sql.streaming.readwriter import DataStreamWriter
from pyspark.sql.types import BinaryType, StructType

from barnabas.errors import BarnabasError
from barnabas.pipelines.exactly_once.protocol import Handout
from barnabas.pipelines.offsets import OptionError
from barnabas.pipelines.sink import StreamWriter

if TYPE_CHECKING:
    from pyarrow import RecordBatch
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.query import StreamingQuery

logger = logging.getLogger(__name__)
FORMAT = "barnabas"
MESSAGE = "message"
# schema of a task's result; binary, because the JVM would parse the schema's text for each micro-batch
RESULT = StructType().add(MESSAGE, BinaryType())
KEPT_S = 60.0  # lifetime of a prepared handout; coordinators forget unused ids only after a week
CHECKPOINT = "checkpointlocation"
MOST_REASON = 2_000  # characters of an error message sent to Spark
CANCELLED = ("SPARK_JOB_CANCELLED", "InterruptedException")
STOPPED = (
    "py4j.protocol.Py4JJavaError: An error occurred while calling the tasks of a micro-batch: java.lang.InterruptedException"
)


class TopicStreamWriter(DataStreamWriter):
    """Spark's `DataStreamWriter` whose rows go to topics; takes the options of `format("barnabas")`."""

    def __init__(self, frame: DataFrame) -> None:
        if not hasattr(frame, "_jdf"):
            raise OptionError("write_stream needs a classic session: Spark Connect does not run functions for micro-batches here")
        if not frame.isStreaming:
            raise OptionError("write_stream takes a streaming DataFrame; write others by frame.write.format('barnabas')")
        super().__init__(frame)
        self._frame = frame
        self._options: dict[str, str] = {}

    def format(self, source: str) -> TopicStreamWriter:
        """Exists for programs that call it; there is only one format."""
        if source.lower() != FORMAT:
            raise OptionError(f"write_stream writes topics only; use frame.writeStream for format '{source}'")
        return self

    def option(self, key: str, value: Any) -> TopicStreamWriter:
        super().option(key, value)
        if value is not None:
            self._options[key] = str(value).lower() if isinstance(value, bool) else str(value)
        return self

    def options(self, **options: Any) -> TopicStreamWriter:
        for key, value in options.items():
            self.option(key, value)
        return self

    def start(
        self,
        path: str | None = None,
        format: str | None = None,  # noqa: A002 - Spark's name of the parameter
        outputMode: str | None = None,
        partitionBy: str | list[str] | None = None,
        queryName: str | None = None,
        **options: Any,
    ) -> StreamingQuery:
        """Check the options, columns and topic, and start the query.

        Raises:
            OptionError: wrong options or columns, with the message of the stream sink.
            PartitionError: the topic does not exist, and brokers do not create it.
        """
        if format is not None:
            self.format(format)
        self.options(**options)
        batches = MicroBatches(_with_whole_path(self._frame, self._options), self._frame.schema)
        batches.check()
        self.foreachBatch(batches)
        return super().start(path, None, outputMode, partitionBy, queryName)


def _with_whole_path(frame: DataFrame, options: Mapping[str, str]) -> dict[str, str]:
    """`options` with the checkpoint's absolute path if it is relative and on this machine.

    It is relative to the folder in which Spark was started. This process may have changed its folder, or may change it while
    the query runs.
    """
    found = dict(options)
    name = next((each for each in found if each.lower() == CHECKPOINT), None)
    if name is not None and found[name].strip() and not found[name].strip().startswith("/"):
        context = frame.sparkSession.sparkContext
        assert context._jvm is not None
        path = context._jvm.org.apache.hadoop.fs.Path(found[name].strip())
        whole = path.getFileSystem(context._jsc.hadoopConfiguration()).makeQualified(path).toString()
        if whole.startswith("file:"):
            found[name] = whole
    return found


class MicroBatches:
    """Writes one micro-batch after the other."""

    def __init__(self, options: Mapping[str, str], schema: StructType) -> None:
        self._options, self._schema = options, schema
        self._kept: Handout | None = None
        self._kept_since_s = 0.0  # time on the monotonic clock

    def check(self) -> None:
        self._writer().check_topic()

    def _writer(self) -> StreamWriter:
        return StreamWriter(self._options, self._schema)

    def __call__(self, frame: DataFrame, batch: int) -> None:
        """Write a micro-batch; Spark calls it.

        Raises:
            MicroBatchFailed: the batch is not decided, or the next start of the query completes its decision.
        """
        writer = self._begin()
        try:
            tasks = frame.mapInArrow(Task(writer), RESULT)  # pickling the writer prepares the sink
            rows = tasks.collect()
            self._keep(writer.decide([pickle.loads(row[0]) for row in rows]))
        except Exception as error:  # noqa: BLE001 - any error undoes the batch
            self._undo(writer, batch)
            raise MicroBatchFailed(str(error)) from None

    def write_here(self, batches: Iterator[RecordBatch], query: str, batch: int) -> None:
        """Write a micro-batch from this process, without a job of Spark: for few rows, which the driver has.

        Args:
            query: an id that is the same after a restart.

        Raises:
            MicroBatchFailed: as a call does.
        """
        writer = self._begin()
        try:
            writer.prepare()
            self._keep(writer.decide([writer.write_here(batches, query, batch)]))
        except Exception as error:  # noqa: BLE001 - any error undoes the batch
            self._undo(writer, batch)
            raise MicroBatchFailed(str(error)) from None

    def recover(self, query: str) -> int | None:
        """Complete what an earlier process decided, and undo what it did not; returns the last batch of a query that is in the topics.

        Raises:
            MicroBatchFailed: the sink cannot be written now.
        """
        writer = self._writer()
        try:
            handout = writer.prepare()
        except BarnabasError as error:
            raise MicroBatchFailed(str(error)) from None
        self._keep(handout)
        return None if handout is None else handout.state.decided.get(query)

    def _begin(self) -> StreamWriter:
        writer = self._writer()
        kept, self._kept = self._kept, None
        if time.monotonic() < self._kept_since_s + KEPT_S:
            writer.hand_out(kept)
        return writer

    def _keep(self, handout: Handout | None) -> None:
        self._kept, self._kept_since_s = handout, time.monotonic()

    def _undo(self, writer: StreamWriter, batch: int) -> None:
        """Abort the batch; if this fails, the next start of the query aborts it."""
        try:
            writer.undo()
        except (BarnabasError, OSError) as error:
            logger.warning(
                "event=batch-not-undone batch=%d error=%r note='the next start of the query does it'", batch, str(error)
            )


class MicroBatchFailed(BarnabasError):
    """A micro-batch was not written because of an error in a task or in the driver."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason

    def __str__(self) -> str:
        if any(word in self.reason for word in CANCELLED):
            return STOPPED
        return (
            self.reason
            if len(self.reason) <= MOST_REASON
            else f"{self.reason[: MOST_REASON // 2]}\n…\n{self.reason[-MOST_REASON // 2 :]}"
        )


class Task:
    """The function that runs over a partition of the micro-batch."""

    def __init__(self, writer: StreamWriter) -> None:
        self._writer = writer

    def __call__(self, batches: Iterator[RecordBatch]) -> Iterator[RecordBatch]:
        import pyarrow as pa

        yield pa.record_batch([pa.array([pickle.dumps(self._writer.write(batches))])], names=[MESSAGE])
