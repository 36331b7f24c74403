"""Metadata and rule sets: the form in which they are stored, and which are refused."""

from __future__ import annotations

from typing import Any

import pytest

from barnabas.registry.core import rule_sets
from barnabas.registry.core.drafts import draft_from
from barnabas.web.routing import HttpError

DEFAULTS = {"kind": "TRANSFORM", "mode": "WRITEREAD"}


@pytest.mark.parametrize(
    ("given", "stored"),
    [
        ({}, {}),
        ({"tags": {}, "properties": {}, "sensitive": []}, {}),
        ({"properties": {"b": 1, "a": True, "n": None}}, {"properties": {"a": "true", "b": "1"}}),
        ({"tags": {"y": ["B", "A", "B"], "x": []}, "other": 1}, {"tags": {"x": [], "y": ["A", "B"]}}),
        ({"sensitive": ["b", "a"]}, {"sensitive": ["a", "b"]}),
    ],
)
def test_metadata_is_sorted_and_has_no_empty_parts(given: dict[str, Any], stored: dict[str, Any]) -> None:
    made = draft_from({"metadata": given}).metadata
    assert made == stored
    assert repr(made) == repr(stored)


@pytest.mark.parametrize("given", [1, [], {"tags": []}, {"tags": {"x": "A"}}, {"properties": ["a"]}, {"sensitive": {"a": 1}}])
def test_metadata_of_another_type_is_refused(given: object) -> None:
    with pytest.raises(HttpError) as refused:
        draft_from({"metadata": given})
    assert refused.value.status == 422


def test_rules_are_stored_with_their_defaults_in_confluents_order() -> None:
    rule = {"disabled": None, "tags": ["b", "a"], "params": {"q": 2, "p": "1"}, "type": "T", "name": "r", "doc": None, "other": 1}
    stored = {"name": "r", **DEFAULTS, "type": "T", "tags": ["a", "b"], "params": {"p": "1", "q": "2"}, "disabled": False}
    made = draft_from({"ruleSet": {"domainRules": [rule], "migrationRules": [], "other": 1}}).rule_set
    assert repr(made) == repr({"domainRules": [stored]})
    given = {"domainRules": [{**stored, "mode": "READ", "kind": "CONDITION", "disabled": True}]}
    assert draft_from({"ruleSet": given}).rule_set == given


@pytest.mark.parametrize(
    ("rules", "message"),
    [
        ({"domainRules": [{"type": "T"}]}, "Missing rule name"),
        ({"domainRules": [{"type": "T", "name": ""}]}, "Empty rule name"),
        ({"domainRules": [{"type": "T", "name": "n" * 65}]}, "Rule name too long"),
        ({"domainRules": [{"type": "T", "name": "0"}]}, "Illegal initial character in rule name: 0"),
        ({"domainRules": [{"type": "T", "name": "a b"}]}, "Illegal character in rule name: a b"),
        ({"domainRules": [{"name": "r"}]}, "Missing rule type"),
        ({"domainRules": [{"name": "r", "type": "T"}] * 2}, "Found rule with duplicate name 'r'"),
        ({"domainRules": [{"name": "r", "type": "T", "mode": "UPGRADE"}]}, "Domain rules can only be WRITE, READ, WRITEREAD"),
        ({"migrationRules": [{"name": "r", "type": "T"}]}, "Migration rules can only be UPGRADE, DOWNGRADE, UPDOWN"),
        ({"domainRules": [{"name": "r", "type": "T", "mode": "X"}]}, "Unknown rule mode 'X'"),
        ({"domainRules": [{"name": "r", "type": "T", "kind": "X"}]}, "Unknown rule kind 'X'"),
        (
            {"domainRules": [{"name": "r", "type": "T", "mode": "READ", "onFailure": "NONE,ERROR"}]},
            "Multiple actions only valid with WRITEREAD and UPDOWN",
        ),
        ({"domainRules": "r"}, "domainRules is a list of objects"),
        ({"domainRules": ["r"]}, "domainRules is a list of objects"),
        ({"migrationRules": 5}, "migrationRules is a list of objects"),
        ({"domainRules": [{"name": "r", "type": "T", "tags": "x"}]}, "tags of a rule is a list"),
        ({"domainRules": [{"name": "r", "type": "T", "params": []}]}, "params of a rule is an object"),
        ({"domainRules": [{"name": "r", "type": "T", "mode": {}}]}, "mode of a rule is a string"),
    ],
)
def test_wrong_rules_are_refused(rules: dict[str, Any], message: str) -> None:
    with pytest.raises(HttpError) as refused:
        rule_sets.check(draft_from({"ruleSet": rules}).rule_set)
    assert (refused.value.code, refused.value.message) == (42210, message)


@pytest.mark.parametrize("name", ["r", "_r", "R-1_b", "é"])
def test_names_of_rules(name: str) -> None:
    rule_sets.check(draft_from({"ruleSet": {"domainRules": [{"name": name, "type": "T"}]}}).rule_set)
