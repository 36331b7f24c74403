"""The quota of a client: Kafka's `ClientQuotaCallback` (KIP-257).

A callback replaces Kafka's order of precedence among users and client ids. It decides by tags: clients with equal tags share
one quota. It runs on the broker's event loop. All clients wait for it, so it must not block.

The callback does not decide about quotas of addresses (`connection_creation_rate`) and of consumer groups.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Protocol

from barnabas.plugins.base import Plugin
from barnabas.plugins.principals import Principal


class QuotaType(Enum):
    """The quotas of clients, by their keys."""

    PRODUCE = "producer_byte_rate"  # bytes per second
    FETCH = "consumer_byte_rate"  # bytes per second
    REQUEST = "request_percentage"  # percent of the event loop's time
    CONTROLLER_MUTATION = "controller_mutation_rate"  # partitions created or deleted per second


@dataclass(frozen=True)
class QuotaEntity:
    """The entity of a declared quota.

    Args:
        user: the name; "" for the default of all users; None if the entity has no user.
        client_id: the same for client ids.
    """

    user: str | None = None
    client_id: str | None = None


@dataclass(frozen=True)
class PartitionInfo:
    """One partition.

    Args:
        leader: broker id, -1 for none.
    """

    topic: str
    partition: int
    leader: int
    replicas: Sequence[int]
    in_sync_replicas: Sequence[int]


class Cluster(Protocol):
    """Brokers and topics at one moment; built on demand, so reading all of them takes time."""

    @property
    def cluster_id(self) -> str:
        """The id in DescribeCluster."""
        ...

    @property
    def controller(self) -> int:
        """Broker id, -1 for none."""
        ...

    @property
    def brokers(self) -> Sequence[int]:
        """Ids of the live brokers."""
        ...

    @property
    def topics(self) -> Sequence[str]:
        """Names of all topics, internal ones too."""
        ...

    def partitions(self, topic: str) -> Sequence[PartitionInfo]:
        """Partitions of a topic; empty if the topic does not exist."""
        ...


class ClientQuotaCallback(Plugin):
    """Decides about the quotas of clients. If a method raises, the connection of the request is closed."""

    def quota_metric_tags(self, quota_type: QuotaType, principal: Principal, client_id: str) -> Mapping[str, str]:
        """Tags of a client's quota; clients with equal tags share it. Called again after each change of quotas."""
        raise NotImplementedError

    def quota_limit(self, quota_type: QuotaType, metric_tags: Mapping[str, str]) -> float | None:
        """The limit for tags from `quota_metric_tags`, in the unit of the quota's type; None for no limit."""
        raise NotImplementedError

    def update_quota(self, quota_type: QuotaType, quota_entity: QuotaEntity, new_value: float) -> None:
        """A quota was declared (AlterClientQuotas), or existed when the broker started."""

    def remove_quota(self, quota_type: QuotaType, quota_entity: QuotaEntity) -> None:
        """A declared quota was removed."""

    def quota_reset_required(self, quota_type: QuotaType) -> bool:
        """Whether limits changed since the last call, except by the methods of this class; called every second."""
        return False

    def update_cluster_metadata(self, cluster: Cluster) -> bool:
        """Called after a change of brokers, topics or leaders, at most once a second; returns whether limits have changed."""
        return False
