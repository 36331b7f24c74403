"""Places the replicas of new partitions, checks assignments given by hand, and chooses the first leaders.

Brokers form a ring that alternates between racks. Each partition starts one place after the previous one, so leaders are
spread evenly. Its followers come from the next places; racks without a replica of it come first. The distance of the followers
grows with each round of the ring, so that all other brokers share the load of a lost broker, not only one neighbour.

If there are fewer live brokers than replicas, brokers that are down get the remaining replicas, and serve them when they are
back. Such a broker is never first, so it is not the preferred leader.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence
from itertools import zip_longest

from barnabas.cluster.metadata.image import BrokerRegistration, PartitionState
from barnabas.errors import ErrorCode, KafkaError


class Ring:
    """The brokers on which new partitions may be placed."""

    def __init__(self, brokers: Mapping[int, BrokerRegistration]) -> None:
        self._ring = _ring(brokers.values())
        self._racks = {broker.broker_id: broker.rack for broker in brokers.values()}
        self._rack_count = len(set(self._racks.values()))

    def __len__(self) -> int:
        return len(self._ring)

    def place(
        self, *, partitions: int, replication_factor: int, start: int, last_resort: Sequence[Sequence[int]] = ()
    ) -> list[tuple[int, ...]]:
        """The replicas of each of `partitions` new partitions, preferred leader first.

        Args:
            start: the first place in the ring, different for each topic.
            last_resort: groups of other brokers, the better ones first; a group is used after all brokers of the earlier
                groups.

        Raises:
            KafkaError: INVALID_REPLICATION_FACTOR, there are too few brokers.
        """
        ring = self._ring
        known = len(ring) + sum(map(len, last_resort))
        reason = f"Unable to replicate the partition {replication_factor} time(s): "
        if replication_factor > known:
            reason += (
                f"The target replication factor of {replication_factor} cannot be reached because only {known} broker(s) "
                "are registered or some brokers have all their log directories cordoned."
            )
            raise KafkaError(ErrorCode.INVALID_REPLICATION_FACTOR, reason)
        if not ring:
            reason += "All brokers are currently fenced, or have all their log directories cordoned."
            raise KafkaError(ErrorCode.INVALID_REPLICATION_FACTOR, reason)
        missing = replication_factor - len(ring)
        if missing > 0:
            placed = self.place(partitions=partitions, replication_factor=len(ring), start=start)
            return [(*replicas, *_some_of(last_resort, missing, start + n)) for n, replicas in enumerate(placed)]
        if replication_factor == 1:
            alone = [(broker,) for broker in ring]
            return [alone[place % len(ring)] for place in range(start, start + partitions)]
        return [
            _replicas(ring, self._racks, self._rack_count, start + partition, replication_factor)
            for partition in range(partitions)
        ]


def check_assignment(known: Container[int], assignment: Sequence[int], replication_factor: int | None = None) -> None:
    """Raises KafkaError(INVALID_REPLICA_ASSIGNMENT), with Kafka's message, for an assignment that is not valid.

    Args:
        known: brokers that may hold the partition.
        replication_factor: number of replicas of the topic's other partitions.
    """
    kind = "The manual partition assignment includes"
    if not assignment:
        raise KafkaError(ErrorCode.INVALID_REPLICA_ASSIGNMENT, f"{kind} an empty replica list.")
    for broker in sorted(assignment):
        if broker not in known:
            reason = f"{kind} broker {broker}, but no such broker is registered."
            raise KafkaError(ErrorCode.INVALID_REPLICA_ASSIGNMENT, reason)
        if assignment.count(broker) > 1:
            reason = f"{kind} the broker {broker} more than once."
            raise KafkaError(ErrorCode.INVALID_REPLICA_ASSIGNMENT, reason)
    if replication_factor is not None and len(assignment) != replication_factor:
        reason = f"{kind} a partition with {len(assignment)} replica(s), but this is not consistent with previous partitions, "
        reason += f"which have {replication_factor} replica(s)."
        raise KafkaError(ErrorCode.INVALID_REPLICA_ASSIGNMENT, reason)


def new_partitions(replicas: Sequence[tuple[int, ...]], active: Container[int]) -> tuple[PartitionState, ...]:
    """The states of new partitions; partitions with the same replicas share one state."""
    states = {brokers: new_partition(brokers, active) for brokers in dict.fromkeys(replicas)}
    return tuple([states[brokers] for brokers in replicas])


def new_partition(replicas: tuple[int, ...], active: Container[int]) -> PartitionState:
    """The state of a new partition: its active replicas are in sync, and the first of them leads.

    Raises:
        KafkaError: INVALID_REPLICA_ASSIGNMENT, no replica is active.
    """
    in_sync = tuple(replica for replica in replicas if replica in active)
    if not in_sync:
        reason = (
            "All brokers specified in the manual partition assignment for the partition are fenced or in controlled shutdown."
        )
        raise KafkaError(ErrorCode.INVALID_REPLICA_ASSIGNMENT, reason)
    return PartitionState(leader=in_sync[0], leader_epoch=0, replicas=replicas, isr=in_sync)


def _some_of(groups: Sequence[Sequence[int]], count: int, turn: int) -> list[int]:
    """`count` of these brokers: earlier groups first, and within a group in rotation."""
    chosen: list[int] = []
    for group in groups:
        chosen += [group[(turn + step) % len(group)] for step in range(min(count - len(chosen), len(group)))]
    return chosen


def _ring(brokers: Iterable[BrokerRegistration]) -> list[int]:
    racks: dict[str | None, list[int]] = {}
    for broker in sorted(brokers, key=lambda broker: broker.broker_id):
        racks.setdefault(broker.rack, []).append(broker.broker_id)
    return [broker for rank in zip_longest(*racks.values()) for broker in rank if broker is not None]


def _replicas(
    ring: Sequence[int], racks: Mapping[int, str | None], rack_count: int, place: int, replication_factor: int
) -> tuple[int, ...]:
    """The replicas of one partition; looks at few of the other brokers, since a cluster may have hundreds, and a topic
    thousands of partitions."""
    size, others = len(ring), len(ring) - 1
    first = place % size
    shift = (place // size) % others if others else 0
    chosen, used = [ring[first]], {racks[ring[first]]}
    while len(chosen) < replication_factor:
        if len(used) == rack_count:  # once every rack has a replica, each may get another one
            used = set()
        for step in range(shift, shift + others):
            broker = ring[(first + 1 + step % others) % size]
            if racks[broker] not in used and broker not in chosen:
                chosen.append(broker)
                used.add(racks[broker])
                break
        else:
            used = set()  # the racks without a replica have no brokers left
    return tuple(chosen)
