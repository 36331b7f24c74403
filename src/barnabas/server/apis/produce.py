"""Produce: batches to partitions, the answer when they are as safe as the client asked for.

`acks` 0 is never answered, 1 is answered after the append, -1 once the batch is below the high watermark. A broken batch with
acks=0 closes the connection: it is the only way to tell (as Kafka does).
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from barnabas.errors import ErrorCode, KafkaError, ProtocolError, StorageError
from barnabas.protocol.produce import (
    FIRST_TOPIC_ID_VERSION,
    PartitionAnswer,
    PartitionRecords,
    ProduceHead,
    read_produce,
    write_produce_answer,
)
from barnabas.protocol.records.compression import Compression
from barnabas.protocol.records.header import COMPRESSION_MASK, MAGIC, MAGIC_POSITION, TRANSACTIONAL_BIT
from barnabas.server.apis.delayed_produce import DelayedProduce, Topics, refused
from barnabas.server.apis.repeated_produce import learn

if TYPE_CHECKING:
    from barnabas.protocol.message import Buffer
    from barnabas.replication.partition import Partition
    from barnabas.server.broker import Broker
    from barnabas.server.connection import Connection

log = logging.getLogger(__name__)
ACKS_ALL, ACKS_LEADER, ACKS_NONE = -1, 1, 0
FIRST_ZSTD_VERSION = 7
ATTRIBUTES_BYTE = 22  # of a batch: the lower byte of its attributes


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
            answers.append((key, [refused(p.partition, KafkaError(unknown)) for p in records]))
        else:
            answers.append((key, [_append(broker, partitions, p, now_ms, head, version, waiting) for p in records]))
    if head.acks == ACKS_NONE:
        _check_unanswered(answers)
    elif not waiting:
        connection.send([write_produce_answer(version, correlation_id, answers)])
        if version >= FIRST_ZSTD_VERSION and not any(answer.error_code for _, partitions in answers for answer in partitions):
            learn(broker, connection, frame, version, head)
    else:
        DelayedProduce(broker, connection, version, correlation_id, answers, waiting, head.timeout_ms)


def _append(
    broker: Broker,
    partitions: dict[int, Partition],
    request: PartitionRecords,
    now_ms: int,
    head: ProduceHead,
    version: int,
    waiting: list[tuple[Partition, int]],
) -> PartitionAnswer:
    partition = partitions.get(request.partition)
    if partition is None:
        return refused(request.partition, KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION))
    records = request.records
    try:
        if partition.topic in broker.internal_topics:
            raise KafkaError(ErrorCode.INVALID_TOPIC_EXCEPTION, f"Cannot append to internal topic {partition.topic}")
        if records is None or not len(records):
            raise KafkaError(ErrorCode.INVALID_RECORD, "a partition without a record batch")
        _check_attributes(records, head, version)
        result = partition.append_as_leader(records, now_ms)
    except KafkaError as error:
        return refused(request.partition, error)
    except StorageError as error:
        log.error("append failed topic=%s partition=%d error=%s", partition.topic, partition.index, error)
        return refused(request.partition, KafkaError(ErrorCode.KAFKA_STORAGE_ERROR))
    broker.metrics.bytes_in += len(records)
    if head.acks == ACKS_ALL and not partition.is_committed(result.last_offset):
        waiting.append((partition, result.last_offset))
    return PartitionAnswer(request.partition, 0, result.first_offset, result.log_append_time_ms, result.log_start_offset)


def _check_attributes(records: Buffer, head: ProduceHead, version: int) -> None:
    """What depends on the request around the batch; a batch that is none is left to the log."""
    if len(records) <= ATTRIBUTES_BYTE or records[MAGIC_POSITION] != MAGIC:
        return
    attributes = records[ATTRIBUTES_BYTE]
    if attributes & TRANSACTIONAL_BIT:
        no_id = head.transactional_id is None
        raise KafkaError(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED if no_id else ErrorCode.INVALID_TXN_STATE)
    if version < FIRST_ZSTD_VERSION and attributes & COMPRESSION_MASK == Compression.ZSTD:
        raise KafkaError(ErrorCode.UNSUPPORTED_COMPRESSION_TYPE, "Produce requests before version 7 know no zstd (KIP-110)")


def _refuse_all(head: ProduceHead, code: ErrorCode) -> Topics:
    return [(key, [refused(p.partition, KafkaError(code)) for p in partitions]) for key, partitions in head.topics]


def _check_unanswered(answers: Topics) -> None:
    failed = [answer for _, partitions in answers for answer in partitions if answer.error_code]
    if failed:
        raise ProtocolError(f"a produce request with acks=0 failed with {ErrorCode(failed[0].error_code).name}")
