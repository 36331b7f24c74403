"""Which texts are schemas, and what the errors say."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest

from barnabas.limits import MAX_AVRO_CHARACTERS, MAX_AVRO_DEPTH
from barnabas.registry.formats.avro import FORMAT
from barnabas.registry.formats.interface import InvalidSchema
from tests.registry.formats.avro.records import enum, field, fixed, record, text

WRONG: list[tuple[Any, str]] = [
    ("", "The schema is empty"),
    ("{", "The schema is not JSON"),
    ('"int" x', "The schema is not JSON"),
    ('{"type":"int",}', "The schema is not JSON"),
    ('{"type":"int","p":1e400}', "The schema is not JSON"),
    ('{"type":"int","p":"\ud800"}', "The schema is not JSON"),
    ("null", "A type is a name, an object or an array, not null, at /"),
    ("1", "A type is a name, an object or an array, not 1, at /"),
    ("{}", "No type: {}, at /"),
    ({"type": {"type": "string"}}, 'No type: {"type":{"type":"string"}}, at /'),
    ({"type": ["null", "int"]}, 'No type: {"type":["null","int"]}, at /'),
    ('"Foo"', "Undefined schema: Foo, at /"),
    (record(field("a", "array", items="int")), "Undefined schema: array, at /fields/0/type"),
    (record(field("a", ["null", {"type": "map", "values": "b.X"}])), "Undefined schema: b.X, at /fields/0/type/1/values"),
    ({"type": "array"}, 'Array has no items type: {"type":"array"}, at /'),
    ({"type": "map"}, 'Map has no values type: {"type":"map"}, at /'),
    ({"type": "record"}, 'No name in schema: {"type":"record"}, at /'),
    ({"type": "record", "name": "R"}, 'Record has no fields: {"type":"record","name":"R"}, at /'),
    (record(name="1R"), "Illegal initial character: 1R, at /"),
    (record(name="int"), "'int' is the name of a primitive type, at /"),
    (record(field("a-b", "int")), "Illegal character in: a-b, at /fields/0"),
    (record({"type": "int"}), 'No field name: {"type":"int"}, at /fields/0'),
    (record({"name": "a"}), 'No field type: {"name":"a"}, at /fields/0'),
    (record(field("a", "int"), field("a", "int")), "Duplicate field a in record R, at /fields/1"),
    (
        record(field("a", "int", order="up")),
        "The order of field 'a' is one of ascending, descending, ignore, not \"up\", at /fields/0",
    ),
    (record(field("a", "int", aliases="b")), "'aliases' is an array of strings, at /fields/0"),
    (record(aliases=["1x"]), "Illegal initial character: 1x"),
    (record(field("a", "double", default="x")), "The default \"x\" of field 'a' is no number, at /fields/0"),
    (["int", "int"], "Duplicate in union:int, at /1"),
    ([{"type": "array", "items": "int"}, {"type": "array", "items": "long"}], "Duplicate in union:array, at /1"),
    ([record(), record()], "Duplicate in union:R, at /1"),
    (["int", ["null"]], "Nested union, at /1"),
    ({"type": "enum", "name": "E"}, 'Enum has no symbols: {"type":"enum","name":"E"}, at /'),
    (enum("E", "a", "a"), "Duplicate enum symbol: a, at /"),
    (enum("E", "1"), "Illegal initial character: 1"),
    ({"type": "enum", "name": "E", "symbols": [1]}, "A symbol of the enum 'E' is a string, not 1, at /"),
    (enum("E", "a", default="b"), 'The Enum Default: b is not in the enum symbol set: ["a"], at /'),
    ({"type": "fixed", "name": "F"}, 'Invalid or no size: {"type":"fixed","name":"F"}, at /'),
    (fixed("F", -1), "Invalid or no size: {"),
    ({"type": "fixed", "name": "F", "size": True}, "Invalid or no size: {"),
    (
        record(field("a", enum("E", "A")), field("b", enum("E", "B"))),
        "Can't redefine: E, at /fields/1/type",
    ),
    (record(field("a", record())), "Can't redefine: R, at /fields/0/type"),
    (record(field("a", record(field("q", "R"), name="m.S")), namespace="n"), "Undefined schema: m.R, at"),
]


@pytest.mark.parametrize(("schema", "message"), WRONG)
def test_a_wrong_schema_names_the_fault_and_its_place(schema: Any, message: str) -> None:
    with pytest.raises(InvalidSchema) as caught:
        FORMAT.parse(text(schema), {})
    assert str(caught.value).startswith(message)


STRICT: list[tuple[Any, str]] = [
    (record(field("a", "int", default="x")), 'Invalid default for field a: "x" not a "int", at /fields/0'),
    (record(field("a", "int", default=1.0)), "Invalid default for field a: 1.0 not a"),
    (record(field("a", "int", default=True)), "Invalid default for field a: true not a"),
    (record(field("a", "int", default=1 << 31)), "Invalid default for field a: 2147483648 not a"),
    (record(field("a", "long", default=1 << 63)), "Invalid default for field a: 9223372036854775808 not a"),
    (record(field("a", "string", default=None)), "Invalid default for field a: null not a"),
    (record(field("a", "boolean", default=0)), "Invalid default for field a: 0 not a"),
    (record(field("a", "null", default=0)), "Invalid default for field a: 0 not a"),
    (record(field("a", "float", default=[])), "Invalid default for field a: [] not a"),
    (record(field("a", ["null", "int"], default="x")), 'Invalid default for field a: "x" not a ["null","int"]'),
    (
        record(field("a", {"type": "array", "items": "int"}, default=["x"])),
        'Invalid default for field a: ["x"] not a {"type":"array","items":"int"}',
    ),
    (
        record(field("a", {"type": "map", "values": "int"}, default={"k": "x"})),
        'Invalid default for field a: {"k":"x"} not a {"type":"map","values":"int"}',
    ),
    (record(field("a", record(field("i", "int"), name="Q"), default={})), "Invalid default for field a: {} not a"),
    (record(field("a", "R", default={})), "Invalid default for field a: {} not a"),
    (record(namespace="a-b"), "Illegal character in: a-b"),
    (record(name="é"), "Illegal initial character: é"),
]


@pytest.mark.parametrize(("schema", "message"), STRICT)
def test_strict_parsing_refuses_more(schema: Any, message: str) -> None:
    FORMAT.parse(text(schema), {})
    with pytest.raises(InvalidSchema) as caught:
        FORMAT.parse(text(schema), {}, strict=True)
    assert str(caught.value).startswith(message)


@pytest.mark.parametrize(
    ("kind", "default"),
    [
        ("int", -(1 << 31)),
        ("long", (1 << 63) - 1),
        ("float", 1),
        ("double", 1.5),
        ("double", "NaN"),
        ("double", "-Infinity"),
        ("string", "x"),
        ("bytes", "\u00ff"),
        (enum("E", "a"), "b"),
        (fixed("F", 2), "abc"),
        ("boolean", True),
        (["int", "null"], None),
        (["null", "string"], "x"),
        ({"type": "array", "items": ["null", "int"]}, [None, 1]),
        ({"type": "map", "values": "int"}, {"a": 1}),
        (record(field("i", "int"), field("j", "int", default=3), name="Q"), {"i": 1}),
    ],
)
def test_strict_parsing_takes_defaults_that_fit(kind: Any, default: Any) -> None:
    schema = text(record(field("a", kind, default=default)))
    assert FORMAT.parse(schema, {}, strict=True).canonical == FORMAT.parse(schema, {}).canonical


def test_comments_are_no_part_of_a_schema() -> None:
    assert (
        FORMAT.parse('/* one */ {"type":"int", // two\n"p":"/* kept */ // kept"}', {}).canonical
        == '{"type":"int","p":"/* kept */ // kept"}'
    )


def test_references_are_parsed_before_the_text_and_in_order() -> None:
    references = {"e": text(enum("acme.E", "A")), "b": text(record(field("c", "E"), name="acme.B"))}
    schema = FORMAT.parse(text(record(field("b", "acme.B"), name="A")), references)
    assert schema.canonical == '{"type":"record","name":"A","fields":[{"name":"b","type":"acme.B"}]}'


def test_an_error_in_a_reference_names_the_reference() -> None:
    with pytest.raises(InvalidSchema, match=r"In the reference 'b': Undefined schema: acme.E, at /fields/0/type"):
        FORMAT.parse('"int"', {"b": text(record(field("c", "E"), name="acme.B"))})


def test_a_name_of_a_reference_cannot_get_other_content() -> None:
    with pytest.raises(InvalidSchema, match=r"Can't redefine: acme.B, at /"):
        FORMAT.parse(text(record(name="acme.B")), {"b": text(record(field("c", "int"), name="acme.B"))})


CHAIN = [record(field("x", f"A{i + 1}"), name=f"A{i}") for i in range(3000)]
SHARED = [
    record(*(field(side, f"D{i + 1}", default={}) for side in "lr"), name=f"D{i}") if i else record(name="D61")
    for i in range(60, -1, -1)
]
HOSTILE = {
    "long": '"' + "x" * MAX_AVRO_CHARACTERS + '"',
    "brackets": "[" * 1_000_000,
    "nested types": '{"type":"array","items":' * (MAX_AVRO_DEPTH + 2) + '"int"' + "}" * (MAX_AVRO_DEPTH + 2),
    "nested far": '{"type":"array","items":' * 90_000 + '"int"' + "}" * 90_000,
    "nested value": '{"type":"int","p":' + "[" * 300 + "]" * 300 + "}",
    "names that open each other": json.dumps([*CHAIN, record(name="A3000")]),
    "unclosed strings": '"' + '\\"' * 1_000_000 + "//",
    "unclosed comments": "/*" * 1_000_000,
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_text_ends_soon(name: str) -> None:
    started = time.process_time()
    with pytest.raises(InvalidSchema):
        FORMAT.parse(HOSTILE[name], {}, strict=True)
    assert time.process_time() - started < 10


def test_the_limit_of_the_size_counts_references() -> None:
    with pytest.raises(InvalidSchema, match=r"with its references; the limit is 4194304"):
        FORMAT.parse('"int"', {"r": '"' + "x" * MAX_AVRO_CHARACTERS + '"'})


def test_a_thousand_references_deep() -> None:
    references = {"A3000": text(record(name="A3000"))} | {part["name"]: text(part) for part in CHAIN[:-1000:-1]}
    top = FORMAT.parse(text(record(field("a", "A2500"), name="T")), references)
    assert top.canonical == '{"type":"record","name":"T","fields":[{"name":"a","type":"A2500"}]}'
    assert top.formatted("resolved").count('"type":"record"') == 502
    assert top.unreadable(FORMAT.parse(text(record(field("a", "A2500"), name="T")), references)) == []
    assert top.normalized().canonical == top.canonical


def test_defaults_of_shared_records_take_linear_time() -> None:
    started = time.process_time()
    FORMAT.parse(json.dumps(SHARED), {}, strict=True)
    assert time.process_time() - started < 10, "2^60 paths lead to the last record"
