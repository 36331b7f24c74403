"""Rule sets: what makes one right, and taking rules out."""

from __future__ import annotations

from collections.abc import Collection

from barnabas.registry.core import errors
from barnabas.registry.core.entities import RULE_PARTS, Json

MIGRATION_MODES = frozenset({"UPGRADE", "DOWNGRADE", "UPDOWN"})
DOMAIN_MODES = frozenset({"WRITE", "READ", "WRITEREAD"})
KINDS = frozenset({"TRANSFORM", "CONDITION"})


def check(rule_set: Json | None) -> None:
    """Raises HttpError 42210 if a rule is wrong, or two share a name."""
    names: set[str] = set()
    for part in RULE_PARTS:
        for rule in (rule_set or {}).get(part) or ():
            _check_rule(part, rule, names)


def _check_rule(part: str, rule: object, names: set[str]) -> None:
    if not isinstance(rule, dict):
        raise errors.invalid_rule_set("A rule is an object")
    name, mode, kind = rule.get("name"), rule.get("mode"), rule.get("kind")
    if not name or not isinstance(name, str):
        raise errors.invalid_rule_set("Empty rule name")
    if name in names:
        raise errors.invalid_rule_set(f"Found rule with duplicate name '{name}'")
    names.add(name)
    if kind is not None and kind not in KINDS:
        raise errors.invalid_rule_set(f"Unknown rule kind '{kind}'")
    if mode is not None and mode not in MIGRATION_MODES | DOMAIN_MODES:
        raise errors.invalid_rule_set(f"Unknown rule mode '{mode}'")
    if mode is not None and part == "migrationRules" and mode not in MIGRATION_MODES:
        raise errors.invalid_rule_set("Migration rules can only be UPGRADE, DOWNGRADE, UPDOWN")
    if mode is not None and part != "migrationRules" and mode not in DOMAIN_MODES:
        raise errors.invalid_rule_set("Domain rules can only be WRITE, READ, WRITEREAD")


def without(rule_set: Json | None, removed: Collection[str]) -> Json | None:
    """The rule set without the rules of these names."""
    if rule_set is None or not removed:
        return rule_set
    return {part: [rule for rule in rules if rule.get("name") not in removed] for part, rules in rule_set.items() if rules}
