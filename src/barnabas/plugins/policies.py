"""Policies: additional conditions for creating topics and changing settings.

They are Kafka's `CreateTopicPolicy` and `AlterConfigPolicy`. The controller calls them, so all brokers of a cluster need the
same ones.
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
    """A topic in a create request. The broker's own checks have passed.

    Args:
        topic: the name of the topic.
        num_partitions, replication_factor: the broker's defaults if the client does not set them; None if it assigns replicas.
        replicas_assignments: broker ids by partition, if the client assigns replicas; else None.
        configs: the topic's own settings.
    """

    topic: str
    num_partitions: int | None
    replication_factor: int | None
    replicas_assignments: Mapping[int, Sequence[int]] | None
    configs: Mapping[str, str] = field(default_factory=dict)


class CreateTopicPolicy(Plugin):
    """Decides which topics may be created."""

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
    """The settings of one resource in a change request. The broker's own checks have passed.

    Args:
        resource_type: TOPIC, BROKER, GROUP or CLIENT_METRICS.
        resource_name: for BROKER the id, or "" for all brokers.
        configs: the changed keys with their values; None for a removed setting. For brokers, all keys in the request.
    """

    resource_type: str
    resource_name: str
    configs: Mapping[str, str | None]


class AlterConfigPolicy(Plugin):
    """Decides which settings may be changed; also called for the settings of a topic that is being created."""

    def validate(self, metadata: AlterConfigMetadata) -> None:
        """Refuse a change by raising, like `CreateTopicPolicy.validate`."""
        raise NotImplementedError
