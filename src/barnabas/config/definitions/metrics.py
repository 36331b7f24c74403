"""Broker keys of metrics and quotas."""

from __future__ import annotations

from barnabas.config.config_key import ConfigKey, at_least
from barnabas.config.definitions.columns import (
    CLASS,
    CLUSTER_WIDE,
    HONOURED,
    INT,
    LIST,
    LONG,
    LOW,
    NO_EFFECT,
    READ_ONLY,
    STRING,
)
from barnabas.config.guards import Guard

# fmt: off
KEYS = (
    ConfigKey("alter.log.dirs.replication.quota.window.num", INT, 11, at_least(1), LOW, READ_ONLY, NO_EFFECT,
              "Windows over which moves between directories are measured."),
    ConfigKey("alter.log.dirs.replication.quota.window.size.seconds", INT, 1, at_least(1), LOW, READ_ONLY, NO_EFFECT,
              "Length of a window of moves between directories."),
    ConfigKey("client.quota.callback.class", CLASS, None, Guard("ClientQuotaCallback"), LOW, READ_ONLY, HONOURED,
              "Class that decides the quota of a client."),
    ConfigKey("controller.quota.window.num", INT, 11, at_least(1), LOW, READ_ONLY, HONOURED,
              "Windows over which an unused quota of metadata changes accumulates."),
    ConfigKey("controller.quota.window.size.seconds", INT, 1, at_least(1), LOW, READ_ONLY, HONOURED,
              "Length of a window of the quota of metadata changes."),
    ConfigKey("kafka.metrics.polling.interval.secs", INT, 10, at_least(1), LOW, READ_ONLY, NO_EFFECT,
              "How often kafka.metrics.reporters poll metrics."),
    ConfigKey("kafka.metrics.reporters", LIST, (), None, LOW, READ_ONLY, NO_EFFECT,
              "Classes that receive the older metrics."),
    ConfigKey("metric.reporters", LIST, ("org.apache.kafka.common.metrics.JmxReporter",), None, LOW, CLUSTER_WIDE, NO_EFFECT,
              "Classes that receive metrics; here a Prometheus page shows them."),
    ConfigKey("metrics.num.samples", INT, 2, at_least(1), LOW, READ_ONLY, NO_EFFECT,
              "Samples over which a metric is averaged."),
    ConfigKey("metrics.recording.level", STRING, "INFO", None, LOW, READ_ONLY, NO_EFFECT,
              "How detailed metrics are."),
    ConfigKey("metrics.sample.window.ms", LONG, 30_000, at_least(1), LOW, READ_ONLY, NO_EFFECT,
              "Length of one sample."),
    ConfigKey("quota.window.num", INT, 11, at_least(1), LOW, READ_ONLY, HONOURED,
              "Windows over which clients' rates are shown, and over which unused rates of new connections accumulate."),
    ConfigKey("quota.window.size.seconds", INT, 1, at_least(1), LOW, READ_ONLY, HONOURED,
              "Length of a window of clients' quotas; an unused quota of bytes or time accumulates over this time."),
    ConfigKey("replication.quota.window.num", INT, 11, at_least(1), LOW, READ_ONLY, NO_EFFECT,
              "Windows over which replication quotas are measured."),
    ConfigKey("replication.quota.window.size.seconds", INT, 1, at_least(1), LOW, READ_ONLY, HONOURED,
              "Time over which an unused replication quota accumulates."),
)
# fmt: on
