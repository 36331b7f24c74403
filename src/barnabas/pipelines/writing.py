"""The work of a write task: sends the rows of Arrow batches as record batches until they are acknowledged. Does not depend on
Spark.

Rules
  1. When a task returns, every row is acknowledged; the first refused row fails the task.
  2. Records with a key go to the partition that a Java producer chooses (murmur2), so that keys stay in their partitions when a
     user changes the connector.
  3. Rows of one partition are sent in order, and the producer is idempotent: its own retries neither duplicate nor reorder
     them. If Spark repeats a task, the effect depends on its `Attempt`: without a transaction, the rows are written again.
  4. The attempt is requested with the first row: a task without rows opens no transaction.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from barnabas.client import operations, transactions
from barnabas.client.blocking import BlockingClient
from barnabas.client.errors import PartitionError
from barnabas.client.producer import BatchProducer
from barnabas.client.transactions import Owner
from barnabas.columnar.encode import LARGEST_BATCH, RecordEncoder, TopicShape
from barnabas.error_codes import ErrorCode
from barnabas.errors import BarnabasError, KafkaError
from barnabas.pipelines.clients import borrowed_client
from barnabas.pipelines.offsets import OptionError
from barnabas.pipelines.sink_options import WriteTask

SHAPE_AGE_S = 300.0  # lifetime of a topic's cached batch size, as for metadata


class WriteFailed(BarnabasError):
    """The cluster refused a record."""

    def __init__(self, topic: str, partition: int | None, reason: str) -> None:
        super().__init__(topic, partition, reason)
        self.topic = topic
        self.partition = partition
        self.reason = reason

    def __str__(self) -> str:
        where = self.topic if self.partition is None else f"{self.topic}-{self.partition}"
        return f"could not write to {where}: {self.reason}"


@dataclass(frozen=True, slots=True)
class Attempt:
    """The identity of a writer: the owner of a producer id, in a transaction if `transactional_id` is set."""

    owner: Owner | None
    transactional_id: str | None = None


Open = Callable[[BlockingClient], Attempt]


def open_idempotent(task: WriteTask) -> Open:
    """A producer id for this task only, so that its own retries do not duplicate records. With acks=1 there is none, like in
    Kafka's producer."""

    def open_attempt(client: BlockingClient) -> Attempt:
        if task.acks != -1:
            return Attempt(None)
        return Attempt(client.run(transactions.init_producer_id(client.config, client.cluster, None)).owner)

    return open_attempt


def write_batches(
    task: WriteTask, batches: Iterable[pa.RecordBatch], open_attempt: Open, *, has_times: bool = False
) -> tuple[int, Attempt | None]:
    """Write all rows and wait until they are acknowledged; returns their number and their writer (None without rows).

    Args:
        has_times: whether the column `timestamp`, where a batch has one, is the time of its records.

    Raises:
        WriteFailed: a batch was refused.
        OptionError: rows without a topic, or with an invalid partition.
        ClientError: no response in time.
    """
    filled = (batch for batch in batches if batch.num_rows)
    first = next(filled, None)
    if first is None:
        return 0, None
    with borrowed_client(task.client) as client:
        attempt = open_attempt(client)
        return _write(task, client, attempt, itertools.chain((first,), filled), has_times=has_times), attempt


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


def _write(
    task: WriteTask, client: BlockingClient, attempt: Attempt, batches: Iterator[pa.RecordBatch], *, has_times: bool
) -> int:
    producer = BatchProducer(
        client,
        _now_ms,
        owner=attempt.owner,
        transactional_id=attempt.transactional_id,
        second_version=attempt.transactional_id is None or client.has_second_transactions,
        acks=task.acks,
        codec=task.codec,
        creates_topics=task.creates_topics,
    )
    start = (
        attempt.owner.producer_id if attempt.owner else time.monotonic_ns() // 1_000_000
    )  # different tasks start at different partitions
    encoder = RecordEncoder(
        lambda topic: _shape(client, topic, creates=task.creates_topics), producer.send,
        max_record_bytes=task.max_request_bytes, first=start, now_ms=_now_ms if has_times else None,
    )  # fmt: skip
    rows = 0
    try:
        for batch in batches:
            _check(task, batch)
            encoder.write(batch, task.topic)
            rows += batch.num_rows
        encoder.finish()
        producer.flush()
    except PartitionError as error:
        raise WriteFailed(error.topic, error.partition, _reason(error)) from error
    finally:
        producer.close()
    return rows


def _reason(error: PartitionError) -> str:
    if error.code == ErrorCode.MESSAGE_TOO_LARGE:
        return f"a record is too large: {error.code.name}: {error.message or 'above max.message.bytes of the topic'}"
    return f"{error.code.name}: {error.message}" if error.message else error.code.name


def _check(task: WriteTask, batch: pa.RecordBatch) -> None:
    names = batch.schema.names
    if task.topic is None and batch.column("topic").null_count:
        raise OptionError("null topic present in the data. Use the topic option for setting a default topic.")
    if "headers" in names:
        _check_headers(batch.column("headers"))
    if "partition" in names:
        lowest = pc.min(batch.column("partition")).as_py()
        if lowest is not None and lowest < 0:
            raise OptionError(f"Invalid partition: {lowest}. Partition number should always be non-negative or null.")


def _check_headers(lists: Any) -> None:
    """A header has a key, and a value that may be null; nothing else in a header may be null."""
    headers = lists.flatten()
    if headers.null_count:
        raise OptionError(
            "null header present in the data. Headers are pairs of a key and a value, of which the value may be null."
        )
    if headers.field("key").null_count:
        raise OptionError("null header key present in the data. Header keys should always be non-null.")


_shapes: dict[tuple[str | None, str], tuple[float, TopicShape]] = {}  # (cluster id, topic) -> (time of the request, shape)


def _shape(client: BlockingClient, topic: str, *, creates: bool) -> TopicShape:
    """The number of partitions and the batch limit of a topic. Each task requests the number, since the placement of rows
    depends on it, and the topic may have been created again with fewer.

    The limit is cached for some time, because an error also shows a change.
    """
    client.run(operations.topics_to_write(client.config, client.cluster, [topic], max_age_ms=0, creates=creates))
    partitions = len(client.cluster.topics[topic].partitions)
    now_s = time.monotonic()
    known = _shapes.get((client.cluster.cluster_id, topic))
    if known is not None and now_s - known[0] < SHAPE_AGE_S:
        return TopicShape(partitions, known[1].batch_bytes)
    shape = TopicShape(partitions, _batch_bytes(client, topic))
    if len(_shapes) > 1_000:
        _shapes.clear()
    _shapes[client.cluster.cluster_id, topic] = now_s, shape
    return shape


def _batch_bytes(client: BlockingClient, topic: str) -> int:
    """The topic's limit of a batch in bytes; a default if this client may not describe the topic."""
    try:
        limit = client.describe_topic_config(topic).get("max.message.bytes")
    except KafkaError as error:
        if error.code not in (ErrorCode.TOPIC_AUTHORIZATION_FAILED, ErrorCode.CLUSTER_AUTHORIZATION_FAILED):
            raise
        limit = None
    return LARGEST_BATCH if limit is None else min(LARGEST_BATCH, int(limit))
