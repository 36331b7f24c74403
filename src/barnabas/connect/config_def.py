"""Definitions of config keys, as Kafka's ConfigDef: types, defaults, validators, groups, recommended values.

    config = (
        ConfigDef()
        .define("file", Type.STRING, None, importance=Importance.HIGH, documentation="Source filename.")
        .define("batch.size", Type.INT, 2000, validator=Range(1), documentation="Lines of one batch.")
    )
    config.parse({"file": "/tmp/a"})  # {"file": "/tmp/a", "batch.size": 2000}

`parse` raises at the first key that is wrong; `validate` tells of all, in the form of Kafka Connect's REST interface.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from barnabas.connect.config_types import ConfigError, Importance, Password, Type, Width, as_text, missing, parse
from barnabas.connect.validators import (
    Checked,
    Every,
    ListSize,
    NonEmptyString,
    NonEmptyStringWithoutControlChars,
    NonNull,
    Range,
    Regex,
    Validator,
    ValidList,
    ValidString,
    one_of,
)

__all__ = [
    "NO_DEFAULT", "Checked", "ConfigDef", "ConfigError", "ConfigKey", "ConfigValue", "Every", "Importance", "ListSize",
    "NonEmptyString", "NonEmptyStringWithoutControlChars", "NonNull", "Password", "Range", "Recommender", "Regex", "Type",
    "ValidList", "ValidString", "Width", "one_of",
]  # fmt: skip


class _NoDefault:
    def __repr__(self) -> str:
        return "NO_DEFAULT"


NO_DEFAULT: Final = _NoDefault()  # of a key that must be given


class Recommender(NamedTuple):
    """Says which values a key may have beside the given values of others, and whether a page shows the key.

    Args:
        values: takes the name of the key and the parsed values of all keys.
        is_visible: likewise.
    """

    values: Callable[[str, Mapping[str, Any]], Sequence[Any]]
    is_visible: Callable[[str, Mapping[str, Any]], bool] = lambda _name, _parsed: True


class ConfigKey(NamedTuple):
    """The definition of one key; see `ConfigDef.define`."""

    name: str
    type: Type
    default: Any
    validator: Validator | None
    importance: Importance
    documentation: str
    group: str | None
    order_in_group: int
    width: Width
    display_name: str
    dependents: tuple[str, ...]
    recommender: Recommender | None

    @property
    def is_required(self) -> bool:
        """Whether it must be given."""
        return self.default is NO_DEFAULT

    def shown(self) -> dict[str, Any]:
        """The definition as the REST interface has it."""
        return {
            "name": self.name,
            "type": self.type,
            "required": self.is_required,
            "default_value": None if self.is_required else as_text(self.default, self.type),
            "importance": self.importance,
            "documentation": self.documentation,
            "group": self.group,
            "order_in_group": self.order_in_group,
            "width": self.width,
            "display_name": self.display_name,
            "dependents": list(self.dependents),
        }


class ConfigValue:
    """What `validate` says of one key."""

    def __init__(self, name: str, key: ConfigKey | None) -> None:
        self.name, self.key = name, key
        self.value: Any = None
        self.recommended: list[Any] = []
        self.errors: list[str] = []
        self.is_visible = True

    def shown(self) -> dict[str, Any]:
        """The value as the REST interface has it."""
        kind = Type.STRING if self.key is None else self.key.type
        return {
            "name": self.name,
            "value": as_text(self.value, kind),
            "recommended_values": [as_text(each, Type.STRING if kind is Type.LIST else kind) for each in self.recommended],
            "errors": self.errors,
            "visible": self.is_visible,
        }


class ConfigDef:
    """The definitions of the keys of a plug-in, in the order in which they were made."""

    def __init__(self, other: ConfigDef | None = None) -> None:
        self._keys: dict[str, ConfigKey] = {} if other is None else dict(other._keys)
        self._groups: list[str] = [] if other is None else list(other._groups)

    @property
    def keys(self) -> Mapping[str, ConfigKey]:
        """By name."""
        return self._keys

    @property
    def groups(self) -> Sequence[str]:
        """In the order in which they came up."""
        return self._groups

    def __iter__(self) -> Iterator[ConfigKey]:
        return iter(self._keys.values())

    def define(
        self, name: str, type: Type, default: Any = NO_DEFAULT, *, importance: Importance = Importance.MEDIUM,  # noqa: A002 - Kafka's word
        documentation: str = "", validator: Validator | None = None, group: str | None = None, order_in_group: int = -1,
        width: Width = Width.NONE, display_name: str | None = None, dependents: Iterable[str] = (),
        recommender: Recommender | None = None,
    ) -> ConfigDef:  # fmt: skip
        """Add a key; returns this ConfigDef.

        Args:
            default: if the key is not given; text of the type is parsed.
            group: of keys on a page, `order_in_group` the place in it.
            dependents: keys whose recommended values or visibility depend on this one.

        Raises:
            ConfigError: the key is there, or the default is wrong.
        """
        parsed = default if default is NO_DEFAULT else parse(name, default, type)
        key = ConfigKey(
            name, type, parsed, validator, importance, documentation, group, order_in_group, width,
            name if display_name is None else display_name, tuple(dependents), recommender,
        )  # fmt: skip
        if validator is not None and not key.is_required:
            validator(name, parsed)
        return self.add(key)

    def add(self, key: ConfigKey) -> ConfigDef:
        """Add a key that is made. Raises ConfigError if it is there."""
        if key.name in self._keys:
            raise ConfigError(f"Configuration {key.name} is defined twice.")
        if key.group is not None and key.group not in self._groups:
            self._groups.append(key.group)
        self._keys[key.name] = key
        return self

    def embed(self, prefix: str, group: str, order_in_group: int, other: ConfigDef) -> ConfigDef:
        """Add the keys of another definition with a prefix: required ones first, then by importance and name."""
        ranks = list(Importance)
        ordered = sorted(other, key=lambda key: (not key.is_required, ranks.index(key.importance), key.name))
        for at, key in enumerate(ordered, order_in_group):
            within = group if key.group is None else f"{group}: {key.group}"
            self.add(
                key._replace(
                    name=prefix + key.name, validator=_behind(prefix, key.validator), group=within, order_in_group=at,
                    dependents=tuple(prefix + each for each in key.dependents), recommender=_unprefixed(prefix, key.recommender),
                )
            )  # fmt: skip
        return self

    def parse(self, props: Mapping[str, Any]) -> dict[str, Any]:
        """The values of all keys. Raises ConfigError for the first that is wrong."""
        if undefined := self._undefined():
            raise ConfigError(f"Some configurations in are referred in the dependents, but not defined: {','.join(undefined)}")
        return {key.name: self._parsed(key, props) for key in self}

    @staticmethod
    def _parsed(key: ConfigKey, props: Mapping[str, Any]) -> Any:
        if key.name in props:
            value = parse(key.name, props[key.name], key.type)
        elif key.is_required:
            raise ConfigError(missing(key.name))
        else:
            value = key.default
        if key.validator is not None:
            key.validator(key.name, value)
        return value

    def validate(self, props: Mapping[str, Any]) -> dict[str, ConfigValue]:
        """What there is to say of each key, by name."""
        found = {name: ConfigValue(name, key) for name, key in self._keys.items()}
        for name in self._undefined():
            found[name] = undefined = ConfigValue(name, None)
            undefined.errors.append(f"{name} is referred in the dependents, but not defined.")
            undefined.is_visible = False
        for key in self:
            self._judge(key, props, found[key.name])
        parsed = {name: each.value for name, each in found.items() if each.key is not None}
        for key in self:
            if key.recommender is not None:
                _recommend(key.name, key.recommender, parsed, found[key.name])
        return found

    @staticmethod
    def _judge(key: ConfigKey, props: Mapping[str, Any], found: ConfigValue) -> None:
        if key.name in props:
            try:
                found.value = parse(key.name, props[key.name], key.type)
            except ConfigError as error:
                found.errors.append(str(error))
        elif key.is_required:
            found.errors.append(missing(key.name))
        else:
            found.value = key.default
        if key.validator is not None:  # also of a value that could not be read, as Kafka does
            try:
                key.validator(key.name, found.value)
            except ConfigError as error:
                found.errors.append(str(error))

    def _undefined(self) -> list[str]:
        return sorted({each for key in self for each in key.dependents if each not in self._keys})


def _recommend(name: str, recommender: Recommender, parsed: Mapping[str, Any], found: ConfigValue) -> None:
    try:
        found.recommended = list(recommender.values(name, parsed))
        found.is_visible = recommender.is_visible(name, parsed)
    except ConfigError as error:
        found.errors.append(str(error))


def _behind(prefix: str, validator: Validator | None) -> Validator | None:
    """The validator for a key with a prefix: its errors name the key without it, as Kafka's do."""
    if validator is None:
        return None
    return Checked(lambda name, value: validator(name.removeprefix(prefix), value), str(validator))


def _unprefixed(prefix: str, recommender: Recommender | None) -> Recommender | None:
    if recommender is None:
        return None

    def without(parsed: Mapping[str, Any]) -> dict[str, Any]:
        return {name.removeprefix(prefix): value for name, value in parsed.items() if name.startswith(prefix)}

    return Recommender(
        lambda name, parsed: recommender.values(name.removeprefix(prefix), without(parsed)),
        lambda name, parsed: recommender.is_visible(name.removeprefix(prefix), without(parsed)),
    )


def report(
    name: str, definition: ConfigDef, values: Mapping[str, ConfigValue], groups: Sequence[str] | None = None
) -> dict[str, Any]:
    """The answer of the REST interface to a validation.

    Args:
        name: of the connector's class, as it was asked for.
        values: of `validate`, with what others have found.
    """
    ordered = [value for key, value in values.items() if key not in definition.keys]
    ordered += [values[key.name] for key in definition if key.name in values]
    return {
        "name": name,
        "error_count": sum(len(each.errors) for each in values.values()),
        "groups": list(definition.groups if groups is None else groups),
        "configs": [{"definition": None if each.key is None else each.key.shown(), "value": each.shown()} for each in ordered],
    }
