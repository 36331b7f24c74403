"""A comparison of JSON Schemas ends within its limits, whatever the schemas are."""

from __future__ import annotations

from barnabas.limits import (
    MAX_JSON_SCHEMA_DIFFERENCES,
    MAX_JSON_SCHEMA_PATH,
    MAX_JSON_SCHEMA_PATH_CHARACTERS,
    MAX_JSON_SCHEMA_STEPS,
)
from barnabas.registry.formats.json_schema.differences import Difference
from tests.registry.formats.json_schema.schemas import parsed


def inside(depth: int, leaf: object, name: str = "p") -> object:
    found = leaf
    for _ in range(depth):
        found = {"type": "object", "properties": {name: found}}
    return found


def test_a_path_has_a_bounded_length() -> None:
    assert len(Difference("TYPE_CHANGED", ("x" * 300,) * 10).location) == MAX_JSON_SCHEMA_PATH_CHARACTERS


def test_a_difference_below_many_names_is_told_with_a_shorter_path() -> None:
    depth = MAX_JSON_SCHEMA_PATH // 2 + 5
    [found] = parsed(inside(depth, {"type": "string"})).unreadable(parsed(inside(depth, {"type": "number"})))
    assert found.kind == "TYPE_CHANGED"
    assert found.description.count("/properties/p") <= MAX_JSON_SCHEMA_PATH // 2


def test_a_comparison_of_many_parts_ends_with_a_clear_message() -> None:
    parts = 900  # each pair is a step, and there are more pairs than steps
    assert parts * parts > MAX_JSON_SCHEMA_STEPS
    old, new = (
        {"oneOf": [{"type": "object", "properties": {f"{name}{part}": {"type": "string"}}} for part in range(parts)]}
        for name in "ab"
    )
    kinds = [each.kind for each in parsed(new).unreadable(parsed(old))]
    assert kinds[-1] == "TOO_LARGE_TO_COMPARE"
    assert len(kinds) <= MAX_JSON_SCHEMA_DIFFERENCES + 1
