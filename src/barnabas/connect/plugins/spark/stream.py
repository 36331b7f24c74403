"""A stream of Spark as a source, exactly once.

Rules
  1. Spark's checkpoint says which rows the micro-batch with a number has, and gives them again after a failure.
  2. The connector's offset has the number of the last micro-batch whose rows are in the log, and the id that the checkpoint gives the
     query. It is in one transaction with the rows.
  3. Spark marks a micro-batch as done only after its rows are in the log. One that is in the log already is left out.
  4. With another checkpoint the numbers mean other rows. Then the task fails.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from barnabas.connect.api import Batch, Offset
from barnabas.connect.errors import ConnectError
from barnabas.connect.plugins.spark.settings import Settings
from barnabas.connect.runtime.frames import batches_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

QUERY, BATCH = "query", "batch"  # of an offset
MOST_WAITING = 2
LOOK_S = 0.2


class Ended(ConnectError):
    """The task ends within a micro-batch."""


class Stream:
    """See the module.

    Args:
        offset: that was committed; empty at first.
        closed: ends everything.
    """

    def __init__(self, spark: SparkSession, settings: Settings, offset: Offset, closed: threading.Event) -> None:
        self._spark, self._settings, self._offset, self._closed = spark, settings, offset, closed
        self._batches: queue.Queue[Batch] = queue.Queue(MOST_WAITING)
        self._id: str | None = None
        self._is_known, self._changed = threading.Event(), threading.Condition()
        self._committed = int(offset.get(BATCH, -1))

    def batches(self) -> Iterator[Batch | None]:
        """The rows of micro-batches, and behind each its offset. Raises ConnectError; Spark's errors pass."""
        settings = self._settings
        reader = self._spark.readStream.format(settings.format).options(**settings.options)
        if settings.schema:
            reader = reader.schema(settings.schema)
        writer = reader.load(settings.path or None).writeStream.foreachBatch(self._take)
        writer = writer.option("checkpointLocation", settings.checkpoint)
        every = None if settings.poll_s is None else f"{round(settings.poll_s * 1000)} milliseconds"
        query = (writer.trigger(availableNow=True) if every is None else writer.trigger(processingTime=every)).start()
        try:
            if self._offset and self._offset.get(QUERY) != query.id:
                raise ConnectError(
                    f"the checkpoint {settings.checkpoint} is not the one that the offset of the connector belongs to, so rows would be "
                    "lost or doubled; bring the checkpoint back, or delete the offsets to begin again"
                )
            self._id = query.id
            self._is_known.set()
            while not self._closed.is_set():
                is_active = query.isActive
                try:
                    yield self._batches.get(timeout=LOOK_S)
                except queue.Empty:
                    if not is_active:
                        break
                    yield None
            if not self._closed.is_set() and (error := query.exception()) is not None:
                raise error
        finally:
            self._closed.set()
            query.stop()

    def committed(self, offset: Offset) -> None:
        """The rows up to this offset are in the log."""
        with self._changed:
            self._committed = int(offset[BATCH])
            self._changed.notify_all()

    def _take(self, frame: DataFrame, number: int) -> None:
        """Called by Spark for each micro-batch, in a thread of the query."""
        self._wait(self._is_known.is_set, lambda: self._is_known.wait(LOOK_S))
        if number <= self._committed:
            return
        for rows in batches_of(frame, self._closed):
            self._pass_on(Batch(rows, None, key=self._settings.key))
        self._pass_on(Batch((), {QUERY: self._id, BATCH: number}))
        with self._changed:
            self._wait(lambda: self._committed >= number, lambda: self._changed.wait(LOOK_S))

    def _pass_on(self, batch: Batch) -> None:
        while not self._closed.is_set():
            try:
                self._batches.put(batch, timeout=LOOK_S)
            except queue.Full:
                continue
            return
        raise Ended("the task ends")

    def _wait(self, condition: Any, pause: Any) -> None:
        while not condition():
            if self._closed.is_set():
                raise Ended("the task ends")  # so that Spark does not mark the micro-batch as done
            pause()
