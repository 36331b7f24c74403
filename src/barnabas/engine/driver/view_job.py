"""The job of a view or an insert: one streaming query of Spark, whose micro-batches change the view, or append rows.

Spark plans the micro-batches, keeps their offsets in the checkpoint, reads the records, and repeats the last micro-batch after a failure.
The driver reads small micro-batches itself, by the reader of Spark's tasks (`small_batches.py`).
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

from barnabas.engine.driver.appended import Appended
from barnabas.engine.driver.kept_view import KeptView
from barnabas.engine.driver.reasons import reason_of_view
from barnabas.engine.driver.small_batches import SmallBatches, StreamOffset, offsets_of
from barnabas.pipelines.offsets import from_stream_offset

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

# Queries start one after the other: Spark changes the environment of a Python source while it plans, and cannot serialize the tasks of
# another query at that moment ("Illegal size 5 of collection, expected 6").
_starting = threading.Lock()
PLAN_S = 5.0
IDLE = "Waiting for"  # the beginning of a query's status when there is nothing to read
IDLE_WAIT_MS = 2_000  # an idle job asks so often; records end the wait
NO_RECORDS = pa.table({})


class ViewJob:
    """Runs one view or insert.

    Args:
        settings: of the client, with `bootstrap.servers`.
        folder: of this generation: Spark's checkpoint lies in it, beside the state.
    """

    def __init__(
        self, spark: SparkSession, view: KeptView | Appended, settings: Mapping[str, str], folder: Path, log: logging.Logger
    ) -> None:  # fmt: skip
        self._spark, self._view, self._settings, self._folder, self._log = spark, view, dict(settings), folder, log
        self._name = view.job.name
        self._error: BaseException | None = None  # that ended the query, as it was raised
        self._query: StreamingQuery | None = None
        self._took = False
        self._small: SmallBatches | None = None

    def _source_options(self) -> dict[str, str]:
        view = self._view
        return {
            "subscribe": ",".join(view.topics),
            "startingOffsets": view.starting_offsets,
            "maxOffsetsPerTrigger": str(view.work.most_rows),
            "includeHeaders": str(view.uses_headers).lower(),
            "commitOffsets": "false",
            "waitForRecordsMs": str(IDLE_WAIT_MS),
            **{f"kafka.{name}": value for name, value in self._settings.items()},
        }

    def start(self) -> StreamingQuery:
        """Begin, or go on. Raises what `KeptView.begin` does, and Spark's errors."""
        view = self._view
        view.begin()
        options = self._source_options()
        self._small = SmallBatches(options)
        self._spark.sparkContext.setLocalProperty("spark.scheduler.pool", view.job.pool or f"job-{self._name}")
        stream = self._spark.readStream.format("barnabas").options(**options).load()
        writer = stream.writeStream.queryName(self._name).option("checkpointLocation", str(self._folder / "checkpoint"))
        with _starting:
            self._query = writer.foreachBatch(self._micro_batch).start()
            self._wait_for_plan(self._query)
        return self._query

    def _wait_for_plan(self, query: StreamingQuery) -> None:
        """Wait until the query has planned its first micro-batch, or has found none."""
        deadline_s = time.monotonic() + PLAN_S
        while query.isActive and time.monotonic() < deadline_s:
            if query.lastProgress is not None or query.status["message"].startswith(IDLE):
                return
            time.sleep(0.05)

    def _micro_batch(self, frame: DataFrame, batch: int) -> None:
        try:
            number = batch + 1
            start, end = self._planned()
            records = NO_RECORDS if self._view.has(number) else self._records(frame, start, end)
            self._view.take(number, records, _by_topic(end))
            self._took = True
        except BaseException as error:
            self._error = error
            self._log.error("event=batch-failed number=%d error=%r", batch + 1, reason_of_view(error, self._name))
            raise

    def _records(self, frame: DataFrame, start: StreamOffset, end: StreamOffset) -> pa.Table:
        assert self._small is not None
        small = self._small.read(start, end)
        return frame.toArrow() if small is None else small

    def _planned(self) -> tuple[StreamOffset, StreamOffset]:
        """The offsets before and behind the running micro-batch, as Spark has planned it; before the first one there are none."""
        query = self._query or next(each for each in self._spark.streams.active if each.name == self._name)
        execution = query._jsq.streamingQuery()
        return offsets_of(execution.committedOffsets()), offsets_of(execution.availableOffsets())

    def has_settled(self) -> bool:
        """Whether a micro-batch was taken since the start, or there is nothing to take."""
        query = self._query
        return self._took or (query is not None and query.status["message"].startswith(IDLE))

    def failure(self) -> str | None:
        """Why the query has ended, in one line; None while it runs."""
        if self._query is None or self._query.isActive:
            return None
        error = self._error or self._query.exception()
        return "the query ended" if error is None else reason_of_view(error, self._name)

    def stop(self) -> None:
        """End the query after its micro-batch, and release the state."""
        if self._query is not None:
            self._query.stop()
        if self._small is not None:
            self._small.close()
        self._view.close()


def _by_topic(offsets: StreamOffset) -> dict[str, dict[int, int]]:
    found: dict[str, dict[int, int]] = {}
    for (topic, partition), end in from_stream_offset(offsets)[0].items():
        found.setdefault(topic, {})[partition] = end
    return found
