"""Guards of topics: their offsets, and their creation, growth and deletion."""

from __future__ import annotations

from collections.abc import Callable
from operator import attrgetter
from typing import Any
from uuid import UUID

from barnabas.cluster.planning.deletion import UNKNOWN_NAME
from barnabas.error_codes import ErrorCode
from barnabas.protocol.base_message import ZERO_UUID, Message
from barnabas.protocol.messages.api_keys import ApiKey
from barnabas.protocol.messages.create_partitions import CreatePartitionsTopicResult
from barnabas.protocol.messages.create_topics import CreatableTopicResult, CreateTopicsRequest, CreateTopicsResponse
from barnabas.protocol.messages.delete_records import DeleteRecordsPartitionResult, DeleteRecordsTopicResult
from barnabas.protocol.messages.delete_topics import DeletableTopicResult, DeleteTopicsRequest, DeleteTopicsResponse
from barnabas.protocol.messages.describe_producers import PartitionResponse, TopicResponse
from barnabas.protocol.messages.list_offsets import ListOffsetsPartitionResponse, ListOffsetsTopicResponse
from barnabas.protocol.messages.offset_for_leader_epoch import (
    EpochEndOffset,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderTopicResult,
)
from barnabas.security.acls import AUDIT_TOPIC, Operation, ResourceType
from barnabas.server.apis.topics import FIRST_DELETE_VERSION_WITH_IDS
from barnabas.server.guards.guard import Answer, Asked, GoOn, Guard, split, then

REFUSED = ErrorCode.TOPIC_AUTHORIZATION_FAILED
TOPIC_MESSAGE = "Topic authorization failed."
NOWHERE = -1


def _on_topics(operation: Operation, refuse: Callable[[Any], Message], *, field: str = "topics") -> Guard:
    """A guard of requests whose answers have one entry for each topic, in `field`."""

    def guard(asked: Asked, request: Any, go_on: GoOn) -> Answer:
        request.topics, denied = split(request.topics, lambda name: asked.access.allows_topic(operation, name))

        def add(response: Any) -> None:
            setattr(response, field, [*getattr(response, field), *map(refuse, denied)])

        return then(go_on(request), add) if denied else go_on(request)

    return guard


def _unlisted(topic: Any) -> ListOffsetsTopicResponse:
    partitions = [ListOffsetsPartitionResponse(partition_index=p.partition_index, error_code=REFUSED) for p in topic.partitions]
    return ListOffsetsTopicResponse(name=topic.name, partitions=partitions)


def _undeleted_records(topic: Any) -> DeleteRecordsTopicResult:
    partitions = [
        DeleteRecordsPartitionResult(partition_index=p.partition_index, low_watermark=NOWHERE, error_code=REFUSED)
        for p in topic.partitions
    ]
    return DeleteRecordsTopicResult(name=topic.name, partitions=partitions)


def _no_producers(topic: Any) -> TopicResponse:
    partitions = [
        PartitionResponse(partition_index=index, error_code=REFUSED, error_message=TOPIC_MESSAGE)
        for index in topic.partition_indexes
    ]
    return TopicResponse(name=topic.name, partitions=partitions)


def _no_more_partitions(topic: Any) -> CreatePartitionsTopicResult:
    return CreatePartitionsTopicResult(name=topic.name, error_code=REFUSED, error_message=None)


def guard_offset_for_leader_epoch(asked: Asked, request: OffsetForLeaderEpochRequest, go_on: GoOn) -> Answer:
    """OffsetForLeaderEpoch (api 23): brokers may ask for all topics, consumers for topics that they may describe."""
    if asked.access.silent.allows_cluster(Operation.CLUSTER_ACTION):
        return go_on(request)
    request.topics, denied = split(
        request.topics, lambda name: asked.access.allows_topic(Operation.DESCRIBE, name), name_of=attrgetter("topic")
    )

    def add(response: Any) -> None:
        response.topics = [*response.topics, *map(_no_epochs, denied)]

    return then(go_on(request), add)


def _no_epochs(topic: Any) -> OffsetForLeaderTopicResult:
    partitions = [EpochEndOffset(partition=each.partition, error_code=REFUSED) for each in topic.partitions]
    return OffsetForLeaderTopicResult(topic=topic.topic, partitions=partitions)


def guard_create_topics(asked: Asked, request: CreateTopicsRequest, go_on: GoOn) -> Answer:
    """CreateTopics (api 19): needs a right on the cluster or on the name. The answer has the settings only if the client may describe
    them.
    """
    access = asked.access
    request.topics, denied = split(request.topics, lambda name: _may(asked, Operation.CREATE, name))

    def finish(response: CreateTopicsResponse) -> None:
        for result in response.topics:
            if not result.error_code and not access.silent.allows_topic(Operation.DESCRIBE_CONFIGS, result.name):
                result.topic_config_error_code = REFUSED
                result.num_partitions = result.replication_factor = -1
                result.configs = []
        response.topics = [*map(_uncreated, {topic.name: topic for topic in denied}.values()), *response.topics]

    return then(go_on(request), finish)


def _uncreated(topic: Any) -> CreatableTopicResult:
    return CreatableTopicResult(
        name=topic.name,
        error_code=REFUSED,
        error_message="Authorization failed.",
        num_partitions=-1,
        replication_factor=-1,
        configs=[],
    )


def guard_delete_topics(asked: Asked, request: DeleteTopicsRequest, go_on: GoOn) -> Answer:
    """DeleteTopics (api 20): a client that knows only a topic's id does not learn its name, unless it may describe the topic."""
    told = [topic.name or asked.broker.metadata.topic_name(topic.topic_id) or "" for topic in request.topics]
    wanted = [*request.topic_names, *told]
    if asked.access.silent.allows_cluster(Operation.DELETE) and AUDIT_TOPIC not in wanted:
        for name in wanted:
            asked.access.note(Operation.DELETE, ResourceType.TOPIC, name)
        return go_on(request)
    denied: list[DeletableTopicResult] = []
    if asked.version >= FIRST_DELETE_VERSION_WITH_IDS:
        kept = []
        for topic in request.topics:
            refusal = _why_not_delete(asked, topic.name, topic.topic_id)
            if refusal is None:
                kept.append(topic)
            else:
                denied.append(refusal)
        request.topics = kept
    else:
        refusals = {name: _why_not_delete(asked, name, ZERO_UUID) for name in request.topic_names}
        denied = [refusal for refusal in refusals.values() if refusal is not None]
        request.topic_names = [name for name in request.topic_names if refusals[name] is None]

    def add(response: DeleteTopicsResponse) -> None:
        response.responses = [*response.responses, *denied]

    return then(go_on(request), add) if denied else go_on(request)


def _why_not_delete(asked: Asked, given: str | None, topic_id: UUID) -> DeletableTopicResult | None:
    """The refusal; None if the client may delete the topic."""
    metadata, by_id = asked.broker.metadata, topic_id != ZERO_UUID
    if by_id and given is not None:
        return None  # the handler refuses a request with both
    name = metadata.topic_name(topic_id) if by_id else given
    if name is None or _may(asked, Operation.DELETE, name):
        return None
    may_describe = asked.access.silent.allows_topic(Operation.DESCRIBE, name)
    if not by_id and may_describe and metadata.topic(name) is None:
        # Answered here, because the topic may exist when the handler looks
        code, message = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, UNKNOWN_NAME
        return DeletableTopicResult(name=name, topic_id=topic_id, error_code=code, error_message=message)
    told = name if may_describe or not by_id else None
    return DeletableTopicResult(name=told, topic_id=topic_id, error_code=REFUSED, error_message=TOPIC_MESSAGE)


def _may(asked: Asked, operation: Operation, name: str) -> bool:
    """Whether the client has the right on the topic or on the cluster; for the audit log only the right on the topic counts."""
    if name == AUDIT_TOPIC or not asked.access.silent.allows_cluster(operation):
        return asked.access.allows_topic(operation, name)
    asked.access.note(operation, ResourceType.TOPIC, name)
    return True


GUARDS: dict[int, Guard] = {
    ApiKey.LIST_OFFSETS: _on_topics(Operation.DESCRIBE, _unlisted),
    ApiKey.CREATE_TOPICS: guard_create_topics,
    ApiKey.DELETE_TOPICS: guard_delete_topics,
    ApiKey.DELETE_RECORDS: _on_topics(Operation.DELETE, _undeleted_records),
    ApiKey.OFFSET_FOR_LEADER_EPOCH: guard_offset_for_leader_epoch,
    ApiKey.CREATE_PARTITIONS: _on_topics(Operation.ALTER, _no_more_partitions, field="results"),
    ApiKey.DESCRIBE_PRODUCERS: _on_topics(Operation.READ, _no_producers),
}
