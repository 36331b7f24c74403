"""The settings of one topic, parsed for the log and the partition."""

from __future__ import annotations

from msgspec import Struct

from barnabas.config.definitions.schema_validation import TOPIC_NAME
from barnabas.errors import ConfigError

FOREVER = -1  # unlimited retention
MAX_INT64 = 2**63 - 1
HOUR_MS = 3_600_000


class TopicConfig(Struct, frozen=True):
    """Parsed topic settings; a field is the key's name with underscores; the defaults are those of Kafka 4.3 and of Confluent
    Server."""

    cleanup_policy: frozenset[str] = frozenset({"delete"})
    compression_type: str = "producer"
    compression_gzip_level: int = -1
    compression_lz4_level: int = 9
    compression_zstd_level: int = 3
    confluent_key_schema_validation: bool = False
    confluent_key_subject_name_strategy: str = TOPIC_NAME
    confluent_value_schema_validation: bool = False
    confluent_value_subject_name_strategy: str = TOPIC_NAME
    delete_retention_ms: int = 24 * HOUR_MS
    file_delete_delay_ms: int = 60_000
    flush_messages: int = MAX_INT64
    flush_ms: int = MAX_INT64
    follower_replication_throttled_replicas: frozenset[str] = frozenset()
    index_interval_bytes: int = 4096
    leader_replication_throttled_replicas: frozenset[str] = frozenset()
    max_compaction_lag_ms: int = MAX_INT64
    max_message_bytes: int = 1_048_588
    message_timestamp_after_max_ms: int = HOUR_MS
    message_timestamp_before_max_ms: int = MAX_INT64
    message_timestamp_type: str = "CreateTime"
    min_cleanable_dirty_ratio: float = 0.5
    min_compaction_lag_ms: int = 0
    min_insync_replicas: int = 1
    mirror_leader_epoch_start: int = 0
    mirror_link: str = ""
    mirror_lost_topic: str = ""
    mirror_producer_id_end: int = 0
    mirror_promoted_ends: tuple[str, ...] = ()
    mirror_promoted_topic_id: str = ""
    mirror_source_promoted_ends: tuple[str, ...] = ()
    mirror_source_topic_id: str = ""
    mirror_state: str = "mirroring"
    preallocate: bool = False
    retention_bytes: int = FOREVER
    retention_ms: int = 7 * 24 * HOUR_MS
    segment_bytes: int = 1_073_741_824
    segment_index_bytes: int = 10_485_760
    segment_jitter_ms: int = 0
    segment_ms: int = 7 * 24 * HOUR_MS
    unclean_leader_election_enable: bool = False

    @property
    def validates_schemas(self) -> bool:
        """Whether records must have registered schema ids."""
        return self.confluent_key_schema_validation or self.confluent_value_schema_validation

    @property
    def is_mirrored(self) -> bool:
        """Whether the topic is a copy of a topic of another cluster, to which nobody may write."""
        return bool(self.mirror_link) and self.mirror_state != "inspecting"

    @property
    def preallocated_bytes(self) -> int:
        """Bytes that a segment reserves on the disk when it begins."""
        return self.segment_bytes if self.preallocate else 0

    @property
    def max_segment_ms(self) -> int:
        """The age in milliseconds at which a segment is rolled. In a compacted log it is low enough for
        `max.compaction.lag.ms`."""
        if "compact" in self.cleanup_policy and 0 < self.max_compaction_lag_ms < self.segment_ms:
            return self.max_compaction_lag_ms
        return self.segment_ms


def check_together(config: TopicConfig) -> None:
    """Raises ConfigError for settings that contradict each other."""
    if config.min_compaction_lag_ms > config.max_compaction_lag_ms:
        raise ConfigError(
            "max.compaction.lag.ms",
            str(config.max_compaction_lag_ms),
            f"at least min.compaction.lag.ms ({config.min_compaction_lag_ms})",
        )
