"""Who leads a partition, told to clients that asked the wrong broker (KIP-951), so that they need not ask for the metadata first."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from barnabas.errors import ErrorCode
from barnabas.protocol.produce import NodeEndpoint
from barnabas.protocol.values import NO_LEADER

if TYPE_CHECKING:
    from barnabas.server.broker import Broker

TOLD_WITH = frozenset({ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.FENCED_LEADER_EPOCH})


def current_leader(broker: Broker, topic: str, partition: int) -> tuple[int, int] | None:
    """Broker id and leader epoch as the metadata here has them; None while nobody leads."""
    state = broker.metadata.partition(topic, partition)
    return None if state is None or state.leader == NO_LEADER else (state.leader, state.leader_epoch)


def endpoints_of(broker: Broker, leaders: Iterable[tuple[int, int] | None], listener: str) -> list[NodeEndpoint]:
    """Where the leaders are for who came by `listener`."""
    found = []
    for broker_id in dict.fromkeys(leader[0] for leader in leaders if leader is not None):
        registered = broker.metadata.brokers.get(broker_id)
        endpoint = None if registered is None else registered.endpoint(listener)
        if registered is not None and endpoint is not None:
            found.append(NodeEndpoint(broker_id, endpoint.host, endpoint.port, registered.rack))
    return found
