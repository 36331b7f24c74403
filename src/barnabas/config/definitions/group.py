"""Settings of one group (`kafka-configs --entity-type groups`, KIP-848, KIP-932, KIP-1071)."""

from __future__ import annotations

from barnabas.config.checks import OffsetReset
from barnabas.config.definition import ConfigKey, at_least, one_of
from barnabas.config.definitions.words import (
    BOOLEAN,
    CLUSTER_WIDE,
    INT,
    MEDIUM,
    NO_EFFECT,
    STRING,
)

# fmt: off
KEYS = (
    ConfigKey("consumer.assignment.interval.ms", INT, 1_000, at_least(0), MEDIUM, CLUSTER_WIDE, NO_EFFECT,
              ""),
    ConfigKey("consumer.heartbeat.interval.ms", INT, 5_000, at_least(1), MEDIUM, CLUSTER_WIDE, NO_EFFECT,
              ""),
    ConfigKey("consumer.session.timeout.ms", INT, 45_000, at_least(1), MEDIUM, CLUSTER_WIDE, NO_EFFECT,
              ""),
    ConfigKey("share.assignment.interval.ms", INT, 1_000, at_least(0), MEDIUM, CLUSTER_WIDE, NO_EFFECT,
              ""),
    ConfigKey("share.auto.offset.reset", STRING, "latest", OffsetReset(), MEDIUM, CLUSTER_WIDE, NO_EFFECT,
              ""),
    ConfigKey("share.delivery.count.limit", INT, 5, at_least(2), MEDIUM, CLUSTER_WIDE, NO_EFFECT,
              ""),
    ConfigKey("share.heartbeat.interval.ms", INT, 5_000, at_least(1), MEDIUM, CLUSTER_WIDE, NO_EFFECT,
              ""),
    ConfigKey("share.isolation.level", STRING, "read_uncommitted", one_of("read_committed", "read_uncommitted"),
              MEDIUM, CLUSTER_WIDE, NO_EFFECT,
              ""),
    ConfigKey("share.partition.max.record.locks", INT, 2_000, at_least(100), MEDIUM, CLUSTER_WIDE, NO_EFFECT,
              ""),
    ConfigKey("share.record.lock.duration.ms", INT, 30_000, at_least(1_000), MEDIUM, CLUSTER_WIDE, NO_EFFECT,
              ""),
    ConfigKey("share.renew.acknowledge.enable", BOOLEAN, True, None, MEDIUM, CLUSTER_WIDE, NO_EFFECT,
              ""),
    ConfigKey("share.session.timeout.ms", INT, 45_000, at_least(1), MEDIUM, CLUSTER_WIDE, NO_EFFECT,
              ""),
    ConfigKey("streams.assignment.interval.ms", INT, 1_000, at_least(0), MEDIUM, CLUSTER_WIDE, NO_EFFECT,
              ""),
    ConfigKey("streams.heartbeat.interval.ms", INT, 5_000, at_least(1), MEDIUM, CLUSTER_WIDE, NO_EFFECT,
              ""),
    ConfigKey("streams.initial.rebalance.delay.ms", INT, 3_000, at_least(0), MEDIUM, CLUSTER_WIDE, NO_EFFECT,
              ""),
    ConfigKey("streams.num.standby.replicas", INT, 0, at_least(0), MEDIUM, CLUSTER_WIDE, NO_EFFECT,
              ""),
    ConfigKey("streams.session.timeout.ms", INT, 45_000, at_least(1), MEDIUM, CLUSTER_WIDE, NO_EFFECT,
              ""),
)
# fmt: on
