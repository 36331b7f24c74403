"""The content of DescribeConfigs: each setting with its value, its source, and the values of weaker sources.

Rules
  1. The value is that of the strongest source that has one: the resource itself, this broker, all brokers, the broker's file, the
     default. All of them are listed as synonyms, strongest first.
  2. Synonyms begin with the key's own name; stronger keys are left out (for a key in hours, the one in milliseconds). So
     `retention.ms` shows no synonym unless `log.retention.ms` itself is set. Kafka does the same.
  3. Secrets and unknown keys have no value in the response.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from enum import IntEnum
from typing import NamedTuple

from msgspec import Struct

from barnabas.config import definitions
from barnabas.config.broker import BrokerConfig, known_key
from barnabas.config.config_key import ConfigKey, ConfigType, Scope, text_of
from barnabas.config.settings import SMALL_SEGMENT, topic_config
from barnabas.config.synonyms import BROKER_KEY_OF_TOPIC, broker_key_of_group, broker_synonyms
from barnabas.config.topic import TopicConfig

UNKNOWN_TYPE = 0
# Kafka does not start without a value for these keys
NO_DEFAULT = frozenset({"controller.listener.names", "node.id", "process.roles"})


class Source(IntEnum):
    """Numbers as in DescribeConfigs."""

    TOPIC = 1
    DYNAMIC_BROKER = 2
    DYNAMIC_DEFAULT_BROKER = 3
    STATIC_BROKER = 4
    DEFAULT = 5
    BROKER_LOGGER = 6
    CLIENT_METRICS = 7
    GROUP = 8
    LINK = 64  # of a mirror link; Kafka has none


class Synonym(NamedTuple):
    name: str
    value: str | None
    source: Source


class ConfigEntry(NamedTuple):
    name: str
    value: str | None
    source: Source
    is_read_only: bool
    is_sensitive: bool
    config_type: int
    synonyms: tuple[Synonym, ...]
    documentation: str


class Layers(Struct, frozen=True):
    """The settings of one broker by strength.

    Args:
        config: with the dynamic settings applied.
    """

    config: BrokerConfig
    of_broker: Mapping[str, str]
    of_all_brokers: Mapping[str, str]

    def sources(self) -> tuple[tuple[Source, Mapping[str, str]], ...]:
        return (
            (Source.DYNAMIC_BROKER, self.of_broker),
            (Source.DYNAMIC_DEFAULT_BROKER, self.of_all_brokers),
            (Source.STATIC_BROKER, self.config.given),
        )


class TopicEntries:
    """The settings of topics on one broker. The settings without a value of the topic are the same for all topics, so they are
    created once."""

    def __init__(self, layers: Layers) -> None:
        self._layers = layers
        self._not_set: dict[str, ConfigEntry] = {}

    def of(self, settings: Mapping[str, str], keys: Sequence[str] | None = None) -> list[ConfigEntry]:
        """The settings of a topic; `keys` selects some, None or an empty list means all."""
        resolved = topic_config(settings, self._layers.config.topic_defaults)
        return [self._entry(key, settings, resolved) for key in _chosen(definitions.TOPIC, keys, settings)]

    def _entry(self, key: ConfigKey, settings: Mapping[str, str], resolved: TopicConfig) -> ConfigEntry:
        if key.name in settings or SMALL_SEGMENT in settings:  # SMALL_SEGMENT overrides the segment size
            return _topic_entry(key, settings, self._layers, resolved)
        entry = self._not_set.get(key.name)
        if entry is None:
            entry = self._not_set[key.name] = _topic_entry(key, settings, self._layers, resolved)
        return entry


def topic_entries(settings: Mapping[str, str], layers: Layers, keys: Sequence[str] | None = None) -> list[ConfigEntry]:
    """The settings of one topic."""
    return TopicEntries(layers).of(settings, keys)


def _topic_entry(key: ConfigKey, settings: Mapping[str, str], layers: Layers, resolved: TopicConfig) -> ConfigEntry:
    broker_name = BROKER_KEY_OF_TOPIC.get(key.name)
    synonyms = _own(key, settings, Source.TOPIC) + (() if broker_name is None else _synonyms(broker_name, layers))
    if key.name in settings:
        value: str | None = text_of(key.read(settings[key.name]))
    elif hasattr(resolved, key.attribute) and not isinstance(getattr(resolved, key.attribute), frozenset):
        value = text_of(getattr(resolved, key.attribute))
    else:  # the frozenset of a list key has lost the configured order
        value = key.default_text() if broker_name is None else _broker_value(broker_name, layers)
    return _entry(key, value, synonyms, read_only=False)


def broker_entries(layers: Layers, keys: Sequence[str] | None = None) -> list[ConfigEntry]:
    """The settings of a broker: every listed key, and every other key that was set on it."""
    extra = [name for _, settings in layers.sources() for name in settings]
    names = [key.name for key in definitions.BROKER.values() if not key.hidden]
    wanted = dict.fromkeys([*names, *extra])
    return [_broker_entry(name, layers) for name in wanted if not keys or name in keys]


def all_brokers_entries(settings: Mapping[str, str], keys: Sequence[str] | None = None) -> list[ConfigEntry]:
    """The settings of all brokers together."""
    entries = []
    for name, text in settings.items():
        if not keys or name in keys:
            key = known_key(name)
            shown = None if key is None or key.is_sensitive else text
            synonyms = (Synonym(name, shown, Source.DYNAMIC_DEFAULT_BROKER),)
            entries.append(_named_entry(name, key, shown, synonyms))
    return entries


def group_entries(settings: Mapping[str, str], layers: Layers, keys: Sequence[str] | None = None) -> list[ConfigEntry]:
    """The settings of a group, which override the brokers' defaults for groups."""
    entries = []
    for key in _chosen(definitions.GROUP, keys, settings):
        broker_name = broker_key_of_group(key.name)
        synonyms = _own(key, settings, Source.GROUP) + (
            _synonyms(broker_name, layers)
            if broker_name in definitions.BROKER
            else (Synonym(key.name, key.default_text(), Source.DEFAULT),)
        )
        entries.append(_entry(key, synonyms[0].value, synonyms, read_only=False))
    return entries


def client_metrics_entries(settings: Mapping[str, str], keys: Sequence[str] | None = None) -> list[ConfigEntry]:
    """The settings of a client-metrics subscription."""
    entries = []
    for key in _chosen(definitions.CLIENT_METRICS, keys, settings):
        synonyms = _own(key, settings, Source.CLIENT_METRICS)
        value = synonyms[0].value if synonyms else key.default_text()
        entries.append(_entry(key, value, synonyms, read_only=False))
    return entries


def link_entries(settings: Mapping[str, str], status: Mapping[str, str], keys: Sequence[str] | None = None) -> list[ConfigEntry]:
    """The settings of a mirror link, and read-only ones with its status on this broker."""
    entries = []
    for key in _chosen(definitions.LINK, keys, settings):
        synonyms = () if key.is_sensitive else _own(key, settings, Source.LINK)
        value = None if key.is_sensitive else synonyms[0].value if synonyms else key.default_text()
        source = Source.LINK if key.name in settings else Source.DEFAULT
        entries.append(ConfigEntry(key.name, value, source, False, key.is_sensitive, key.type, synonyms, key.doc))
    entries += [
        ConfigEntry(
            name, text, Source.LINK, True, False, ConfigType.STRING, (), "The status of the link on this broker, as JSON."
        )
        for name, text in status.items()
        if not keys or name in keys
    ]
    return entries


def _chosen(known: Mapping[str, ConfigKey], keys: Sequence[str] | None, settings: Mapping[str, str]) -> Iterable[ConfigKey]:
    for key in known.values():
        if (not keys or key.name in keys) and (not key.hidden or key.name in settings):
            yield key


def _own(key: ConfigKey, settings: Mapping[str, str], source: Source) -> tuple[Synonym, ...]:
    text = settings.get(key.name)
    return () if text is None else (Synonym(key.name, text_of(key.read(text)), source),)


def _synonyms(name: str, layers: Layers) -> tuple[Synonym, ...]:
    names = broker_synonyms(name)
    secret = _is_secret(known_key(name))
    found = [
        Synonym(synonym, None if secret else settings[synonym], source)
        for source, settings in layers.sources()
        for synonym in names
        if synonym in settings
    ]
    for synonym in names:
        key = definitions.BROKER.get(synonym)
        if key is not None and key.default is not None and not secret and synonym not in NO_DEFAULT:
            found.append(Synonym(synonym, key.default_text(), Source.DEFAULT))
    start = next((i for i, synonym in enumerate(found) if synonym.name == name), len(found))
    return tuple(found[start:])


def _broker_value(name: str, layers: Layers) -> str | None:
    key = definitions.BROKER[name]
    if key.default is None and not any(name in settings for _, settings in layers.sources()):
        return None  # the key is unset; its attribute may have the value of another key, as log.dirs has that of log.dir
    value = getattr(layers.config, key.attribute)
    return None if value is None else text_of(value)


def _broker_entry(name: str, layers: Layers) -> ConfigEntry:
    key = known_key(name)
    synonyms = _synonyms(name, layers)
    if _is_secret(key):
        value = None
    elif name in definitions.BROKER:
        value = _broker_value(name, layers)
    else:
        value = synonyms[0].value
    return _named_entry(name, key, value, synonyms)


def _is_secret(key: ConfigKey | None) -> bool:
    return key is None or key.is_sensitive


def _named_entry(name: str, key: ConfigKey | None, value: str | None, synonyms: tuple[Synonym, ...]) -> ConfigEntry:
    source = synonyms[0].source if synonyms else Source.DEFAULT
    if key is None:
        return ConfigEntry(name, value, source, True, True, UNKNOWN_TYPE, synonyms, "")
    is_read_only = key.scope is Scope.READ_ONLY or name != key.name
    return ConfigEntry(name, value, source, is_read_only, key.is_sensitive, key.type, synonyms, key.doc)


def _entry(key: ConfigKey, value: str | None, synonyms: tuple[Synonym, ...], *, read_only: bool) -> ConfigEntry:
    source = synonyms[0].source if synonyms else Source.DEFAULT
    return ConfigEntry(key.name, value, source, read_only, key.is_sensitive, key.type, synonyms, key.doc)
