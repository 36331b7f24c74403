"""The config keys of transforms and predicates: what `transforms=a,b` adds, such as `transforms.a.type`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import barnabas
from barnabas.connect import catalog
from barnabas.connect.catalog import Kind
from barnabas.connect.config_def import NO_DEFAULT, Checked, ConfigDef, ConfigError, Importance, Recommender, Type, Width
from barnabas.connect.config_types import parse
from barnabas.connect.definitions import PREDICATES, TRANSFORMS, VERSION


class _Family(NamedTuple):
    key: str  # of the list of aliases
    group: str
    title: str  # in texts
    kind: Kind


FAMILIES = (
    _Family("transforms", TRANSFORMS, "Transformation", Kind.TRANSFORMATION),
    _Family("predicates", PREDICATES, "Predicate", Kind.PREDICATE),
)
NEGATE, PREDICATE = "negate", "predicate"


def enriched(base: ConfigDef, props: Mapping[str, str]) -> ConfigDef:
    """The definitions with those of the aliases in a config."""
    made = ConfigDef(base)
    for family in FAMILIES:
        for alias in dict.fromkeys(parse(family.key, props.get(family.key), Type.LIST) or ()):
            _add(made, family, alias, props)
    return made


def _add(made: ConfigDef, family: _Family, alias: str, props: Mapping[str, str]) -> None:
    prefix, group, what = f"{family.key}.{alias}.", f"{family.group}: {alias}", family.title.lower()
    its = _config_of(family, props.get(f"{prefix}type"))
    version = barnabas.__version__ if its is not None else None
    made.define(
        f"{prefix}type", Type.CLASS, NO_DEFAULT, importance=Importance.HIGH, group=group, order_in_group=0, width=Width.LONG,
        documentation=f"Class for the '{alias}' {what}.", display_name=f"{family.title} type for {alias}",
        validator=Checked(lambda name, value: _check(family, prefix, props, name, value), f"valid configs for {alias} {what}"),
        recommender=Recommender(lambda _name, _parsed: [each.name for each in catalog.plugins() if each.kind is family.kind]),
    )  # fmt: skip
    made.define(
        f"{prefix}{VERSION}", Type.STRING, version, importance=Importance.HIGH, group=group, order_in_group=1, width=Width.LONG,
        documentation=f"Version of the '{alias}' {what}.", display_name=f"{family.title} version for {alias}",
        recommender=Recommender(lambda _name, _parsed: [barnabas.__version__] if its is not None else []),
    )  # fmt: skip
    if its is not None:
        made.embed(prefix, group, 2, its)


def _check(family: _Family, prefix: str, props: Mapping[str, str], name: str, value: Any) -> None:
    if value is None:
        return
    if f"{prefix}{NEGATE}" in props and f"{prefix}{PREDICATE}" not in props and family.kind is Kind.TRANSFORMATION:
        raise ConfigError(
            f"Config '{prefix}{NEGATE}' was provided but there is no config '{prefix}{PREDICATE}' defining a predicate to be negated."
        )
    if catalog.find(value).kind is not family.kind:
        raise ConfigError(f"Class class {value} does not implement the {family.title} interface")


def _config_of(family: _Family, name: str | None) -> ConfigDef | None:
    """The keys of a class, and those that all of its kind have; None for a class that is not there."""
    if name is None:
        return None
    try:
        found = catalog.find(name.strip(), [family.kind])
    except catalog.UnknownPlugin:
        return None
    made = ConfigDef()
    if family.kind is Kind.TRANSFORMATION:
        made.define(
            PREDICATE, Type.STRING, None, documentation="The alias of the predicate that says which records are transformed."
        )
        made.define(
            NEGATE, Type.BOOLEAN, False, documentation="Whether records are transformed that do not fit to the predicate."
        )
    for key in found.load().config:
        if key.name not in made.keys:
            made.add(key)
    return made
