"""The work of a read task: fetches an offset range of one partition and returns it as Arrow. Does not depend on Spark.

A worker process reuses clients for later tasks, since connecting often takes longer than a micro-batch.

Rules
  1. Every record with start <= offset < end is returned once, in order, or `DataLoss` is raised (failOnDataLoss) or logged.
  2. Missing offsets inside the log (compaction, transaction markers) are not a loss. Offsets before its start are a loss. It is
     also a loss if the log does not reach the end of the range within the poll timeout.
  3. The clients of a worker may have old metadata, and a former leader may not know yet that there is another leader. So
     records count as gone only after all brokers agree on the topic, its id and the leader, and this leader has answered.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace
from typing import Literal

import pyarrow as pa

from barnabas.client.blocking import BlockingClient, PartitionReader
from barnabas.client.cluster import UnknownTopic
from barnabas.client.errors import PartitionError
from barnabas.client.results import Fetched
from barnabas.columnar.decode import RecordDecoder
from barnabas.error_codes import ErrorCode
from barnabas.pipelines.clients import borrowed_client
from barnabas.pipelines.data_loss import report_data_loss
from barnabas.pipelines.offsets import EARLIEST, LATEST, OffsetRange, id_text
from barnabas.pipelines.read_task import ReadTask

# rows of one Arrow batch; the JVM is fastest from 50,000 rows on, and a batch of small records could have millions
MAX_ROWS = 1 << 17


def read_range(task: ReadTask) -> Iterator[pa.RecordBatch]:
    """The records of the task's range."""
    with borrowed_client(task.client) as client:
        yield from read_with(client, task)


def read_with(client: BlockingClient, task: ReadTask) -> Iterator[pa.RecordBatch]:
    """Like `read_range`, with a client that no other code uses at the same time."""
    if task.range.end == LATEST:
        task = _resolved(task, client)
    reading = _Reading(task, client)
    try:
        yield from reading.batches()
    finally:
        reading.close()


def _resolved(task: ReadTask, client: BlockingClient) -> ReadTask:
    """The current range of the whole partition."""
    tp = task.range.topic, task.range.partition
    start, end = (client.list_offsets({tp: word})[tp].offset for word in (EARLIEST, LATEST))
    return replace(task, range=OffsetRange(*tp, start, end))


class _Reading:
    """The progress of one task through its range."""

    def __init__(self, task: ReadTask, client: BlockingClient) -> None:
        self._task, self._client = task, client
        wanted = self._wanted = task.range
        self._reader = PartitionReader(client, wanted.topic, wanted.partition, wanted.start, wanted.end)
        self._sure_of: int | None = None  # the read position at which the brokers last agreed on the topic and its leader

    def close(self) -> None:
        self._reader.close()

    def batches(self) -> Iterator[pa.RecordBatch]:
        task, wanted, reader = self._task, self._wanted, self._reader
        decoder = RecordDecoder(
            wanted.topic, wanted.partition, include_headers=task.include_headers, max_batch_bytes=task.max_batch_bytes
        )
        deadline = time.monotonic() + task.poll_timeout_ms / 1000
        while reader.offset < wanted.end:
            position = reader.offset
            answer = self._next(position)
            if answer is False:
                return
            if answer is True:
                continue
            for batch in decoder.decode(answer.records, position, wanted.end, answer.aborted):
                for first in range(0, batch.num_rows, MAX_ROWS):
                    yield batch.slice(first, MAX_ROWS)
            if reader.offset > position:
                deadline = time.monotonic() + task.poll_timeout_ms / 1000
            elif time.monotonic() > deadline and not self._goes_on_waiting(position, answer):
                return

    def _next(self, position: int) -> Fetched | bool:
        """The next response; True to fetch again, False if there is nothing more to read."""
        try:
            answer = self._reader.read()
        except UnknownTopic as error:
            return self._lost(position, f"{error}")
        except PartitionError as error:
            if error.code != ErrorCode.OFFSET_OUT_OF_RANGE:
                raise
            return self._resume_after_loss(position) if self._sure_of == position else self._is_there(position)
        return self._is_there(position) if self._may_be_of_another() else answer

    def _may_be_of_another(self) -> bool:
        """Whether the response may be of a topic with another id. The client's metadata always changes before such a response."""
        found = self._client.cluster.topics.get(self._wanted.topic)
        return bool(self._task.topic_id) and found is not None and id_text(found.topic_id) not in ("", self._task.topic_id)

    def _is_there(self, position: int) -> bool:
        """Whether the task's partition exists according to all brokers. If it does, the task reads again from `position`;
        otherwise the records are lost."""
        wanted = self._wanted
        self._reader.go_on_from(position)
        found = self._client.agreed_topics([wanted.topic]).get(wanted.topic)
        if found is None or wanted.partition not in found.partitions:
            return self._lost(position, f"{UnknownTopic(wanted.topic, wanted.partition)}")
        if self._may_be_of_another():
            return self._lost(position, f"topic {wanted.topic} was deleted and created again")
        self._sure_of = position
        return True

    def _goes_on_waiting(self, position: int, answer: Fetched) -> bool:
        """Whether to fetch records again that must exist; until the poll timeout."""
        if self._sure_of != position:
            return self._is_there(position)
        place = f"{self._wanted.topic}-{self._wanted.partition}"
        if position < answer.high_watermark:
            raise TimeoutError(
                f"Cannot fetch record for offset {position} of {place} in {self._task.poll_timeout_ms} milliseconds"
            )
        return self._lost(position, f"the log ends at offset {answer.high_watermark}", f" for topic partition {place}")

    def _resume_after_loss(self, position: int) -> bool:
        """Whether to continue from the earliest offset after a loss of records."""
        tp = self._wanted.topic, self._wanted.partition
        try:
            earliest = self._client.list_offsets({tp: EARLIEST})[tp].offset
        except UnknownTopic:
            earliest = self._wanted.end
        self._lost(position, f"the log begins at offset {earliest}", f" for topic partition {tp[0]}-{tp[1]}")
        if not position < earliest < self._wanted.end:
            return False
        self._reader.go_on_from(earliest)
        return True

    def _lost(self, position: int, why: str, where: str = "") -> Literal[False]:
        """Raise DataLoss, or log it: there is nothing more to read."""
        what = f"Could not read records in offset [{position}, {self._wanted.end}){where}: {why}."
        report_data_loss(what, fail=self._task.fail_on_data_loss)
        return False
