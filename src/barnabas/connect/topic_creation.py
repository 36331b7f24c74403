"""Topics that a source creates: `topic.creation.default.*`, `topic.creation.groups`, `topic.creation.GROUP.*` (KIP-158).

Without such a key, the broker creates topics, if it is configured to. With them, the first group counts that includes the name of a
topic and does not exclude it; `default` is the last one.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from barnabas.client.results import NewTopic
from barnabas.connect.config_def import NO_DEFAULT, Checked, ConfigDef, Importance, Type, Width
from barnabas.connect.config_types import ConfigError, invalid, parse
from barnabas.connect.java_patterns import java_pattern
from barnabas.connect.validators import Validator

PREFIX, GROUPS, ENABLE = "topic.creation.", "topic.creation.groups", "topic.creation.enable"
DEFAULT = "default"
INCLUDE, EXCLUDE, REPLICATION, PARTITIONS = "include", "exclude", "replication.factor", "partitions"
OWN = frozenset({INCLUDE, EXCLUDE, REPLICATION, PARTITIONS})  # other keys of a group are settings of its topics


def is_used(config: Mapping[str, str], worker: Mapping[str, str]) -> bool:
    """Whether the source creates its topics."""
    allowed = parse(ENABLE, worker.get(ENABLE, "true"), Type.BOOLEAN)
    return bool(allowed) and any(key.startswith(PREFIX) for key in config)


def define(made: ConfigDef, config: Mapping[str, str]) -> ConfigDef:
    """Add the keys of the groups in a config; returns the definitions."""
    for group in _groups(config):
        is_default = group == DEFAULT
        title, number = f"{PREFIX}{group}.", NO_DEFAULT if is_default else None
        for order, (name, kind, default, check, says) in enumerate((
            (INCLUDE, Type.LIST, ".*" if is_default else NO_DEFAULT, _patterns(), "Names of its topics, as regular expressions."),
            (EXCLUDE, Type.LIST, "", _patterns(), "Names of topics that it leaves to other groups, as regular expressions."),
            (REPLICATION, Type.SHORT, number, _count(), "The replication factor of its topics; -1 is that of the broker."),
            (PARTITIONS, Type.INT, number, _count(), "The number of partitions of its topics; -1 is that of the broker."),
        )):  # fmt: skip
            made.define(
                title + name, kind, default, validator=check, importance=Importance.LOW, documentation=says, width=Width.LONG,
                group=f"Topic Creation Group: {group}", order_in_group=order, display_name=f"{name} of {group}",
            )  # fmt: skip
    return made


class _Group(NamedTuple):
    include: list[str]
    exclude: list[str]
    partitions: int
    replication: int
    settings: Mapping[str, str]


class TopicCreation:
    """The topics of one source.

    Args:
        config: of the connector. Raises ConfigError.
        worker: settings of the workers.
    """

    def __init__(self, config: Mapping[str, str], worker: Mapping[str, str]) -> None:
        self._groups: list[_Group] = []
        if not is_used(config, worker):
            return
        parsed = define(ConfigDef(), config).parse(config)
        for group in _groups(config):
            prefix = f"{PREFIX}{group}."
            partitions, replication = (
                parsed[f"{PREFIX}{DEFAULT}.{name}"] if parsed[prefix + name] is None else parsed[prefix + name]
                for name in (PARTITIONS, REPLICATION)
            )
            named = {key.removeprefix(prefix): value for key, value in config.items() if key.startswith(prefix)}
            settings = {name: value for name, value in named.items() if name not in OWN}
            self._groups.append(_Group(parsed[prefix + INCLUDE], parsed[prefix + EXCLUDE], partitions, replication, settings))

    def wanted(self, topic: str) -> NewTopic | None:
        """The topic as it is to be created; None if that is up to the broker."""
        for each in self._groups:
            if _matches(each.include, topic) and not _matches(each.exclude, topic):
                return NewTopic(topic, each.partitions, each.replication, dict(each.settings))
        return None


def _groups(config: Mapping[str, str]) -> list[str]:
    """The groups in their order; `default` is the last one."""
    named = dict.fromkeys(each for each in parse(GROUPS, config.get(GROUPS), Type.LIST) or () if each and each != DEFAULT)
    return [*named, DEFAULT]


def _matches(patterns: list[str], topic: str) -> bool:
    return any(java_pattern(each).fullmatch(topic) for each in patterns)


def _patterns() -> Validator:
    def check(name: str, value: Any) -> None:
        for each in value or ():
            try:
                java_pattern(each)
            except re.error as error:
                raise ConfigError(f"{invalid(name, value)}: Invalid regex: {error}") from None

    return Checked(check, "list of valid regexes")


def _count() -> Validator:
    def check(name: str, value: Any) -> None:
        if value is not None and value != -1 and value < 1:
            raise invalid(name, value, "Value must be positive, or -1 for that of the broker")

    return Checked(check, "a positive number, or -1")
