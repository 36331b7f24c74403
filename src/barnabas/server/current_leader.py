"""The current leader of a partition, for clients that asked the wrong broker (KIP-951). So they need not ask for the metadata first.

A broker that lost its session with the store does not name itself: it refuses to lead, and other brokers may lead by now.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Protocol

from barnabas.errors import ErrorCode
from barnabas.protocol.produce import NodeEndpoint
from barnabas.protocol.values import NO_LEADER

if TYPE_CHECKING:
    from barnabas.cluster.membership.member import Member
    from barnabas.cluster.metadata.image import MetadataImage
    from barnabas.config.broker import BrokerConfig

TOLD_WITH = frozenset({ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.FENCED_LEADER_EPOCH})


class LeaderServices(Protocol):
    """The parts of the broker that this module uses."""

    config: BrokerConfig
    member: Member | None

    @property
    def metadata(self) -> MetadataImage: ...


def may_lead(broker: LeaderServices, broker_id: int) -> bool:
    """Whether clients may learn that `broker_id` leads a partition, if the metadata of this broker says so."""
    return broker_id != broker.config.broker_id or broker.member is None or not broker.member.is_down


def current_leader(broker: LeaderServices, topic: str, partition: int) -> tuple[int, int] | None:
    """The broker id and the leader epoch in the metadata of this broker; None if it knows no leader."""
    state = broker.metadata.partition(topic, partition)
    if state is None or state.leader == NO_LEADER or not may_lead(broker, state.leader):
        return None
    return state.leader, state.leader_epoch


def endpoints_of(broker: LeaderServices, leaders: Iterable[tuple[int, int] | None], listener: str) -> list[NodeEndpoint]:
    """The addresses of the leaders, for a client that uses `listener`."""
    found = []
    for broker_id in dict.fromkeys(leader[0] for leader in leaders if leader is not None):
        registered = broker.metadata.brokers.get(broker_id)
        endpoint = None if registered is None else registered.endpoint(listener)
        if registered is not None and endpoint is not None:
            found.append(NodeEndpoint(broker_id, endpoint.host, endpoint.port, registered.rack))
    return found
