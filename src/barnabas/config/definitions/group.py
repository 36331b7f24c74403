"""Settings of one group (`kafka-configs --entity-type groups`, KIP-848, KIP-932, KIP-1071)."""

from __future__ import annotations

from barnabas.config.checks import OffsetReset
from barnabas.config.config_key import ConfigKey, at_least, one_of
from barnabas.config.definitions.columns import (
    BOOLEAN,
    CLUSTER_WIDE,
    HONOURED,
    INT,
    MEDIUM,
    NO_EFFECT,
    STRING,
)

# fmt: off
KEYS = (
    ConfigKey("consumer.assignment.interval.ms", INT, 1_000, at_least(0), MEDIUM, CLUSTER_WIDE, HONOURED,
              "Shortest time between two assignments."),
    ConfigKey("consumer.heartbeat.interval.ms", INT, 5_000, at_least(1), MEDIUM, CLUSTER_WIDE, HONOURED,
              "Heartbeat interval told to members."),
    ConfigKey("consumer.session.timeout.ms", INT, 45_000, at_least(1), MEDIUM, CLUSTER_WIDE, HONOURED,
              "Session timeout of the group's members."),
    ConfigKey("share.assignment.interval.ms", INT, 1_000, at_least(0), MEDIUM, CLUSTER_WIDE, NO_EFFECT,
              "Shortest time between two assignments."),
    ConfigKey("share.auto.offset.reset", STRING, "latest", OffsetReset(), MEDIUM, CLUSTER_WIDE, NO_EFFECT,
              "Where the group starts: latest, earliest, or a duration before now."),
    ConfigKey("share.delivery.count.limit", INT, 5, at_least(2), MEDIUM, CLUSTER_WIDE, NO_EFFECT,
              "How often a record is delivered before it is archived."),
    ConfigKey("share.heartbeat.interval.ms", INT, 5_000, at_least(1), MEDIUM, CLUSTER_WIDE, NO_EFFECT,
              "Heartbeat interval told to members."),
    ConfigKey("share.isolation.level", STRING, "read_uncommitted", one_of("read_committed",
              "read_uncommitted"), MEDIUM, CLUSTER_WIDE, NO_EFFECT,
              "Whether the group reads records of open transactions."),
    ConfigKey("share.partition.max.record.locks", INT, 2_000, at_least(100), MEDIUM, CLUSTER_WIDE, NO_EFFECT,
              "Records of a partition that may be locked at once."),
    ConfigKey("share.record.lock.duration.ms", INT, 30_000, at_least(1_000), MEDIUM, CLUSTER_WIDE, NO_EFFECT,
              "How long a delivered record is locked for its consumer."),
    ConfigKey("share.renew.acknowledge.enable", BOOLEAN, True, None, MEDIUM, CLUSTER_WIDE, NO_EFFECT,
              "Whether consumers may prolong a lock."),
    ConfigKey("share.session.timeout.ms", INT, 45_000, at_least(1), MEDIUM, CLUSTER_WIDE, NO_EFFECT,
              "Session timeout of the share group's members."),
    ConfigKey("streams.assignment.interval.ms", INT, 1_000, at_least(0), MEDIUM, CLUSTER_WIDE, NO_EFFECT,
              "Shortest time between two assignments."),
    ConfigKey("streams.heartbeat.interval.ms", INT, 5_000, at_least(1), MEDIUM, CLUSTER_WIDE, NO_EFFECT,
              "Heartbeat interval told to members."),
    ConfigKey("streams.initial.rebalance.delay.ms", INT, 3_000, at_least(0), MEDIUM, CLUSTER_WIDE, NO_EFFECT,
              "How long the first assignment of an empty group waits."),
    ConfigKey("streams.num.standby.replicas", INT, 0, at_least(0), MEDIUM, CLUSTER_WIDE, NO_EFFECT,
              "Standby copies of each stateful task."),
    ConfigKey("streams.session.timeout.ms", INT, 45_000, at_least(1), MEDIUM, CLUSTER_WIDE, NO_EFFECT,
              "Session timeout of the streams group's members."),
)
# fmt: on
