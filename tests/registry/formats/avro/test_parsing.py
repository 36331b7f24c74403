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
    ("{}", "An object needs the name of a type in its attribute 'type', at /"),
    ({"type": {"type": "string"}}, "An object needs the name of a type in its attribute 'type', at /"),
    ({"type": ["null", "int"]}, "An object needs the name of a type in its attribute 'type', at /"),
    ('"Foo"', "The type 'Foo' is not defined, at /"),
    (record(field("a", "array", items="int")), "The type 'array' is not defined, at /fields/0/type"),
    (record(field("a", ["null", {"type": "map", "values": "b.X"}])), "The type 'b.X' is not defined, at /fields/0/type/1/values"),
    ({"type": "array"}, "The array has no 'items', at /"),
    ({"type": "map"}, "The map has no 'values', at /"),
    ({"type": "record"}, "The record has no 'name', at /"),
    ({"type": "record", "name": "R"}, "The record 'R' has no array 'fields', at /"),
    (record(name="1R"), 'The record name "1R" may have letters, digits and _'),
    (record(name="int"), "'int' is the name of a primitive type, at /"),
    (record(field("a-b", "int")), 'The field name "a-b" may have'),
    (record({"type": "int"}), "A field is an object with a 'name', at /fields/0"),
    (record({"name": "a"}), "The field 'a' has no 'type', at /fields/0"),
    (record(field("a", "int"), field("a", "int")), "The record 'R' has the field 'a' twice, at /fields/1"),
    (
        record(field("a", "int", order="up")),
        "The order of field 'a' is one of ascending, descending, ignore, not \"up\", at /fields/0",
    ),
    (record(field("a", "int", aliases="b")), "'aliases' is an array of strings, at /fields/0"),
    (record(aliases=["1x"]), 'The alias name "1x" may have'),
    (record(field("a", "double", default="x")), "The default \"x\" of field 'a' is no number, at /fields/0"),
    (["int", "int"], "The union has the type 'int' twice, at /1"),
    ([{"type": "array", "items": "int"}, {"type": "array", "items": "long"}], "The union has the type 'array' twice, at /1"),
    ([record(), record()], "The union has the type 'R' twice, at /1"),
    (["int", ["null"]], "A union is a branch of a union, at /1"),
    ({"type": "enum", "name": "E"}, "The enum 'E' has no array 'symbols', at /"),
    (enum("E", "a", "a"), "The enum 'E' has the symbol 'a' twice, at /"),
    (enum("E", "1"), 'The symbol name "1" may have'),
    ({"type": "enum", "name": "E", "symbols": [1]}, "A symbol of the enum 'E' is a string, not 1, at /"),
    (enum("E", "a", default="b"), "The default 'b' of the enum 'E' is not one of its symbols, at /"),
    ({"type": "fixed", "name": "F"}, "The fixed 'F' needs a 'size' from 0 to 2147483647, at /"),
    (fixed("F", -1), "The fixed 'F' needs a 'size' from 0 to 2147483647, at /"),
    ({"type": "fixed", "name": "F", "size": True}, "The fixed 'F' needs a 'size'"),
    (
        record(field("a", enum("E", "A")), field("b", enum("E", "B"))),
        "The name 'E' is defined twice with different content, at /fields/1/type",
    ),
    (record(field("a", record())), "The name 'R' is defined twice with different content, at /fields/0/type"),
    (record(field("a", record(field("q", "R"), name="m.S")), namespace="n"), "The type 'm.R' is not defined"),
]


@pytest.mark.parametrize(("schema", "message"), WRONG)
def test_a_wrong_schema_names_the_fault_and_its_place(schema: Any, message: str) -> None:
    with pytest.raises(InvalidSchema) as caught:
        FORMAT.parse(text(schema), {})
    assert str(caught.value).startswith(message)


STRICT: list[tuple[Any, str]] = [
    (record(field("a", "int", default="x")), "The default \"x\" of field 'a' does not fit its type, at /fields/0"),
    (record(field("a", "int", default=1.0)), "The default 1.0 of"),
    (record(field("a", "int", default=True)), "The default true of"),
    (record(field("a", "int", default=1 << 31)), "The default 2147483648 of"),
    (record(field("a", "long", default=1 << 63)), "The default 9223372036854775808 of"),
    (record(field("a", "string", default=None)), "The default null of"),
    (record(field("a", "boolean", default=0)), "The default 0 of"),
    (record(field("a", "null", default=0)), "The default 0 of"),
    (record(field("a", "float", default=[])), "The default [] of"),
    (record(field("a", ["null", "int"], default="x")), 'The default "x" of'),
    (record(field("a", {"type": "array", "items": "int"}, default=["x"])), 'The default ["x"] of'),
    (record(field("a", {"type": "map", "values": "int"}, default={"k": "x"})), 'The default {"k":"x"} of'),
    (record(field("a", record(field("i", "int"), name="Q"), default={})), "The default {} of"),
    (record(field("a", "R", default={})), "The default {} of"),
    (record(namespace="a-b"), 'The namespace name "a-b" may have'),
    (record(name="é"), 'The record name "é" may have'),
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
    FORMAT.parse(text(record(field("a", kind, default=default))), {}, strict=True)


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
    with pytest.raises(InvalidSchema, match=r"In the reference 'b': The type 'acme.E' is not defined, at /fields/0/type"):
        FORMAT.parse('"int"', {"b": text(record(field("c", "E"), name="acme.B"))})


def test_a_name_of_a_reference_cannot_get_other_content() -> None:
    with pytest.raises(InvalidSchema, match=r"The name 'acme.B' is defined twice with different content, at /"):
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
    FORMAT.parse(json.dumps(SHARED), {}, strict=True)
