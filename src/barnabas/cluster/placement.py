"""Which brokers hold the replicas of new partitions.

Brokers stand in a ring that alternates between racks; each partition starts one place further than the one before, so leaders
spread evenly, and takes its followers from the places after it. The followers' distance grows with each turn round the ring, so
that the load of a lost broker spreads over all others instead of falling on one neighbour.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import zip_longest

from barnabas.cluster.metadata import BrokerRegistration
from barnabas.errors import ErrorCode, KafkaError


def place_replicas(
    brokers: Mapping[int, BrokerRegistration], *, partitions: int, replication_factor: int, start: int
) -> list[tuple[int, ...]]:
    """The replicas of each of `partitions` new partitions, preferred leader first.

    Args:
        start: where in the ring to begin; a number that differs from topic to topic.

    Raises:
        KafkaError: INVALID_REPLICATION_FACTOR, there are too few brokers.
    """
    ring = _ring(brokers.values())
    if replication_factor > len(ring):
        reason = (
            f"Unable to replicate the partition {replication_factor} time(s): The target replication factor of "
            f"{replication_factor} cannot be reached because only {len(ring)} broker(s) are registered or some brokers "
            "have all their log directories cordoned."
        )
        raise KafkaError(ErrorCode.INVALID_REPLICATION_FACTOR, reason)
    return [_replicas(ring, start + partition, replication_factor) for partition in range(partitions)]


def _ring(brokers: Iterable[BrokerRegistration]) -> list[int]:
    racks: dict[str | None, list[int]] = {}
    for broker in sorted(brokers, key=lambda broker: broker.broker_id):
        racks.setdefault(broker.rack, []).append(broker.broker_id)
    return [broker for rank in zip_longest(*racks.values()) for broker in rank if broker is not None]


def _replicas(ring: Sequence[int], place: int, replication_factor: int) -> tuple[int, ...]:
    size = len(ring)
    first = place % size
    others = [ring[(first + 1 + step) % size] for step in range(size - 1)]
    shift = (place // size) % len(others) if others else 0
    return (ring[first], *(others[shift:] + others[:shift])[: replication_factor - 1])
