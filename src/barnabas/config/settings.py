"""Checks settings of a resource, given as text, and resolves those of a topic.

Settings arrive with CreateTopics, AlterConfigs and IncrementalAlterConfigs and are stored as the given text. The checks use
Kafka's error codes and sentences. A topic's settings are resolved to a `TopicConfig`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from msgspec.structs import replace

from barnabas.config import definitions
from barnabas.config.broker import BrokerConfig, known_key
from barnabas.config.config_key import ConfigKey, Scope, Value
from barnabas.config.guards import PREFIX, Guard
from barnabas.config.topic import TopicConfig
from barnabas.errors import ConfigError, ErrorCode, KafkaError

SMALL_SEGMENT = "internal.segment.bytes"
TOPIC_FIELDS = frozenset(TopicConfig.__struct_fields__)
LISTENER_ONLY = frozenset(
    {
        "ssl.key.password",
        "ssl.keystore.certificate.chain",
        "ssl.keystore.key",
        "ssl.keystore.location",
        "ssl.keystore.password",
        "ssl.keystore.type",
        "ssl.truststore.certificates",
        "ssl.truststore.location",
        "ssl.truststore.password",
        "ssl.truststore.type",
    }
)
CLIENT_SELECTORS = frozenset(
    {
        "client_id",
        "client_instance_id",
        "client_software_name",
        "client_software_version",
        "client_source_address",
        "client_source_port",
    }
)


def refusal(error: ConfigError) -> str:
    """Kafka's sentence for a value that it refuses."""
    return f"Invalid value {error.value} for configuration {error.key}: {error.allowed}"


def topic_config(settings: Mapping[str, str], defaults: TopicConfig) -> TopicConfig:
    """`defaults`, overridden by a topic's own settings, which were checked before."""
    if not settings:
        return defaults
    changes: dict[str, Any] = {}
    for name, text in settings.items():
        key = definitions.TOPIC.get(name)
        if key is not None and key.attribute in TOPIC_FIELDS:
            value = key.read(text)
            changes[key.attribute] = frozenset(value) if isinstance(value, tuple) else value
    small_segment = settings.get(SMALL_SEGMENT)
    if small_segment is not None:
        changes["segment_bytes"] = int(small_segment)
    return replace(defaults, **changes)


def check_topic(settings: Mapping[str, str], defaults: TopicConfig) -> None:
    """Raises KafkaError(INVALID_CONFIG) unless a topic may have these settings."""
    for name in settings:
        if name not in definitions.TOPIC:
            raise KafkaError(ErrorCode.INVALID_CONFIG, f"Unknown topic config name: {name}")
    values = _read_all(definitions.TOPIC, settings)
    if values.get("remote.storage.enable"):
        reason = "Tiered Storage functionality is disabled in the broker. Topic cannot be configured with remote log storage."
        raise KafkaError(ErrorCode.INVALID_CONFIG, reason)
    config = topic_config(settings, defaults)
    low, high = config.min_compaction_lag_ms, config.max_compaction_lag_ms
    if low > high:
        reason = f"conflict topic config setting min.compaction.lag.ms ({low}) > max.compaction.lag.ms ({high})"
        raise KafkaError(ErrorCode.INVALID_CONFIG, reason)


def check_schema_validation(before: Mapping[str, str], after: Mapping[str, str], config: BrokerConfig) -> None:
    """Raises KafkaError(INVALID_CONFIG) if a change enables schema validation on brokers without a registry."""
    if config.confluent_schema_registry_url or topic_config(before, config.topic_defaults).validates_schemas:
        return
    if topic_config(after, config.topic_defaults).validates_schemas:
        raise KafkaError(
            ErrorCode.INVALID_CONFIG, "Schema validation needs confluent.schema.registry.url in the broker's settings"
        )


def check_broker(settings: Mapping[str, str], *, of_all_brokers: bool) -> None:
    """Raises KafkaError(INVALID_REQUEST) unless running brokers accept these settings."""
    keys = {name: known_key(name) for name in settings}
    fixed = [name for name, key in keys.items() if key is not None and key.scope is Scope.READ_ONLY]
    if fixed:
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"Cannot update these configs dynamically: [{', '.join(fixed)}]")
    bare = [name for name in settings if name in LISTENER_ONLY]
    if bare:
        reason = "These security configs can be dynamically updated only per-listener using the listener prefix: "
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"{reason}[{', '.join(bare)}]")
    single = [name for name, key in keys.items() if key is not None and key.scope is Scope.PER_BROKER]
    if of_all_brokers and single:
        reason = "Cannot update these configs at default cluster level, broker id must be specified: "
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"{reason}[{', '.join(single)}]")
    try:
        for name, key in keys.items():
            if key is not None:
                key.read(settings[name])
                _check_no_code(key, settings[name])
    except ConfigError as error:
        raise KafkaError(ErrorCode.INVALID_REQUEST, refusal(error)) from error


def _check_no_code(key: ConfigKey, text: str) -> None:
    """Only the broker's own configuration may name classes: the right to change settings must not include the choice of the
    code that a broker runs."""
    if isinstance(key.check, Guard) and text.strip().startswith(PREFIX):
        raise ConfigError(key.name, text, "only the configuration that a broker starts with may name a Python class")


def check_group(settings: Mapping[str, str], config: BrokerConfig) -> None:
    """Raises KafkaError(INVALID_CONFIG) unless a group may have these settings on such brokers."""
    for name in settings:
        if name not in definitions.GROUP:
            raise KafkaError(ErrorCode.INVALID_CONFIG, f"Unknown group config name: {name}")
    for name, value in _read_all(definitions.GROUP, settings).items():
        kind, _, rest = name.partition(".")
        low, high = (definitions.BROKER.get(f"group.{kind}.{bound}.{rest}") for bound in ("min", "max"))
        if low is not None and _number(value) < _number(getattr(config, low.attribute)):
            raise KafkaError(ErrorCode.INVALID_CONFIG, f"{name} must be greater than or equal to {low.name}")
        if high is not None and _number(value) > _number(getattr(config, high.attribute)):
            raise KafkaError(ErrorCode.INVALID_CONFIG, f"{name} must be less than or equal to {high.name}")


def check_client_metrics(settings: Mapping[str, str]) -> None:
    """Raises KafkaError unless a client-metrics subscription may have these settings."""
    for name in settings:
        if name not in definitions.CLIENT_METRICS:
            raise KafkaError(ErrorCode.INVALID_REQUEST, f"Unknown client metrics configuration: {name}")
    if "interval.ms" in settings:
        _check_interval(settings["interval.ms"])
    patterns = definitions.CLIENT_METRICS["match"].read(settings.get("match", ""))
    for pattern in patterns if isinstance(patterns, tuple) else ():
        selector, separator, expression = str(pattern).partition("=")
        if not separator or selector.strip() not in CLIENT_SELECTORS or not _compiles(expression.strip()):
            raise KafkaError(ErrorCode.INVALID_CONFIG, f"Illegal client matching pattern: {pattern}")


def check_link(settings: Mapping[str, str]) -> None:
    """Raises KafkaError(INVALID_CONFIG) unless a mirror link may have these settings. No settings at all mean that the link is deleted."""
    for name in settings:
        if name not in definitions.LINK:
            raise KafkaError(ErrorCode.INVALID_CONFIG, f"Unknown link config name: {name}")
    values = _read_all(definitions.LINK, settings)
    if settings and not values.get("bootstrap.servers"):
        raise KafkaError(ErrorCode.INVALID_CONFIG, "A mirror link needs bootstrap.servers")
    protocol = str(values.get("security.protocol", "")).upper()
    needed = ("sasl.mechanism", "sasl.username", "sasl.password") if protocol.startswith("SASL_") else ()
    missing = [name for name in needed if not values.get(name)]
    if missing:
        raise KafkaError(ErrorCode.INVALID_CONFIG, f"security.protocol={protocol} needs {', '.join(missing)}")
    is_checked = values.get("ssl.endpoint.identification.algorithm", "https") and protocol in {"SSL", "SASL_SSL"}
    if values.get("sync.users.enabled") and not is_checked:
        reason = "sync.users.enabled needs security.protocol SSL or SASL_SSL, and the check of the source's name"
        raise KafkaError(ErrorCode.INVALID_CONFIG, reason)


def _check_interval(text: str) -> None:
    try:
        definitions.CLIENT_METRICS["interval.ms"].read(text)
    except ConfigError as error:
        if error.allowed.startswith("Not a number"):
            raise KafkaError(ErrorCode.INVALID_CONFIG, refusal(error)) from error
        reason = f"Invalid value {text} for interval.ms, interval must be between 100 and 3600000 (1 hour)"
        raise KafkaError(ErrorCode.INVALID_REQUEST, reason) from error


def _compiles(expression: str) -> bool:
    try:
        re.compile(expression)
    except re.error:
        return False
    return True


def _read_all(keys: Mapping[str, ConfigKey], settings: Mapping[str, str]) -> dict[str, Value]:
    try:
        return {name: keys[name].read(text) for name, text in settings.items()}
    except ConfigError as error:
        raise KafkaError(ErrorCode.INVALID_CONFIG, refusal(error)) from error


def _number(value: Value) -> float:
    return value if isinstance(value, int | float) else 0
