"""Produce: batches to partitions, the answer when they are as safe as the client asked for.

`acks` 0 is never answered, 1 is answered after the append, -1 once the batch is below the high watermark. A broken batch with
acks=0 closes the connection: it is the only way to tell (as Kafka does).
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from barnabas.errors import ErrorCode, InvalidRecordError, KafkaError, ProtocolError, StorageError
from barnabas.protocol.produce import (
    FIRST_TOPIC_ID_VERSION,
    PartitionAnswer,
    PartitionRecords,
    ProduceHead,
    read_produce,
    write_produce_answer,
)

if TYPE_CHECKING:
    from barnabas.replication.partition import Partition
    from barnabas.server.broker import Broker
    from barnabas.server.connection import Answer, Connection

log = logging.getLogger(__name__)
ACKS_ALL, ACKS_LEADER, ACKS_NONE = -1, 1, 0
Topics = list[tuple[bytes, list[PartitionAnswer]]]


def handle_produce(
    broker: Broker, connection: Connection, frame: memoryview, body: int, version: int, correlation_id: int
) -> None:
    """Append every batch of the request and answer, now or when they are committed."""
    head = read_produce(frame, body, version)
    if head.acks not in (ACKS_ALL, ACKS_LEADER, ACKS_NONE):
        answers = _refuse_all(head, ErrorCode.INVALID_REQUIRED_ACKS)
        connection.send([write_produce_answer(version, correlation_id, answers)])
        return
    now_ms = broker.clock.now_ms()
    by_id = version >= FIRST_TOPIC_ID_VERSION
    find = broker.partitions.by_id_bytes if by_id else broker.partitions.by_name_bytes
    unknown = ErrorCode.UNKNOWN_TOPIC_ID if by_id else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    waiting: list[tuple[Partition, int]] = []
    answers = []
    for key, records in head.topics:
        partitions = find(key)
        if partitions is None:
            answers.append((key, [_refused(p.partition, KafkaError(unknown)) for p in records]))
        else:
            answers.append((key, [_append(broker, partitions, p, now_ms, head.acks, waiting) for p in records]))
    if head.acks == ACKS_NONE:
        _check_unanswered(answers)
    elif not waiting:
        connection.send([write_produce_answer(version, correlation_id, answers)])
    else:
        _DelayedProduce(broker, connection, version, correlation_id, answers, waiting, head.timeout_ms)


def _append(
    broker: Broker,
    partitions: dict[int, Partition],
    request: PartitionRecords,
    now_ms: int,
    acks: int,
    waiting: list[tuple[Partition, int]],
) -> PartitionAnswer:
    partition = partitions.get(request.partition)
    if partition is None:
        return _refused(request.partition, KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION))
    records = request.records
    try:
        if partition.topic in broker.internal_topics:
            raise KafkaError(ErrorCode.INVALID_TOPIC_EXCEPTION, f"Cannot append to internal topic {partition.topic}")
        if records is None or not len(records):
            raise KafkaError(ErrorCode.INVALID_RECORD, "a partition without a record batch")
        result = partition.append_as_leader(records, now_ms)
    except KafkaError as error:
        return _refused(request.partition, error)
    except StorageError as error:
        log.error("append failed topic=%s partition=%d error=%s", partition.topic, partition.index, error)
        return _refused(request.partition, KafkaError(ErrorCode.KAFKA_STORAGE_ERROR))
    broker.metrics.bytes_in += len(records)
    if acks == ACKS_ALL and not partition.is_committed(result.last_offset):
        waiting.append((partition, result.last_offset))
    return PartitionAnswer(request.partition, 0, result.first_offset, result.log_append_time_ms, result.log_start_offset)


def _refused(partition: int, error: KafkaError) -> PartitionAnswer:
    record_errors = error.record_errors if isinstance(error, InvalidRecordError) else ()
    return PartitionAnswer(partition, error.code, -1, -1, -1, error.message, record_errors)


def _refuse_all(head: ProduceHead, code: ErrorCode) -> Topics:
    return [(key, [_refused(p.partition, KafkaError(code)) for p in partitions]) for key, partitions in head.topics]


def _check_unanswered(answers: Topics) -> None:
    failed = [answer for _, partitions in answers for answer in partitions if answer.error_code]
    if failed:
        raise ProtocolError(f"a produce request with acks=0 failed with {ErrorCode(failed[0].error_code).name}")


class _DelayedProduce:
    """An acks=all request that waits for the high watermark."""

    def __init__(
        self,
        broker: Broker,
        connection: Connection,
        version: int,
        correlation_id: int,
        answers: Topics,
        waiting: list[tuple[Partition, int]],
        timeout_ms: int,
    ) -> None:
        self._connection = connection
        self._version = version
        self._correlation_id = correlation_id
        self._answers = answers
        self._left = len(waiting)
        self._place: Answer = connection.expect_answer()
        self._timer = broker.loop.call_later(max(timeout_ms, 0) / 1000, self._timed_out)
        self._done = False
        for partition, last_offset in waiting:
            partition.wait_committed(last_offset, self._make_callback(partition, last_offset))

    def _make_callback(self, partition: Partition, last_offset: int):  # type: ignore[no-untyped-def]
        def settled(error: KafkaError | None) -> None:
            if self._done:
                return
            if error is not None:
                self._fail(partition, error)
            self._left -= 1
            if not self._left:
                self._answer()

        return settled

    def _fail(self, partition: Partition, error: KafkaError) -> None:
        keys = (partition.topic.encode(), partition.topic_id.bytes)
        for key, answers in self._answers:
            if key in keys:
                answers[:] = [_refused(a.partition, error) if a.partition == partition.index else a for a in answers]

    def _timed_out(self) -> None:
        timed_out = KafkaError(ErrorCode.REQUEST_TIMED_OUT)
        self._answers = [
            (k, [a if a.error_code else _refused(a.partition, timed_out) for a in answers]) for k, answers in self._answers
        ]
        self._answer()

    def _answer(self) -> None:
        self._done = True
        self._timer.cancel()
        self._connection.complete(self._place, [write_produce_answer(self._version, self._correlation_id, self._answers)])
