"""DescribeQuorum (api 55): the coordination of this cluster, in the terms of KRaft.

The leader is the controller, and its epoch is the controller epoch. Voters are the brokers that can become controller next; observers are
brokers that are shutting down. Offsets are numbers of the store's commits. All commits are decided, so the high watermark is the
controller's position. The answer does not tell how many servers ZooKeeper needs for its own quorum.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from barnabas.cluster.metadata.image import BrokerState
from barnabas.errors import ErrorCode
from barnabas.protocol.messages.api_keys import ApiKey
from barnabas.protocol.messages.describe_quorum import (
    DescribeQuorumRequest,
    DescribeQuorumResponse,
    Listener,
    Node,
    ReplicaState,
    ResponsePartitionData,
    ResponseTopicData,
)
from barnabas.server.cluster.quorum import METADATA_TOPIC, UNKNOWN, Known
from barnabas.server.handlers import Handler, takes

if TYPE_CHECKING:
    from barnabas.clock import Clock
    from barnabas.cluster.membership.member import Member
    from barnabas.cluster.membership.standalone_controller import StandaloneController
    from barnabas.cluster.metadata.image import MetadataImage
    from barnabas.config.broker import BrokerConfig
    from barnabas.server.cluster.quorum import Quorum
    from barnabas.server.requests import RequestContext

NO_LEADER_MESSAGE = "Nobody is controller at the moment."
UNKNOWN_MESSAGE = "There is a quorum of partition 0 of __cluster_metadata only."


class QuorumBroker(Protocol):
    """The parts of the broker that this module uses."""

    clock: Clock
    config: BrokerConfig
    controller: StandaloneController | Member
    quorum: Quorum | None

    @property
    def metadata(self) -> MetadataImage: ...


async def handle_describe_quorum(
    broker: QuorumBroker, context: RequestContext, request: DescribeQuorumRequest
) -> DescribeQuorumResponse:
    asked = [(topic.topic_name, [each.partition_index for each in topic.partitions]) for topic in request.topics]
    if asked != [(METADATA_TOPIC, [0])]:
        return _unknown(request)
    if broker.quorum is None:
        own = Known(await broker.controller.position(), broker.clock.now_ms())
        known = {broker.config.broker_id: own}
    else:
        known = await broker.quorum.known()
    image = broker.metadata
    leader = image.controller_id
    if leader not in image.brokers:
        return DescribeQuorumResponse(error_code=ErrorCode.NOT_LEADER_OR_FOLLOWER, error_message=NO_LEADER_MESSAGE)
    leaving = {b.broker_id for b in image.brokers.values() if b.state is BrokerState.SHUTTING_DOWN} - {leader}
    partition = ResponsePartitionData(
        partition_index=0,
        leader_id=leader,
        leader_epoch=broker.controller.controller_epoch,
        high_watermark=known.get(leader, Known()).position,
        current_voters=[_state(each, known) for each in sorted(image.brokers) if each not in leaving],
        observers=[_state(each, known) for each in sorted(leaving)],
    )
    nodes = []
    for broker_id, registered in sorted(image.brokers.items()):
        endpoint = registered.endpoint(context.listener)
        listeners = [] if endpoint is None else [Listener(name=endpoint.listener, host=endpoint.host, port=endpoint.port)]
        nodes.append(Node(node_id=broker_id, listeners=listeners))
    topic = ResponseTopicData(topic_name=METADATA_TOPIC, partitions=[partition])
    return DescribeQuorumResponse(topics=[topic], nodes=nodes)


def _state(broker_id: int, known: dict[int, Known]) -> ReplicaState:
    """The state of a broker. A broker that answered has all commits that the store decided before the answer."""
    position, at_ms = known.get(broker_id, Known())
    at_ms = UNKNOWN if position == UNKNOWN else at_ms
    return ReplicaState(replica_id=broker_id, log_end_offset=position, last_fetch_timestamp=at_ms, last_caught_up_timestamp=at_ms)


def _unknown(request: DescribeQuorumRequest) -> DescribeQuorumResponse:
    code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    return DescribeQuorumResponse(
        topics=[
            ResponseTopicData(
                topic_name=topic.topic_name,
                partitions=[
                    ResponsePartitionData(partition_index=each.partition_index, error_code=code, error_message=UNKNOWN_MESSAGE)
                    for each in topic.partitions
                ],
            )
            for topic in request.topics
        ],
    )


HANDLERS: dict[int, Handler[QuorumBroker]] = {
    ApiKey.DESCRIBE_QUORUM: takes(DescribeQuorumRequest, handle_describe_quorum),
}
