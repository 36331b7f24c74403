"""One streaming query of Spark for all jobs that read the same topics and are level with them.

Spark plans the micro-batches and reads the large ones; the driver reads the small ones itself (`small_batches.py`). The query offers each
micro-batch to its jobs, which take it in threads of their own.

Rules
  1. What a job has is known to the job alone (`position.py`). The query keeps no position for it: it begins where its first job is, and its
     checkpoint ends with it.
  2. A micro-batch waits for its jobs, so that Spark does not plan faster than they take. It does not wait long for a job that is much
     slower than the first one: such a job reads by itself what it missed.
  3. Many jobs get micro-batches less often than one, because each micro-batch costs each job the same, however few records it has.
  4. An error of a job ends the job alone. An error of the query ends all of its jobs, and they start again.
"""

from __future__ import annotations

import itertools
import shutil
import threading
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from barnabas.engine.driver.mailbox import Offer
from barnabas.engine.driver.position import StreamOffset
from barnabas.engine.driver.small_batches import SmallBatches, offsets_of
from barnabas.engine.driver.topics import Topics
from barnabas.errors import BarnabasError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

# Queries start one after the other: Spark changes the environment of a Python source while it plans, and cannot serialize the tasks of
# another query at that moment ("Illegal size 5 of collection, expected 6").
_starting = threading.Lock()
PLAN_S = 5.0
IDLE = "Waiting for"  # the beginning of a query's status when there is nothing to read
PATIENCE_S, PATIENCE = 2.0, 4.0  # for a job after the first one was done: so many seconds, or so many times the first one's
SHARED_POOL, POOL = "jobs", "spark.scheduler.pool"
PACE_S = 0.025  # for each job between two micro-batches: more than the processor time of a step of a small view


class Member(Protocol):
    """A job that takes the micro-batches of a query."""

    def offer(self, offer: Offer) -> None:
        """Take note of a micro-batch; does not wait."""


class SharedQuery:
    """Use `SharedQueries.join`.

    Args:
        folder: for Spark's checkpoint; no other query has its name.
        start: where it begins, with every partition.
    """

    def __init__(
        self, spark: SparkSession, topics: Topics, settings: Mapping[str, str], folder: Path, start: StreamOffset
    ) -> None:  # fmt: skip
        self._spark, self._topics, self._settings, self._folder, self._start = spark, topics, settings, folder, start
        self._name = f"{folder.name} of {','.join(topics.names)}"
        self._small = SmallBatches(topics.reader_options(settings, "earliest"))
        self.members: tuple[Member, ...] = ()
        self.error: BaseException | None = None  # why it has ended
        self._query: StreamingQuery | None = None
        self._watch: threading.Thread | None = None
        self._stopping = threading.Event()

    def start(self) -> None:
        """Begin. Raises Spark's errors."""
        context = self._spark.sparkContext
        before = context.getLocalProperty(POOL)
        try:
            context.setLocalProperty(POOL, self._topics.pool or SHARED_POOL)
            stream = self._topics.stream(self._spark, self._settings, self._start)
            writer = stream.writeStream.queryName(self._name).option("checkpointLocation", str(self._folder))
            with _starting:
                self._query = query = writer.foreachBatch(self._micro_batch).start()
                _wait_for_plan(query)
        except BaseException as error:
            self.error = error
            raise
        finally:
            context.setLocalProperty(POOL, before)  # type: ignore[arg-type]  # None removes it
        self._watch = threading.Thread(target=self._await_end, args=(query,), name=self._name, daemon=True)
        self._watch.start()

    def _await_end(self, query: StreamingQuery) -> None:
        try:
            query.awaitTermination()
            ended: BaseException = QueryEnded(self._name)
        except Exception as error:  # noqa: BLE001 - Spark has many types of errors, and the jobs tell of each
            ended = error
        self.error = self.error or ended

    def _micro_batch(self, frame: DataFrame, _: int) -> None:
        began_s = time.monotonic()
        try:
            start, end = self._planned()
            records = self._small.read(start, end)
            if records is None:
                records = frame.toArrow()
            members = self.members
            offers = [Offer(start, end, records, Future()) for _ in members]
            for member, offer in zip(members, offers, strict=True):
                member.offer(offer)
            _wait_for([each.taken for each in offers])
            if len(offers) > 1:
                self._stopping.wait(began_s + PACE_S * len(offers) - time.monotonic())
        except BaseException as error:
            self.error = error
            raise

    def _planned(self) -> tuple[StreamOffset, StreamOffset]:
        """The offsets before and behind the running micro-batch, as Spark has planned it; before the first one it has none."""
        query = self._query or next(each for each in self._spark.streams.active if each.name == self._name)
        execution = query._jsq.streamingQuery()
        return offsets_of(execution.committedOffsets()) or self._start, offsets_of(execution.availableOffsets())

    def stop(self) -> None:
        """End it after its micro-batch, and release everything."""
        self._stopping.set()
        if self._query is not None:
            self._query.stop()
        if self._watch is not None:
            self._watch.join()
        self._small.close()
        shutil.rmtree(self._folder, ignore_errors=True)


class QueryEnded(BarnabasError):
    """A query of Spark ended without an error."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.name = name

    def __str__(self) -> str:
        return f"the query {self.name} ended"


def _wait_for_plan(query: StreamingQuery) -> None:
    """Wait until a query has planned its first micro-batch, or has found none."""
    deadline_s = time.monotonic() + PLAN_S
    while query.isActive and time.monotonic() < deadline_s:
        if query.lastProgress is not None or query.status["message"].startswith(IDLE):
            return
        time.sleep(0.05)


def _wait_for(taken: Sequence[Future[None]]) -> None:
    """See rule 2."""
    if taken:
        began_s = time.monotonic()
        wait(taken, return_when=FIRST_COMPLETED)
        wait(taken, timeout=max(PATIENCE_S, PATIENCE * (time.monotonic() - began_s)))


class SharedQueries:
    """The queries of a driver.

    Args:
        settings: of the client, with `bootstrap.servers`.
        folder: for the checkpoints; what it has is removed.
    """

    def __init__(self, spark: SparkSession, settings: Mapping[str, str], folder: Path) -> None:
        self._spark, self._settings, self._folder = spark, settings, folder
        shutil.rmtree(folder, ignore_errors=True)
        self._numbers = itertools.count(1)
        self._lock = threading.Lock()
        self._queries: dict[Topics, SharedQuery] = {}

    def join(self, member: Member, topics: Topics, start: StreamOffset) -> SharedQuery:
        """Let a job take the micro-batches of a query, which is started if there is none. Raises Spark's errors.

        Args:
            start: where the job is, with every partition.
        """
        with self._lock:
            query = self._queries.get(topics)
            is_first = query is None or query.error is not None
            if query is None or is_first:
                folder = self._folder / f"query-{next(self._numbers)}"
                query = self._queries[topics] = SharedQuery(self._spark, topics, self._settings, folder, start)
            query.members += (member,)
        if is_first:
            try:
                query.start()
            except BaseException:
                self.leave(member, topics, query)  # other jobs see its error, and leave too
                raise
        return query

    def leave(self, member: Member, topics: Topics, query: SharedQuery) -> None:
        """Let a job take no more micro-batches; a query without jobs ends."""
        with self._lock:
            query.members = tuple(each for each in query.members if each is not member)
            is_last = not query.members
            if is_last and self._queries.get(topics) is query:
                del self._queries[topics]
        if is_last:
            query.stop()
