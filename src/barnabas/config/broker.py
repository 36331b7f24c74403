"""The configuration of a broker: every key as a typed attribute.

Owns the parsing of text into `BrokerConfig` and the values that depend on several keys: log directories, listeners, the node
id, and the settings of topics without settings of their own.

Rules
  1. A `BrokerConfig` never changes; dynamic settings create another one (`with_dynamic`).
  2. An unknown key, or one that has no effect here, is a warning; a value that is not allowed is a ConfigError.
  3. The given text is kept (`given`), because admin tools ask for the source of each value.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cached_property
from types import MappingProxyType
from typing import Any

from barnabas.config import definitions
from barnabas.config.broker_attributes import BrokerAttributes
from barnabas.config.combined_checks import check_groups, check_logins, check_registry_login
from barnabas.config.config_key import ConfigKey, Effect, Value
from barnabas.config.cordoning import check_cordoned
from barnabas.config.folders import check_named
from barnabas.config.listeners import Endpoint, parse_listeners, parse_protocol_map
from barnabas.config.topic import TopicConfig, check_together
from barnabas.errors import ConfigError

LEAST_DEDUPE_BYTES = 1024 * 1024  # for each thread; the same limit as in Kafka
LISTENER_KEY = r"listener\.name\.[^.]*\.(?:(?:gssapi|plain|scram-sha-256|scram-sha-512|oauthbearer)\.)?(.+)"
DEFAULTS: dict[str, Value] = {key.attribute: key.default for key in definitions.BROKER.values()}


class BrokerConfig(BrokerAttributes):
    """The settings of one broker; the attributes are Kafka's keys with underscores, `None` where a key is unset.

    Args:
        given: the text of each key that was set, unknown ones too.
        dynamic: the text of each key that was set while brokers run.
    """

    given: Mapping[str, str]
    texts: Mapping[str, str]  # `given`, overridden by `dynamic`; also contains the keys of single listeners

    def __init__(
        self, values: Mapping[str, Value], given: Mapping[str, str], dynamic: Mapping[str, str] = MappingProxyType({})
    ) -> None:
        self.__dict__.update(DEFAULTS)
        self.__dict__.update(values)
        self.__dict__["given"] = MappingProxyType(dict(given))
        self.__dict__["texts"] = MappingProxyType({**given, **dynamic})
        self.__dict__.update(_resolved(self))

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(f"{name} of a BrokerConfig cannot be set")

    def __repr__(self) -> str:
        shown = {
            k: "[hidden]" if definitions.BROKER[k].is_sensitive else v for k, v in self.given.items() if k in definitions.BROKER
        }
        return f"BrokerConfig({shown})"

    @classmethod
    def from_properties(cls, properties: Mapping[str, str]) -> tuple[BrokerConfig, tuple[str, ...]]:
        """The configuration and a warning for each key that is unknown or without effect; raises ConfigError."""
        values: dict[str, Value] = {}
        given: dict[str, str] = {}
        warnings: list[str] = []
        for name, text in properties.items():
            key = known_key(name)
            if key is None:
                warnings.append(f"unknown configuration key {name}")
                given[name] = text
                continue
            value = key.read(text)
            given[name] = text
            if name == key.name:
                values[key.attribute] = value
            if key.effect is Effect.NONE:
                warnings.append(f"configuration key {name} is accepted and has no effect")
        for one, other in (("node.id", "broker.id"), ("broker.id", "node.id")):
            if one in given and other not in given:
                given[other] = given[one]
        config = cls(values, given)
        config.validate()
        return config, tuple(warnings)

    def with_dynamic(self, texts: Mapping[str, str]) -> BrokerConfig:
        """A copy in which the values of `texts` override the given ones; raises ConfigError."""
        values = {name: value for name, value in self.__dict__.items() if name in DEFAULTS}
        for name, text in texts.items():
            key = definitions.BROKER.get(name)
            if key is not None:
                values[key.attribute] = key.read(text)
        return BrokerConfig(values, self.given, texts)

    def validate(self) -> None:
        """Raises ConfigError if keys contradict each other."""
        names = {endpoint.listener for endpoint in self.listener_endpoints}
        for endpoint in self.advertised_endpoints:
            if endpoint.listener not in names:
                raise ConfigError(
                    "advertised.listeners", endpoint.listener, f"the name of a listener: {', '.join(sorted(names))}"
                )
            if endpoint.host in {"0.0.0.0", "::"} and "advertised.listeners" in self.given:
                raise ConfigError("advertised.listeners", endpoint.host, "an address that clients can reach")
        if not names:
            raise ConfigError("listeners", ",".join(self.listeners), "at least one listener for clients")
        if self.given.get("broker.id", "").strip() != self.given.get("node.id", "").strip():
            raise ConfigError("broker.id", self.given["broker.id"], f"the same as node.id ({self.node_id})")
        if "classic" not in self.group_coordinator_rebalance_protocols:
            given = ",".join(self.group_coordinator_rebalance_protocols)
            raise ConfigError("group.coordinator.rebalance.protocols", given, "a list with classic, which cannot be switched off")
        check_groups(lambda name: int(getattr(self, name.replace(".", "_"))))
        if self.log_cleaner_dedupe_buffer_size // max(self.log_cleaner_threads, 1) <= LEAST_DEDUPE_BYTES:
            size = str(self.log_cleaner_dedupe_buffer_size)
            raise ConfigError("log.cleaner.dedupe.buffer.size", size, "more than 1 MB for each of log.cleaner.threads")
        check_named(self.log_dirs)
        check_cordoned(self.cordoned_log_dirs, self.log_dirs)
        check_logins(self, self.listener_endpoints)
        check_registry_login(self.confluent_basic_auth_credentials_source, self.confluent_basic_auth_user_info)
        check_together(self.topic_defaults)

    @cached_property
    def listener_endpoints(self) -> tuple[Endpoint, ...]:
        """The listeners to open."""
        return self._without_controller(parse_listeners("listeners", self.listeners, self._protocols))

    @cached_property
    def advertised_endpoints(self) -> tuple[Endpoint, ...]:
        """The listeners that clients get in metadata; the server fills in an empty host or port 0."""
        return self._without_controller(parse_listeners("advertised.listeners", self.advertised_listeners, self._protocols))

    @property
    def metadata_session_timeout_ms(self) -> int:
        """The session timeout to request from ZooKeeper, in milliseconds; ZooKeeper may end a session up to a tick later."""
        return self.zookeeper_session_timeout_ms or self.broker_session_timeout_ms * 2 // 3

    @cached_property
    def topic_defaults(self) -> TopicConfig:
        """The settings of a topic without settings of its own."""
        return TopicConfig(
            cleanup_policy=frozenset(self.log_cleanup_policy),
            compression_type=self.compression_type,
            compression_gzip_level=self.compression_gzip_level,
            compression_lz4_level=self.compression_lz4_level,
            compression_zstd_level=self.compression_zstd_level,
            delete_retention_ms=self.log_cleaner_delete_retention_ms,
            file_delete_delay_ms=self.log_segment_delete_delay_ms,
            flush_messages=self.log_flush_interval_messages,
            flush_ms=_first(self.log_flush_interval_ms, self.log_flush_scheduler_interval_ms),
            index_interval_bytes=self.log_index_interval_bytes,
            max_compaction_lag_ms=self.log_cleaner_max_compaction_lag_ms,
            max_message_bytes=self.message_max_bytes,
            message_timestamp_after_max_ms=self.log_message_timestamp_after_max_ms,
            message_timestamp_before_max_ms=self.log_message_timestamp_before_max_ms,
            message_timestamp_type=self.log_message_timestamp_type,
            min_cleanable_dirty_ratio=self.log_cleaner_min_cleanable_ratio,
            min_compaction_lag_ms=self.log_cleaner_min_compaction_lag_ms,
            min_insync_replicas=self.min_insync_replicas,
            preallocate=self.log_preallocate,
            retention_bytes=self.log_retention_bytes,
            retention_ms=self._retention_ms(),
            segment_bytes=self.log_segment_bytes,
            segment_index_bytes=self.log_index_size_max_bytes,
            segment_jitter_ms=_first(self.log_roll_jitter_ms, self.log_roll_jitter_hours * 3_600_000),
            segment_ms=_first(self.log_roll_ms, self.log_roll_hours * 3_600_000),
            unclean_leader_election_enable=self.unclean_leader_election_enable,
        )

    @cached_property
    def _protocols(self) -> dict[str, str]:
        protocols = parse_protocol_map(self.listener_security_protocol_map)
        for name in self.controller_listener_names:
            protocols.setdefault(name.upper(), "PLAINTEXT")
        return protocols

    def _without_controller(self, endpoints: tuple[Endpoint, ...]) -> tuple[Endpoint, ...]:
        controllers = {name.upper() for name in self.controller_listener_names}
        return tuple(endpoint for endpoint in endpoints if endpoint.listener not in controllers)

    def _retention_ms(self) -> int:
        minutes = self.log_retention_minutes
        longer = self.log_retention_hours * 3_600_000 if minutes is None else minutes * 60_000
        retention = _first(self.log_retention_ms, longer)
        return -1 if retention < 0 else retention


def known_key(name: str) -> ConfigKey | None:
    """The key of a name, which may have the prefix of a listener; None for an unknown name."""
    key = definitions.BROKER.get(name)
    if key is None and (match := re.fullmatch(LISTENER_KEY, name)):
        key = definitions.BROKER.get(match[1])
    return key


def _first(preferred: int | None, otherwise: int) -> int:
    return otherwise if preferred is None else preferred


def _resolved(config: BrokerConfig) -> dict[str, Value]:
    """Fills in the keys that take another key's value when unset."""
    given = config.given
    node_id = int(given.get("node.id", config.node_id))
    unset: tuple[str, ...] | None = None
    dirs, advertised = config.__dict__.get("log_dirs", unset), config.__dict__.get("advertised_listeners", unset)
    return {
        "node_id": node_id,
        "broker_id": node_id,
        "log_dirs": config.log_dir if dirs is None else dirs,
        "advertised_listeners": config.listeners if advertised is None else advertised,
    }
