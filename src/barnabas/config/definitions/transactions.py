"""Broker keys of producer ids and transactions."""

from __future__ import annotations

from barnabas.config.definition import ConfigKey, at_least
from barnabas.config.definitions.words import (
    BOOLEAN,
    CLUSTER_WIDE,
    HIGH,
    INT,
    LOW,
    NO_EFFECT,
    READ_ONLY,
    SHORT,
)

# fmt: off
KEYS = (
    ConfigKey("add.partitions.to.txn.retry.backoff.max.ms", INT, 100, at_least(0), HIGH, READ_ONLY, NO_EFFECT,
              ""),
    ConfigKey("add.partitions.to.txn.retry.backoff.ms", INT, 20, at_least(1), HIGH, READ_ONLY, NO_EFFECT,
              ""),
    ConfigKey("producer.id.expiration.check.interval.ms", INT, 600_000, at_least(1), LOW, READ_ONLY, NO_EFFECT,
              "", hidden=True),
    ConfigKey("producer.id.expiration.ms", INT, 86_400_000, at_least(1), LOW, CLUSTER_WIDE, NO_EFFECT,
              ""),
    ConfigKey("transaction.abort.timed.out.transaction.cleanup.interval.ms", INT, 10_000, at_least(1), LOW,
              READ_ONLY, NO_EFFECT,
              ""),
    ConfigKey("transaction.max.timeout.ms", INT, 900_000, at_least(1), HIGH, READ_ONLY, NO_EFFECT,
              ""),
    ConfigKey("transaction.partition.verification.enable", BOOLEAN, True, None, LOW, CLUSTER_WIDE, NO_EFFECT,
              ""),
    ConfigKey("transaction.remove.expired.transaction.cleanup.interval.ms", INT, 3_600_000, at_least(1), LOW,
              READ_ONLY, NO_EFFECT,
              ""),
    ConfigKey("transaction.state.log.load.buffer.size", INT, 5_242_880, at_least(1), HIGH, READ_ONLY, NO_EFFECT,
              ""),
    ConfigKey("transaction.state.log.min.isr", INT, 2, at_least(1), HIGH, READ_ONLY, NO_EFFECT,
              ""),
    ConfigKey("transaction.state.log.num.partitions", INT, 50, at_least(1), HIGH, READ_ONLY, NO_EFFECT,
              ""),
    ConfigKey("transaction.state.log.replication.factor", SHORT, 3, at_least(1), HIGH, READ_ONLY, NO_EFFECT,
              ""),
    ConfigKey("transaction.state.log.segment.bytes", INT, 104_857_600, at_least(1), HIGH, READ_ONLY, NO_EFFECT,
              ""),
    ConfigKey("transaction.two.phase.commit.enable", BOOLEAN, False, None, LOW, READ_ONLY, NO_EFFECT,
              ""),
    ConfigKey("transactional.id.expiration.ms", INT, 604_800_000, at_least(1), HIGH, READ_ONLY, NO_EFFECT,
              ""),
)
# fmt: on
