"""A partition at rest, and brokers that may lead it."""

from __future__ import annotations

from uuid import UUID

from barnabas.cluster.metadata.image import BrokerRegistration, BrokerState, PartitionState
from barnabas.cluster.planning.leadership import (
    Electorate,
)

TOPIC_ID = UUID(int=7)
STABLE = PartitionState(1, 5, (1, 2, 3), (1, 2, 3), 8)


def brokers(*active: int, leaving: tuple[int, ...] = ()) -> dict[int, BrokerRegistration]:
    return {
        n: BrokerRegistration(n, (), epoch=100 + n, state=BrokerState.SHUTTING_DOWN if n in leaving else BrokerState.ACTIVE)
        for n in (*active, *leaving)
    }


def electorate(*active: int, leaving: tuple[int, ...] = ()) -> Electorate:
    return Electorate.of(brokers(*active, leaving=leaving).values())
