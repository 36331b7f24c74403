"""Guards of APIs that describe the cluster and its topics. Answers about all topics omit those that the client may not describe."""

from __future__ import annotations

from typing import Any

from barnabas.error_codes import ErrorCode
from barnabas.protocol.base_message import ZERO_UUID
from barnabas.protocol.messages.api_keys import ApiKey
from barnabas.protocol.messages.describe_cluster import DescribeClusterRequest, DescribeClusterResponse
from barnabas.protocol.messages.describe_log_dirs import DescribeLogDirsRequest, DescribeLogDirsResponse
from barnabas.protocol.messages.describe_topic_partitions import (
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
    DescribeTopicPartitionsResponseTopic,
    TopicRequest,
)
from barnabas.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse, MetadataResponseTopic
from barnabas.security.acls import CLUSTER, Operation, ResourceType
from barnabas.server.apis.metadata import FIRST_VERSION_WITH_AUTO_CREATE_FLAG, FIRST_VERSION_WITH_TOPIC_ID_LOOKUP
from barnabas.server.apis.operations import NOT_ASKED
from barnabas.server.guards.guard import Answer, Asked, GoOn, Guard, on_cluster, split, then

REFUSED = ErrorCode.TOPIC_AUTHORIZATION_FAILED


def cluster_operations(asked: Asked) -> int:
    """The operations that the client may do on the cluster; none if it may not describe the cluster."""
    return asked.access.operations(*CLUSTER) if asked.access.silent.allows_cluster(Operation.DESCRIBE) else 0


def guard_metadata(asked: Asked, request: MetadataRequest, go_on: GoOn) -> Answer:
    """Metadata (api 3)."""
    access = asked.access
    asks_for_all = request.topics is None or (asked.version == 0 and not request.topics)
    denied: list[MetadataResponseTopic] = []
    is_emptied = False
    if not asks_for_all:
        allowed, denied = _split_metadata(asked, request)
        request.topics = allowed
        is_emptied = not allowed and asked.version == 0  # an empty list means all topics in version 0

    def finish(response: MetadataResponse) -> None:
        if is_emptied:
            response.topics = []
        elif asks_for_all:
            response.topics = [t for t in response.topics if access.silent.allows_topic(Operation.DESCRIBE, t.name or "")]
        if request.include_topic_authorized_operations:
            for topic in response.topics:
                if topic.name is not None:
                    topic.topic_authorized_operations = access.operations(ResourceType.TOPIC, topic.name)
        if request.include_cluster_authorized_operations:
            response.cluster_authorized_operations = cluster_operations(asked)
        response.topics = [*response.topics, *denied]

    return then(go_on(request), finish)


def _split_metadata(asked: Asked, request: MetadataRequest) -> tuple[list[MetadataRequestTopic], list[MetadataResponseTopic]]:
    """The allowed topics, and the refusals. A refusal of an id does not reveal the name, and a refusal of a name does not reveal the id."""
    metadata, access, config = asked.broker.metadata, asked.access, asked.broker.config
    topics = request.topics or ()
    if any(t.topic_id != ZERO_UUID for t in topics) and asked.version < FIRST_VERSION_WITH_TOPIC_ID_LOOKUP:
        return list(topics), []  # the handler refuses the whole request
    may_create = asked.version < FIRST_VERSION_WITH_AUTO_CREATE_FLAG or request.allow_auto_topic_creation
    may_create = may_create and config.auto_create_topics_enable and not access.silent.allows_cluster(Operation.CREATE)
    allowed: list[MetadataRequestTopic] = []
    denied: dict[object, MetadataResponseTopic] = {}
    for topic in topics:
        by_id = topic.topic_id != ZERO_UUID
        name = metadata.topic_name(topic.topic_id) if by_id else topic.name
        if name is None:
            allowed.append(topic)
        elif not access.allows_topic(Operation.DESCRIBE, name):
            told = None if by_id else name
            denied[topic.topic_id if by_id else name] = MetadataResponseTopic(
                error_code=REFUSED, name=told, topic_id=topic.topic_id
            )
        elif may_create and metadata.topic(name) is None and not access.allows_topic(Operation.CREATE, name):
            denied[name] = MetadataResponseTopic(error_code=REFUSED, name=name)
        else:
            allowed.append(topic)
    return allowed, list(denied.values())


def guard_describe_cluster(asked: Asked, request: DescribeClusterRequest, go_on: GoOn) -> Answer:
    """DescribeCluster (api 60): open to every client, like Metadata."""

    def finish(response: DescribeClusterResponse) -> None:
        if request.include_cluster_authorized_operations and not response.error_code:
            response.cluster_authorized_operations = cluster_operations(asked)

    return then(go_on(request), finish)


def guard_describe_topic_partitions(asked: Asked, request: DescribeTopicPartitionsRequest, go_on: GoOn) -> Answer:
    """DescribeTopicPartitions (api 75)."""
    access = asked.access

    def may_describe(name: str) -> bool:
        return access.allows_topic(Operation.DESCRIBE, name)

    cursor, asks_for_all = request.cursor, not request.topics
    denied: list[Any] = []
    if request.topics:
        request.topics, denied = split(request.topics, may_describe)
    else:
        names = [n for n in sorted(asked.broker.metadata.topics) if access.silent.allows_topic(Operation.DESCRIBE, n)]
        request.topics = [TopicRequest(name=name) for name in names]
    refused = {topic.name for topic in denied}
    if cursor is not None and (asks_for_all or cursor.topic_name in refused):
        is_there = any(topic.name == cursor.topic_name for topic in request.topics)
        request.topics = [topic for topic in request.topics if topic.name >= cursor.topic_name]
        request.cursor = cursor if is_there else None  # the handler refuses a cursor that is not among its topics
    beginning = "" if cursor is None else cursor.topic_name
    refusals = [
        DescribeTopicPartitionsResponseTopic(error_code=REFUSED, name=name) for name in sorted(refused) if name >= beginning
    ]

    def finish(response: DescribeTopicPartitionsResponse) -> None:
        for topic in response.topics:
            if topic.topic_authorized_operations != NOT_ASKED:
                topic.topic_authorized_operations = access.operations(ResourceType.TOPIC, topic.name or "")
        response.topics = [*response.topics, *refusals]

    if not request.topics:  # for the handler an empty list means all topics
        return DescribeTopicPartitionsResponse(topics=refusals, next_cursor=None)
    return then(go_on(request), finish)


def _no_log_dirs(_request: DescribeLogDirsRequest, code: ErrorCode) -> DescribeLogDirsResponse:
    return DescribeLogDirsResponse(error_code=code)


GUARDS: dict[int, Guard] = {
    ApiKey.METADATA: guard_metadata,
    ApiKey.DESCRIBE_LOG_DIRS: on_cluster(Operation.DESCRIBE, _no_log_dirs),
    ApiKey.DESCRIBE_CLUSTER: guard_describe_cluster,
    ApiKey.DESCRIBE_TOPIC_PARTITIONS: guard_describe_topic_partitions,
}
