"""The topics that coordinators keep their records in: how many partitions, how many replicas, which settings.

A broker that stands alone makes them with one replica whatever the keys ask for (Kafka's default is 3, which a single broker
could never satisfy, so that a first `consume` would hang); in a cluster the keys are followed to the letter.
"""

from __future__ import annotations

from barnabas.cluster.metadata.image import OFFSETS_TOPIC, TRANSACTIONS_TOPIC
from barnabas.cluster.planning.topics import NewTopic
from barnabas.config.broker import BrokerConfig


def internal_topic(name: str, config: BrokerConfig, *, alone: bool) -> NewTopic | None:
    """How to make the internal topic `name`; None for one that is made as any other."""
    if name == OFFSETS_TOPIC:
        partitions, factor = config.offsets_topic_num_partitions, config.offsets_topic_replication_factor
        settings = {
            "cleanup.policy": "compact",
            "compression.type": "producer",
            "segment.bytes": str(config.offsets_topic_segment_bytes),
        }
    elif name == TRANSACTIONS_TOPIC:
        partitions, factor = config.transaction_state_log_num_partitions, config.transaction_state_log_replication_factor
        settings = {
            "cleanup.policy": "compact",
            "compression.type": "uncompressed",
            "min.insync.replicas": str(1 if alone else config.transaction_state_log_min_isr),
            "segment.bytes": str(config.transaction_state_log_segment_bytes),
            "unclean.leader.election.enable": "false",
        }
    else:
        return None
    return NewTopic(name, partitions, 1 if alone else factor, configs=tuple(settings.items()))
