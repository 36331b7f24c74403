"""Every key of Kafka 4.3, for the broker, a topic, a group, or a client-metrics subscription."""

from __future__ import annotations

from barnabas.config.config_key import ConfigKey
from barnabas.config.definitions import (
    authorization,
    classic_groups,
    client_metrics,
    cluster,
    group,
    internal,
    log,
    metrics,
    network,
    new_groups,
    oauth,
    replication,
    sasl,
    tiered,
    tls,
    topic,
    transactions,
    zookeeper,
)

BROKER_MODULES = (
    cluster,
    zookeeper,
    network,
    log,
    replication,
    classic_groups,
    new_groups,
    transactions,
    tiered,
    metrics,
    authorization,
    sasl,
    oauth,
    tls,
    internal,
)

BROKER: dict[str, ConfigKey] = {key.name: key for module in BROKER_MODULES for key in module.KEYS}
TOPIC: dict[str, ConfigKey] = {key.name: key for key in topic.KEYS}
GROUP: dict[str, ConfigKey] = {key.name: key for key in group.KEYS}
CLIENT_METRICS: dict[str, ConfigKey] = {key.name: key for key in client_metrics.KEYS}
