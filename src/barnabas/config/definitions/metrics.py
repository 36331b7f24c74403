"""Broker keys of metrics and quotas."""

from __future__ import annotations

from barnabas.config.definition import ConfigKey, at_least
from barnabas.config.definitions.words import (
    CLASS,
    CLUSTER_WIDE,
    INT,
    LIST,
    LONG,
    LOW,
    NO_EFFECT,
    READ_ONLY,
    STRING,
)

# fmt: off
KEYS = (
    ConfigKey("alter.log.dirs.replication.quota.window.num", INT, 11, at_least(1), LOW, READ_ONLY, NO_EFFECT,
              ""),
    ConfigKey("alter.log.dirs.replication.quota.window.size.seconds", INT, 1, at_least(1), LOW, READ_ONLY, NO_EFFECT,
              ""),
    ConfigKey("client.quota.callback.class", CLASS, None, None, LOW, READ_ONLY, NO_EFFECT,
              ""),
    ConfigKey("controller.quota.window.num", INT, 11, at_least(1), LOW, READ_ONLY, NO_EFFECT,
              ""),
    ConfigKey("controller.quota.window.size.seconds", INT, 1, at_least(1), LOW, READ_ONLY, NO_EFFECT,
              ""),
    ConfigKey("kafka.metrics.polling.interval.secs", INT, 10, at_least(1), LOW, READ_ONLY, NO_EFFECT,
              ""),
    ConfigKey("kafka.metrics.reporters", LIST, (), None, LOW, READ_ONLY, NO_EFFECT,
              ""),
    ConfigKey("metric.reporters", LIST, ("org.apache.kafka.common.metrics.JmxReporter",), None, LOW, CLUSTER_WIDE, NO_EFFECT,
              ""),
    ConfigKey("metrics.num.samples", INT, 2, at_least(1), LOW, READ_ONLY, NO_EFFECT,
              ""),
    ConfigKey("metrics.recording.level", STRING, "INFO", None, LOW, READ_ONLY, NO_EFFECT,
              ""),
    ConfigKey("metrics.sample.window.ms", LONG, 30_000, at_least(1), LOW, READ_ONLY, NO_EFFECT,
              ""),
    ConfigKey("quota.window.num", INT, 11, at_least(1), LOW, READ_ONLY, NO_EFFECT,
              ""),
    ConfigKey("quota.window.size.seconds", INT, 1, at_least(1), LOW, READ_ONLY, NO_EFFECT,
              ""),
    ConfigKey("replication.quota.window.num", INT, 11, at_least(1), LOW, READ_ONLY, NO_EFFECT,
              ""),
    ConfigKey("replication.quota.window.size.seconds", INT, 1, at_least(1), LOW, READ_ONLY, NO_EFFECT,
              ""),
)
# fmt: on
