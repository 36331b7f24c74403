"""Settings of a client-metrics subscription (KIP-714)."""

from __future__ import annotations

from barnabas.config.config_key import ConfigKey, between
from barnabas.config.definitions.columns import CLUSTER_WIDE, INT, LIST, MEDIUM, NO_EFFECT

# fmt: off
KEYS = (
    ConfigKey("interval.ms", INT, 300_000, between(100, 3_600_000), MEDIUM, CLUSTER_WIDE, NO_EFFECT,
              "How often a client of this subscription sends its metrics."),
    ConfigKey("match", LIST, (), None, MEDIUM, CLUSTER_WIDE, NO_EFFECT,
              "The clients of the subscription: pairs of a selector such as client_id and a regular expression."),
    ConfigKey("metrics", LIST, (), None, MEDIUM, CLUSTER_WIDE, NO_EFFECT,
              "Prefixes of the names of the metrics to send; `*` for all, empty for none."),
)
# fmt: on
