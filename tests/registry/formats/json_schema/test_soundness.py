"""If the rules say that a reader reads a value, it really accepts it; jsonschema-rs is the witness.

The schemas have the keywords for which Confluent's rules promise that. They do not promise it for defaults, which a reader fills in itself,
for `oneOf` with overlapping parts, and for keywords that the rules do not look at, such as `format`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jsonschema_rs
from hypothesis import given, settings, target
from hypothesis import strategies as st

from tests.registry.formats.json_schema.schemas import is_compatible

Schema = dict[str, Any]
_NAMES = st.sampled_from(["a", "b", "c"])
_SMALL = st.integers(0, 3)


def _bounded(base: Schema, *keywords: str) -> st.SearchStrategy[Schema]:
    return st.dictionaries(st.sampled_from(keywords), _SMALL).map(lambda bounds: {**base, **bounds})


def _objects(inner: st.SearchStrategy[Schema]) -> st.SearchStrategy[Schema]:
    def built(properties: Schema, required: set[str], rest: object, bounds: Schema) -> Schema:
        schema = {"type": "object", "properties": properties, "required": sorted(required & set(properties)), **bounds}
        return schema if rest is True else {**schema, "additionalProperties": rest}

    bounds: st.SearchStrategy[Schema] = _bounded({}, "minProperties", "maxProperties") | st.just({})
    return st.builds(
        built, st.dictionaries(_NAMES, inner, max_size=3), st.sets(_NAMES, max_size=1), st.booleans() | inner, bounds
    )


def _arrays(inner: st.SearchStrategy[Schema]) -> st.SearchStrategy[Schema]:
    bounds = _bounded({"type": "array"}, "minItems", "maxItems")
    tuples = st.builds(
        lambda items, rest, base: {**base, "items": items, "additionalItems": rest},
        st.lists(inner, min_size=1, max_size=2),
        st.booleans() | inner,
        bounds,
    )
    return st.builds(lambda items, base: {**base, "items": items}, inner, bounds) | tuples


def _combined(inner: st.SearchStrategy[Schema]) -> st.SearchStrategy[Schema]:
    parts = st.lists(inner, min_size=1, max_size=3)
    return st.builds(lambda name, found: {name: found}, st.sampled_from(["anyOf", "allOf"]), parts) | inner.map(
        lambda found: {"not": found}
    )


_LEAVES = (
    _bounded({"type": "string"}, "minLength", "maxLength")
    | _bounded({"type": "integer"}, "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum")
    | _bounded({"type": "number"}, "minimum", "maximum")
    | st.sampled_from([{"type": "boolean"}, {"type": "null"}, {"type": ["string", "null"]}, {"type": "number", "multipleOf": 2}])
    | st.sets(st.sampled_from(["x", "y", 1, None]), min_size=1).map(lambda values: {"enum": sorted(values, key=str)})
)
SCHEMAS = st.recursive(_LEAVES, lambda inner: _objects(inner) | _arrays(inner) | _combined(inner), max_leaves=6)
_SCALARS = st.sampled_from(["", "x", "xyz", 0, 1, 2, 0.5, True, None, -1, 4])
INSTANCES = st.recursive(
    _SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abcd"), inner, max_size=3),
    max_leaves=5,
)
_REMOVABLE = [
    "minLength",
    "maxLength",
    "minimum",
    "maximum",
    "multipleOf",
    "minItems",
    "maxItems",
    "additionalProperties",
    "additionalItems",
]


def _evolved(draw: Callable[[st.SearchStrategy[Any]], Any], schema: Schema) -> Schema:
    """A schema that somebody could make of this one."""
    step = draw(st.integers(0, 7))
    if step == 0:
        return {"anyOf": [schema, draw(_LEAVES)]}
    changed = dict(schema)
    if step == 1:
        changed = {name: value for name, value in schema.items() if name not in _REMOVABLE}
    elif step == 2:
        changed = {
            name: value + draw(st.integers(-1, 1)) if type(value) is int and value > 0 else value
            for name, value in schema.items()
        }
    if "properties" in changed:
        properties = {name: _evolved(draw, child) for name, child in changed["properties"].items()}
        if draw(st.booleans()):
            properties[draw(_NAMES)] = draw(_LEAVES)
        if properties and draw(st.booleans()):
            properties.pop(draw(st.sampled_from(sorted(properties))))
        changed["properties"] = properties
        changed["required"] = [name for name in schema["required"] if name in properties and draw(st.booleans())]
    for name in ("anyOf", "allOf"):
        if name in changed:
            changed[name] = [_evolved(draw, child) for child in changed[name]]
    return changed


@st.composite
def _pairs(draw: Callable[[st.SearchStrategy[Any]], Any]) -> tuple[Schema, Schema]:
    original = draw(SCHEMAS)
    return original, draw(SCHEMAS) if draw(st.integers(0, 3)) == 0 else _evolved(draw, original)


@settings(max_examples=300, deadline=None)
@given(_pairs(), st.lists(INSTANCES, min_size=10, max_size=20))
def test_a_compatible_reader_accepts_what_the_writer_may_write(pair: tuple[Schema, Schema], instances: list[object]) -> None:
    original, update = pair
    if not is_compatible(original, update):
        return
    writer, reader = jsonschema_rs.Draft7Validator(original), jsonschema_rs.Draft7Validator(update)
    written = [instance for instance in instances if writer.is_valid(instance)]
    target(float(len(written)))
    assert [instance for instance in written if not reader.is_valid(instance)] == []
