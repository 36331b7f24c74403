"""The topics of the coordinators' records: their partitions, replicas and settings.

A standalone broker creates them with one replica, whatever the keys say: Kafka's default is 3, so on a single broker the first
`consume` would hang. In a cluster the topics get exactly what the keys say.
"""

from __future__ import annotations

from barnabas.cluster.metadata.image import OFFSETS_TOPIC, TRANSACTIONS_TOPIC
from barnabas.cluster.planning.topics import NewTopic
from barnabas.config.broker import BrokerConfig


def internal_topic(name: str, config: BrokerConfig, *, alone: bool) -> NewTopic | None:
    """The request for the internal topic `name`; None for an ordinary topic."""
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
