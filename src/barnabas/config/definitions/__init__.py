"""Every key of Kafka 4.3 for the broker, a topic, a group or a client-metrics subscription; and those of schema validation and of links."""

from __future__ import annotations

from barnabas.config.config_key import ConfigKey
from barnabas.config.definitions import (
    authorization,
    classic_groups,
    client_metrics,
    cluster,
    group,
    internal,
    link,
    log,
    metrics,
    network,
    new_groups,
    oauth,
    replication,
    sasl,
    schema_validation,
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
    schema_validation,
    internal,
)

BROKER: dict[str, ConfigKey] = {key.name: key for module in BROKER_MODULES for key in module.KEYS}
TOPIC: dict[str, ConfigKey] = {key.name: key for key in (*topic.KEYS, *schema_validation.TOPIC_KEYS)}
GROUP: dict[str, ConfigKey] = {key.name: key for key in group.KEYS}
CLIENT_METRICS: dict[str, ConfigKey] = {key.name: key for key in client_metrics.KEYS}
LINK: dict[str, ConfigKey] = {key.name: key for key in link.KEYS}
