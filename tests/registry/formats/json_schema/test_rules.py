"""Each rule of compatibility: what has changed, what the change is called, and whether a reader minds it."""

from __future__ import annotations

import pytest

from barnabas.registry.formats.json_schema.differences import COMPATIBLE
from tests.registry.formats.json_schema.schemas import changes, is_compatible, parsed

DRAFT_2020 = "https://json-schema.org/draft/2020-12/schema"
TEXT = {"type": "string"}
WHOLE = {"type": "integer"}
NUMBER = {"type": "number"}


def _object(*, rest: object = None, required: tuple[str, ...] = (), **properties: object) -> dict[str, object]:
    schema: dict[str, object] = {"type": "object", "properties": properties}
    if required:
        schema["required"] = list(required)
    return schema if rest is None else {**schema, "additionalProperties": rest}


def _array(*items: object, rest: object = None) -> dict[str, object]:
    schema: dict[str, object] = {"type": "array", "items": list(items)}
    return schema if rest is None else {**schema, "additionalItems": rest}


def _modern(**schema: object) -> dict[str, object]:
    return {"$schema": DRAFT_2020, **schema}


BOUNDS = [
    ("string", "maxLength", "MAX_LENGTH"),
    ("string", "minLength", "MIN_LENGTH"),
    ("number", "maximum", "MAXIMUM"),
    ("number", "minimum", "MINIMUM"),
    ("number", "exclusiveMaximum", "EXCLUSIVE_MAXIMUM"),
    ("number", "exclusiveMinimum", "EXCLUSIVE_MINIMUM"),
    ("object", "maxProperties", "MAX_PROPERTIES"),
    ("object", "minProperties", "MIN_PROPERTIES"),
    ("array", "maxItems", "MAX_ITEMS"),
    ("array", "minItems", "MIN_ITEMS"),
]


@pytest.mark.parametrize(("type_name", "keyword", "kind"), BOUNDS)
def test_a_bound_may_be_removed_and_moved_outwards_only(type_name: str, keyword: str, kind: str) -> None:
    none, low, high = {"type": type_name}, {"type": type_name, keyword: 3}, {"type": type_name, keyword: 5}
    assert changes(none, low) == {f"{kind}_ADDED #/{keyword}"}
    assert changes(low, none) == {f"{kind}_REMOVED #/{keyword}"}
    assert changes(low, high) == {f"{kind}_INCREASED #/{keyword}"}
    assert changes(high, low) == {f"{kind}_DECREASED #/{keyword}"}
    upper = "MAX" in kind
    assert [is_compatible(*pair) for pair in ((none, low), (low, none), (low, high), (high, low))] == [
        False,
        True,
        upper,
        not upper,
    ]


CASES: list[tuple[object, object, set[str]]] = [
    # keywords without effect on values
    ({"title": "a"}, {"title": "b"}, {"TITLE_CHANGED #/"}),
    ({"description": "a"}, {"description": "b"}, {"DESCRIPTION_CHANGED #/"}),
    ({**TEXT, "default": "a"}, {**TEXT, "default": "b"}, {"DEFAULT_CHANGED #/"}),
    ({"$id": "http://a/a"}, {"$id": "http://a/b"}, {"ID_CHANGED #/"}),
    # types
    (TEXT, WHOLE, {"TYPE_CHANGED #/"}),
    (WHOLE, NUMBER, {"TYPE_EXTENDED #/"}),
    (NUMBER, WHOLE, {"TYPE_NARROWED #/"}),
    (TEXT, {}, set()),
    (TEXT, True, set()),
    (False, TEXT, set()),
    ({}, TEXT, {"TYPE_CHANGED #/"}),
    ({**TEXT, "connect.type": "bytes"}, {**NUMBER, "connect.type": "bytes"}, set()),
    # strings and numbers
    (TEXT, {**TEXT, "pattern": "a"}, {"PATTERN_ADDED #/pattern"}),
    ({**TEXT, "pattern": "a"}, TEXT, {"PATTERN_REMOVED #/pattern"}),
    ({**TEXT, "pattern": "a"}, {**TEXT, "pattern": "b"}, {"PATTERN_CHANGED #/pattern"}),
    (NUMBER, {**NUMBER, "multipleOf": 2}, {"MULTIPLE_OF_ADDED #/multipleOf"}),
    ({**NUMBER, "multipleOf": 2}, NUMBER, {"MULTIPLE_OF_REMOVED #/multipleOf"}),
    ({**NUMBER, "multipleOf": 2}, {**NUMBER, "multipleOf": 6}, {"MULTIPLE_OF_EXPANDED #/multipleOf"}),
    ({**NUMBER, "multipleOf": 10}, {**NUMBER, "multipleOf": 0.5}, {"MULTIPLE_OF_REDUCED #/multipleOf"}),
    ({**NUMBER, "multipleOf": 2}, {**NUMBER, "multipleOf": 3}, {"MULTIPLE_OF_CHANGED #/multipleOf"}),
    ({**NUMBER, "multipleOf": 1e-300}, {**NUMBER, "multipleOf": 3}, {"MULTIPLE_OF_CHANGED #/multipleOf"}),
    # enum and const
    ({"enum": [1]}, {"enum": [1, 2]}, {"ENUM_ARRAY_EXTENDED #/enum"}),
    ({"enum": [1, 2]}, {"enum": [1]}, {"ENUM_ARRAY_NARROWED #/enum"}),
    ({"enum": [1, True]}, {"enum": [1, "1"]}, {"ENUM_ARRAY_CHANGED #/enum"}),
    ({"enum": [{"a": 1, "b": 2}, 1]}, {"enum": [1, {"b": 2, "a": 1}]}, set()),
    ({"const": 1}, {"const": 2}, {"ENUM_ARRAY_CHANGED #/const"}),
    # objects
    (_object(), _object(a=TEXT), {"OPTIONAL_PROPERTY_ADDED_TO_OPEN_CONTENT_MODEL #/properties/a"}),
    (_object(), _object(a=TEXT, required=("a",)), {"REQUIRED_PROPERTY_ADDED_TO_OPEN_CONTENT_MODEL #/properties/a"}),
    (
        _object(),
        _object(a={**TEXT, "default": ""}, required=("a",)),
        {"REQUIRED_PROPERTY_WITH_DEFAULT_ADDED_TO_OPEN_CONTENT_MODEL #/properties/a"},
    ),
    (_object(), _object(a={}), {"PROPERTY_WITH_EMPTY_SCHEMA_ADDED_TO_OPEN_CONTENT_MODEL #/properties/a"}),
    (_object(a=TEXT), _object(), {"PROPERTY_REMOVED_FROM_OPEN_CONTENT_MODEL #/properties/a"}),
    (_object(rest=False), _object(rest=False, a=TEXT), {"OPTIONAL_PROPERTY_ADDED_TO_UNOPEN_CONTENT_MODEL #/properties/a"}),
    (
        _object(rest=False),
        _object(rest=False, a=TEXT, required=("a",)),
        {"REQUIRED_PROPERTY_ADDED_TO_UNOPEN_CONTENT_MODEL #/properties/a"},
    ),
    (
        _object(rest=False),
        _object(rest=False, a={**TEXT, "default": ""}, required=("a",)),
        {"REQUIRED_PROPERTY_WITH_DEFAULT_ADDED_TO_UNOPEN_CONTENT_MODEL #/properties/a"},
    ),
    (_object(rest=False, a=TEXT), _object(rest=False), {"PROPERTY_REMOVED_FROM_CLOSED_CONTENT_MODEL #/properties/a"}),
    (_object(rest=False, a=False), _object(rest=False), {"PROPERTY_WITH_FALSE_REMOVED_FROM_CLOSED_CONTENT_MODEL #/properties/a"}),
    (
        _object(rest=NUMBER, a=WHOLE),
        _object(rest=NUMBER),
        {"TYPE_EXTENDED #/properties/a", "PROPERTY_REMOVED_IS_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL #/properties/a"},
    ),
    (
        _object(rest=NUMBER, a=TEXT),
        _object(rest=NUMBER),
        {"TYPE_CHANGED #/properties/a", "PROPERTY_REMOVED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL #/properties/a"},
    ),
    (
        _object(rest=TEXT),
        _object(rest=TEXT, a=TEXT),
        {
            "PROPERTY_ADDED_IS_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL #/properties/a",
            "OPTIONAL_PROPERTY_ADDED_TO_UNOPEN_CONTENT_MODEL #/properties/a",
        },
    ),
    (
        {**_object(rest=False), "patternProperties": {"^I_": TEXT}},
        {**_object(rest=False, I_1=WHOLE), "patternProperties": {"^I_": TEXT}},
        {
            "TYPE_CHANGED #/properties/I_1",
            "PROPERTY_ADDED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL #/properties/I_1",
            "OPTIONAL_PROPERTY_ADDED_TO_UNOPEN_CONTENT_MODEL #/properties/I_1",
        },
    ),
    (_object(a=TEXT), _object(a=TEXT, required=("a",)), {"REQUIRED_ATTRIBUTE_ADDED #/required/a"}),
    (_object(a=TEXT, required=("a",)), _object(a=TEXT), {"REQUIRED_ATTRIBUTE_REMOVED #/required/a"}),
    (
        _object(a={**TEXT, "default": ""}),
        _object(a={**TEXT, "default": ""}, required=("a",)),
        {"REQUIRED_ATTRIBUTE_WITH_DEFAULT_ADDED #/required/a"},
    ),
    (_object(), _object(rest=False), {"ADDITIONAL_PROPERTIES_REMOVED #/additionalProperties"}),
    (_object(rest=False), _object(rest=TEXT), {"ADDITIONAL_PROPERTIES_ADDED #/additionalProperties"}),
    (_object(), _object(rest=TEXT), {"ADDITIONAL_PROPERTIES_NARROWED #/additionalProperties"}),
    (_object(rest=TEXT), _object(), {"ADDITIONAL_PROPERTIES_EXTENDED #/additionalProperties"}),
    (_object(rest=TEXT), _object(rest=WHOLE), {"TYPE_CHANGED #/additionalProperties"}),
    ({"dependencies": {}}, {"dependencies": {"a": ["b"]}}, {"DEPENDENCY_ARRAY_ADDED #/dependencies/a"}),
    ({"dependencies": {"a": ["b"]}}, {"dependencies": {}}, {"DEPENDENCY_ARRAY_REMOVED #/dependencies/a"}),
    ({"dependencies": {"a": ["b"]}}, {"dependencies": {"a": ["b", "c"]}}, {"DEPENDENCY_ARRAY_EXTENDED #/dependencies/a"}),
    ({"dependencies": {"a": ["b", "c"]}}, {"dependencies": {"a": ["b"]}}, {"DEPENDENCY_ARRAY_NARROWED #/dependencies/a"}),
    ({"dependencies": {"a": ["b"]}}, {"dependencies": {"a": ["c"]}}, {"DEPENDENCY_ARRAY_CHANGED #/dependencies/a"}),
    ({"dependencies": {}}, {"dependencies": {"a": TEXT}}, {"DEPENDENCY_SCHEMA_ADDED #/dependencies/a"}),
    ({"dependencies": {"a": TEXT}}, {"dependencies": {}}, {"DEPENDENCY_SCHEMA_REMOVED #/dependencies/a"}),
    ({"dependencies": {"a": TEXT}}, {"dependencies": {"a": WHOLE}}, {"TYPE_CHANGED #/dependencies/a"}),
    # arrays
    ({"type": "array"}, {"type": "array", "items": TEXT}, {"SCHEMA_ADDED #/items"}),
    ({"type": "array", "items": TEXT}, {"type": "array"}, {"SCHEMA_REMOVED #/items"}),
    ({"type": "array", "items": TEXT}, {"type": "array", "items": WHOLE}, {"TYPE_CHANGED #/items"}),
    ({"type": "array"}, {"type": "array", "uniqueItems": True}, {"UNIQUE_ITEMS_ADDED #/uniqueItems"}),
    ({"type": "array", "uniqueItems": True}, {"type": "array"}, {"UNIQUE_ITEMS_REMOVED #/uniqueItems"}),
    (_array(TEXT), _array(WHOLE), {"TYPE_CHANGED #/items/0"}),
    (_array(TEXT), _array(TEXT, TEXT), {"ITEM_ADDED_TO_OPEN_CONTENT_MODEL #/items/1"}),
    (_array(TEXT), _array(TEXT, True), {"ITEM_WITH_EMPTY_SCHEMA_ADDED_TO_OPEN_CONTENT_MODEL #/items/1"}),
    (_array(TEXT, TEXT), _array(TEXT), {"ITEM_REMOVED_FROM_OPEN_CONTENT_MODEL #/items/1"}),
    (_array(TEXT, rest=False), _array(TEXT, TEXT, rest=False), {"ITEM_ADDED_TO_CLOSED_CONTENT_MODEL #/items/1"}),
    (_array(TEXT, TEXT, rest=False), _array(TEXT, rest=False), {"ITEM_REMOVED_FROM_CLOSED_CONTENT_MODEL #/items/1"}),
    (_array(TEXT, False, rest=False), _array(TEXT, rest=False), {"ITEM_WITH_FALSE_REMOVED_FROM_CLOSED_CONTENT_MODEL #/items/1"}),
    (_array(True, rest=TEXT), _array(True, TEXT, rest=TEXT), {"ITEM_ADDED_IS_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL #/items/1"}),
    (
        _array(True, rest=TEXT),
        _array(True, WHOLE, rest=TEXT),
        {"TYPE_CHANGED #/items/1", "ITEM_ADDED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL #/items/1"},
    ),
    (
        _array(True, TEXT, rest=TEXT),
        _array(True, rest=TEXT),
        {"ITEM_REMOVED_IS_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL #/items/1"},
    ),
    (
        _array(True, WHOLE, rest=TEXT),
        _array(True, rest=TEXT),
        {"TYPE_CHANGED #/items/1", "ITEM_REMOVED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL #/items/1"},
    ),
    (_array(TEXT), _array(TEXT, rest=False), {"ADDITIONAL_ITEMS_REMOVED #/additionalItems"}),
    (_array(TEXT, rest=False), _array(TEXT), {"ADDITIONAL_ITEMS_ADDED #/additionalItems"}),
    (_array(TEXT), _array(TEXT, rest=TEXT), {"ADDITIONAL_ITEMS_NARROWED #/additionalItems"}),
    (_array(TEXT, rest=TEXT), _array(TEXT), {"ADDITIONAL_ITEMS_EXTENDED #/additionalItems"}),
    # combined schemas
    ({"oneOf": [TEXT]}, {"oneOf": [NUMBER, TEXT]}, {"SUM_TYPE_EXTENDED #/"}),
    ({"oneOf": [NUMBER, TEXT]}, {"oneOf": [TEXT]}, {"SUM_TYPE_NARROWED #/"}),
    ({"oneOf": [TEXT]}, {"oneOf": [NUMBER]}, {"COMBINED_TYPE_SUBSCHEMAS_CHANGED #/"}),
    ({"oneOf": [TEXT, TEXT]}, {"oneOf": [TEXT]}, set()),
    ({"oneOf": [TEXT, NUMBER]}, {"anyOf": [TEXT, NUMBER]}, {"COMBINED_TYPE_EXTENDED #/"}),
    ({"anyOf": [TEXT, NUMBER]}, {"oneOf": [TEXT, NUMBER]}, {"COMBINED_TYPE_CHANGED #/"}),
    ({"oneOf": [TEXT]}, {"allOf": [TEXT]}, {"COMBINED_TYPE_EXTENDED #/"}),
    ({"oneOf": [TEXT]}, {"allOf": [TEXT, {"maxLength": 2}]}, {"COMBINED_TYPE_CHANGED #/"}),
    ({"allOf": [TEXT, {"enum": ["a"]}]}, {"allOf": [TEXT]}, {"PRODUCT_TYPE_NARROWED #/"}),
    ({"allOf": [TEXT]}, {"allOf": [TEXT, {"enum": ["a"]}]}, {"PRODUCT_TYPE_EXTENDED #/"}),
    (TEXT, {"oneOf": [NUMBER, TEXT]}, {"SUM_TYPE_EXTENDED #/"}),
    (TEXT, {"oneOf": [NUMBER, WHOLE]}, {"TYPE_CHANGED #/"}),
    ({**TEXT, "enum": ["a"]}, TEXT, {"PRODUCT_TYPE_NARROWED #/"}),
    (TEXT, {**TEXT, "enum": ["a"]}, {"TYPE_CHANGED #/"}),
    ({"type": ["object"]}, {"type": ["object", "array"]}, {"SUM_TYPE_EXTENDED #/"}),
    # the best assignment: WHOLE fits both parts of the update, NUMBER only one
    ({"oneOf": [WHOLE, NUMBER]}, {"oneOf": [NUMBER, {**WHOLE, "title": "t"}]}, {"TITLE_CHANGED #/oneOf/0"}),
    ({"not": NUMBER}, {"not": WHOLE}, {"NOT_TYPE_NARROWED #/not"}),
    ({"not": WHOLE}, {"not": NUMBER}, {"NOT_TYPE_EXTENDED #/not"}),
    # references
    (
        {"items": {"$ref": "#/definitions/a"}, "definitions": {"a": TEXT}},
        {"items": {"$ref": "#/definitions/a"}, "definitions": {"a": WHOLE}},
        {"TYPE_CHANGED #/items"},
    ),
    (TEXT, {"$ref": "#/definitions/a", "definitions": {"a": TEXT}}, set()),
    ({"$ref": "#/definitions/a", "definitions": {"a": TEXT}}, TEXT, set()),
    # draft 2020-12
    (_modern(prefixItems=[TEXT]), _modern(prefixItems=[TEXT, TEXT]), {"ITEM_ADDED_TO_OPEN_CONTENT_MODEL #/items/1"}),
    (_modern(prefixItems=[TEXT]), _modern(prefixItems=[TEXT], items=False), {"ADDITIONAL_ITEMS_REMOVED #/additionalItems"}),
    (_modern(type="array"), _modern(type="array", items=TEXT), {"SCHEMA_ADDED #/items"}),
    (_modern(dependentRequired={}), _modern(dependentRequired={"a": ["b"]}), {"DEPENDENCY_ARRAY_ADDED #/dependencies/a"}),
    (_modern(type="array"), _modern(type="array", unevaluatedItems=False), {"UNEVALUATED_ITEMS_REMOVED #/unevaluatedItems"}),
    (
        _modern(type="object", unevaluatedProperties=TEXT),
        _modern(type="object"),
        {"UNEVALUATED_PROPERTIES_EXTENDED #/unevaluatedProperties"},
    ),
    (_modern(contains=TEXT, maxContains=2), _modern(contains=TEXT, maxContains=1), {"MAX_CONTAINS_DECREASED #/maxContains"}),
]


@pytest.mark.parametrize(("original", "update", "expected"), CASES)
def test_each_change_has_its_name_and_place(original: object, update: object, expected: set[str]) -> None:
    assert changes(original, update) == expected
    assert is_compatible(original, update) == all(change.split()[0] in COMPATIBLE for change in expected)


@pytest.mark.parametrize("schema", [schema for case in CASES for schema in case[:2]])
def test_a_schema_reads_what_it_writes(schema: object) -> None:
    assert is_compatible(schema, schema)


MESSAGES = [
    (TEXT, WHOLE, "TYPE_CHANGED", "A type at path '#/' is different between the new schema and the old schema"),
    (
        _object(),
        _object(x=TEXT),
        "OPTIONAL_PROPERTY_ADDED_TO_OPEN_CONTENT_MODEL",
        "The new schema has an open content model and has a property or item at path '#/properties/x' which is missing in the old schema",
    ),
    (
        _object(rest=False, x=TEXT),
        _object(rest=False),
        "PROPERTY_REMOVED_FROM_CLOSED_CONTENT_MODEL",
        "The new schema has a closed content model and is missing a property or item present at path '#/properties/x' in the old schema",
    ),
    (
        TEXT,
        {**TEXT, "maxLength": 3},
        "MAX_LENGTH_ADDED",
        "The keyword at path '#/maxLength' in the new schema is not present in the old schema",
    ),
    (
        {"enum": [1, 2]},
        {"enum": [1]},
        "ENUM_ARRAY_NARROWED",
        "An array or combined type at path '#/enum' has fewer elements in the new schema than the old schema",
    ),
]


@pytest.mark.parametrize(("original", "update", "kind", "description"), MESSAGES)
def test_a_message_is_the_one_of_confluents_registry(original: object, update: object, kind: str, description: str) -> None:
    [found] = parsed(update).unreadable(parsed(original))
    assert (found.kind, found.description) == (kind, description)
    assert found.text == f'{{errorType:"{kind}", description:"{description}"}}'


def test_draft_4_makes_a_bound_exclusive_by_a_flag() -> None:
    draft = {"$schema": "http://json-schema.org/draft-04/schema#", **NUMBER, "maximum": 5}
    assert is_compatible({**draft, "exclusiveMaximum": True}, {**draft, "exclusiveMaximum": True})
    assert not is_compatible(draft, {**draft, "exclusiveMaximum": True})


def _lists(value: object, other: object) -> dict[str, object]:
    def node(of: object) -> dict[str, object]:
        return {"type": "object", "properties": {"value": of, "next": {"oneOf": [{"$ref": "#/definitions/b"}]}}}

    definitions = {
        "a": node(value),
        "b": {"type": "object", "properties": {"back": {"$ref": "#/definitions/a"}}},
        "c": node(other),
    }
    return {"properties": {"root": {"oneOf": [{"$ref": f"#/definitions/{name}"} for name in "ac"]}}, "definitions": definitions}


def test_recursion_hides_no_difference() -> None:
    assert changes(_lists(TEXT, WHOLE), _lists(TEXT, WHOLE)) == set()
    assert not is_compatible(_lists(TEXT, WHOLE), _lists({"type": "boolean"}, NUMBER))
    assert is_compatible(_lists(TEXT, WHOLE), _lists(TEXT, NUMBER))


def test_another_format_cannot_be_read() -> None:
    class Other:
        schema_type = "AVRO"

    [found] = parsed(TEXT).unreadable(Other())  # type: ignore[arg-type]  # has all attributes that the code reads
    assert found.text == "Incompatible because of different schema type"


@pytest.mark.parametrize(
    ("original", "update", "passes"),
    [
        (_object(), _object(a=TEXT), True),
        (_object(), _object(a={**TEXT, "default": ""}, required=("a",)), True),
        (_object(), _object(a=TEXT, required=("a",)), False),
        (_object(), _object(rest=False), True),
        ({"allOf": [_object(), _object(b=WHOLE)]}, {"allOf": [_object(a=TEXT), _object(b=WHOLE)]}, True),
        (_object(a=TEXT), _object(a=WHOLE), False),
    ],
)
def test_the_lenient_policy(original: object, update: object, passes: bool) -> None:
    assert parsed(update).unreadable(parsed(original))
    assert (not parsed(update).unreadable(parsed(original), lenient=True)) == passes
