"""Broker keys of replication."""

from __future__ import annotations

from barnabas.config.definition import ConfigKey, at_least
from barnabas.config.definitions.words import (
    BOOLEAN,
    CLUSTER_WIDE,
    HIGH,
    INT,
    LONG,
    MEDIUM,
    NO_EFFECT,
    READ_ONLY,
    STRING,
)

# fmt: off
KEYS = (
    ConfigKey("auto.leader.rebalance.enable", BOOLEAN, True, None, HIGH, READ_ONLY, NO_EFFECT,
              ""),
    ConfigKey("controlled.shutdown.enable", BOOLEAN, True, None, MEDIUM, READ_ONLY, NO_EFFECT,
              ""),
    ConfigKey("delete.records.purgatory.purge.interval.requests", INT, 1, None, MEDIUM, READ_ONLY, NO_EFFECT,
              ""),
    ConfigKey("inter.broker.listener.name", STRING, None, None, MEDIUM, READ_ONLY, NO_EFFECT,
              ""),
    ConfigKey("leader.imbalance.check.interval.seconds", LONG, 300, at_least(1), HIGH, READ_ONLY, NO_EFFECT,
              ""),
    ConfigKey("num.replica.alter.log.dirs.threads", INT, None, None, HIGH, READ_ONLY, NO_EFFECT,
              ""),
    ConfigKey("num.replica.fetchers", INT, 1, at_least(1), HIGH, CLUSTER_WIDE, NO_EFFECT,
              ""),
    ConfigKey("producer.purgatory.purge.interval.requests", INT, 1_000, None, MEDIUM, READ_ONLY, NO_EFFECT,
              ""),
    ConfigKey("replica.fetch.backoff.ms", INT, 1_000, at_least(0), MEDIUM, READ_ONLY, NO_EFFECT,
              ""),
    ConfigKey("replica.fetch.max.bytes", INT, 1_048_576, at_least(0), MEDIUM, READ_ONLY, NO_EFFECT,
              ""),
    ConfigKey("replica.fetch.min.bytes", INT, 1, None, HIGH, READ_ONLY, NO_EFFECT,
              ""),
    ConfigKey("replica.fetch.response.max.bytes", INT, 10_485_760, at_least(0), MEDIUM, READ_ONLY, NO_EFFECT,
              ""),
    ConfigKey("replica.fetch.wait.max.ms", INT, 500, None, HIGH, READ_ONLY, NO_EFFECT,
              ""),
    ConfigKey("replica.high.watermark.checkpoint.interval.ms", LONG, 5_000, None, HIGH, READ_ONLY, NO_EFFECT,
              ""),
    ConfigKey("replica.lag.time.max.ms", LONG, 30_000, None, HIGH, READ_ONLY, NO_EFFECT,
              ""),
    ConfigKey("replica.selector.class", STRING, None, None, MEDIUM, READ_ONLY, NO_EFFECT,
              ""),
    ConfigKey("replica.socket.receive.buffer.bytes", INT, 65_536, None, HIGH, READ_ONLY, NO_EFFECT,
              ""),
    ConfigKey("replica.socket.timeout.ms", INT, 30_000, None, HIGH, READ_ONLY, NO_EFFECT,
              ""),
    ConfigKey("unclean.leader.election.enable", BOOLEAN, False, None, HIGH, CLUSTER_WIDE, NO_EFFECT,
              ""),
)
# fmt: on
