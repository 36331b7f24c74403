"""Writes records: all of them or none.

A statement whose records fit one batch is written by an idempotent producer, in one request: a batch is in the log whole or not at all.
Anything more is a transaction. Both producers belong to a session and are kept.

Rules
  1. `write` returns when all records are acknowledged by all in-sync replicas, and committed.
  2. After an error, nothing was committed, unless the answer to the one request or to the commit was lost: then the error says so (08007).
  3. `abort` takes at most ABORT_MS, whatever has become of the cluster.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterable, Sequence
from dataclasses import replace

import pyarrow as pa

from barnabas.client import operations, transactions
from barnabas.client.blocking import BlockingClient
from barnabas.client.errors import ClientError, ResourceError
from barnabas.client.producer import BatchProducer
from barnabas.client.results import TopicPartition
from barnabas.client.transactions import Owner
from barnabas.columnar.encode import LARGEST_BATCH, RecordEncoder, RecordTooLarge, TopicShape
from barnabas.error_codes import ErrorCode
from barnabas.errors import BarnabasError, KafkaError
from barnabas.protocol.records.batch_header import HEADER_SIZE
from barnabas.sql.states import unknown_outcome
from barnabas.sql.writing.one_record import partition_of, room_of

SHAPE_AGE_S = 60.0  # so long the batch size of a topic is not asked for again
ABORT_MS = 5_000
REFUSALS = (ErrorCode.TOPIC_AUTHORIZATION_FAILED, ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
Records = tuple[str, Sequence[pa.RecordBatch]]  # a topic and batches of `key` and `value`
Batch = tuple[TopicPartition, bytes | bytearray, int]


class Producers:
    """The producers of a session.

    Args:
        client: of the session; with the caller's rights.
    """

    def __init__(self, client: BlockingClient) -> None:
        self._client = client
        self._single: BatchProducer | None = None
        self._transactional_id = f"barnabas-sql-{uuid.uuid4()}"
        self._owner: Owner | None = None
        self._shapes: dict[str, tuple[float, int]] = {}

    def close(self) -> None:
        """End what is in flight."""
        if self._single is not None:
            self._single.close()
            self._single = None

    def write(self, records: Iterable[Records]) -> dict[TopicPartition, int]:
        """Write records of one or several topics; returns the offsets behind them.

        Raises:
            SqlError: 08007; nobody knows whether the records were written.
            BarnabasError: nothing was written.
        """
        batches: list[Batch] = []
        writer: _Transaction | None = None

        def take(place: TopicPartition, room: memoryview, count: int) -> None:
            nonlocal writer
            if writer is None and batches:
                writer = self._begin()
                for earlier in batches:
                    writer.send(*earlier)
            if writer is not None:
                writer.send(place, room, count)
            else:
                batches.append((place, bytes(room), count))

        encoder = RecordEncoder(self._shape, take)
        try:
            for topic, parts in records:
                for part in parts:
                    encoder.write(part, topic)
            encoder.finish()
            if writer is not None:
                return writer.commit()
        except BaseException:
            if writer is not None:
                writer.abort()
            raise
        return self._one(batches[0]) if batches else {}

    def write_one(self, topic: str, key: bytes | None, value: bytes) -> dict[TopicPartition, int]:
        """Write one record; otherwise like `write`."""
        shape = self._shape(topic)
        room = room_of(key, value)
        if len(room) > shape.batch_bytes:
            raise RecordTooLarge(topic, len(room) - HEADER_SIZE, shape.batch_bytes)
        return self._one(((topic, partition_of(key, shape.partitions)), room, 1))

    def _one(self, batch: Batch) -> dict[TopicPartition, int]:
        place, room, count = batch
        if self._single is None:
            plan = transactions.init_producer_id(self._client.config, self._client.cluster, None)
            self._single = BatchProducer(
                self._client, _now_ms, owner=self._client.run(plan).owner, any_topic=True, creates_topics=False
            )
        single = self._single
        single.ends.clear()
        try:
            single.send(place, bytearray(room), count)
            single.flush()
        except BaseException as error:
            single.close()
            self._single = None
            self._client.cluster.forget(place[0])
            if isinstance(error, ClientError):
                raise unknown_outcome(error, "the rows were written") from error
            raise
        return dict(single.ends)

    def _begin(self) -> _Transaction:
        client = self._client
        if self._owner is None:
            plan = transactions.init_producer_id(client.config, client.cluster, self._transactional_id)
            self._owner = client.run(plan).owner
        owner, self._owner = self._owner, None  # until its end is known
        return _Transaction(self, client, self._transactional_id, owner)

    def ended(self, owner: Owner) -> None:
        """The owner of the next transaction."""
        self._owner = owner

    def _shape(self, topic: str) -> TopicShape:
        client = self._client
        client.run(
            operations.topics_to_write(client.config, client.cluster, [topic], max_age_ms=SHAPE_AGE_S * 1000, creates=False)
        )
        partitions = len(client.cluster.topics[topic].partitions)
        known = self._shapes.get(topic)
        now = time.monotonic()
        if known is None or now - known[0] > SHAPE_AGE_S:
            known = self._shapes[topic] = now, self._batch_bytes(topic)
        return TopicShape(partitions, known[1])

    def _batch_bytes(self, topic: str) -> int:
        try:
            limit = self._client.describe_topic_config(topic).get("max.message.bytes")
        except KafkaError as error:
            if error.code not in REFUSALS:
                raise
            limit = None
        return LARGEST_BATCH if limit is None else min(LARGEST_BATCH, int(limit))


class _Transaction:
    """One transaction, begun with its first batch."""

    def __init__(self, producers: Producers, client: BlockingClient, transactional_id: str, owner: Owner) -> None:
        self._producers, self._client, self._id, self._owner = producers, client, transactional_id, owner
        self._second = client.has_second_transactions
        self._producer = BatchProducer(
            client,
            _now_ms,
            owner=owner,
            transactional_id=transactional_id,
            second_version=self._second,
            any_topic=True,
            creates_topics=False,
        )

    def send(self, place: TopicPartition, room: memoryview | bytes | bytearray, count: int) -> None:
        """Write a batch."""
        self._producer.send(place, bytearray(room), count)

    def commit(self) -> dict[TopicPartition, int]:
        """Raises SqlError 08007 if nobody knows whether it was committed."""
        self._producer.flush()
        try:
            ended = self._end(self._client, commit=True)
        except ClientError as error:
            raise unknown_outcome(error, "the transaction was committed") from error
        self._producers.ended(ended)
        return dict(self._producer.ends)

    def abort(self) -> None:
        """Undo what was written; the coordinator does it later if it cannot be reached.

        A client of its own asks: the session's may have been interrupted, and may wait longer.
        """
        self._producer.close()
        config = replace(self._client.config, interruption=None, request_timeout_ms=ABORT_MS, default_api_timeout_ms=ABORT_MS)
        try:
            with BlockingClient(config) as client:
                self._producers.ended(self._end(client, commit=False))
        except BarnabasError:
            return  # the next transaction takes the id over, and so aborts this one

    def _end(self, client: BlockingClient, *, commit: bool) -> Owner:
        plan = transactions.end_transactions(
            client.config, client.cluster, {self._id: self._owner}, commit=commit, second_version=self._second
        )
        ended = client.run(plan)[self._id]
        if isinstance(ended, ErrorCode):
            raise ResourceError(ended, f"transactional id {self._id}")
        return ended


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
