"""Checks a config of a connector: by the definitions of its class, of its transforms and converters, and by the class itself."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import barnabas
from barnabas.connect import catalog
from barnabas.connect.aliases import enriched
from barnabas.connect.api import Sink, Source
from barnabas.connect.catalog import Kind, Plugin, UnknownPlugin
from barnabas.connect.config_def import ConfigDef, ConfigError, ConfigValue, Type, report
from barnabas.connect.config_types import HIDDEN
from barnabas.connect.definitions import CONVERTERS, connector, topics_errors
from barnabas.connect.functions import connector_class
from barnabas.connect.herder import errors
from barnabas.connect.herder.making import making_errors
from barnabas.connect.herder.offsets import Item
from barnabas.connect.herder.overrides import override_errors
from barnabas.connect.herder.planning import Kinds
from barnabas.connect.herder.state import Config
from barnabas.connect.references import Resolver, is_reference
from barnabas.errors import BarnabasError
from barnabas.web.routing import HttpError

OF_DEBEZIUM = ". barnabas.DebeziumSource runs any source of Debezium that debezium.connector.class names"
CLASS, BOUNDARY = "connector.class", "transaction.boundary"
NO_NULL = "Null value can not be supplied as the configuration value."
SECRET_WORDS = ("password", "secret", "sasl.jaas.config", "ssl.keystore.key")  # in names of keys


def plugin_of(config: Config) -> Plugin:
    """The plug-in that a config names. Raises HttpError 400."""
    name = config.get(CLASS)
    if name is None:
        shown = ", ".join(f"{key}={value if key == 'name' else HIDDEN}" for key, value in config.items())
        raise errors.bad(f"Connector config {{{shown}}} contains no connector type")
    try:
        return catalog.find(name.strip(), (Kind.SOURCE, Kind.SINK))
    except UnknownPlugin:
        known = ", ".join(each.name for each in catalog.plugins() if each.kind in (Kind.SOURCE, Kind.SINK))
        hint = OF_DEBEZIUM if name.startswith("io.debezium.connector.") else ""
        raise errors.bad(
            f"Failed to find any class that implements Connector and which name matches {name}, available connectors are: {known}{hint}"
        ) from None


def kinds_of(config: Config) -> Kinds | None:
    """Class and kind of a connector; None if its class is not installed."""
    try:
        found = catalog.find((config.get(CLASS) or "").strip(), (Kind.SOURCE, Kind.SINK))
    except UnknownPlugin:
        return None
    return Kinds(found.name, "source" if found.kind is Kind.SOURCE else "sink")


def definition_of(found: Plugin, config: Mapping[str, str], worker: Mapping[str, str]) -> ConfigDef:
    """All keys that a config with this plug-in may have. Raises what the import of the class raises."""
    made = enriched(connector(worker, found.kind, config), config)
    for key in CONVERTERS:
        _add_converter(made, key, config)
    for each in connector_class(found.load()).config:
        if each.name not in made.keys:
            made.add(each)
    return made


def _add_converter(made: ConfigDef, key: str, config: Mapping[str, str]) -> None:
    if key not in config:
        return
    try:
        its = getattr(catalog.find(config[key].strip(), [CONVERTERS[key][1]]).load(), "config", None)
    except UnknownPlugin:
        return
    for each in its or ():
        if f"{key}.{each.name}" not in made.keys:
            made.add(each._replace(name=f"{key}.{each.name}"))


def validate(config: Config, worker: Mapping[str, str], resolver: Resolver) -> dict[str, Any]:
    """What there is to say of a config, in the form of the REST interface.

    Raises:
        HttpError: 400 for a config without a known class, 500 for references that cannot be resolved.
    """
    found = plugin_of(config)
    raw = {key: value for key, value in config.items() if value is not None}
    try:
        given = resolver.resolved(raw)
        cls = connector_class(found.load())
        definition = definition_of(found, given, worker)
    except (BarnabasError, ImportError) as error:
        raise errors.unusable(str(error)) from None
    values = definition.validate({**dict.fromkeys(config.keys() - raw.keys()), **given})
    _add_errors(values, _topics(given) if found.kind is Kind.SINK else _boundary(given))
    _add_errors(values, override_errors(given, worker))
    _add_errors(values, {key: [NO_NULL] for key, value in config.items() if value is None})
    if not any(each.errors for each in values.values()):
        _add_errors(values, making_errors(given, worker))
    if not any(each.errors for each in values.values()):
        _add_errors(values, cls.validate(given))
    _hide(values, raw, given)
    return report(raw[CLASS], definition, values)


def _topics(given: Mapping[str, str]) -> Mapping[str, list[str]]:
    try:
        return topics_errors(given)
    except ConfigError as error:
        return {"topics": [str(error)]}


def _boundary(given: Mapping[str, str]) -> Mapping[str, list[str]]:
    """No source here says where its transactions end."""
    if given.get(BOUNDARY, "").strip() != "connector":
        return {}
    return {
        BOUNDARY: [
            "The connector does not support connector-defined transaction boundaries with the given configuration. Please reconfigure "
            "it to use a different transaction boundary definition."
        ]
    }


def _add_errors(values: dict[str, ConfigValue], found: Mapping[str, Any]) -> None:
    for key, texts in found.items():
        if texts:
            values.setdefault(key, ConfigValue(key, None)).errors += list(texts)


def _hide(values: Mapping[str, ConfigValue], raw: Mapping[str, str], given: Mapping[str, str]) -> None:
    """Show references as they were given, and secrets not at all: neither as values nor within errors."""
    for key, text in raw.items():
        own = values.get(key)
        is_secret = own is not None and own.key is not None and own.key.type is Type.PASSWORD
        if not (is_secret or is_reference(text)):
            continue
        shown = text if is_reference(text) else HIDDEN
        if own is not None:
            own.value = shown
        for each in values.values():  # it may stand in the error about another key too; two characters stand everywhere
            if given[key] and (each is own or len(given[key]) > 2):
                each.errors = [error.replace(given[key], shown) for error in each.errors]


def check(config: Config, worker: Mapping[str, str], resolver: Resolver) -> None:
    """Raises HttpError 400 for a config that has errors, else as `validate`."""
    found = [text for each in validate(config, worker, resolver)["configs"] for text in each["value"]["errors"]]
    if found:
        raise errors.invalid_config(found)


def check_offsets(config: Config, items: Sequence[Item]) -> None:
    """Ask the class of a source whether it could go on from these offsets. Raises HttpError 500."""
    cls = connector_class(plugin_of(config).load())
    assert issubclass(cls, Source)
    raw = {key: value for key, value in config.items() if value is not None}
    for partition, offset in items:
        if partition is None:
            raise errors.unusable("Partition objects cannot be null")
        try:
            cls.check_offset(raw, partition, offset)
        except BarnabasError as error:
            raise errors.unusable(str(error)) from None


def alter_in_target(config: Config, resolver: Resolver, offsets: Mapping[tuple[str, int], int | None]) -> None:
    """Let a target that records the offsets of its sink itself take others; None forgets one. Raises HttpError 500."""
    cls = connector_class(plugin_of(config).load())
    assert issubclass(cls, Sink)
    try:
        given = resolver.resolved({key: value for key, value in config.items() if value is not None})
        cls.alter_offsets({**given, **cls.config.parse(given)}, offsets)
    except BarnabasError as error:
        raise errors.unusable(f"the target did not take the offsets of the sink connector: {error}") from None


def secrets_of(config: Config) -> set[str]:
    """The keys of a config whose values are passwords: by the definitions of its class, or by their names where these know nothing."""
    try:
        known = definition_of(plugin_of(config), {key: value for key, value in config.items() if value is not None}, {}).keys
    except (HttpError, BarnabasError, ImportError):  # the class is not installed here
        known = {}
    passwords = {key.name for key in known.values() if key.type is Type.PASSWORD}
    return passwords | {key for key in config if key not in known and any(word in key for word in SECRET_WORDS)}


def definitions_shown(name: str, version: str | None) -> list[dict[str, Any]]:
    """The definitions of a plug-in, as the REST interface lists them. Raises HttpError 404, 400."""
    try:
        found = catalog.find(name)
    except UnknownPlugin:
        raise HttpError(404, f"Unknown plugin {name}.") from None
    if version is not None and version != found.version:
        raise errors.bad(
            f"Plugin {found.name} not found that matches the version range [{version},{version}], available versions: [{found.version}]"
        )
    if found.kind not in (Kind.SOURCE, Kind.SINK):
        keys = list(getattr(found.load(), "config", None) or ())
    else:
        keys = list(connector_class(found.load()).config)
        without = dict.fromkeys(CONVERTERS, "")
        keys += [key for key in connector(without, found.kind) if key.name not in {each.name for each in keys}]
    return [key.shown() for key in keys]


def plugins_shown(*, connectors_only: bool) -> list[dict[str, str]]:
    """The plug-ins, as the REST interface lists them."""
    kinds = (Kind.SOURCE, Kind.SINK) if connectors_only else tuple(Kind)
    ordered = sorted((each for each in catalog.plugins() if each.kind in kinds), key=lambda each: (each.kind.value, each.name))
    return [{"class": each.name, "type": each.kind.value, "version": each.version or barnabas.__version__} for each in ordered]
