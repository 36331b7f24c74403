"""ListOffsets 0: the start offsets of the segments and the end of the log, newest first.

This is how Kafka before 0.10.1 found offsets by time: a time stands for the last segment whose file did not change after it. Kafka 3.9
still answers so, with three effects. An offset comes without a time, the precision is a whole segment, and a log may have more offsets
than the client asked for.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from barnabas.errors import ErrorCode, KafkaError, StorageError
from barnabas.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from barnabas.server.logs.damaged_reads import ReadFaults, refuse_read
from barnabas.storage.files import Files

if TYPE_CHECKING:
    import asyncio
    from concurrent.futures import Executor

    from barnabas.clock import Clock
    from barnabas.replication.hosted_partitions import HostedPartitions
    from barnabas.replication.partition import OnlinePartition

LATEST, EARLIEST = -1, -2
CONSUMER, DEBUGGER = -1, -2  # as in later versions


class SegmentOffsetsBroker(ReadFaults, Protocol):
    """The parts of the broker that this module uses."""

    clock: Clock
    files: Files
    loop: asyncio.AbstractEventLoop
    partitions: HostedPartitions
    reading_threads: Executor


async def list_segment_offsets(broker: SegmentOffsetsBroker, request: ListOffsetsRequest) -> ListOffsetsResponse:
    topics = []
    for topic in request.topics:
        answers = []
        for wanted in topic.partitions:
            answer = ListOffsetsPartitionResponse(partition_index=wanted.partition_index)
            try:
                answer.old_style_offsets = await _offsets(broker, topic.name, wanted, request.replica_id)
            except KafkaError as error:
                answer.error_code = error.code
            except (StorageError, OSError) as error:
                answer.error_code = refuse_read(broker, f"{topic.name}-{wanted.partition_index}", -1, error)
            answers.append(answer)
        topics.append(ListOffsetsTopicResponse(name=topic.name, partitions=answers))
    return ListOffsetsResponse(topics=topics)


async def _offsets(broker: SegmentOffsetsBroker, topic: str, wanted: ListOffsetsPartition, replica_id: int) -> list[int]:
    find = broker.partitions.require if replica_id == DEBUGGER else broker.partitions.require_leader
    partition = find(topic, wanted.partition_index)
    if wanted.timestamp < EARLIEST:
        raise KafkaError(ErrorCode.UNSUPPORTED_VERSION)
    if wanted.max_num_offsets < 0:
        raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR)  # as in Kafka, which has no other code for this
    changed_ms: dict[Path, int] = {}
    if wanted.timestamp >= 0:
        paths = [segment.path for segment in partition.log.segments]
        changed_ms = await broker.loop.run_in_executor(broker.reading_threads, _changed, broker.files, paths)
        partition = find(topic, wanted.partition_index)
    found = _starts(partition, wanted.timestamp, changed_ms, broker.clock.now_ms())
    offsets = found[-wanted.max_num_offsets :][::-1] if wanted.max_num_offsets else []
    high_watermark = partition.high_watermark
    if replica_id != CONSUMER or not any(offset > high_watermark for offset in offsets):
        return offsets
    return [high_watermark, *(offset for offset in offsets if offset <= high_watermark)]


def _changed(files: Files, paths: Sequence[Path]) -> dict[Path, int]:
    """The time in ms of the last change of each file; without files that were deleted in the meantime."""
    found = {}
    for path in paths:
        try:
            found[path] = files.modified_ms(path)
        except FileNotFoundError:
            continue
    return found


def _starts(partition: OnlinePartition, timestamp: int, changed_ms: dict[Path, int], now_ms: int) -> list[int]:
    """The start offsets of segments, and the log end offset, that are not younger than `timestamp`, in ascending order."""
    log = partition.log
    places = [(max(each.base_offset, log.log_start_offset), changed_ms.get(each.path, now_ms)) for each in log.segments]
    if log.segments.active.size:
        places.append((log.log_end_offset, now_ms))
    if timestamp == EARLIEST:
        return [places[0][0]]
    while places and timestamp != LATEST and places[-1][1] > timestamp:
        places.pop()
    return [offset for offset, _ in places]
