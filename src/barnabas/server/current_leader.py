"""Who leads a partition, told to clients that asked the wrong broker (KIP-951), so that they need not ask for the metadata first.

A broker that stood down does not name itself: others may lead by now what its metadata says that it leads, and it refuses to.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from barnabas.errors import ErrorCode
from barnabas.protocol.produce import NodeEndpoint
from barnabas.protocol.values import NO_LEADER

if TYPE_CHECKING:
    from barnabas.server.broker import Broker

TOLD_WITH = frozenset({ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.FENCED_LEADER_EPOCH})


def may_lead(broker: Broker, broker_id: int) -> bool:
    """Whether clients may be told that this one leads what the metadata here says."""
    return broker_id != broker.config.broker_id or broker.member is None or not broker.member.is_down


def current_leader(broker: Broker, topic: str, partition: int) -> tuple[int, int] | None:
    """Broker id and leader epoch as the metadata here has them; None while nobody leads, as far as is known."""
    state = broker.metadata.partition(topic, partition)
    if state is None or state.leader == NO_LEADER or not may_lead(broker, state.leader):
        return None
    return state.leader, state.leader_epoch


def endpoints_of(broker: Broker, leaders: Iterable[tuple[int, int] | None], listener: str) -> list[NodeEndpoint]:
    """Where the leaders are for who came by `listener`."""
    found = []
    for broker_id in dict.fromkeys(leader[0] for leader in leaders if leader is not None):
        registered = broker.metadata.brokers.get(broker_id)
        endpoint = None if registered is None else registered.endpoint(listener)
        if registered is not None and endpoint is not None:
            found.append(NodeEndpoint(broker_id, endpoint.host, endpoint.port, registered.rack))
    return found
