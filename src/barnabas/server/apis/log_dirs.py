"""DescribeLogDirs: the size on disk of each partition, by log directory."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterable
from functools import cache
from typing import TYPE_CHECKING, Protocol

from barnabas.config.cordoning import cordoned_among
from barnabas.errors import ErrorCode
from barnabas.protocol.messages.api_keys import ApiKey
from barnabas.protocol.messages.describe_log_dirs import (
    DescribeLogDirsPartition,
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
    DescribeLogDirsResult,
    DescribeLogDirsTopic,
)
from barnabas.server.handlers import Handler, takes

if TYPE_CHECKING:
    from barnabas.cluster.metadata.image import MetadataImage
    from barnabas.config.broker import BrokerConfig
    from barnabas.server.logs.log_dir_moves import LogDirMoves
    from barnabas.server.requests import RequestContext
    from barnabas.storage.manager import LogManager


PARTITIONS_PER_TURN = 500  # partitions of one answer; each takes 2 us


class LogDirsBroker(Protocol):
    """The parts of the broker that this module uses."""

    config: BrokerConfig
    log_dir_moves: LogDirMoves
    logs: LogManager

    @property
    def metadata(self) -> MetadataImage: ...


async def handle_describe_log_dirs(
    broker: LogDirsBroker, context: RequestContext, request: DescribeLogDirsRequest
) -> DescribeLogDirsResponse:
    """DescribeLogDirs (api 35); the answer omits partitions that are not on this broker, as in Kafka."""
    return _respond(broker, await _sizes(broker, request))


def _respond(broker: LogDirsBroker, found: dict[str, dict[str, list[DescribeLogDirsPartition]]]) -> DescribeLogDirsResponse:
    directories = dict.fromkeys(os.path.abspath(directory) for directory in broker.config.log_dirs)
    failed = {os.path.abspath(directory.path) for directory in broker.logs.failed_directories}
    results = [_failed(path) if path in failed else _directory(path, found.get(path, {})) for path in directories]
    cordoned = cordoned_among(broker.config.cordoned_log_dirs, broker.config.log_dirs)
    for result in results:
        result.is_cordoned = result.log_dir in cordoned
    return DescribeLogDirsResponse(results=results)


async def _sizes(broker: LogDirsBroker, request: DescribeLogDirsRequest) -> dict[str, dict[str, list[DescribeLogDirsPartition]]]:
    """The partitions by directory and topic."""
    result: dict[str, dict[str, list[DescribeLogDirsPartition]]] = {}
    absolute = cache(os.path.abspath)  # there are few directories
    count = 0
    for name, partitions in _asked(broker, request):
        for partition in dict.fromkeys(partitions):
            count += 1
            if count % PARTITIONS_PER_TURN == 0:
                await asyncio.sleep(0)
            log = broker.logs.get(name, partition)
            if log is not None:
                directory = absolute(os.path.dirname(log.directory))
                size = DescribeLogDirsPartition(partition_index=partition, partition_size=log.size_bytes)
                result.setdefault(directory, {}).setdefault(name, []).append(size)
            copy = broker.log_dir_moves.of(name, partition)
            if copy is not None:
                future = DescribeLogDirsPartition(
                    partition_index=partition,
                    partition_size=copy.size_bytes,
                    offset_lag=max(0, copy.log.log_end_offset - copy.end_offset),
                    is_future_key=True,
                )
                result.setdefault(absolute(copy.directory), {}).setdefault(name, []).append(future)
    return result


def _asked(broker: LogDirsBroker, request: DescribeLogDirsRequest) -> Iterable[tuple[str, Iterable[int]]]:
    if request.topics is not None:
        return [(wanted.topic, wanted.partitions) for wanted in request.topics]
    return [(topic.name, range(len(topic.partitions))) for topic in broker.metadata.topics.values()]


def _failed(path: str) -> DescribeLogDirsResult:
    return DescribeLogDirsResult(error_code=ErrorCode.KAFKA_STORAGE_ERROR, log_dir=path)


def _directory(path: str, topics: dict[str, list[DescribeLogDirsPartition]]) -> DescribeLogDirsResult:
    try:
        disk = os.statvfs(path)
    except OSError:
        return _failed(path)
    return DescribeLogDirsResult(
        log_dir=path,
        topics=[DescribeLogDirsTopic(name=name, partitions=partitions) for name, partitions in topics.items()],
        total_bytes=disk.f_blocks * disk.f_frsize,
        usable_bytes=disk.f_bavail * disk.f_frsize,
    )


HANDLERS: dict[int, Handler[LogDirsBroker]] = {
    ApiKey.DESCRIBE_LOG_DIRS: takes(DescribeLogDirsRequest, handle_describe_log_dirs),
}
