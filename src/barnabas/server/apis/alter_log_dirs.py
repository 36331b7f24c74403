"""AlterReplicaLogDirs: chooses the log directory of this broker in which a partition lies (KIP-113)."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Protocol

from barnabas.errors import ErrorCode, KafkaError
from barnabas.protocol.messages.alter_replica_log_dirs import (
    AlterReplicaLogDirPartitionResult,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirsResponse,
    AlterReplicaLogDirTopicResult,
)
from barnabas.protocol.messages.api_keys import ApiKey
from barnabas.server.handlers import Handler, takes

if TYPE_CHECKING:
    from barnabas.cluster.metadata.image import MetadataImage
    from barnabas.replication.hosted_partitions import HostedPartitions
    from barnabas.server.logs.log_dir_moves import LogDirMoves
    from barnabas.server.requests import RequestContext
    from barnabas.storage.manager import LogManager


class AlterLogDirsBroker(Protocol):
    """The parts of the broker that this module uses."""

    log_dir_moves: LogDirMoves
    logs: LogManager
    partitions: HostedPartitions

    @property
    def metadata(self) -> MetadataImage: ...


async def handle_alter_replica_log_dirs(
    broker: AlterLogDirsBroker, _context: RequestContext, request: AlterReplicaLogDirsRequest
) -> AlterReplicaLogDirsResponse:
    """AlterReplicaLogDirs (api 34): the answer tells which moves began; DescribeLogDirs tells their progress."""
    wanted = [
        (topic.name, partition, each.path) for each in request.dirs for topic in each.topics for partition in topic.partitions
    ]
    codes = await asyncio.gather(*(_alter(broker, *each) for each in wanted))
    results: dict[str, list[AlterReplicaLogDirPartitionResult]] = {}
    for (topic, partition, _), code in zip(wanted, codes, strict=True):
        answer = AlterReplicaLogDirPartitionResult(partition_index=partition, error_code=code)
        results.setdefault(topic, []).append(answer)
    return AlterReplicaLogDirsResponse(
        results=[AlterReplicaLogDirTopicResult(topic_name=name, partitions=partitions) for name, partitions in results.items()]
    )


async def _alter(broker: AlterLogDirsBroker, topic: str, partition: int, path: str) -> int:
    logs = broker.logs
    directory = logs.directory_at(path)
    if directory is None:
        return ErrorCode.LOG_DIR_NOT_FOUND
    if directory.failure is not None:
        return ErrorCode.KAFKA_STORAGE_ERROR
    if logs.is_cordoned(directory):
        return ErrorCode.INVALID_REPLICA_ASSIGNMENT
    if logs.get(topic, partition) is None or broker.partitions.get(topic, partition) is None:
        logs.prefer(topic, partition, directory)
        known = broker.metadata.topics.get(topic)
        is_elsewhere = known is not None and 0 <= partition < len(known.partitions)
        return ErrorCode.REPLICA_NOT_AVAILABLE if is_elsewhere else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    if logs.directory_of(topic, partition).failure is not None:
        return ErrorCode.KAFKA_STORAGE_ERROR
    try:
        await broker.log_dir_moves.start(topic, partition, directory)
    except KafkaError as error:
        return error.code
    return ErrorCode.NONE


HANDLERS: dict[int, Handler[AlterLogDirsBroker]] = {
    ApiKey.ALTER_REPLICA_LOG_DIRS: takes(AlterReplicaLogDirsRequest, handle_alter_replica_log_dirs),
}
