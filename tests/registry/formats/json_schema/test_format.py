"""Parsing, canonical text, normal form, references, tags and limits of JSON Schemas."""

from __future__ import annotations

import contextlib
import json
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from barnabas import limits
from barnabas.registry.formats.interface import Entity, InvalidSchema
from barnabas.registry.formats.json_schema import FORMAT
from tests.registry.formats.json_schema.schemas import is_compatible, parsed

DRAFTS = [
    "http://json-schema.org/draft-04/schema#",
    "http://json-schema.org/draft-06/schema#",
    "http://json-schema.org/draft-07/schema#",
    "https://json-schema.org/draft/2019-09/schema",
    "https://json-schema.org/draft/2020-12/schema",
]

TEXTS = [
    ('{ "type" : "object",\n "a" : [ 1 , null ] }', '{"type":"object","a":[1,null]}'),
    (" true ", "true"),
    ("false", "false"),
    ('{"maximum":1.10,"minimum":1E5,"x":1e-7}', '{"maximum":1.10,"minimum":1E+5,"x":1E-7}'),
    ('{"title":"\\u00e9/\\"\\n"}', '{"title":"é/\\"\\n"}'),
    ('{"a":1,"b":2,"a":3}', '{"a":3,"b":2}'),
]


@pytest.mark.parametrize(("text", "canonical"), TEXTS)
def test_the_canonical_text_has_no_spaces_and_keeps_the_order(text: str, canonical: str) -> None:
    schema = FORMAT.parse(text, {})
    assert schema.canonical == schema.formatted("") == schema.formatted("unknown") == canonical


def test_the_normal_form_sorts_all_keys() -> None:
    assert FORMAT.parse('{"b":{"d":1,"c":[{"f":1,"e":2}]},"a":true}', {}).normalized().canonical == (
        '{"a":true,"b":{"c":[{"e":2,"f":1}],"d":1}}'
    )


_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.decimals(allow_nan=False, allow_infinity=False).map(float) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=10,
)


@settings(max_examples=50, deadline=None)
@given(st.dictionaries(st.sampled_from(["x", "default", "examples-of", "é", "\U0001f600", "\uffff"]), _VALUES))
def test_normalising_twice_is_normalising_once(schema: dict[str, object]) -> None:
    once = parsed(schema).normalized()
    assert once.normalized().canonical == once.canonical
    assert json.loads(once.canonical) == schema
    assert parsed(schema).canonical == FORMAT.parse(parsed(schema).canonical, {}).canonical


@pytest.mark.parametrize("draft", DRAFTS)
def test_a_schema_fits_the_metaschema_of_its_draft(draft: str) -> None:
    assert parsed({"$schema": draft, "type": "object", "properties": {"a": {"type": "string"}}})
    with pytest.raises(InvalidSchema, match="#/properties/a"):
        parsed({"$schema": draft, "properties": {"a": {"type": "strin"}}})


WRONG = [
    ("", "JSON"),
    ("{", "JSON"),
    ("nul", "JSON"),
    ("1", "neither"),
    ('"string"', "neither"),
    ("[]", "neither"),
    ('{"maximum":NaN}', "NaN"),
    ('{"title":"\\ud800"}', "JSON"),
    ('{"maximum":' + "9" * 5000 + "}", "JSON"),
    ('{"type":"text"}', "#/type"),
    ('{"minLength":-1}', "#/minLength"),
    ('{"pattern":"("}', "regular expression"),
    ('{"patternProperties":{"[":{}}}', "regular expression"),
    ('{"$ref":"#/definitions/none"}', "no such part"),
    ('{"definitions":{"a":{"$ref":"#/definitions/none"}}}', "no such part"),
    ('{"$ref":"#none"}', "no schema has this anchor"),
    ('{"$ref":"file:///etc/passwd"}', "Unresolved"),
    ('{"properties":{"a":{"$ref":"http://127.0.0.1:9/a.json"}}}', "Unresolved"),
    ('{"$ref":"other.json"}', "Unresolved"),
    ('{"$ref":"http://[::1"}', "Unresolved|no URI"),
    ('{"$ref":"#/title","title":"a"}', "no schema"),
]


@pytest.mark.parametrize(("text", "message"), WRONG)
def test_a_wrong_schema_is_refused_with_the_reason(text: str, message: str) -> None:
    with pytest.raises(InvalidSchema, match=message):
        FORMAT.parse(text, {})


def test_what_a_keyword_holds_as_a_value_is_no_reference() -> None:
    assert parsed({"const": {"$ref": "nowhere"}, "enum": [{"$ref": "nowhere"}], "default": {"$ref": "nowhere"}})


REFERENCES: list[tuple[dict[str, object], dict[str, object]]] = [
    ({"$ref": "a.json"}, {"a.json": {"type": "string"}}),
    ({"$ref": "./a.json"}, {"a.json": {"type": "string"}}),
    ({"$ref": "a.json#/definitions/x"}, {"a.json": {"definitions": {"x": {"type": "string"}}}}),
    ({"$id": "http://acme/root.json", "$ref": "a.json"}, {"a.json": {"type": "string"}}),
    ({"$ref": "http://acme/a.json"}, {"http://acme/a.json": {"type": "string"}}),
    ({"$ref": "http://acme/other"}, {"a.json": {"$id": "http://acme/other", "type": "string"}}),
    ({"$ref": "b.json"}, {"a.json": {"type": "string"}, "b.json": {"$ref": "a.json"}}),
    ({"$ref": "#x", "definitions": {"a": {"$id": "#x", "type": "string"}}}, {}),
    ({"$schema": DRAFTS[4], "$ref": "#x", "$defs": {"a": {"$anchor": "x", "type": "string"}}}, {}),
    ({"$ref": "#/definitions/a~1b%20c", "definitions": {"a/b c": {"type": "string"}}}, {}),
]


@pytest.mark.parametrize(("schema", "others"), REFERENCES)
def test_a_reference_means_the_schema_of_its_uri(schema: dict[str, object], others: dict[str, object]) -> None:
    reader = parsed(schema, others)
    assert not reader.unreadable(parsed({"type": "string"}))
    assert [found.kind for found in reader.unreadable(parsed({"type": "integer"}))] == ["TYPE_CHANGED"]


def test_a_circle_of_references_says_nothing() -> None:
    circle = {"$ref": "#/definitions/a", "definitions": {"a": {"$ref": "#/definitions/b"}, "b": {"$ref": "#/definitions/a"}}}
    assert is_compatible({"type": "string"}, circle)


def test_strict_refuses_names_that_the_registry_keeps_for_itself() -> None:
    text = '{"properties":{"$$a":{}}}'
    assert FORMAT.parse(text, {})
    with pytest.raises(InvalidSchema, match="cannot start with"):
        FORMAT.parse(text, {}, strict=True)


def test_it_knows_the_fields_of_its_object() -> None:
    schema = parsed({"properties": {"a": {}}})
    assert [schema.has_top_level_field(name) for name in ("a", "b")] == [True, False]
    assert not parsed(True).has_top_level_field("a")


def test_tags_are_read_and_written_at_their_places() -> None:
    schema = parsed(
        {
            "type": "object",
            "confluent:tags": ["R"],
            "properties": {
                "a": {"type": "string", "confluent:tags": ["PII", "X"]},
                "b": {
                    "type": "object",
                    "properties": {"c.d": {"type": "array", "items": {"type": "object", "confluent:tags": ["I"]}}},
                },
                "e": {"oneOf": [{"type": "string"}, {"type": "object", "properties": {"f": {"type": "null"}}}]},
            },
        }
    )
    a = Entity("object.a", "SR_FIELD")
    assert schema.tags() == {
        Entity("object", "SR_RECORD"): {"R"},
        a: {"PII", "X"},
        Entity("object.b.object.c.d.array.object", "SR_RECORD"): {"I"},
    }
    f = Entity("object.e.oneof.0.object.f", "SR_FIELD")
    changed = schema.with_tags({f: ["NEW"]}, {a: ["PII"], Entity("object", "SR_RECORD"): ["R"]})
    assert changed.tags() == {a: {"X"}, Entity("object.b.object.c.d.array.object", "SR_RECORD"): {"I"}, f: {"NEW"}}
    assert schema.tags()[a] == {"PII", "X"}
    with pytest.raises(InvalidSchema, match="No matching path"):
        schema.with_tags({Entity("object.none", "SR_FIELD"): ["T"]}, {})


def _nested(depth: int) -> str:
    return '{"items":' * depth + "{}" + "}" * depth


HOSTILE = [
    _nested(limits.MAX_JSON_SCHEMA_DEPTH + 1),
    _nested(100_000),
    '{"enum":[' + "[" * 100_000 + "]" * 100_000 + "]}",
    '{"title":"' + "a" * limits.MAX_JSON_SCHEMA_CHARACTERS + '"}',
]


@pytest.mark.parametrize("text", HOSTILE, ids=["deep", "very deep", "deep value", "huge"])
def test_a_schema_beyond_the_limits_is_refused_at_once(text: str) -> None:
    start = time.process_time()
    with pytest.raises(InvalidSchema, match=r"deeper|more than|JSON"):
        FORMAT.parse(text, {})
    assert time.process_time() - start < 5


def test_a_long_chain_of_references_takes_no_stack() -> None:
    chain = {
        f"a{index}": {"type": "object", "properties": {"x": {"$ref": f"#/definitions/a{index + 1}"}}} for index in range(3_000)
    }
    written = {"$ref": "#/definitions/a0", "definitions": {**chain, "a3000": {"type": "string"}}}
    reader = {"$ref": "#/definitions/a0", "definitions": {**chain, "a3000": {"type": "integer"}}}
    assert is_compatible(written, written)
    assert not is_compatible(written, reader)


def _many_paths(levels: int, end: object) -> dict[str, object]:
    part = {
        f"a{index}": {"properties": {side: {"$ref": f"#/definitions/a{index + 1}"} for side in ("left", "right")}}
        for index in range(levels)
    }
    return {"$ref": "#/definitions/a0", "definitions": {**part, f"a{levels}": end}}


def test_many_paths_to_one_difference_take_bounded_time() -> None:
    found = parsed(_many_paths(200, {"type": "integer"})).unreadable(parsed(_many_paths(200, {"type": "string"})))
    assert 0 < len(found) <= limits.MAX_JSON_SCHEMA_DIFFERENCES


def test_too_large_a_comparison_is_no_agreement() -> None:
    many = {"oneOf": [{"type": "object", "maxProperties": index} for index in range(2, 902)]}
    other = {"oneOf": [{"type": "object", "minProperties": index} for index in range(2, 902)]}
    start = time.process_time()
    assert [found.kind for found in parsed(other).unreadable(parsed(many))] == ["TOO_LARGE_TO_COMPARE"]
    assert time.process_time() - start < 60


@pytest.mark.parametrize("pattern", ["(a*)*b", "(a|aa)+$", "((a{1000}){1000}){1000}", "(?=(a+)+b)c", "(" * 2_000 + ")" * 2_000])
def test_a_hostile_pattern_cannot_block(pattern: str) -> None:
    start = time.process_time()
    covering = {"additionalProperties": False, "patternProperties": {pattern: {"type": "string"}}}
    with contextlib.suppress(InvalidSchema):
        parsed({**covering, "properties": {"a" * 50_000: {"type": "string"}}}).unreadable(parsed(covering))
    assert time.process_time() - start < 5
