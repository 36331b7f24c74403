"""Rule sets: their stored form, the check of a rule set, and the removal of rules."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from barnabas.registry.core import errors
from barnabas.registry.core.entities import RULE_PARTS, Json

MIGRATION_MODES = frozenset({"UPGRADE", "DOWNGRADE", "UPDOWN"})
DOMAIN_MODES = frozenset({"WRITE", "READ", "WRITEREAD"})
KINDS = frozenset({"TRANSFORM", "CONDITION"})
DEFAULTS = {"kind": "TRANSFORM", "mode": "WRITEREAD", "disabled": False}
FIELDS = ("name", "doc", "kind", "mode", "type", "tags", "params", "expr", "onSuccess", "onFailure", "disabled")
SHAPES = {"tags": "a list", "params": "an object"}
MAX_NAME = 64


def normal(rule_set: Json) -> Json:
    """A rule set with all fields that have a default, in Confluent's order. Raises HttpError 42210 for parts of another type."""
    made: Json = {}
    for part in RULE_PARTS:
        rules = rule_set.get(part) or []
        if not isinstance(rules, list) or not all(isinstance(rule, dict) for rule in rules):
            raise errors.invalid_rule_set(f"{part} is a list of objects")
        if rules:
            made[part] = [_normal_rule(rule) for rule in rules]
    return made


def _normal_rule(rule: Json) -> Json:
    filled = {**DEFAULTS, **{name: value for name, value in rule.items() if value is not None}}
    made = {name: _field(name, filled[name]) for name in FIELDS if name in filled}
    return {name: value for name, value in made.items() if value not in ([], {})}


def _field(name: str, value: Any) -> Any:
    if name == "tags" and isinstance(value, list):
        return sorted({text(tag) for tag in value})
    if name == "params" and isinstance(value, dict):
        return {key: text(item) for key, item in sorted(value.items())}
    if name in SHAPES or isinstance(value, list | dict):
        raise errors.invalid_rule_set(f"{name} of a rule is {SHAPES.get(name, 'a string')}")
    return text(value) == "true" if name == "disabled" else text(value)


def text(value: object) -> str:
    """A value as text where Confluent's registry reads a string."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def check(rule_set: Json | None) -> None:
    """Raises HttpError 42210 if a rule is wrong, or two share a name."""
    names: set[str] = set()
    for part in RULE_PARTS:
        for rule in (rule_set or {}).get(part) or []:
            _check_rule(part, {**DEFAULTS, **rule}, names)


def _check_rule(part: str, rule: Any, names: set[str]) -> None:
    name, mode = _checked_name(rule.get("name")), rule["mode"]
    if name in names:
        raise errors.invalid_rule_set(f"Found rule with duplicate name '{name}'")
    names.add(name)
    if rule.get("type") is None:
        raise errors.invalid_rule_set("Missing rule type")
    if rule["kind"] not in KINDS:
        raise errors.invalid_rule_set(f"Unknown rule kind '{rule['kind']}'")
    if mode not in MIGRATION_MODES | DOMAIN_MODES:
        raise errors.invalid_rule_set(f"Unknown rule mode '{mode}'")
    if mode not in {"WRITEREAD", "UPDOWN"} and any("," in str(rule.get(field, "")) for field in ("onSuccess", "onFailure")):
        raise errors.invalid_rule_set("Multiple actions only valid with WRITEREAD and UPDOWN")
    if part == "migrationRules" and mode not in MIGRATION_MODES:
        raise errors.invalid_rule_set("Migration rules can only be UPGRADE, DOWNGRADE, UPDOWN")
    if part != "migrationRules" and mode not in DOMAIN_MODES:
        raise errors.invalid_rule_set("Domain rules can only be WRITE, READ, WRITEREAD")


def _checked_name(name: object) -> str:
    if not isinstance(name, str):
        raise errors.invalid_rule_set("Missing rule name")
    if not name:
        raise errors.invalid_rule_set("Empty rule name")
    if len(name) > MAX_NAME:
        raise errors.invalid_rule_set("Rule name too long")
    if not (name[0].isalpha() or name[0] == "_"):
        raise errors.invalid_rule_set(f"Illegal initial character in rule name: {name}")
    if not all(each.isalnum() or each in "_-" for each in name):
        raise errors.invalid_rule_set(f"Illegal character in rule name: {name}")
    return name


def without(rule_set: Json | None, removed: Collection[str]) -> Json | None:
    """The rule set without the rules with these names."""
    if rule_set is None or not removed:
        return rule_set
    return {part: [rule for rule in rules if rule.get("name") not in removed] for part, rules in rule_set.items() if rules}
