"""The APIs of committed offsets: OffsetCommit, OffsetFetch, OffsetDelete.

The handlers are thin: they turn topic ids into names and refuse partitions that do not exist. The coordinator does the rest. Topics with
refused partitions come first in an answer, as in Kafka.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence

from barnabas.errors import ErrorCode, InvariantViolated, KafkaError
from barnabas.protocol.base_message import ZERO_UUID
from barnabas.protocol.messages.api_keys import ApiKey
from barnabas.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)
from barnabas.protocol.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestTopic,
    OffsetDeleteResponse,
    OffsetDeleteResponsePartition,
    OffsetDeleteResponseTopic,
)
from barnabas.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartition,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopic,
    OffsetFetchResponseTopics,
)
from barnabas.server.apis.groups import Context, GroupBroker, GroupTopics, error_of
from barnabas.server.handlers import Handler, takes

# -- OffsetCommit ---------------------------------------------------------------------------------------------------------

TOPIC_IDS_FROM_VERSION = 10  # of OffsetCommit and OffsetFetch


async def offset_commit(broker: GroupBroker, context: Context, request: OffsetCommitRequest) -> OffsetCommitResponse:
    accepted: list[OffsetCommitRequestTopic] = []
    refused: list[OffsetCommitResponseTopic] = []
    by_id = context.api_version >= TOPIC_IDS_FROM_VERSION
    for topic in request.topics:
        _sort_out(broker.metadata, topic, accepted, refused, by_id=by_id)
    request.topics = accepted
    if not accepted and refused:
        return OffsetCommitResponse(topics=refused)
    try:
        response = await broker.groups.commit_offsets(request, context.api_version)
    except (KafkaError, InvariantViolated) as error:
        response = OffsetCommitResponse(topics=[_all_refused(topic, error_of(error)) for topic in accepted])
    if refused:
        response.topics = _merged(refused, response.topics)
    return response


def _sort_out(
    topics: GroupTopics,
    topic: OffsetCommitRequestTopic,
    accepted: list[OffsetCommitRequestTopic],
    refused: list[OffsetCommitResponseTopic],
    *,
    by_id: bool,
) -> None:
    """Complete name and id of a topic, and move its partitions that do not exist to `refused`."""
    if by_id:
        name = topics.topic_name(topic.topic_id)
        if name is None:
            refused.append(_all_refused(topic, ErrorCode.UNKNOWN_TOPIC_ID))
            return
        topic.name = name
    else:
        topic.topic_id = topics.topic_id(topic.name) or ZERO_UUID
    count = topics.partition_count(topic.name)
    missing = [p.partition_index for p in topic.partitions if not 0 <= p.partition_index < count]
    if missing:
        refused.append(_refused(topic, missing, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION))
        topic.partitions = [p for p in topic.partitions if 0 <= p.partition_index < count]
        if not topic.partitions:
            return
    accepted.append(topic)


def _all_refused(topic: OffsetCommitRequestTopic, error: ErrorCode) -> OffsetCommitResponseTopic:
    return _refused(topic, [p.partition_index for p in topic.partitions], error)


def _refused(topic: OffsetCommitRequestTopic, partitions: Iterable[int], error: ErrorCode) -> OffsetCommitResponseTopic:
    answers = [OffsetCommitResponsePartition(partition_index=p, error_code=error) for p in partitions]
    return OffsetCommitResponseTopic(name=topic.name, topic_id=topic.topic_id, partitions=answers)


def _merged(
    first: Sequence[OffsetCommitResponseTopic], second: Sequence[OffsetCommitResponseTopic]
) -> list[OffsetCommitResponseTopic]:
    """The topics of both, with one entry for each topic."""
    topics = {(t.name, t.topic_id): t for t in first}
    for topic in second:
        known = topics.setdefault((topic.name, topic.topic_id), topic)
        if known is not topic:
            known.partitions = [*known.partitions, *topic.partitions]
    return list(topics.values())


# -- OffsetFetch ----------------------------------------------------------------------------------------------------------

GROUPS_FROM_VERSION = 8
ERROR_FROM_VERSION = 2  # earlier versions have an error only for each partition
NO_OFFSET = -1
GROUPS_OFFSETS_FROM_VERSION = 1  # in version 0 Kafka asked ZooKeeper, and a missing offset was an error
# Java consumers before 3.9 stop at these errors
FATAL_TO_OLDER = {ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.REQUEST_TIMED_OUT}


async def offset_fetch(broker: GroupBroker, context: Context, request: OffsetFetchRequest) -> OffsetFetchResponse:
    if context.api_version >= GROUPS_FROM_VERSION:
        by_id, stable = context.api_version >= TOPIC_IDS_FROM_VERSION, request.require_stable
        fetches = [_fetch_group(broker, group, by_id=by_id, require_stable=stable) for group in request.groups]
        return OffsetFetchResponse(groups=await asyncio.gather(*fetches))
    topics = request.topics
    asked = None if topics is None else [_newer(topic.name, topic.partition_indexes) for topic in topics]
    wanted = OffsetFetchRequestGroup(group_id=request.group_id, topics=asked)
    group = await _fetch_group(broker, wanted, by_id=False, require_stable=request.require_stable)
    if group.error_code and context.api_version < ERROR_FROM_VERSION:
        group.topics = [_unfetched(topic, group.error_code) for topic in asked or ()]
    answered = [_older(topic) for topic in group.topics]
    if context.api_version < GROUPS_OFFSETS_FROM_VERSION:
        _mark_absent(answered)
    return OffsetFetchResponse(topics=answered, error_code=group.error_code)


def _mark_absent(topics: Iterable[OffsetFetchResponseTopic]) -> None:
    for topic in topics:
        for partition in topic.partitions:
            if not partition.error_code and partition.committed_offset == NO_OFFSET:
                partition.error_code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


async def _fetch_group(
    broker: GroupBroker, group: OffsetFetchRequestGroup, *, by_id: bool, require_stable: bool
) -> OffsetFetchResponseGroup:
    unknown: list[OffsetFetchResponseTopics] = []
    if group.topics is not None:
        for topic in group.topics:
            _identify(broker.metadata, topic, by_id=by_id)
        unknown = [_unfetched(topic, ErrorCode.UNKNOWN_TOPIC_ID) for topic in group.topics if not topic.name and by_id]
        group.topics = [topic for topic in group.topics if topic.name or not by_id]
    try:
        response = await broker.groups.fetch_offsets(group, require_stable=require_stable)
    except (KafkaError, InvariantViolated) as error:
        code = error_of(error)
        return OffsetFetchResponseGroup(
            group_id=group.group_id, error_code=ErrorCode.NOT_COORDINATOR if code in FATAL_TO_OLDER else code
        )
    if by_id and group.topics is None:
        for fetched in response.topics:
            fetched.topic_id = broker.metadata.topic_id(fetched.name) or ZERO_UUID
        response.topics = [t for t in response.topics if t.topic_id != ZERO_UUID]
    response.topics = [*response.topics, *unknown]
    return response


def _identify(topics: GroupTopics, topic: OffsetFetchRequestTopics, *, by_id: bool) -> None:
    if by_id:
        topic.name = topics.topic_name(topic.topic_id) or ""


def _unfetched(topic: OffsetFetchRequestTopics, error: int) -> OffsetFetchResponseTopics:
    answers = [
        OffsetFetchResponsePartitions(partition_index=p, committed_offset=NO_OFFSET, error_code=error)
        for p in topic.partition_indexes
    ]
    return OffsetFetchResponseTopics(name=topic.name, topic_id=topic.topic_id, partitions=answers)


def _newer(name: str, partitions: Sequence[int]) -> OffsetFetchRequestTopics:
    return OffsetFetchRequestTopics(name=name, partition_indexes=partitions)


def _older(topic: OffsetFetchResponseTopics) -> OffsetFetchResponseTopic:
    """The topic in the form that versions before 8 use."""
    partitions = [
        OffsetFetchResponsePartition(
            partition_index=p.partition_index,
            committed_offset=p.committed_offset,
            committed_leader_epoch=p.committed_leader_epoch,
            metadata=p.metadata,
            error_code=p.error_code,
        )
        for p in topic.partitions
    ]
    return OffsetFetchResponseTopic(name=topic.name, partitions=partitions)


# -- OffsetDelete ---------------------------------------------------------------------------------------------------------


async def offset_delete(broker: GroupBroker, context: Context, request: OffsetDeleteRequest) -> OffsetDeleteResponse:
    """OffsetDelete (api 47): partitions that do not exist come first in the answer, as in Kafka."""
    asked = [(topic, *_existing(broker.metadata, topic)) for topic in request.topics]
    request.topics = [
        OffsetDeleteRequestTopic(name=topic.name, partitions=[p for p in topic.partitions if p.partition_index in existing])
        for topic, existing, _ in asked
        if existing
    ]
    try:
        response = await broker.groups.delete_offsets(request)
    except (KafkaError, InvariantViolated) as error:
        return OffsetDeleteResponse(error_code=error_of(error))
    deleted = {topic.name: topic.partitions for topic in response.topics}
    response.topics = [
        OffsetDeleteResponseTopic(name=topic.name, partitions=[*_unknown(missing), *deleted.get(topic.name, ())])
        for topic, _, missing in asked
    ]
    return response


def _existing(topics: GroupTopics, topic: OffsetDeleteRequestTopic) -> tuple[set[int], list[int]]:
    count = topics.partition_count(topic.name)
    indexes = [p.partition_index for p in topic.partitions]
    return {i for i in indexes if 0 <= i < count}, [i for i in indexes if not 0 <= i < count]


def _unknown(partitions: Sequence[int]) -> list[OffsetDeleteResponsePartition]:
    code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    return [OffsetDeleteResponsePartition(partition_index=p, error_code=code) for p in partitions]


HANDLERS: dict[int, Handler[GroupBroker]] = {
    ApiKey.OFFSET_COMMIT: takes(OffsetCommitRequest, offset_commit),
    ApiKey.OFFSET_FETCH: takes(OffsetFetchRequest, offset_fetch),
    ApiKey.OFFSET_DELETE: takes(OffsetDeleteRequest, offset_delete),
}
