"""The plug-ins of Kafka's tests, in Python: the shim names them to the broker in place of the classes in Java."""

from __future__ import annotations

from collections.abc import Mapping

from barnabas.plugins import CreateTopicMetadata, CreateTopicPolicy, PolicyViolation

FEWEST_PARTITIONS, MANY_PARTITIONS, FEWEST_REPLICAS = 5, 10, 2
LONGEST_RETENTION_MS = 5000


class PartitionsAndReplicas(CreateTopicPolicy):
    """`CreateTopicsRequestWithPolicyTest.Policy`: enough partitions and replicas, and little retention where there are many."""

    def configure(self, configs: Mapping[str, str]) -> None:
        """As the one of Kafka's tests: settings are there."""
        if not configs:
            raise ValueError("no settings")

    def validate(self, metadata: CreateTopicMetadata) -> None:
        """With the texts that the test compares."""
        if metadata.topic.startswith("__"):
            return
        partitions = metadata.num_partitions
        if partitions is not None:
            if partitions < FEWEST_PARTITIONS:
                raise PolicyViolation(f"Topics should have at least 5 partitions, received {partitions}")
            retention = metadata.configs.get("retention.ms")
            if partitions > MANY_PARTITIONS and (retention is None or int(retention) > LONGEST_RETENTION_MS):
                raise PolicyViolation("RetentionMs should be less than 5000ms if partitions > 10")
        for partition, replicas in (metadata.replicas_assignments or {}).items():
            if len(replicas) < FEWEST_REPLICAS:
                raise PolicyViolation(
                    f"Topic partitions should have at least 2 replicas, received {len(replicas)} for partition {partition}"
                )
