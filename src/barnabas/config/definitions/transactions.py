"""Broker keys of producer ids and transactions."""

from __future__ import annotations

from barnabas.config.config_key import ConfigKey, at_least
from barnabas.config.definitions.columns import (
    BOOLEAN,
    CLUSTER_WIDE,
    HIGH,
    HONOURED,
    INT,
    LOW,
    NO_EFFECT,
    READ_ONLY,
    SHORT,
)

# fmt: off
KEYS = (
    ConfigKey("add.partitions.to.txn.retry.backoff.max.ms", INT, 100, at_least(0), HIGH, READ_ONLY, HONOURED,
              "Longest wait of a partition to join a transaction while the previous one is being completed."),
    ConfigKey("add.partitions.to.txn.retry.backoff.ms", INT, 20, at_least(1), HIGH, READ_ONLY, NO_EFFECT,
              "First pause while a partition waits to join a transaction. Here it waits for the end of the previous transaction instead."),
    ConfigKey("producer.id.expiration.check.interval.ms", INT, 600_000, at_least(1), LOW, READ_ONLY, HONOURED,
              "How often expired producer ids are looked for.", hidden=True),
    ConfigKey("producer.id.expiration.ms", INT, 86_400_000, at_least(1), LOW, CLUSTER_WIDE, HONOURED,
              "How long the sequence numbers of an idle producer are kept."),
    ConfigKey("transaction.abort.timed.out.transaction.cleanup.interval.ms", INT, 10_000,
              at_least(1), LOW, READ_ONLY, NO_EFFECT,
              "How often transactions past their timeout are aborted."),
    ConfigKey("transaction.max.timeout.ms", INT, 900_000, at_least(1), HIGH, READ_ONLY, HONOURED,
              "Longest transaction timeout that a producer may request."),
    ConfigKey("transaction.partition.verification.enable", BOOLEAN, True, None, LOW, CLUSTER_WIDE, HONOURED,
              "Check that a partition belongs to the transaction that writes to it."),
    ConfigKey("transaction.remove.expired.transaction.cleanup.interval.ms", INT, 3_600_000,
              at_least(1), LOW, READ_ONLY, HONOURED,
              "How often expired transactional ids are removed."),
    ConfigKey("transaction.state.log.load.buffer.size", INT, 5_242_880, at_least(1), HIGH, READ_ONLY, NO_EFFECT,
              "Bytes read at a time when transactions are loaded."),
    ConfigKey("transaction.state.log.min.isr", INT, 2, at_least(1), HIGH, READ_ONLY, HONOURED,
              "In-sync replicas that a write to __transaction_state needs."),
    ConfigKey("transaction.state.log.num.partitions", INT, 50, at_least(1), HIGH, READ_ONLY, HONOURED,
              "Partitions of __transaction_state."),
    ConfigKey("transaction.state.log.replication.factor", SHORT, 3, at_least(1), HIGH, READ_ONLY, HONOURED,
              "Replicas of __transaction_state."),
    ConfigKey("transaction.state.log.segment.bytes", INT, 104_857_600, at_least(1), HIGH, READ_ONLY, HONOURED,
              "Segment size of __transaction_state."),
    ConfigKey("transaction.two.phase.commit.enable", BOOLEAN, False, None, LOW, READ_ONLY, HONOURED,
              "Allow transactions of two-phase commit, which an external coordinator ends."),
    ConfigKey("transactional.id.expiration.ms", INT, 604_800_000, at_least(1), HIGH, READ_ONLY, HONOURED,
              "How long an unused transactional id is kept."),
)
# fmt: on
