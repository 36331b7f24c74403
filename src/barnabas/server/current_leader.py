"""Who leads a partition, told to clients that asked the wrong broker (KIP-951), so that they need not ask for the metadata first.

A broker that stood down does not name itself: others may lead by now what its metadata says that it leads, and it refuses to.
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
    """What is asked of the broker."""

    config: BrokerConfig
    member: Member | None

    @property
    def metadata(self) -> MetadataImage: ...


def may_lead(broker: LeaderServices, broker_id: int) -> bool:
    """Whether clients may be told that this one leads what the metadata here says."""
    return broker_id != broker.config.broker_id or broker.member is None or not broker.member.is_down


def current_leader(broker: LeaderServices, topic: str, partition: int) -> tuple[int, int] | None:
    """Broker id and leader epoch as the metadata here has them; None while nobody leads, as far as is known."""
    state = broker.metadata.partition(topic, partition)
    if state is None or state.leader == NO_LEADER or not may_lead(broker, state.leader):
        return None
    return state.leader, state.leader_epoch


def endpoints_of(broker: LeaderServices, leaders: Iterable[tuple[int, int] | None], listener: str) -> list[NodeEndpoint]:
    """Where the leaders are for who came by `listener`."""
    found = []
    for broker_id in dict.fromkeys(leader[0] for leader in leaders if leader is not None):
        registered = broker.metadata.brokers.get(broker_id)
        endpoint = None if registered is None else registered.endpoint(listener)
        if registered is not None and endpoint is not None:
            found.append(NodeEndpoint(broker_id, endpoint.host, endpoint.port, registered.rack))
    return found
