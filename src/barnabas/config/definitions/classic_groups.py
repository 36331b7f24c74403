"""Broker keys of the group coordinator and of committed offsets."""

from __future__ import annotations

from barnabas.config.definition import ConfigKey, at_least, one_of
from barnabas.config.definitions.words import (
    CLUSTER_WIDE,
    HIGH,
    INT,
    LIST,
    LONG,
    MAX_INT,
    MEDIUM,
    NO_EFFECT,
    READ_ONLY,
    SHORT,
)

# fmt: off
KEYS = (
    ConfigKey("group.coordinator.append.linger.ms", INT, -1, at_least(-1), MEDIUM, READ_ONLY, NO_EFFECT,
              ""),
    ConfigKey("group.coordinator.background.threads", INT, 2, at_least(1), HIGH, READ_ONLY, NO_EFFECT,
              ""),
    ConfigKey("group.coordinator.cached.buffer.max.bytes", INT, 1_048_588, at_least(524_288), MEDIUM, CLUSTER_WIDE, NO_EFFECT,
              ""),
    ConfigKey("group.coordinator.rebalance.protocols", LIST, ("classic", "consumer", "streams"), one_of("consumer",
              "classic", "share", "streams"), MEDIUM, READ_ONLY, NO_EFFECT,
              ""),
    ConfigKey("group.coordinator.threads", INT, 4, at_least(1), HIGH, READ_ONLY, NO_EFFECT,
              ""),
    ConfigKey("group.initial.rebalance.delay.ms", INT, 3_000, None, MEDIUM, READ_ONLY, NO_EFFECT,
              ""),
    ConfigKey("group.max.session.timeout.ms", INT, 1_800_000, None, MEDIUM, READ_ONLY, NO_EFFECT,
              ""),
    ConfigKey("group.max.size", INT, MAX_INT, at_least(1), MEDIUM, READ_ONLY, NO_EFFECT,
              ""),
    ConfigKey("group.min.session.timeout.ms", INT, 6_000, None, MEDIUM, READ_ONLY, NO_EFFECT,
              ""),
    ConfigKey("offset.metadata.max.bytes", INT, 4_096, None, HIGH, READ_ONLY, NO_EFFECT,
              ""),
    ConfigKey("offsets.commit.timeout.ms", INT, 5_000, at_least(1), HIGH, READ_ONLY, NO_EFFECT,
              ""),
    ConfigKey("offsets.load.buffer.size", INT, 5_242_880, at_least(1), HIGH, READ_ONLY, NO_EFFECT,
              ""),
    ConfigKey("offsets.retention.check.interval.ms", LONG, 600_000, at_least(1), HIGH, READ_ONLY, NO_EFFECT,
              ""),
    ConfigKey("offsets.retention.minutes", INT, 10_080, at_least(1), HIGH, READ_ONLY, NO_EFFECT,
              ""),
    ConfigKey("offsets.topic.compression.codec", INT, 0, None, HIGH, READ_ONLY, NO_EFFECT,
              ""),
    ConfigKey("offsets.topic.num.partitions", INT, 50, at_least(1), HIGH, READ_ONLY, NO_EFFECT,
              ""),
    ConfigKey("offsets.topic.replication.factor", SHORT, 3, at_least(1), HIGH, READ_ONLY, NO_EFFECT,
              ""),
    ConfigKey("offsets.topic.segment.bytes", INT, 104_857_600, at_least(1), HIGH, READ_ONLY, NO_EFFECT,
              ""),
)
# fmt: on
