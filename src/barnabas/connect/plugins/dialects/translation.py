"""Connectors whose config has the keys of another product.

A class here is a connector of barnabas with another `config`. It turns each config into that of the connector behind it, before this
sees it. An error about a key of the connector behind names the key that the user has written.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar, NamedTuple

from barnabas.connect.api import Batch, Config, Connector, Offset, Sink, Source
from barnabas.connect.config_def import ConfigDef
from barnabas.connect.config_types import ConfigError, Importance, Password, Type, as_text, invalid, key_of
from barnabas.connect.validators import Validator

Texts = dict[str, str]
LOW = Importance.LOW


class Translated(Connector):
    """What such sources and sinks have in common.

    Attributes:
        behind: the definitions of the connector behind.
        renamed: keys of the connector behind by keys of the config.
        values: settings in texts of errors of the connector behind, with those of the config that mean the same.
        refused: keys that would change what the connector does, and that it does not have, with the way out. The default is allowed.
    """

    behind: ClassVar[ConfigDef]
    renamed: ClassVar[Mapping[str, str]] = {}
    values: ClassVar[Mapping[str, str]] = {}
    refused: ClassVar[Mapping[str, str]] = {}

    @classmethod
    def translated(cls, given: Mapping[str, str]) -> Texts:
        """The config of the connector behind. Raises ConfigError.

        Args:
            given: all keys of the config as texts, with the defaults of those that are not there.
        """
        found = {key: value for key, value in given.items() if key not in cls.config.keys or key in cls.behind.keys}
        return found | {own: given[name] for name, own in cls.renamed.items() if name in given}

    @classmethod
    def own(cls, config: Mapping[str, Any]) -> Texts:
        """`translated` of a config, raw or parsed. Raises ConfigError."""
        given = {key: _text(value) for key, value in config.items() if value is not None}
        return cls.translated(given | {key: _text(value) for key, value in cls.config.parse(given).items() if value is not None})

    @classmethod
    def parsed(cls, config: Config) -> dict[str, Any]:
        """The config of the connector behind, parsed. Raises ConfigError."""
        own = cls.own(config)
        return {**own, **cls.behind.parse(own)}

    @classmethod
    def tasks(cls, config: Config, most: int) -> list[Mapping[str, str]]:
        return super().tasks(cls.parsed(config), most)

    @classmethod
    def validate(cls, config: Mapping[str, str]) -> Mapping[str, Sequence[str]]:
        found: dict[str, Sequence[str]] = {}
        for key, reason in cls.refused.items():
            known = cls.config.keys[key]
            if key in config and config[key].strip() not in ("", as_text(known.default, known.type)):
                found[key] = [str(invalid(key, config[key], f"This key is not supported: {reason}"))]
        if found:
            return found
        try:
            own = cls.own(config)
        except ConfigError as error:
            return {key_of(error) or "connector.class": [str(error)]}
        errors = {key: each.errors for key, each in cls.behind.validate(own).items() if each.errors}
        names = {own: name for name, own in cls.renamed.items()}
        for key, texts in (errors or super().validate(own)).items():
            found[names.get(key, key)] = [cls.told(each) for each in texts]
        return found

    @classmethod
    def told(cls, text: str) -> str:
        """The text of an error of the connector behind, with the keys of the config."""
        names = {**cls.values, **{own: name for name, own in cls.renamed.items() if own not in cls.config.keys}}
        if not names:
            return text
        longest = sorted(names, key=len, reverse=True)
        return re.sub(rf"(?<![\w.])({'|'.join(map(re.escape, longest))})(?!\.?\w)", lambda found: names[found[1]], text)


class TranslatedSource(Translated, Source):
    """A source, to be put before the class of the source behind."""

    def read(self, config: Config, offsets: Sequence[tuple[Mapping[str, Any], Offset]]) -> Iterator[Batch | None]:
        return super().read(self.parsed(config), offsets)

    @classmethod
    def check_offset(cls, config: Mapping[str, str], partition: Mapping[str, Any], offset: Offset | None) -> None:
        super().check_offset(cls.own(config), partition, offset)


class TranslatedSink(Translated, Sink):
    """A sink, to be put before the class of the sink behind."""

    def open(self, config: Config) -> Mapping[tuple[str, int], int] | None:
        return super().open(self.parsed(config))

    @classmethod
    def alter_offsets(cls, config: Config, offsets: Mapping[tuple[str, int], int | None]) -> None:
        super().alter_offsets(cls.parsed(config), offsets)


class Row(NamedTuple):
    """A key of a config; see `ConfigDef.define`."""

    name: str
    type: Type
    default: Any
    importance: Importance
    documentation: str
    validator: Validator | None = None


def defined(definition: ConfigDef, *rows: Row) -> ConfigDef:
    """Add keys."""
    for name, kind, default, importance, documentation, validator in rows:
        definition.define(name, kind, default, importance=importance, validator=validator, documentation=documentation)
    return definition


def idle(definition: ConfigDef, reason: str, *names: str) -> ConfigDef:
    """Add keys that are accepted and do nothing."""
    return defined(definition, *(Row(name, Type.STRING, None, LOW, f"Without effect: {reason}.") for name in names))


def refusing(definition: ConfigDef, refused: Mapping[str, str], defaults: Mapping[str, str] | None = None) -> ConfigDef:
    """Add keys that are refused unless they have their default."""
    known = defaults or {}
    rows = (Row(name, Type.STRING, known.get(name, ""), LOW, f"Not supported: {reason}.") for name, reason in refused.items())
    return defined(definition, *rows)


def _text(value: Any) -> str:
    if isinstance(value, Password):
        return value.value
    kind = Type.LIST if isinstance(value, list | tuple) else Type.STRING
    return as_text(value, kind) or ""
