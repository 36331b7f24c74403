"""Which quota a client has: Kafka's `ClientQuotaCallback` (KIP-257).

A callback replaces Kafka's order of precedence among users and client ids. It decides by tags: clients with equal tags share one quota. It
runs on the broker's event loop: all clients wait meanwhile, so it must not wait for anything.

Quotas of addresses (`connection_creation_rate`) and of consumer groups are not the callback's.
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

    PRODUCE = "producer_byte_rate"  # bytes a second
    FETCH = "consumer_byte_rate"  # bytes a second
    REQUEST = "request_percentage"  # per cent of the event loop's time
    CONTROLLER_MUTATION = "controller_mutation_rate"  # partitions created or deleted, a second


@dataclass(frozen=True)
class QuotaEntity:
    """Whom a declared quota is for.

    Args:
        user: the name; "" for the default of all users; None where the entity names no user.
        client_id: the same of client ids.
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
    """Brokers and topics as they are at one moment; made on demand, so asking for all of them takes its time."""

    @property
    def cluster_id(self) -> str:
        """As DescribeCluster tells it."""
        ...

    @property
    def controller(self) -> int:
        """Broker id, -1 for none."""
        ...

    @property
    def brokers(self) -> Sequence[int]:
        """Ids of the brokers that are alive."""
        ...

    @property
    def topics(self) -> Sequence[str]:
        """Names of all topics, internal ones too."""
        ...

    def partitions(self, topic: str) -> Sequence[PartitionInfo]:
        """Of a topic; empty where there is none."""
        ...


class ClientQuotaCallback(Plugin):
    """Decides on the quotas of clients. What a method raises closes the connection whose request was asked about."""

    def quota_metric_tags(self, quota_type: QuotaType, principal: Principal, client_id: str) -> Mapping[str, str]:
        """Tags of a client's quota; clients with equal tags share it. Asked again after each change of quotas."""
        raise NotImplementedError

    def quota_limit(self, quota_type: QuotaType, metric_tags: Mapping[str, str]) -> float | None:
        """The limit for tags that `quota_metric_tags` gave; None for no limit."""
        raise NotImplementedError

    def update_quota(self, quota_type: QuotaType, quota_entity: QuotaEntity, new_value: float) -> None:
        """A quota is declared (AlterClientQuotas), or was when the broker started."""

    def remove_quota(self, quota_type: QuotaType, quota_entity: QuotaEntity) -> None:
        """A declared quota was removed."""

    def quota_reset_required(self, quota_type: QuotaType) -> bool:
        """Whether limits changed by something else than the methods of this class since the last call; asked every second."""
        return False

    def update_cluster_metadata(self, cluster: Cluster) -> bool:
        """Brokers, topics or leaders changed, which is told once a second at most; whether limits changed by that."""
        return False
