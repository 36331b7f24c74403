"""Internal broker keys of Kafka: neither its tools nor its documentation show them."""

from __future__ import annotations

from barnabas.config.config_key import ConfigKey, at_least, between
from barnabas.config.definitions.columns import (
    BOOLEAN,
    DOUBLE,
    HONOURED,
    INT,
    LONG,
    LOW,
    MAX_LONG,
    MEDIUM,
    NO_EFFECT,
    READ_ONLY,
    STRING,
)

# fmt: off
KEYS = (
    ConfigKey("controller.performance.always.log.threshold.ms", LONG, 2_000, at_least(0), LOW, READ_ONLY, NO_EFFECT,
              "From which duration on the quorum's controller logs an event; here barnabas_loop_lag_seconds tells.", hidden=True),
    ConfigKey("controller.performance.sample.period.ms", LONG, 60_000, at_least(100), LOW, READ_ONLY, NO_EFFECT,
              "How often the quorum's controller logs the durations of its events.", hidden=True),
    ConfigKey("group.consumer.regex.refresh.interval.ms", INT, 600_000, at_least(10_000), MEDIUM, READ_ONLY, HONOURED,
              "How often expressions of consumers are matched with all topics again, since rights may change.", hidden=True),
    ConfigKey("group.share.initialize.retry.interval.ms", INT, 30_000, at_least(1), MEDIUM, READ_ONLY, NO_EFFECT,
              "How often the start of a share partition is tried again.", hidden=True),
    ConfigKey("group.share.persister.class.name", STRING,
              "org.apache.kafka.server.share.persister.DefaultStatePersister", None, MEDIUM, READ_ONLY, NO_EFFECT,
              "Class that stores the state of share groups.", hidden=True),
    ConfigKey("internal.metadata.delete.delay.millis", LONG, 60_000, None, LOW, READ_ONLY, NO_EFFECT,
              "How long unneeded files of the quorum's log stay.", hidden=True),
    ConfigKey("internal.metadata.log.segment.bytes", INT, None, None, LOW, READ_ONLY, NO_EFFECT,
              "Size of a segment of the quorum's log in tests.", hidden=True),
    ConfigKey("internal.metadata.max.batch.size.in.bytes", INT, 8_388_608, None, LOW, READ_ONLY, NO_EFFECT,
              "Largest batch of the quorum's log.", hidden=True),
    ConfigKey("remote.log.index.file.cache.ttl.ms", LONG, 900_000, at_least(-1), LOW, READ_ONLY, NO_EFFECT,
              "How long indexes of tiered segments stay cached.", hidden=True),
    ConfigKey("remote.log.manager.task.retry.backoff.max.ms", LONG, 30_000, at_least(1), LOW, READ_ONLY, NO_EFFECT,
              "Longest pause before tiering is tried again.", hidden=True),
    ConfigKey("remote.log.manager.task.retry.backoff.ms", LONG, 500, at_least(1), LOW, READ_ONLY, NO_EFFECT,
              "First pause before tiering is tried again.", hidden=True),
    ConfigKey("remote.log.manager.task.retry.jitter", DOUBLE, 0.2, between(0, 0.5), LOW, READ_ONLY, NO_EFFECT,
              "Random share of the pause before tiering is tried again.", hidden=True),
    ConfigKey("server.max.startup.time.ms", LONG, MAX_LONG, at_least(0), LOW, READ_ONLY, NO_EFFECT,
              "How long a start may take; a service manager can limit it.", hidden=True),
    ConfigKey("share.coordinator.cold.partition.snapshot.interval.ms", INT, 300_000, at_least(1), MEDIUM, READ_ONLY, NO_EFFECT,
              "How often the share coordinator writes whole states of idle partitions.", hidden=True),
    ConfigKey("share.coordinator.state.topic.prune.interval.ms", INT, 300_000, at_least(1), MEDIUM, READ_ONLY, NO_EFFECT,
              "How often the share coordinator removes what it does not need.", hidden=True),
    ConfigKey("unclean.leader.election.interval.ms", LONG, 300_000, at_least(1), MEDIUM, READ_ONLY, NO_EFFECT,
              "How often Kafka's controller looks for partitions without a leader that allow unclean elections. Here an election takes "
              "place as soon as it is allowed and a replica is alive.", hidden=True),
    ConfigKey("unstable.api.versions.enable", BOOLEAN, False, None, LOW, READ_ONLY, NO_EFFECT,
              "Serve unfinished versions of APIs; there are none here.", hidden=True),
    ConfigKey("unstable.feature.versions.enable", BOOLEAN, False, None, LOW, READ_ONLY, NO_EFFECT,
              "Allow unfinished levels of features; there are none here.", hidden=True),
)
# fmt: on
