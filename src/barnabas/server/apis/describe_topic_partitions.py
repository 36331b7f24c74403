"""DescribeTopicPartitions: describes topics one page at a time (KIP-966)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

from barnabas.cluster.metadata.image import PartitionState, Topic
from barnabas.cluster.planning.topics import check_name
from barnabas.errors import ErrorCode, KafkaError
from barnabas.protocol.messages.api_keys import ApiKey
from barnabas.protocol.messages.describe_topic_partitions import (
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
    DescribeTopicPartitionsResponsePartition,
    DescribeTopicPartitionsResponseTopic,
    ResponseCursor,
)
from barnabas.protocol.values import NO_LEADER
from barnabas.server.apis.operations import ALL_ON_TOPIC, NOT_ASKED
from barnabas.server.current_leader import LeaderServices, may_lead
from barnabas.server.handlers import Handler, takes

if TYPE_CHECKING:
    from barnabas.replication.hosted_partitions import HostedPartitions
    from barnabas.server.requests import RequestContext


class DescribeTopicPartitionsBroker(LeaderServices, Protocol):
    """The parts of the broker that this module uses."""

    partitions: HostedPartitions


def handle_describe_topic_partitions(
    broker: DescribeTopicPartitionsBroker, context: RequestContext, request: DescribeTopicPartitionsRequest
) -> DescribeTopicPartitionsResponse:
    """DescribeTopicPartitions (api 75, KIP-966): topics in the order of their names, from the cursor on, as many as fit.

    A request without topics asks for all of them. The cursor must be on one of the requested topics.
    """
    asked = sorted({topic.name for topic in request.topics})
    names = asked or sorted(broker.metadata.topics)
    cursor = request.cursor
    if cursor is not None and (cursor.partition_index < 0 or (asked and cursor.topic_name not in asked)):
        return DescribeTopicPartitionsResponse(topics=[_refused(name, ErrorCode.INVALID_REQUEST) for name in asked])
    most = broker.config.max_request_partition_size_limit
    left = min(max(request.response_partition_limit, 1), most)
    topics: list[DescribeTopicPartitionsResponseTopic] = []
    for name in names:
        if cursor is not None and name < cursor.topic_name:
            continue
        if left == 0:
            return DescribeTopicPartitionsResponse(topics=topics, next_cursor=ResponseCursor(topic_name=name, partition_index=0))
        first = cursor.partition_index if cursor is not None and name == cursor.topic_name else 0
        answer, count = _topic(broker, name, first, left)
        topics.append(answer)
        left -= len(answer.partitions)
        if first + len(answer.partitions) < count:
            next_cursor = ResponseCursor(topic_name=name, partition_index=first + len(answer.partitions))
            return DescribeTopicPartitionsResponse(topics=topics, next_cursor=next_cursor)
    return DescribeTopicPartitionsResponse(topics=topics, next_cursor=None)


def _topic(
    broker: DescribeTopicPartitionsBroker, name: str, first: int, limit: int
) -> tuple[DescribeTopicPartitionsResponseTopic, int]:
    try:
        check_name(name)
    except KafkaError as error:
        return _refused(name, error.code, ALL_ON_TOPIC), 0
    topic = broker.metadata.topic(name)
    if topic is None:
        return _refused(name, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ALL_ON_TOPIC), 0
    return _described(broker, topic, first, limit), len(topic.partitions)


def _described(
    broker: DescribeTopicPartitionsBroker, topic: Topic, first: int, limit: int
) -> DescribeTopicPartitionsResponseTopic:
    states = topic.partitions[first : first + limit]
    return DescribeTopicPartitionsResponseTopic(
        name=topic.name,
        topic_id=topic.topic_id,
        is_internal=topic.is_internal,
        partitions=[_partition(broker, topic.name, first + place, state) for place, state in enumerate(states)],
        topic_authorized_operations=ALL_ON_TOPIC,
    )


def _partition(
    broker: DescribeTopicPartitionsBroker, topic: str, index: int, state: PartitionState
) -> DescribeTopicPartitionsResponsePartition:
    alive = broker.metadata.brokers
    is_offline = broker.partitions.is_offline(topic, index)
    is_refused = not may_lead(broker, state.leader) or (is_offline and state.leader == broker.config.broker_id)
    leader = NO_LEADER if is_refused else state.leader
    topic_id = broker.metadata.topics[topic].topic_id
    offline = {replica for replica in state.replicas if replica not in alive}
    offline |= broker.metadata.offline_brokers(topic_id, index)
    if is_offline:
        offline.add(broker.config.broker_id)
    return DescribeTopicPartitionsResponsePartition(
        error_code=ErrorCode.NONE if leader in alive else ErrorCode.LEADER_NOT_AVAILABLE,
        partition_index=index,
        leader_id=leader,
        leader_epoch=state.leader_epoch,
        replica_nodes=state.replicas,
        isr_nodes=state.isr if state.leader != NO_LEADER else (),
        eligible_leader_replicas=_eligible(state),
        last_known_elr=_last_known(state),
        offline_replicas=[replica for replica in state.replicas if replica in offline],
    )


def _eligible(state: PartitionState) -> Sequence[int]:
    """The eligible leader replicas. Without a leader they include the recorded in-sync replicas: these are dead, and can lead when they
    are back.
    """
    if state.leader != NO_LEADER or state.is_lost:
        return state.eligible
    return [replica for replica in state.replicas if replica in state.isr or replica in state.eligible]


def _last_known(state: PartitionState) -> Sequence[int]:
    """The last known leaders, as Kafka shows them: without a leader, a single recorded in-sync replica is the one that led last."""
    if state.is_lost:
        return state.last_known
    told = [replica for replica in state.last_known if replica not in (*state.isr, *state.eligible)]
    return state.isr if not told and state.leader == NO_LEADER and len(state.isr) == 1 else told


def _refused(name: str, code: ErrorCode, operations: int = NOT_ASKED) -> DescribeTopicPartitionsResponseTopic:
    return DescribeTopicPartitionsResponseTopic(error_code=code, name=name, topic_authorized_operations=operations)


HANDLERS: dict[int, Handler[DescribeTopicPartitionsBroker]] = {
    ApiKey.DESCRIBE_TOPIC_PARTITIONS: takes(DescribeTopicPartitionsRequest, handle_describe_topic_partitions),
}
