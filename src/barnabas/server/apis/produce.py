"""Produce: appends batches to partitions, and answers when they are as safe as the client wants.

With `acks` 0 the broker never answers. With 1 it answers when the batch is as safe here as `flush.messages` demands. With -1 it answers
when the batch is as safe on all in-sync replicas, that is, below the high watermark. If the leader is the only replica, 1 and -1 are the
same. A broken batch with acks=0 closes the connection, as in Kafka, because the client has no other way to learn of it.
"""

from __future__ import annotations

import logging
import time
from functools import partial
from typing import TYPE_CHECKING, Protocol
from uuid import UUID

from barnabas.errors import ErrorCode, KafkaError, ProtocolError, StorageError
from barnabas.protocol.messages.api_keys import ApiKey
from barnabas.protocol.produce import (
    FIRST_BATCH_VERSION,
    FIRST_TOPIC_ID_VERSION,
    PartitionAnswer,
    PartitionRecords,
    ProduceHead,
    read_produce,
    write_produce_answer,
)
from barnabas.protocol.records.batch_header import HEADER_SIZE, is_transactional, only_batch, read_header
from barnabas.protocol.records.compression import Compression
from barnabas.protocol.request_headers import read_request_header
from barnabas.server.producing.delayed import (
    ACKS_ALL,
    ACKS_LEADER,
    ACKS_NONE,
    DelayedProduce,
    Topics,
    must_wait,
    refusals,
    refused,
)
from barnabas.server.producing.message_sets import Answered, ConvertingBroker, convert
from barnabas.server.producing.request_template import ProduceTemplateBroker, learn, prepare
from barnabas.server.producing.rights import may_write_transaction, split_produce
from barnabas.server.producing.transactional import Joined, hold, why_not_in_transaction
from barnabas.server.producing.unknown_schema_ids import (
    Earlier,
    SchemasUnknown,
    ValidatingBroker,
    Waiting,
    ask_registry,
    merged,
    without,
)
from barnabas.server.quotas.charging import charge_produce
from barnabas.server.schema_validation.topic_check import SchemaIdsUnknown

if TYPE_CHECKING:
    from barnabas.replication.partition import Partition
    from barnabas.server.connection import Connection

logger = logging.getLogger(__name__)
EMPTY = memoryview(b"")
FIRST_ZSTD_VERSION = 7  # KIP-110
# Kafka finds these errors before it looks at the log; with every other error it tells the log start offset
BEFORE_THE_LOG = frozenset(
    {
        ErrorCode.CORRUPT_MESSAGE,
        ErrorCode.INVALID_TOPIC_EXCEPTION,
        ErrorCode.KAFKA_STORAGE_ERROR,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.MESSAGE_TOO_LARGE,
        ErrorCode.RECORD_LIST_TOO_LARGE,
        ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
        ErrorCode.INVALID_PRODUCER_ID_MAPPING,
        ErrorCode.UNSUPPORTED_COMPRESSION_TYPE,
    }
)


class ProducingBroker(ConvertingBroker, ProduceTemplateBroker, ValidatingBroker, Protocol):
    """The parts of the broker that this module uses."""

    internal_topics: frozenset[str]


def handle_produce(
    broker: ProducingBroker, connection: Connection, frame: memoryview, body: int, version: int, correlation_id: int
) -> None:
    """Append every batch of the request and answer, now or when the batches are committed."""
    prepare(broker, connection)
    head = read_produce(frame, body, version)
    authorizer = broker.authorizer
    access = None if authorizer is None else authorizer.of_hot_request(connection, ApiKey.PRODUCE, authorizer.client_id(frame))
    if head.acks not in (ACKS_ALL, ACKS_LEADER, ACKS_NONE):
        answers = _refuse_all(head, ErrorCode.INVALID_REQUIRED_ACKS)
        connection.send([write_produce_answer(version, correlation_id, answers, _pay(broker, connection, frame))])
        return
    earlier: Earlier | None = None
    if access is not None:
        if not may_write_transaction(access, head):
            _pay(broker, connection, frame)
            _refuse_transaction(broker, connection, version, correlation_id, head)
            return
        head, denied = split_produce(broker.metadata, access, version, head)
        if denied:
            earlier = Earlier(denied, [], False)
    if head.transactional_id is not None:
        go_on = partial(_append_held, broker, connection, version, correlation_id, earlier)
        if hold(broker, connection, frame, body, version, head, go_on):
            return  # continues when the coordinator has named the partitions of the transaction
    if version < FIRST_BATCH_VERSION:
        convert(broker, connection, frame, head, partial(_append_converted, broker, connection, version, correlation_id, earlier))
        return
    _append_all(broker, connection, frame, version, correlation_id, head, {}, earlier)


def _append_converted(
    broker: ProducingBroker,
    connection: Connection,
    version: int,
    correlation_id: int,
    earlier: Earlier | None,
    frame: memoryview,
    head: ProduceHead,
) -> None:
    """Append the batches that message sets were converted to; producers of message sets have no transactions."""
    _append_all(broker, connection, frame, version, correlation_id, head, {}, earlier)


def _append_held(
    broker: ProducingBroker,
    connection: Connection,
    version: int,
    correlation_id: int,
    earlier: Earlier | None,
    frame: memoryview,
    head: ProduceHead,
    joined: Joined,
) -> None:
    connection.started_ns = time.perf_counter_ns()  # the client does not pay for the wait for the coordinator
    if earlier is not None:  # `head` was read a second time
        head = without(head, earlier.answers)
    _append_all(broker, connection, frame, version, correlation_id, head, joined, earlier)


def _append_rest(
    broker: ProducingBroker,
    connection: Connection,
    version: int,
    correlation_id: int,
    frame: memoryview,
    head: ProduceHead,
    earlier: Earlier,
) -> None:
    """Append the batches that waited for the schema registry."""
    connection.started_ns = time.perf_counter_ns()  # the client does not pay for the wait for the registry
    if head.transactional_id is not None:
        go_on = partial(_append_held, broker, connection, version, correlation_id, earlier)
        if hold(broker, connection, frame, read_request_header(frame).body, version, head, go_on):
            return
    _append_all(broker, connection, frame, version, correlation_id, head, {}, earlier)


def _append_all(
    broker: ProducingBroker,
    connection: Connection,
    frame: memoryview,
    version: int,
    correlation_id: int,
    head: ProduceHead,
    joined: Joined,
    earlier: Earlier | None,
) -> None:
    """Append every batch and answer, now or when the batches are committed.

    Args:
        joined: the coordinator's answers for partitions that must join the transaction.
        earlier: the answers of partitions that `head` does not have any more.
    """
    now_ms = broker.clock.now_ms()
    by_id = version >= FIRST_TOPIC_ID_VERSION
    find = broker.partitions.by_id_bytes if by_id else broker.partitions.by_name_bytes
    unknown = ErrorCode.UNKNOWN_TOPIC_ID if by_id else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    append = (
        _append if version >= FIRST_ZSTD_VERSION else _append_without_zstd if version >= FIRST_BATCH_VERSION else _append_made
    )
    waiting: Waiting = []
    answers: Topics = []
    for key, records in head.topics:
        partitions = find(key)
        if partitions is None:
            answers.append((key, [_absent(broker, key, p.partition, unknown, by_id=by_id) for p in records]))
        else:
            answers.append((key, [append(broker, partitions, p, now_ms, head, waiting, joined) for p in records]))
    if earlier is not None:
        answers, waiting = merged(answers, earlier.answers), waiting + earlier.waiting
    failed = any(answer.error_code for _, partitions in answers for answer in partitions)
    if failed and (earlier is None or not earlier.is_asked):
        go_on = partial(_append_rest, broker, connection, version, correlation_id)
        if ask_registry(broker, connection, frame, head, answers, waiting, go_on):
            return
    throttle_ms = _pay(broker, connection, frame)
    if version >= FIRST_ZSTD_VERSION and not failed and earlier is None:
        learn(broker, connection, frame, version, head)
    if head.acks == ACKS_NONE:
        _check_unanswered(answers)
        return
    if not waiting:
        if failed:
            connection.send([refusals(broker, connection, version, correlation_id, answers)])
        else:
            connection.send([write_produce_answer(version, correlation_id, answers, throttle_ms)])
    else:
        acks_all = head.acks == ACKS_ALL
        DelayedProduce(broker, connection, version, correlation_id, answers, waiting, head.timeout_ms, acks_all=acks_all)


def _append(
    broker: ProducingBroker,
    partitions: dict[int, Partition],
    request: PartitionRecords,
    now_ms: int,
    head: ProduceHead,
    waiting: Waiting,
    joined: Joined,
) -> PartitionAnswer:
    partition = partitions.get(request.partition)
    if partition is None:
        topic = next(iter(partitions.values())).topic
        return refused(request.partition, KafkaError(broker.partitions.absence(topic, request.partition)))
    records = EMPTY if request.records is None else request.records
    try:
        if partition.topic in broker.internal_topics:
            raise KafkaError(ErrorCode.INVALID_TOPIC_EXCEPTION, f"Cannot append to internal topic {partition.topic}")
        if is_transactional(records) and (refusal := why_not_in_transaction(partition, records, head, joined)) is not None:
            return refused(request.partition, refusal)
        if not partition.is_leader:
            return refused(request.partition, KafkaError(partition.refusal))
        result = partition.append_as_leader(records, now_ms, acks_all=head.acks == ACKS_ALL)
    except SchemaIdsUnknown as error:
        return SchemasUnknown.by(_refuse(partition, request, error), request, error)
    except KafkaError as error:
        return _refuse(partition, request, error)
    except StorageError as error:
        broker.faults.report(error)
        return refused(request.partition, KafkaError(ErrorCode.KAFKA_STORAGE_ERROR))
    broker.metrics.bytes_in += len(records)
    if result.last_offset >= partition.high_watermark and must_wait(partition, result.last_offset, head.acks):
        waiting.append((partition, result.last_offset))
    return PartitionAnswer(request.partition, 0, result.first_offset, result.log_append_time_ms, result.log_start_offset)


def _append_without_zstd(
    broker: ProducingBroker,
    partitions: dict[int, Partition],
    request: PartitionRecords,
    now_ms: int,
    head: ProduceHead,
    waiting: Waiting,
    joined: Joined,
) -> PartitionAnswer:
    """Append for versions whose clients do not know zstd, so they could not read such batches back."""
    records = request.records
    if records is not None and len(records) >= HEADER_SIZE and read_header(records).compression == Compression.ZSTD:
        reason = "Produce requests below version 7 are not allowed to use ZStandard compression."
        return refused(request.partition, KafkaError(ErrorCode.UNSUPPORTED_COMPRESSION_TYPE, reason))
    return _append(broker, partitions, request, now_ms, head, waiting, joined)


def _append_made(
    broker: ProducingBroker,
    partitions: dict[int, Partition],
    request: PartitionRecords,
    now_ms: int,
    head: ProduceHead,
    waiting: Waiting,
    joined: Joined,
) -> PartitionAnswer:
    """Append a batch that was made from a message set."""
    if isinstance(request, Answered):
        return request.answer
    return _append(broker, partitions, request, now_ms, head, waiting, joined)


def _absent(broker: ProducingBroker, key: bytes, partition: int, unknown: ErrorCode, *, by_id: bool) -> PartitionAnswer:
    """The answer for a partition of a topic that has no partition on this broker."""
    name = broker.metadata.topic_name(UUID(bytes=key)) if by_id else key.decode(errors="replace")
    return refused(partition, KafkaError(unknown if name is None else broker.partitions.absence(name, partition)))


def _refuse(partition: Partition, request: PartitionRecords, error: KafkaError) -> PartitionAnswer:
    answer = refused(request.partition, error)
    if error.code in BEFORE_THE_LOG or partition.is_offline or not _is_one_batch(request.records):
        return answer
    return answer._replace(log_start_offset=partition.log.log_start_offset)


def _is_one_batch(records: memoryview | None) -> bool:
    try:
        only_batch(EMPTY if records is None else records)
    except KafkaError:
        return False
    return True


def _pay(broker: ProducingBroker, connection: Connection, frame: memoryview) -> int:
    """Charge the request to its client, even if it is refused. Returns the throttle time in ms for the answer."""
    budget = connection.budget
    return 0 if budget is None else charge_produce(broker, connection, budget, len(frame))


def _refuse_transaction(
    broker: ProducingBroker, connection: Connection, version: int, correlation_id: int, head: ProduceHead
) -> None:
    answers = _refuse_all(head, ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
    if head.acks == ACKS_NONE:
        _check_unanswered(answers)
    connection.send([refusals(broker, connection, version, correlation_id, answers)])


def _refuse_all(head: ProduceHead, code: ErrorCode) -> Topics:
    return [(key, [refused(p.partition, KafkaError(code)) for p in partitions]) for key, partitions in head.topics]


def _check_unanswered(answers: Topics) -> None:
    failed = [answer for _, partitions in answers for answer in partitions if answer.error_code]
    if failed:
        raise ProtocolError(f"a produce request with acks=0 failed with {ErrorCode(failed[0].error_code).name}")
