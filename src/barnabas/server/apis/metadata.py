"""Metadata: the brokers, the topics and the leaders of their partitions; may create missing topics.

The answer contains a topic that it created. Kafka's controller is another machine, so Kafka answers LEADER_NOT_AVAILABLE or
UNKNOWN_TOPIC_OR_PARTITION and the client asks again. This broker answers so only if the controller takes longer than a moment
(`cluster/membership/auto_topic_creation.py`); the controller still creates the topic.
"""

from __future__ import annotations

from collections.abc import Awaitable, Container, Sequence
from typing import TYPE_CHECKING, Protocol

from barnabas.cluster.planning.topics import is_legal_name
from barnabas.errors import ErrorCode, KafkaError
from barnabas.protocol.base_message import ZERO_UUID, WrittenOnce
from barnabas.protocol.messages.api_keys import ApiKey
from barnabas.protocol.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from barnabas.protocol.values import NO_LEADER
from barnabas.server.apis.operations import ALL_ON_CLUSTER, ALL_ON_TOPIC, NOT_ASKED
from barnabas.server.current_leader import LeaderServices, may_lead
from barnabas.server.handlers import Handler, takes
from barnabas.server.quotas.mutations import MutationBroker, mutation_quota

if TYPE_CHECKING:
    from barnabas.cluster.metadata.image import MetadataImage, Topic
    from barnabas.replication.hosted_partitions import HostedPartitions
    from barnabas.server.plugins import Plugins
    from barnabas.server.requests import RequestContext

FIRST_VERSION_WITH_AUTO_CREATE_FLAG = 4
FIRST_VERSION_WITH_TOPIC_ID_LOOKUP = 12


class MetadataBroker(LeaderServices, MutationBroker, Protocol):
    """The parts of the broker that this module uses."""

    all_topics: AllTopics
    partitions: HostedPartitions
    plugins: Plugins


def handle_metadata(
    broker: MetadataBroker, context: RequestContext, request: MetadataRequest
) -> MetadataResponse | Awaitable[MetadataResponse]:
    """Answer at once if every topic is known; otherwise create the missing topics first, if the request allows this."""
    topics = request.topics
    if topics is not None and any(t.name is None or t.topic_id != ZERO_UUID for t in topics):
        refused = _check_ids(context.api_version, topics)
        if refused is not None:
            return _refuse(topics, refused)
    if topics is None or (context.api_version == 0 and not topics):
        return _respond(broker, context, request, broker.all_topics.of(broker, request))
    missing = _missing(broker.metadata, topics)
    may_create = context.api_version < FIRST_VERSION_WITH_AUTO_CREATE_FLAG or request.allow_auto_topic_creation
    if missing and may_create and broker.config.auto_create_topics_enable:
        return _create_and_respond(broker, context, request, topics, missing)
    return _respond(broker, context, request, _look_up_all(broker, topics, request, {}))


class AllTopics:
    """The topics for answers to requests for all topics.

    Consumers that subscribe by a pattern send such requests, all at the same time after a reconnect. So the broker describes and encodes
    the topics once for each metadata image.
    """

    def __init__(self) -> None:
        self._made_for: tuple[MetadataImage, bool] | None = None
        self._made = WrittenOnce(())

    def of(self, broker: MetadataBroker, request: MetadataRequest) -> list[MetadataResponseTopic]:
        image = broker.metadata
        differs = request.include_topic_authorized_operations
        if differs or broker.partitions.offline_count:  # a disk can fail without a change of the image
            return [_describe(broker, topic, request) for topic in image.topics.values()]
        leads = may_lead(broker, broker.config.broker_id)
        if self._made_for is None or self._made_for[0] is not image or self._made_for[1] != leads:
            self._made = WrittenOnce(_describe(broker, topic, request) for topic in image.topics.values())
            self._made_for = image, leads
        return self._made


async def _create_and_respond(
    broker: MetadataBroker,
    context: RequestContext,
    request: MetadataRequest,
    topics: Sequence[MetadataRequestTopic],
    missing: list[str],
) -> MetadataResponse:
    quota = mutation_quota(broker, context)
    # the quota for topics in creation is already paid
    begun = [name for name in missing if not broker.controller.is_being_made(name)]
    refused = {} if quota is None else quota.refuse_new(begun)
    failed = await broker.controller.auto_create([name for name in missing if name not in refused])
    if broker.plugins.policies is not None:
        failed = {name: _not_there(error) for name, error in failed.items()}
    failed.update(refused)
    return _respond(broker, context, request, _look_up_all(broker, topics, request, failed))


def _not_there(error: KafkaError | None) -> KafkaError | None:
    """The error for a topic that a policy refuses: the topic is unknown, as in Kafka, because another client may create it."""
    if error is None or error.code == ErrorCode.INVALID_TOPIC_EXCEPTION:
        return error
    return KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)


def _check_ids(version: int, topics: Sequence[MetadataRequestTopic]) -> ErrorCode | None:
    """The error of a request with neither id nor name, or with ids in versions 10 and 11, in which ids cannot be looked up."""
    if version < FIRST_VERSION_WITH_TOPIC_ID_LOOKUP:
        return ErrorCode.INVALID_REQUEST
    nameless = any(t.name is None and t.topic_id == ZERO_UUID for t in topics)
    return ErrorCode.UNKNOWN_SERVER_ERROR if nameless else None


def _refuse(topics: Sequence[MetadataRequestTopic], error: ErrorCode) -> MetadataResponse:
    """The answer to a request that the broker refuses as a whole."""
    refused = [MetadataResponseTopic(error_code=error, name=t.name or "", topic_id=t.topic_id) for t in topics]
    return MetadataResponse(brokers=[], cluster_id=None, topics=refused, error_code=error)


def _missing(metadata: MetadataImage, topics: Sequence[MetadataRequestTopic]) -> list[str]:
    wanted = [t.name for t in topics if t.name is not None and t.topic_id == ZERO_UUID]
    return [name for name in dict.fromkeys(wanted) if metadata.topic(name) is None]


def _look_up_all(
    broker: MetadataBroker,
    topics: Sequence[MetadataRequestTopic],
    request: MetadataRequest,
    failed: dict[str, KafkaError | None],
) -> list[MetadataResponseTopic]:
    """Each topic once, unknown ids first. If a request gives an id and a name, the name does not count."""
    metadata = broker.metadata
    unknown = []
    found: dict[str, Topic | None] = {}
    for wanted in topics:
        if wanted.topic_id == ZERO_UUID:
            found[wanted.name or ""] = metadata.topic(wanted.name or "")
            continue
        topic = metadata.topic_by_id(wanted.topic_id)
        if topic is None:
            unknown.append(MetadataResponseTopic(error_code=ErrorCode.UNKNOWN_TOPIC_ID, name=None, topic_id=wanted.topic_id))
        else:
            found[topic.name] = topic
    return unknown + [
        _describe(broker, topic, request) if topic is not None else _absent(name, failed) for name, topic in found.items()
    ]


def _absent(name: str, failed: dict[str, KafkaError | None]) -> MetadataResponseTopic:
    error = failed.get(name)
    if error is not None:
        code = error.code
    else:
        code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION if is_legal_name(name) else ErrorCode.INVALID_TOPIC_EXCEPTION
    return MetadataResponseTopic(error_code=code, name=name)


def _describe(broker: MetadataBroker, topic: Topic, request: MetadataRequest) -> MetadataResponseTopic:
    partitions = [
        MetadataResponsePartition(
            error_code=ErrorCode.NONE if state.leader >= 0 else ErrorCode.LEADER_NOT_AVAILABLE,
            partition_index=index,
            leader_id=state.leader,
            leader_epoch=state.leader_epoch,
            replica_nodes=state.replicas,
            isr_nodes=state.isr if state.leader != NO_LEADER else (),
        )
        for index, state in enumerate(topic.partitions)
    ]
    if broker.member is not None:
        _mark_absent(broker.metadata.brokers, partitions)
        if not may_lead(broker, broker.config.broker_id):
            _mark_not_led_by(broker.config.broker_id, partitions)
        for other in broker.metadata.brokers.values():
            if other.offline and other.broker_id != broker.config.broker_id:
                for index in other.offline.get(topic.topic_id, ()):
                    if index < len(partitions) and other.broker_id in partitions[index].replica_nodes:
                        _mark_offline(other.broker_id, partitions[index])
    if broker.partitions.offline_count:
        for partition in partitions:
            if broker.partitions.is_offline(topic.name, partition.partition_index):
                _mark_offline(broker.config.broker_id, partition)
    return MetadataResponseTopic(
        name=topic.name,
        topic_id=topic.topic_id,
        is_internal=topic.is_internal,
        partitions=partitions,
        topic_authorized_operations=ALL_ON_TOPIC if request.include_topic_authorized_operations else NOT_ASKED,
    )


def _mark_absent(alive: Container[int], partitions: Sequence[MetadataResponsePartition]) -> None:
    """Mark replicas on dead brokers as offline, and partitions with a dead leader as leaderless."""
    for partition in partitions:
        partition.offline_replicas = [replica for replica in partition.replica_nodes if replica not in alive]
        if partition.leader_id not in alive:
            _mark_leaderless(partition)


def _mark_not_led_by(broker_id: int, partitions: Sequence[MetadataResponsePartition]) -> None:
    """Mark this broker's partitions as leaderless, because others may lead them by now: clients then ask again, and elsewhere."""
    for partition in partitions:
        if partition.leader_id == broker_id:
            _mark_leaderless(partition)


def _mark_offline(broker_id: int, partition: MetadataResponsePartition) -> None:
    """Mark a replica whose broker cannot use the log."""
    partition.offline_replicas = [*partition.offline_replicas, broker_id]
    if partition.leader_id == broker_id:
        _mark_leaderless(partition)


def _mark_leaderless(partition: MetadataResponsePartition) -> None:
    partition.error_code = ErrorCode.LEADER_NOT_AVAILABLE
    partition.leader_id = NO_LEADER


def _respond(
    broker: MetadataBroker, context: RequestContext, request: MetadataRequest, topics: list[MetadataResponseTopic]
) -> MetadataResponse:
    brokers = []
    for registration in broker.metadata.brokers.values():
        endpoint = registration.endpoint(context.listener)
        if endpoint is not None:
            brokers.append(
                MetadataResponseBroker(
                    node_id=registration.broker_id, host=endpoint.host, port=endpoint.port, rack=registration.rack
                )
            )
    return MetadataResponse(
        brokers=brokers,
        cluster_id=broker.metadata.cluster_id,
        controller_id=broker.metadata.controller_id,
        topics=topics,
        cluster_authorized_operations=ALL_ON_CLUSTER if request.include_cluster_authorized_operations else NOT_ASKED,
    )


HANDLERS: dict[int, Handler[MetadataBroker]] = {
    ApiKey.METADATA: takes(MetadataRequest, handle_metadata),
}
