"""DeleteRecords: raises the log start offset of a partition and deletes the records below it."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Protocol

from barnabas.errors import ErrorCode, KafkaError, StorageError
from barnabas.protocol.messages.api_keys import ApiKey
from barnabas.protocol.messages.delete_records import (
    DeleteRecordsPartitionResult,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopicResult,
)
from barnabas.replication.leader_partition import LeaderPartition
from barnabas.server.handlers import Handler, takes
from barnabas.storage.mirror_appender import refuse_write

if TYPE_CHECKING:
    from barnabas.replication.hosted_partitions import HostedPartitions
    from barnabas.server.logs.log_start_offsets import LogStartOffsets
    from barnabas.server.requests import RequestContext
    from barnabas.server.services import FaultReports
    from barnabas.storage.log import Log

UNKNOWN_OFFSET = -1

HIGH_WATERMARK = -1  # this offset in DeleteRecords means the high watermark


class DeleteRecordsBroker(Protocol):
    """The parts of the broker that this module uses."""

    internal_topics: frozenset[str]
    log_start_offsets: LogStartOffsets
    partitions: HostedPartitions

    @property
    def faults(self) -> FaultReports: ...


async def handle_delete_records(
    broker: DeleteRecordsBroker, _context: RequestContext, request: DeleteRecordsRequest
) -> DeleteRecordsResponse:
    """DeleteRecords (api 21): answers when the new log start offsets are on the disk, so that a crash does not bring records back.

    Kafka writes log start offsets once a minute, so after a crash it has the records again that it deleted since the last write. If
    followers are in sync, the broker waits until they have raised their log start offsets too, so that no election brings records back.
    While fewer than min.insync.replicas are in sync, the answer waits, because a replica outside the in-sync replicas may lead next.
    """
    topics: list[DeleteRecordsTopicResult] = []
    moved: list[tuple[DeleteRecordsPartitionResult, Log]] = []
    waiting: list[tuple[LeaderPartition, DeleteRecordsPartitionResult]] = []
    for topic in request.topics:
        answers = []
        for wanted in topic.partitions:
            answer = DeleteRecordsPartitionResult(partition_index=wanted.partition_index, low_watermark=UNKNOWN_OFFSET)
            try:
                partition = broker.partitions.require_leader(topic.name, wanted.partition_index)
                answer.low_watermark = _delete_records(broker, partition, wanted.offset)
                moved.append((answer, partition.log))
                if not partition.is_deleted(answer.low_watermark):
                    waiting.append((partition, answer))
            except KafkaError as error:
                answer.error_code = error.code
            except StorageError as error:
                broker.faults.report(error)
                answer.error_code = ErrorCode.KAFKA_STORAGE_ERROR
            answers.append(answer)
        topics.append(DeleteRecordsTopicResult(name=topic.name, partitions=answers))
    if moved:
        try:
            await broker.log_start_offsets.keep(log for _, log in moved)
        except StorageError as error:
            broker.faults.report(error)
            for answer, _ in moved:
                answer.error_code, answer.low_watermark = ErrorCode.KAFKA_STORAGE_ERROR, UNKNOWN_OFFSET
    await asyncio.gather(*(_wait_for_followers(partition, answer, request.timeout_ms) for partition, answer in waiting))
    return DeleteRecordsResponse(topics=topics)


async def _wait_for_followers(partition: LeaderPartition, answer: DeleteRecordsPartitionResult, timeout_ms: int) -> None:
    future: asyncio.Future[KafkaError | None] = asyncio.get_running_loop().create_future()
    partition.wait_deleted(answer.low_watermark, lambda error: None if future.done() else future.set_result(error))
    try:
        async with asyncio.timeout(max(timeout_ms, 0) / 1000):
            error = await future
    except TimeoutError:
        error = KafkaError(ErrorCode.REQUEST_TIMED_OUT)
    if error is not None and not answer.error_code:
        answer.error_code, answer.low_watermark = error.code, UNKNOWN_OFFSET


def _delete_records(broker: DeleteRecordsBroker, partition: LeaderPartition, offset: int) -> int:
    if partition.topic in broker.internal_topics:
        raise KafkaError(ErrorCode.INVALID_TOPIC_EXCEPTION)
    if partition.log.config.is_mirrored:
        refuse_write(partition.topic, partition.log.config.mirror_link)
    policy = partition.log.config.cleanup_policy
    if "compact" in policy and "delete" not in policy:
        raise KafkaError(ErrorCode.POLICY_VIOLATION)
    target = partition.high_watermark if offset == HIGH_WATERMARK else offset
    if target < 0 or target > partition.high_watermark:
        raise KafkaError(ErrorCode.OFFSET_OUT_OF_RANGE)
    partition.log.truncator.delete_records_before(target)
    partition.tell_log_start()
    return partition.log.log_start_offset


HANDLERS: dict[int, Handler[DeleteRecordsBroker]] = {
    ApiKey.DELETE_RECORDS: takes(DeleteRecordsRequest, handle_delete_records),
}
