"""The guard of OffsetFetch: the client needs the right to describe the group, and gets only the topics that it may describe."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any
from uuid import UUID

from barnabas.error_codes import ErrorCode
from barnabas.protocol.base_message import ZERO_UUID
from barnabas.protocol.messages.api_keys import ApiKey
from barnabas.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartition,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopic,
    OffsetFetchResponseTopics,
)
from barnabas.security.acls import Operation
from barnabas.server.apis.committed_offsets import ERROR_FROM_VERSION, GROUPS_FROM_VERSION, NO_OFFSET, TOPIC_IDS_FROM_VERSION
from barnabas.server.guards.guard import Answer, Asked, GoOn, Guard, split, then

GROUP_REFUSED, TOPIC_REFUSED = ErrorCode.GROUP_AUTHORIZATION_FAILED, ErrorCode.TOPIC_AUTHORIZATION_FAILED


def guard_offset_fetch(asked: Asked, request: OffsetFetchRequest, go_on: GoOn) -> Answer:
    """OffsetFetch (api 9)."""
    if asked.version < GROUPS_FROM_VERSION:
        return _guard_one(asked, request, go_on)
    refused: dict[str, OffsetFetchResponseGroup] = {}
    denied: dict[str, list[OffsetFetchResponseTopics]] = {}
    everything = {group.group_id for group in request.groups if group.topics is None}
    kept = []
    for group in request.groups:
        if asked.access.allows_group(Operation.DESCRIBE, group.group_id):
            denied[group.group_id] = _take_out(asked, group)
            kept.append(group)
        else:
            refused[group.group_id] = OffsetFetchResponseGroup(group_id=group.group_id, error_code=GROUP_REFUSED)
    request.groups = kept

    def finish(response: OffsetFetchResponse) -> None:
        for group in response.groups:
            if group.group_id in everything:
                group.topics = [topic for topic in group.topics if _may_describe(asked, topic)]
            elif not group.error_code:
                group.topics = [*group.topics, *denied[group.group_id]]
        response.groups = [*response.groups, *refused.values()]

    return then(go_on(request), finish)


def _take_out(asked: Asked, group: OffsetFetchRequestGroup) -> list[OffsetFetchResponseTopics]:
    """Remove the topics that the client may not describe from the request, and return their refusals."""
    if group.topics is None:
        return []
    group.topics, denied = split(group.topics, lambda topic: _may_describe(asked, topic), name_of=lambda topic: topic)
    return [
        OffsetFetchResponseTopics(
            name=topic.name,
            topic_id=topic.topic_id,
            partitions=[
                OffsetFetchResponsePartitions(partition_index=p, committed_offset=NO_OFFSET, error_code=TOPIC_REFUSED)
                for p in topic.partition_indexes
            ],
        )
        for topic in denied
    ]


def _may_describe(asked: Asked, topic: Any) -> bool:
    topic_id: UUID = topic.topic_id
    name: str | None = topic.name
    if asked.version >= TOPIC_IDS_FROM_VERSION and topic_id != ZERO_UUID:
        name = asked.broker.metadata.topic_name(topic_id)
    return name is None or asked.access.allows_topic(Operation.DESCRIBE, name)


def _guard_one(asked: Asked, request: OffsetFetchRequest, go_on: GoOn) -> Answer:
    """OffsetFetch in versions that ask for one group."""
    topics: Sequence[Any] = request.topics or ()
    if not asked.access.allows_group(Operation.DESCRIBE, request.group_id):
        early = asked.version < ERROR_FROM_VERSION
        told = [_unfetched(topic.name, topic.partition_indexes, GROUP_REFUSED) for topic in topics] if early else []
        return OffsetFetchResponse(topics=told, error_code=GROUP_REFUSED)

    def may_describe(name: str) -> bool:
        return asked.access.allows_topic(Operation.DESCRIBE, name)

    asks_for_all = request.topics is None
    denied: list[Any] = []
    if not asks_for_all:
        request.topics, denied = split(topics, may_describe)

    def finish(response: OffsetFetchResponse) -> None:
        if asks_for_all:
            response.topics = [topic for topic in response.topics if may_describe(topic.name)]
        elif not response.error_code:
            refusals = [_unfetched(topic.name, topic.partition_indexes, TOPIC_REFUSED) for topic in denied]
            response.topics = [*response.topics, *refusals]

    return then(go_on(request), finish)


def _unfetched(name: str, partitions: Iterable[int], code: ErrorCode) -> OffsetFetchResponseTopic:
    answers = [OffsetFetchResponsePartition(partition_index=p, committed_offset=NO_OFFSET, error_code=code) for p in partitions]
    return OffsetFetchResponseTopic(name=name, partitions=answers)


GUARDS: dict[int, Guard] = {ApiKey.OFFSET_FETCH: guard_offset_fetch}
