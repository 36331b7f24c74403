"""The replica from which a consumer reads (KIP-392): `replica.selector.class`.

The setting takes the names of Kafka's two classes. RackAwareReplicaSelector sends a consumer that gives its rack to a replica in that
rack: to the leader if it is there, else to the in-sync replica with the highest end offset. With the other class, or none, every consumer
reads from the leader.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from barnabas.config.definitions.replication import RACK_AWARE_SELECTOR

if TYPE_CHECKING:
    from barnabas.cluster.metadata.image import MetadataImage
    from barnabas.config.broker import BrokerConfig
    from barnabas.replication.leader_partition import LeaderPartition


class SelectorBroker(Protocol):
    """The parts of the broker that this module uses."""

    config: BrokerConfig

    @property
    def metadata(self) -> MetadataImage: ...


def preferred_replica(broker: SelectorBroker, partition: LeaderPartition, rack: str, offset: int) -> int | None:
    """The follower from which a consumer in `rack` should read `offset`; None for this leader."""
    followers = partition.followers
    if followers is None or broker.config.replica_selector_class != RACK_AWARE_SELECTOR or rack == broker.config.broker_rack:
        return None
    brokers = broker.metadata.brokers
    best: tuple[int, int] | None = None
    for replica_id, follower in followers.replicas.followers().items():
        registered = brokers.get(replica_id)
        if (
            registered is not None
            and registered.rack == rack
            and replica_id in followers.replicas.isr
            and follower.start_offset <= offset <= follower.end_offset
        ):
            best = max(best or (follower.end_offset, replica_id), (follower.end_offset, replica_id))
    return None if best is None else best[1]
