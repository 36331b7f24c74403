"""The metrics of replicas for Prometheus: of partitions led here, and of the cluster as this broker sees it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Protocol

from barnabas.server.series import in_turns

if TYPE_CHECKING:
    from prometheus_client.core import Metric

    from barnabas.cluster.membership.member import Member
    from barnabas.cluster.membership.standalone_controller import StandaloneController
    from barnabas.cluster.metadata.image import MetadataImage
    from barnabas.config.broker import BrokerConfig
    from barnabas.replication.hosted_partitions import HostedPartitions
    from barnabas.server.replication.fetcher_manager import FetcherManager

NAMES = {
    "barnabas_leaders": "Partitions that this broker leads.",
    "barnabas_under_replicated_partitions": "Partitions led here of which not all replicas are in sync.",
    "barnabas_under_min_isr_partitions": "Partitions led here with fewer replicas in sync than min.insync.replicas.",
    "barnabas_at_min_isr_partitions": "Partitions led here with just as many replicas in sync as min.insync.replicas asks for.",
    "barnabas_replica_max_lag": "Records that the follower furthest behind lacks, of all partitions led here.",
    "barnabas_replica_fetchers": "Connections on which this broker follows others.",
    "barnabas_controller": "1 where this broker is the controller of its cluster.",
    "barnabas_brokers": "Live brokers of the cluster, as this one sees it.",
    "barnabas_stood_down": "1 while this broker leads nothing, because its session with the cluster's metadata is in doubt.",
    "barnabas_leaderless_partitions": "Partitions with a replica here that nobody leads.",
    "barnabas_lost_partitions": "Leaderless partitions here of which all that were in sync may have lost records, see cluster.md.",
    "barnabas_moving_partitions": "Partitions led here that are being moved to other brokers.",
}


class ReplicaMetricsBroker(Protocol):
    """The parts of the broker that this module uses."""

    config: BrokerConfig
    controller: StandaloneController | Member
    fetcher_manager: FetcherManager
    member: Member | None
    partitions: HostedPartitions

    @property
    def metadata(self) -> MetadataImage: ...


def measures(broker: ReplicaMetricsBroker, gauge: Any) -> Iterator[Metric | None]:
    """The metrics of `NAMES`, and None at points where the loop may do other work."""
    yield from _of_leaders(broker, gauge)
    yield from _of_the_cluster(broker, gauge)


def _of_leaders(broker: ReplicaMetricsBroker, gauge: Any) -> Iterator[Metric | None]:
    leaders = under_replicated = under_minimum = at_minimum = max_lag = 0
    for partition in in_turns(list(broker.partitions)):
        if partition is None:
            yield None
            continue
        if not partition.is_leader:
            continue
        leaders += 1
        followers = partition.followers
        if followers is None:
            continue
        all_followers, in_sync = followers.replicas.followers(), len(followers.replicas.isr)
        minimum = min(partition.log.config.min_insync_replicas, len(all_followers) + 1)
        under_replicated += in_sync <= len(all_followers)
        under_minimum += in_sync < minimum
        at_minimum += in_sync == minimum
        behind = min((max(follower.end_offset, 0) for follower in all_followers.values()), default=0)
        max_lag = max(max_lag, partition.log.log_end_offset - behind)
    for name, value in (
        ("barnabas_leaders", leaders),
        ("barnabas_under_replicated_partitions", under_replicated),
        ("barnabas_under_min_isr_partitions", under_minimum),
        ("barnabas_at_min_isr_partitions", at_minimum),
        ("barnabas_replica_max_lag", max_lag),
        ("barnabas_replica_fetchers", len(broker.fetcher_manager)),
    ):
        yield gauge(name, NAMES[name], value=value)


def _of_the_cluster(broker: ReplicaMetricsBroker, gauge: Any) -> Iterator[Metric | None]:
    image = broker.metadata
    leaderless = lost = moving = 0
    for partition in in_turns(list(broker.partitions)):
        if partition is None:
            yield None
            continue
        state = image.partition(partition.topic, partition.index)
        if state is not None:
            leaderless += state.leader < 0
            lost += state.is_lost
            moving += state.is_moving and state.leader == broker.config.broker_id
    for name, value in (
        ("barnabas_controller", broker.controller.is_controller),
        ("barnabas_brokers", len(image.brokers)),
        ("barnabas_stood_down", broker.member is not None and broker.member.is_down),
        ("barnabas_leaderless_partitions", leaderless),
        ("barnabas_lost_partitions", lost),
        ("barnabas_moving_partitions", moving),
    ):
        yield gauge(name, NAMES[name], value=value)
