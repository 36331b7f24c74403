"""What a task does: fetch an offset range of one partition and hand it on as Arrow. Knows no Spark.

Clients are kept from task to task of a worker process, since a micro-batch is often shorter than what connecting costs.

Rules
  1. Every record with start <= offset < end is given once, in order, or `DataLoss` is raised (failOnDataLoss) or logged.
  2. Offsets that the log does not have (compacted away, markers of transactions) are no loss; those below its start are, and so is an
     end that the log does not reach within the poll timeout.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace

import pyarrow as pa

from barnabas.client.blocking import BlockingClient, PartitionReader
from barnabas.client.cluster import UnknownTopic
from barnabas.client.errors import PartitionError
from barnabas.client.results import Fetched
from barnabas.error_codes import ErrorCode
from barnabas.pipelines.clients import borrowed_client
from barnabas.pipelines.data_loss import report_data_loss
from barnabas.pipelines.decode import RecordDecoder
from barnabas.pipelines.offsets import EARLIEST, LATEST, OffsetRange, id_text
from barnabas.pipelines.read_task import ReadTask

MAX_ROWS = 1 << 17  # of one Arrow batch: the JVM takes 50,000 and more at its best speed, and small records would make millions
GONE = {ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.UNKNOWN_TOPIC_ID}


def read_range(task: ReadTask) -> Iterator[pa.RecordBatch]:
    """The records of the task's range."""
    with borrowed_client(task.client) as client:
        if task.range.end == LATEST:
            task = _resolved(task, client)
        reader = PartitionReader(client, task.range.topic, task.range.partition, task.range.start, task.range.end)
        try:
            yield from _read(task, client, reader)
        finally:
            reader.close()


def _resolved(task: ReadTask, client: BlockingClient) -> ReadTask:
    """The whole partition, as it is now."""
    tp = task.range.topic, task.range.partition
    start, end = (client.list_offsets({tp: word})[tp].offset for word in (EARLIEST, LATEST))
    return replace(task, range=OffsetRange(*tp, start, end))


def _read(task: ReadTask, client: BlockingClient, reader: PartitionReader) -> Iterator[pa.RecordBatch]:
    wanted = task.range
    decoder = RecordDecoder(
        wanted.topic, wanted.partition, include_headers=task.include_headers, max_batch_bytes=task.max_batch_bytes
    )
    deadline = time.monotonic() + task.poll_timeout_ms / 1000
    while reader.offset < wanted.end:
        position = reader.offset
        try:
            answer = reader.read()
        except PartitionError as error:
            if not _resume_after(error, task, client, reader):
                return
            continue
        if _is_of_another(task, client):
            report_data_loss(
                f"Could not read records in offset [{position}, {wanted.end}): topic {wanted.topic} was deleted and made again.",
                fail=task.fail_on_data_loss,
            )
            return
        for batch in decoder.decode(answer.records, position, wanted.end, answer.aborted):
            for first in range(0, batch.num_rows, MAX_ROWS):
                yield batch.slice(first, MAX_ROWS)
        if reader.offset > position:
            deadline = time.monotonic() + task.poll_timeout_ms / 1000
        elif time.monotonic() > deadline:
            _report_short(task, position, answer)
            return


def _is_of_another(task: ReadTask, client: BlockingClient) -> bool:
    """Whether what was read is of a topic that took the place of the task's; the client's metadata changes before such an answer only."""
    found = client.cluster.topics.get(task.range.topic)
    return bool(task.topic_id) and found is not None and id_text(found.topic_id) not in ("", task.topic_id)


def _resume_after(error: PartitionError, task: ReadTask, client: BlockingClient, reader: PartitionReader) -> bool:
    """Whether to go on, from the earliest offset there is, after records turned out to be gone."""
    wanted = task.range
    if error.code in GONE:
        report_data_loss(
            f"Could not read records in offset [{reader.offset}, {wanted.end}): {error}.", fail=task.fail_on_data_loss
        )
        return False
    if error.code != ErrorCode.OFFSET_OUT_OF_RANGE:
        raise error
    tp = wanted.topic, wanted.partition
    try:
        earliest = client.list_offsets({tp: EARLIEST})[tp].offset
    except UnknownTopic:
        earliest = wanted.end
    report_data_loss(
        f"Could not read records in offset [{reader.offset}, {wanted.end}) for topic partition {tp[0]}-{tp[1]}: "
        f"the log begins at offset {earliest}.",
        fail=task.fail_on_data_loss,
    )
    if not reader.offset < earliest < wanted.end:
        return False
    reader.offset = earliest
    return True


def _report_short(task: ReadTask, position: int, answer: Fetched) -> None:
    wanted = task.range
    if position < answer.high_watermark:
        raise TimeoutError(
            f"Cannot fetch record for offset {position} of {wanted.topic}-{wanted.partition} in {task.poll_timeout_ms} milliseconds"
        )
    report_data_loss(
        f"Could not read records in offset [{position}, {wanted.end}) for topic partition {wanted.topic}-{wanted.partition}: "
        f"the log ends at offset {answer.high_watermark}.",
        fail=task.fail_on_data_loss,
    )
