"""Errors that transforms, predicates and converters find when they are made: a config that the definitions accept, and that no task
could start with."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from barnabas.connect.aliases import FAMILIES
from barnabas.connect.catalog import Kind, UnknownPlugin, find
from barnabas.connect.config_types import ConfigError, key_of
from barnabas.connect.converters.registry import converter, header_converter
from barnabas.connect.definitions import CONVERTERS
from barnabas.connect.errors import ConnectError
from barnabas.connect.transforms.chain import aliases_of, made_of
from barnabas.connect.transforms.interface import Transform


def making_errors(config: Mapping[str, str], worker: Mapping[str, str]) -> dict[str, list[str]]:
    """The errors, by key."""
    return {**dict(_of_aliases(config)), **dict(_of_converters(config, worker))}


def _of_aliases(config: Mapping[str, str]) -> Iterator[tuple[str, list[str]]]:
    for family in FAMILIES:
        for alias in aliases_of(config, family.key):
            prefix = f"{family.key}.{alias}."
            name = config.get(f"{prefix}type")
            try:
                if name is not None and not _runs_code(name.strip(), family.kind):
                    made_of(config, family.key, alias, family.kind)
            except (ConfigError, ConnectError) as error:
                key = f"{prefix}{key_of(error)}"
                yield key if key in config else f"{prefix}type", [str(error)]
            except UnknownPlugin:  # the definitions have said so
                continue


def _runs_code(name: str, kind: Kind) -> bool:
    cls = find(name, [kind]).load()
    return issubclass(cls, Transform) and cls.runs_code_of_users


def _other_kind(key: str, name: str) -> str | None:
    """The error of a class that is there and is no converter."""
    wanted = CONVERTERS[key][1]
    try:
        found = find(name)
    except UnknownPlugin:
        return None
    if found.kind in (wanted, Kind.CONVERTER):  # converters of values convert headers too
        return None
    kind = "HeaderConverter" if wanted is Kind.HEADER_CONVERTER else "Converter"
    return f"Class class {found.name} does not implement the {kind} interface"


def _of_converters(config: Mapping[str, str], worker: Mapping[str, str]) -> Iterator[tuple[str, list[str]]]:
    for key in CONVERTERS:
        if key not in config:
            continue
        if wrong := _other_kind(key, config[key].strip()):
            yield key, [wrong]
            continue
        try:
            if key == "header.converter":
                header_converter(config, worker)
            else:
                converter(config, worker, is_key=key == "key.converter")
        except (ConfigError, ConnectError) as error:
            yield key, [str(error)]
