"""Broker keys of the group coordinator and of committed offsets."""

from __future__ import annotations

from barnabas.config.config_key import ConfigKey, at_least, one_of
from barnabas.config.definitions.columns import (
    CLUSTER_WIDE,
    HIGH,
    HONOURED,
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
              "How long the coordinator collects records before it writes them."),
    ConfigKey("group.coordinator.background.threads", INT, 2, at_least(1), HIGH, READ_ONLY, NO_EFFECT,
              "Threads for the coordinator's longer jobs."),
    ConfigKey("group.coordinator.cached.buffer.max.bytes", INT, 1_048_588, at_least(524_288), MEDIUM, CLUSTER_WIDE, NO_EFFECT,
              "Write buffer that the coordinator keeps for reuse."),
    ConfigKey("group.coordinator.rebalance.protocols", LIST, ("classic", "consumer", "streams"),
              one_of("consumer", "classic", "share", "streams"), MEDIUM, READ_ONLY, HONOURED,
              "Group protocols that are served: always classic, and consumer if it is listed. share and streams are never served."),
    ConfigKey("group.coordinator.threads", INT, 4, at_least(1), HIGH, READ_ONLY, NO_EFFECT,
              "Threads of the group coordinator; here the event loop does this."),
    ConfigKey("group.initial.rebalance.delay.ms", INT, 3_000, None, MEDIUM, READ_ONLY, HONOURED,
              "How long the first rebalance of an empty group waits for more members."),
    ConfigKey("group.max.session.timeout.ms", INT, 1_800_000, None, MEDIUM, READ_ONLY, HONOURED,
              "Longest session timeout that a member may request."),
    ConfigKey("group.max.size", INT, MAX_INT, at_least(1), MEDIUM, READ_ONLY, HONOURED,
              "Most members of a group."),
    ConfigKey("group.min.session.timeout.ms", INT, 6_000, None, MEDIUM, READ_ONLY, HONOURED,
              "Shortest session timeout that a member may request."),
    ConfigKey("offset.metadata.max.bytes", INT, 4_096, None, HIGH, READ_ONLY, HONOURED,
              "Longest metadata text that may be committed with an offset."),
    ConfigKey("offsets.commit.timeout.ms", INT, 5_000, at_least(1), HIGH, READ_ONLY, HONOURED,
              "How long a commit of offsets waits for its replicas."),
    ConfigKey("offsets.load.buffer.size", INT, 5_242_880, at_least(1), HIGH, READ_ONLY, NO_EFFECT,
              "Bytes read at a time when committed offsets are loaded."),
    ConfigKey("offsets.retention.check.interval.ms", LONG, 600_000, at_least(1), HIGH, READ_ONLY, HONOURED,
              "How often the coordinator looks for expired offsets."),
    ConfigKey("offsets.retention.minutes", INT, 10_080, at_least(1), HIGH, READ_ONLY, HONOURED,
              "How long offsets are kept after their group became empty, or without members after their last commit."),
    ConfigKey("offsets.topic.compression.codec", INT, 0, None, HIGH, READ_ONLY, NO_EFFECT,
              "Codec of the coordinator's own batches, by number."),
    ConfigKey("offsets.topic.num.partitions", INT, 50, at_least(1), HIGH, READ_ONLY, HONOURED,
              "Partitions of __consumer_offsets; fixed once it exists."),
    ConfigKey("offsets.topic.replication.factor", SHORT, 3, at_least(1), HIGH, READ_ONLY, HONOURED,
              "Replicas of __consumer_offsets; a broker that stands alone creates one replica."),
    ConfigKey("offsets.topic.segment.bytes", INT, 104_857_600, at_least(1), HIGH, READ_ONLY, HONOURED,
              "Segment size of __consumer_offsets."),
)
# fmt: on
