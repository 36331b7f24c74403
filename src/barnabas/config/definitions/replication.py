"""Broker keys of replication."""

from __future__ import annotations

from barnabas.config.config_key import ConfigKey, at_least, one_of
from barnabas.config.definitions.columns import (
    BOOLEAN,
    CLUSTER_WIDE,
    HIGH,
    HONOURED,
    INT,
    LONG,
    MAX_LONG,
    MEDIUM,
    NO_EFFECT,
    READ_ONLY,
    STRING,
)

RACK_AWARE_SELECTOR = "org.apache.kafka.common.replica.RackAwareReplicaSelector"
LEADER_SELECTOR = "org.apache.kafka.common.replica.LeaderSelector"

# fmt: off
KEYS = (
    ConfigKey("auto.leader.rebalance.enable", BOOLEAN, True, None, HIGH, READ_ONLY, HONOURED,
              "Move leadership back to the preferred leaders in the background."),
    ConfigKey("controlled.shutdown.enable", BOOLEAN, True, None, MEDIUM, READ_ONLY, HONOURED,
              "Move leadership to other brokers before the broker stops."),
    ConfigKey("delete.records.purgatory.purge.interval.requests", INT, 1, None, MEDIUM, READ_ONLY, NO_EFFECT,
              "Number of waiting DeleteRecords requests after which Kafka removes finished ones; here they are removed at once."),
    ConfigKey("follower.replication.throttled.rate", LONG, MAX_LONG, at_least(0), MEDIUM, CLUSTER_WIDE, HONOURED,
              "Bytes a second that throttled replicas may fetch.", hidden=True),
    ConfigKey("inter.broker.listener.name", STRING, None, None, MEDIUM, READ_ONLY, HONOURED,
              "Listener that brokers use among themselves."),
    ConfigKey("leader.imbalance.check.interval.seconds", LONG, 300, at_least(1), HIGH, READ_ONLY, HONOURED,
              "How often the background check for preferred leaders runs."),
    ConfigKey("leader.replication.throttled.rate", LONG, MAX_LONG, at_least(0), MEDIUM, CLUSTER_WIDE, HONOURED,
              "Bytes a second that throttled replicas may be sent.", hidden=True),
    ConfigKey("num.replica.alter.log.dirs.threads", INT, None, None, HIGH, READ_ONLY, HONOURED,
              "Threads that move replicas between directories."),
    ConfigKey("num.replica.fetchers", INT, 1, at_least(1), HIGH, CLUSTER_WIDE, HONOURED,
              "Connections a follower keeps to each leader."),
    ConfigKey("producer.purgatory.purge.interval.requests", INT, 1_000, None, MEDIUM, READ_ONLY, NO_EFFECT,
              "Number of waiting produce requests after which Kafka removes finished ones; here they are removed at once."),
    ConfigKey("replica.alter.log.dirs.io.max.bytes.per.second", LONG, MAX_LONG, at_least(0), MEDIUM, CLUSTER_WIDE, HONOURED,
              "Bytes a second that moves between directories may copy.", hidden=True),
    ConfigKey("replica.fetch.backoff.ms", INT, 1_000, at_least(0), MEDIUM, READ_ONLY, HONOURED,
              "Pause of a follower after an error."),
    ConfigKey("replica.fetch.max.bytes", INT, 1_048_576, at_least(0), MEDIUM, READ_ONLY, HONOURED,
              "Bytes that a follower requests from one partition."),
    ConfigKey("replica.fetch.min.bytes", INT, 1, None, HIGH, READ_ONLY, HONOURED,
              "Fewest bytes for which a follower's fetch is answered before its maximum wait."),
    ConfigKey("replica.fetch.response.max.bytes", INT, 10_485_760, at_least(0), MEDIUM, READ_ONLY, HONOURED,
              "Bytes that a follower requests in one response."),
    ConfigKey("replica.fetch.wait.max.ms", INT, 500, None, HIGH, READ_ONLY, HONOURED,
              "How long a follower's fetch may wait."),
    ConfigKey("replica.high.watermark.checkpoint.interval.ms", LONG, 5_000, None, HIGH, READ_ONLY, HONOURED,
              "How often high watermarks are written to disk."),
    ConfigKey("replica.lag.time.max.ms", LONG, 30_000, None, HIGH, READ_ONLY, HONOURED,
              "How long a follower may lag before it leaves the in-sync set."),
    ConfigKey("replica.selector.class", STRING, None, one_of(RACK_AWARE_SELECTOR, LEADER_SELECTOR), MEDIUM, READ_ONLY, HONOURED,
              "Class that chooses the replica a consumer reads from; Kafka's two classes are known."),
    ConfigKey("replica.socket.receive.buffer.bytes", INT, 65_536, None, HIGH, READ_ONLY, NO_EFFECT,
              "Receive buffer of a follower's socket."),
    ConfigKey("replica.socket.timeout.ms", INT, 30_000, None, HIGH, READ_ONLY, HONOURED,
              "Timeout of a follower's socket."),
    ConfigKey("unclean.leader.election.enable", BOOLEAN, False, None, HIGH, CLUSTER_WIDE, HONOURED,
              "Whether a replica that is not in sync may become leader; this loses records."),
)
# fmt: on
