"""Policies: what may be created and which settings may be changed, beyond what the broker itself refuses.

Kafka's `CreateTopicPolicy` and `AlterConfigPolicy`. They are asked by the controller: in a cluster each broker needs the same ones.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from barnabas.errors import ErrorCode, KafkaError
from barnabas.plugins.base import Plugin


class PolicyViolation(KafkaError):
    """A request breaks a policy; the client gets POLICY_VIOLATION with this text."""

    def __init__(self, message: str) -> None:
        super().__init__(ErrorCode.POLICY_VIOLATION, message)


@dataclass(frozen=True)
class CreateTopicMetadata:
    """A topic that somebody wants to create. The broker has found nothing wrong with it.

    Args:
        topic: its name.
        num_partitions, replication_factor: the broker's defaults where the client leaves them open; None where it assigns replicas.
        replicas_assignments: broker ids by partition, where the client assigns replicas; else None.
        configs: the topic's own settings.
    """

    topic: str
    num_partitions: int | None
    replication_factor: int | None
    replicas_assignments: Mapping[int, Sequence[int]] | None
    configs: Mapping[str, str] = field(default_factory=dict)


class CreateTopicPolicy(Plugin):
    """Says which topics may be created."""

    def validate(self, metadata: CreateTopicMetadata) -> None:
        """Refuse a topic by raising.

        Raises:
            PolicyViolation: the client gets POLICY_VIOLATION and the text.
            KafkaError: the client gets its code and text.
            Exception: the client gets UNKNOWN_SERVER_ERROR without a text, and the broker logs the exception.
        """
        raise NotImplementedError


@dataclass(frozen=True)
class AlterConfigMetadata:
    """Settings of one resource that somebody wants to change. The broker has found nothing wrong with them.

    Args:
        resource_type: TOPIC, BROKER, GROUP or CLIENT_METRICS.
        resource_name: for BROKER the id, or "" for all brokers.
        configs: what changes, by key, and what it changes to; None where a setting is removed. For brokers, all that the request names.
    """

    resource_type: str
    resource_name: str
    configs: Mapping[str, str | None]


class AlterConfigPolicy(Plugin):
    """Says which settings may be changed; asked for the settings of a new topic, too."""

    def validate(self, metadata: AlterConfigMetadata) -> None:
        """Refuse a change by raising, as `CreateTopicPolicy.validate`."""
        raise NotImplementedError
