"""Creates topics, deletes topics and adds partitions. The handlers are thin: the controller decides."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

from barnabas.cluster.planning.deletion import DeleteOutcome
from barnabas.cluster.planning.topics import MorePartitions, NewTopic, TopicOutcome
from barnabas.config.describe import Layers, topic_entries
from barnabas.config.mirror_settings import MIRROR_KEYS, MIRROR_LINK
from barnabas.errors import ErrorCode, KafkaError
from barnabas.protocol.base_message import ZERO_UUID
from barnabas.protocol.messages.api_keys import ApiKey
from barnabas.protocol.messages.create_partitions import (
    CreatePartitionsAssignment,
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopicResult,
)
from barnabas.protocol.messages.create_topics import (
    CreatableTopicConfigs,
    CreatableTopicResult,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from barnabas.protocol.messages.delete_topics import DeletableTopicResult, DeleteTopicsRequest, DeleteTopicsResponse
from barnabas.server.handlers import Handler, takes
from barnabas.server.quotas.mutations import MutationBroker, mutation_quota

if TYPE_CHECKING:
    from barnabas.server.requests import RequestContext

FIRST_DELETE_VERSION_WITH_IDS = 6
FIRST_DELETE_VERSION_WITH_DISABLED_CODE = 3


class TopicBroker(MutationBroker, Protocol):
    """The parts of the broker that this module uses."""


async def handle_create_topics(
    broker: TopicBroker, context: RequestContext, request: CreateTopicsRequest
) -> CreateTopicsResponse:
    """CreateTopics (api 19)."""
    wanted = [
        NewTopic(
            topic.name,
            topic.num_partitions,
            topic.replication_factor,
            [(assignment.partition_index, assignment.broker_ids) for assignment in topic.assignments],
            [(config.name, config.value) for config in topic.configs],
        )
        for topic in request.topics
    ]
    refused = [outcome for topic in wanted if (outcome := _refused_copy(topic)) is not None]
    wanted = [topic for topic in wanted if _refused_copy(topic) is None]
    quota = mutation_quota(broker, context)
    try:
        outcomes = await (broker.controller if quota is None else quota).create_topics(
            wanted, validate_only=request.validate_only
        )
    except KafkaError as error:
        outcomes = [TopicOutcome(name, error) for name in dict.fromkeys(topic.name for topic in wanted)]
    outcomes = [*outcomes, *refused]
    layers = broker.controller.layers
    throttle_ms = 0 if quota is None else quota.throttle_ms
    return CreateTopicsResponse(throttle_time_ms=throttle_ms, topics=[_created(outcome, layers) for outcome in outcomes])


def _refused_copy(topic: NewTopic) -> TopicOutcome | None:
    """The refusal of a topic that a client wants to create with the settings of a copy, which only a mirror link may set."""
    named = [key for key, _ in topic.configs if key in MIRROR_KEYS]
    if not named:
        return None
    return TopicOutcome(
        topic.name, KafkaError(ErrorCode.INVALID_CONFIG, f"{named[0]} is set by the mirror link that creates the topic")
    )


def _created(outcome: TopicOutcome, layers: Layers) -> CreatableTopicResult:
    topic = outcome.topic
    if outcome.error is not None or topic is None:
        code, message = _told(outcome.error)
        return CreatableTopicResult(
            name=outcome.name, error_code=code, error_message=message, num_partitions=-1, replication_factor=-1, configs=[]
        )
    given = outcome.settings or {}
    configs = [
        CreatableTopicConfigs(
            name=entry.name,
            value=given.get(entry.name, entry.value),
            read_only=entry.is_read_only,
            config_source=entry.source,
            is_sensitive=entry.is_sensitive,
        )
        for entry in topic_entries(given, layers)
    ]
    return CreatableTopicResult(
        name=topic.name,
        topic_id=topic.topic_id,
        num_partitions=len(topic.partitions),
        replication_factor=len(topic.partitions[0].replicas),
        error_message=None,
        configs=configs,
    )


async def handle_delete_topics(
    broker: TopicBroker, context: RequestContext, request: DeleteTopicsRequest
) -> DeleteTopicsResponse:
    """DeleteTopics (api 20)."""
    version = context.api_version
    if version >= FIRST_DELETE_VERSION_WITH_IDS:
        wanted = [(topic.name, topic.topic_id) for topic in request.topics]
    else:
        wanted = [(name, ZERO_UUID) for name in request.topic_names]
    quota = mutation_quota(broker, context)
    try:
        outcomes = await (broker.controller if quota is None else quota).delete_topics(wanted)
    except KafkaError as error:
        outcomes = [DeleteOutcome(name, topic_id, error) for name, topic_id in dict.fromkeys(wanted)]
    throttle_ms = 0 if quota is None else quota.throttle_ms
    return DeleteTopicsResponse(throttle_time_ms=throttle_ms, responses=[_deleted(outcome, version) for outcome in outcomes])


def _deleted(outcome: DeleteOutcome, version: int) -> DeletableTopicResult:
    code, message = _told(outcome.error)
    if code == ErrorCode.TOPIC_DELETION_DISABLED and version < FIRST_DELETE_VERSION_WITH_DISABLED_CODE:
        code = ErrorCode.INVALID_REQUEST
    return DeletableTopicResult(name=outcome.name, topic_id=outcome.topic_id, error_code=code, error_message=message)


async def handle_create_partitions(
    broker: TopicBroker, context: RequestContext, request: CreatePartitionsRequest
) -> CreatePartitionsResponse:
    """CreatePartitions (api 37)."""
    links = {topic.name: broker.metadata.topic_config(topic.name).get(MIRROR_LINK) for topic in request.topics}
    wanted = [
        MorePartitions(topic.name, topic.count, _assignments(topic.assignments))
        for topic in request.topics
        if links[topic.name] is None
    ]
    quota = mutation_quota(broker, context)
    try:
        outcomes = await (broker.controller if quota is None else quota).create_partitions(
            wanted, validate_only=request.validate_only
        )
    except KafkaError as error:
        outcomes = [TopicOutcome(name, error) for name in dict.fromkeys(topic.name for topic in wanted)]
    copies = {name: link for name, link in links.items() if link is not None}
    outcomes = [*outcomes, *(TopicOutcome(name, _copy_error(name, link)) for name, link in copies.items())]
    results = []
    for outcome in outcomes:
        code, message = _told(outcome.error)
        results.append(CreatePartitionsTopicResult(name=outcome.name, error_code=code, error_message=message))
    return CreatePartitionsResponse(throttle_time_ms=0 if quota is None else quota.throttle_ms, results=results)


def _copy_error(topic: str, link: str) -> KafkaError:
    return KafkaError(
        ErrorCode.POLICY_VIOLATION, f"Topic {topic} gets its partitions from its source, by the mirror link {link}."
    )


def _assignments(assignments: Sequence[CreatePartitionsAssignment] | None) -> list[Sequence[int]] | None:
    return None if assignments is None else [assignment.broker_ids for assignment in assignments]


def _told(error: KafkaError | None) -> tuple[ErrorCode, str | None]:
    return (ErrorCode.NONE, None) if error is None else (error.code, error.message)


HANDLERS: dict[int, Handler[TopicBroker]] = {
    ApiKey.CREATE_TOPICS: takes(CreateTopicsRequest, handle_create_topics),
    ApiKey.DELETE_TOPICS: takes(DeleteTopicsRequest, handle_delete_topics),
    ApiKey.CREATE_PARTITIONS: takes(CreatePartitionsRequest, handle_create_partitions),
}
