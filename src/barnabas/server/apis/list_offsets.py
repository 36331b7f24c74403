"""Finds offsets of partitions by time and by leader epoch: ListOffsets and OffsetForLeaderEpoch."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Awaitable, Sequence
from typing import TYPE_CHECKING, Protocol

from barnabas.errors import ErrorCode, KafkaError, StorageError
from barnabas.protocol.messages.api_keys import ApiKey
from barnabas.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from barnabas.protocol.messages.offset_for_leader_epoch import (
    EpochEndOffset,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderPartition,
    OffsetForLeaderTopicResult,
)
from barnabas.replication.partition import READ_COMMITTED
from barnabas.server.apis.segment_offsets import SegmentOffsetsBroker
from barnabas.server.handlers import Handler, takes
from barnabas.server.logs.damaged_reads import refuse_read
from barnabas.storage.segment_times import TimesLook
from barnabas.storage.time_search import SealedSearch

if TYPE_CHECKING:
    from barnabas.server.requests import RequestContext

logger = logging.getLogger(__name__)

LATEST, EARLIEST, MAX_TIMESTAMP, EARLIEST_LOCAL, LATEST_TIERED, EARLIEST_PENDING_UPLOAD = -1, -2, -3, -4, -5, -6
FIRST_VERSION_WITH_TIMES = 1
FIRST_VERSION_OF = {MAX_TIMESTAMP: 7, EARLIEST_LOCAL: 8, LATEST_TIERED: 9, EARLIEST_PENDING_UPLOAD: 11}
UNKNOWN_OFFSET = UNKNOWN_TIMESTAMP = UNKNOWN_EPOCH = -1
CONSUMER, DEBUGGER = -1, -2  # replica ids of clients that are not brokers; a debugger may ask a follower
FIRST_NOT_AVAILABLE_VERSION = 5  # KIP-207
Looks = dict[tuple[str, int, int], TimesLook | SealedSearch]
Position = tuple[int, int, int]  # timestamp, offset, leader epoch
NOWHERE: Position = (UNKNOWN_TIMESTAMP, UNKNOWN_OFFSET, UNKNOWN_EPOCH)


class ListOffsetsBroker(SegmentOffsetsBroker, Protocol):
    """The parts of the broker that this module uses."""


def handle_list_offsets(
    broker: ListOffsetsBroker, context: RequestContext, request: ListOffsetsRequest
) -> ListOffsetsResponse | Awaitable[ListOffsetsResponse]:
    if context.api_version < FIRST_VERSION_WITH_TIMES:
        # imported here: clients since 0.10.1 do not need it
        from barnabas.server.apis.segment_offsets import list_segment_offsets

        return list_segment_offsets(broker, request)
    looks = _looks(broker, request)
    return _look_first(broker, context, request, looks) if looks else _list_offsets(broker, context, request, looks)


def _looks(broker: ListOffsetsBroker, request: ListOffsetsRequest) -> Looks:
    """The searches by time that must run in a thread, by topic, partition and time."""
    looks: Looks = {}
    for topic in request.topics:
        for wanted in topic.partitions:
            if wanted.timestamp < 0 and wanted.timestamp != MAX_TIMESTAMP:
                continue
            partition = broker.partitions.get(topic.name, wanted.partition_index)
            if partition is None or partition.closed or partition.is_offline:
                continue
            log, timestamp = partition.log, wanted.timestamp
            look = log.reader.unknown_times() if timestamp == MAX_TIMESTAMP else log.reader.sealed_search(timestamp)
            if look is not None:
                looks[topic.name, wanted.partition_index, timestamp] = look
    return looks


async def _look_first(
    broker: ListOffsetsBroker, context: RequestContext, request: ListOffsetsRequest, looks: Looks
) -> ListOffsetsResponse:
    await broker.loop.run_in_executor(broker.reading_threads, _run, list(looks.values()))
    for look in looks.values():
        look.note()
    return _list_offsets(broker, context, request, looks)


def _run(looks: Sequence[TimesLook | SealedSearch]) -> None:
    for look in looks:
        look.run()


def _list_offsets(
    broker: ListOffsetsBroker, context: RequestContext, request: ListOffsetsRequest, looks: Looks
) -> ListOffsetsResponse:
    topics = []
    for topic in request.topics:
        times = Counter(p.partition_index for p in topic.partitions)
        answers = []
        for wanted in {p.partition_index: p for p in topic.partitions}.values():
            try:
                if times[wanted.partition_index] > 1:
                    raise KafkaError(ErrorCode.INVALID_REQUEST)
                timestamp, offset, epoch = _list_offset(broker, context.api_version, topic.name, wanted, request, looks)
                answer = ListOffsetsPartitionResponse(timestamp=timestamp, offset=offset, leader_epoch=epoch)
            except KafkaError as error:
                answer = ListOffsetsPartitionResponse(error_code=error.code)
            except (StorageError, OSError) as error:
                code = refuse_read(broker, f"{topic.name}-{wanted.partition_index}", -1, error)
                answer = ListOffsetsPartitionResponse(error_code=code)
            answer.partition_index = wanted.partition_index
            answers.append(answer)
        topics.append(ListOffsetsTopicResponse(name=topic.name, partitions=answers))
    return ListOffsetsResponse(topics=topics)


def _list_offset(
    broker: ListOffsetsBroker, version: int, topic: str, wanted: ListOffsetsPartition, request: ListOffsetsRequest, looks: Looks
) -> Position:
    here, index = broker.partitions, wanted.partition_index
    partition = here.require(topic, index) if request.replica_id == DEBUGGER else here.require_leader(topic, index)
    partition.check_leader_epoch(wanted.current_leader_epoch)
    timestamp = wanted.timestamp
    if timestamp < EARLIEST_PENDING_UPLOAD or version < FIRST_VERSION_OF.get(timestamp, 0):
        raise KafkaError(ErrorCode.UNSUPPORTED_VERSION)
    if request.replica_id == CONSUMER:
        end = partition.last_stable_offset if request.isolation_level == READ_COMMITTED else partition.high_watermark
        knows_end = partition.is_leader and partition.knows_end
    else:
        end, knows_end = partition.log.log_end_offset, True
    not_available = ErrorCode.LEADER_NOT_AVAILABLE if version < FIRST_NOT_AVAILABLE_VERSION else ErrorCode.OFFSET_NOT_AVAILABLE
    if not knows_end and timestamp in (LATEST, MAX_TIMESTAMP):
        raise KafkaError(not_available)
    if timestamp == LATEST:
        # A single replica records no epoch without records, so a later OffsetForLeaderEpoch would not know the leader epoch.
        epoch = partition.log.reader.latest_epoch
        return UNKNOWN_TIMESTAMP, end, partition.leader_epoch if epoch == UNKNOWN_EPOCH else epoch
    if timestamp in (EARLIEST, EARLIEST_LOCAL):
        start = partition.log.log_start_offset
        epoch = partition.log.reader.epoch_at(start)
        return UNKNOWN_TIMESTAMP, start, partition.leader_epoch if epoch == UNKNOWN_EPOCH else epoch
    if timestamp in (LATEST_TIERED, EARLIEST_PENDING_UPLOAD):
        return NOWHERE  # nothing is in tiered storage
    if timestamp == MAX_TIMESTAMP:
        found = partition.log.reader.offset_of_max_timestamp()
    else:
        look = looks.get((topic, wanted.partition_index, timestamp))
        found = partition.log.reader.offset_for_timestamp(timestamp, look if isinstance(look, SealedSearch) else None)
    if found is not None and found[1] < end:
        return found
    if not knows_end:
        # the wanted record may be committed, but this replica does not know that yet
        raise KafkaError(not_available)
    return NOWHERE


def handle_offset_for_leader_epoch(
    broker: ListOffsetsBroker, _context: RequestContext, request: OffsetForLeaderEpochRequest
) -> OffsetForLeaderEpochResponse:
    topics = [
        OffsetForLeaderTopicResult(topic=topic.topic, partitions=[_epoch_end(broker, topic.topic, p) for p in topic.partitions])
        for topic in request.topics
    ]
    return OffsetForLeaderEpochResponse(topics=topics)


def _epoch_end(broker: ListOffsetsBroker, topic: str, wanted: OffsetForLeaderPartition) -> EpochEndOffset:
    try:
        partition = broker.partitions.require_leader(topic, wanted.partition)
        partition.check_leader_epoch(wanted.current_leader_epoch)
        epoch, end_offset = partition.end_offset_for_epoch(wanted.leader_epoch)
    except KafkaError as error:
        return EpochEndOffset(partition=wanted.partition, error_code=error.code)
    return EpochEndOffset(partition=wanted.partition, leader_epoch=epoch, end_offset=end_offset)


HANDLERS: dict[int, Handler[ListOffsetsBroker]] = {
    ApiKey.LIST_OFFSETS: takes(ListOffsetsRequest, handle_list_offsets),
    ApiKey.OFFSET_FOR_LEADER_EPOCH: takes(OffsetForLeaderEpochRequest, handle_offset_for_leader_epoch),
}
