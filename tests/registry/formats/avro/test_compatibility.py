"""The rules of Avro's SchemaCompatibility with the messages of Confluent's registry.

Places and details are recorded from Avro's Java library 1.12.1.
"""

from __future__ import annotations

import json
from typing import Any

import pytest

from barnabas.limits import MAX_AVRO_COMPARED_DEPTH, MAX_AVRO_COMPARISONS, MAX_AVRO_INCOMPATIBILITIES
from barnabas.registry.formats.avro import FORMAT
from tests.registry.formats.avro.records import enum, field, fixed, record, text


def messages(reader: Any, writer: Any) -> list[str]:
    return [found.text for found in FORMAT.parse(text(reader), {}).unreadable(FORMAT.parse(text(writer), {}))]


F1 = record(field("f1", "string"))
RULES: list[tuple[Any, Any, list[str]]] = [
    (
        record(field("f1", "string"), field("f2", "string")),
        F1,
        [
            "{errorType:'READER_FIELD_MISSING_DEFAULT_VALUE', description:'The field 'f2' at path '/fields/1' in the new schema has no"
            " default value and is missing in the old schema', additionalInfo:'f2'}"
        ],
    ),
    (
        record(field("f1", "int")),
        F1,
        [
            "{errorType:'TYPE_MISMATCH', description:'The type (path '/fields/0/type') of a field in the new schema does not match with"
            " the old schema', additionalInfo:'reader type: INT not compatible with writer type: STRING'}"
        ],
    ),
    (
        '"int"',
        '"long"',
        [
            "{errorType:'TYPE_MISMATCH', description:'The type (path '/') of a field in the new schema does not match with the old schema',"
            " additionalInfo:'reader type: INT not compatible with writer type: LONG'}"
        ],
    ),
    (
        record(name="n.B"),
        record(name="n.A"),
        [
            "{errorType:'NAME_MISMATCH', description:'The name of the schema has changed (path '/name')', additionalInfo:'expected: n.A'}"
        ],
    ),
    (
        enum("E", "A"),
        enum("E", "C", "A", "B"),
        [
            "{errorType:'MISSING_ENUM_SYMBOLS', description:'The new schema is missing enum symbols '[B, C]' at path '/symbols' in the old"
            " schema', additionalInfo:'[B, C]'}"
        ],
    ),
    (
        record(field("a", fixed("F", 8))),
        record(field("a", fixed("F", 4))),
        [
            "{errorType:'FIXED_SIZE_MISMATCH', description:'The size of FIXED type field at path '/fields/0/type/size' in the new schema"
            " does not match with the old schema', additionalInfo:'expected: 4, found: 8'}"
        ],
    ),
    (
        ["null", "int"],
        ["null", "int", "string"],
        [
            "{errorType:'MISSING_UNION_BRANCH', description:'The new schema is missing a type inside a union field at path '/2' in the old"
            " schema', additionalInfo:'reader union lacking writer type: STRING'}"
        ],
    ),
    (
        record(field("a", ["null", "int"])),
        record(field("a", "string")),
        [
            "{errorType:'MISSING_UNION_BRANCH', description:'The new schema is missing a type inside a union field at path '/fields/0/type'"
            " in the old schema', additionalInfo:'reader union lacking writer type: STRING'}"
        ],
    ),
]


@pytest.mark.parametrize(("reader", "writer", "expected"), RULES)
def test_each_rule_has_confluents_message(reader: Any, writer: Any, expected: list[str]) -> None:
    assert messages(reader, writer) == expected


def kinds(reader: Any, writer: Any) -> list[tuple[str, str]]:
    found = FORMAT.parse(text(reader), {}).unreadable(FORMAT.parse(text(writer), {}))
    return [(one.kind, one.description.partition("path '")[2].partition("'")[0]) for one in found]


PLACES: list[tuple[Any, Any, list[tuple[str, str]]]] = [
    ('"int"', ["int", "long", "string"], [("TYPE_MISMATCH", "/1"), ("TYPE_MISMATCH", "/2")]),
    ({"type": "array", "items": "int"}, {"type": "array", "items": "long"}, [("TYPE_MISMATCH", "/items")]),
    ({"type": "map", "values": "int"}, {"type": "map", "values": "long"}, [("TYPE_MISMATCH", "/values")]),
    ({"type": "map", "values": "int"}, {"type": "array", "items": "int"}, [("TYPE_MISMATCH", "/")]),
    (
        record(field("a", "int"), field("b", "int")),
        record(field("a", "long"), field("b", "long")),
        [("TYPE_MISMATCH", "/fields/0/type"), ("TYPE_MISMATCH", "/fields/1/type")],
    ),
    (fixed("G", 2), fixed("F", 1), [("NAME_MISMATCH", "/name"), ("FIXED_SIZE_MISMATCH", "/size")]),
    (enum("G", "a"), enum("F", "b"), [("NAME_MISMATCH", "/name"), ("MISSING_ENUM_SYMBOLS", "/symbols")]),
    (record(field("a", enum("E", "x", default="x"))), record(), [("TYPE_MISMATCH", "/fields/0/type")]),
    (
        record(field("a", record(field("x", "int"), name="S"))),
        record(field("a", record(name="S"))),
        [("READER_FIELD_MISSING_DEFAULT_VALUE", "/fields/0/type/fields/0")],
    ),
    (
        record(field("a", enum("E", "x")), field("b", "E")),
        record(field("a", enum("E", "y")), field("b", "E")),
        [("MISSING_ENUM_SYMBOLS", "/fields/0/type/symbols")] * 2,
    ),
]


@pytest.mark.parametrize(("reader", "writer", "expected"), PLACES)
def test_the_place_of_each_fault(reader: Any, writer: Any, expected: list[tuple[str, str]]) -> None:
    assert kinds(reader, writer) == expected


PRIMITIVES = ("null", "boolean", "int", "long", "float", "double", "bytes", "string")
PROMOTED = {
    ("long", "int"),
    ("float", "int"),
    ("float", "long"),
    ("double", "int"),
    ("double", "long"),
    ("double", "float"),
    ("bytes", "string"),
    ("string", "bytes"),
}


@pytest.mark.parametrize("reader", PRIMITIVES)
@pytest.mark.parametrize("writer", PRIMITIVES)
def test_promotions(reader: str, writer: str) -> None:
    assert (kinds(f'"{reader}"', f'"{writer}"') == []) == (reader == writer or (reader, writer) in PROMOTED)


COMPATIBLE: list[tuple[Any, Any]] = [
    (record(field("a", "int"), field("b", "int", default=0)), record(field("a", "int"))),
    (record(field("a", "int")), record(field("a", "int"), field("b", "int"))),
    (record(field("a", "int", default=None)), record()),
    (record(name="New", aliases=["Old"]), record(name="Old")),
    (record(name="n.New", aliases=["Old"]), record(name="n.Old")),
    (record(field("new", "int", aliases=["old"])), record(field("old", "int"))),
    (record(field("a", "int", aliases=["a"])), record(field("a", "int"))),
    (enum("E", "A", default="A"), enum("E", "A", "B")),
    (enum("E", "A", "B"), enum("E", "A")),
    (["null", "string"], '"string"'),
    (["null", "double"], '"int"'),
    (["int", "string"], ["string", "int"]),
    ('"int"', ["int"]),
    ('"double"', ["int", "float"]),
    (["null", record(name="A"), record(name="B")], ["null", record(name="B")]),
    (["null", record(name="A"), record(name="B", aliases=["C"])], record(name="C")),
    ({"type": "bytes", "logicalType": "decimal", "precision": 4}, '"bytes"'),
    (record(field("next", ["null", "R"])), record(field("next", ["null", "R"]), field("x", "int"))),
]


@pytest.mark.parametrize(("reader", "writer"), COMPATIBLE)
def test_compatible_pairs(reader: Any, writer: Any) -> None:
    assert messages(reader, writer) == []


def test_a_recursive_type_is_compared_once() -> None:
    reader = record(field("next", ["null", "R"]), field("x", "int"))
    assert kinds(reader, record(field("next", ["null", "R"]))) == [("READER_FIELD_MISSING_DEFAULT_VALUE", "/fields/1")]


def test_a_field_that_reads_two_fields_is_refused_as_in_java() -> None:
    reader, writer = record(field("a", "int", aliases=["b"])), record(field("a", "int"), field("b", "int"))
    assert messages(reader, writer) == [
        "Unexpected exception during compatibility check: Reader record field a type:INT pos:0 matches multiple fields in writer record"
        ' schema {"type":"record","name":"R","fields":[{"name":"a","type":"int"},{"name":"b","type":"int"}]}'
    ]


class Other:
    schema_type = "JSON"


def test_another_format_is_not_compatible() -> None:
    found = FORMAT.parse('"int"', {}).unreadable(Other())  # type: ignore[arg-type]  # only its class matters
    assert [one.text for one in found] == ["Incompatible because of different schema type"]


def shared(levels: int, last: str) -> str:
    """A record whose two fields have the same type, many levels deep: a walk without memory takes 2 ** levels steps."""
    chain = [record(field("l", f"D{i + 1}"), field("r", f"D{i + 1}"), name=f"D{i}") for i in range(levels)]
    return json.dumps([record(field("x", last), name=f"D{levels}"), *reversed(chain)])


def test_shared_types_take_linear_time() -> None:
    assert messages(shared(60, "int"), shared(60, "int")) == []


def test_the_number_of_messages_is_bounded() -> None:
    reader, writer = (record(field("top", json.loads(shared(60, last))), field("again", "D0")) for last in ("int", "string"))
    assert 1 <= len(messages(reader, writer)) <= MAX_AVRO_INCOMPATIBILITIES


def test_many_aliases_and_fields_end_with_a_message() -> None:
    fields = [field(f"f{i}", "int", default=1) for i in range(3000)]
    reader = ["null", record(*fields, aliases=[f"W{i}" for i in range(3000)])]
    found = messages(reader, [record(name=f"W{i}") for i in range(3000)])
    assert found == [
        f"Unexpected exception during compatibility check: the schemas need more than {MAX_AVRO_COMPARISONS} comparisons"
    ]


def test_a_chain_deeper_than_the_limit_ends_with_a_message() -> None:
    chain = [record(*([field("x", f"A{i + 1}")] if i < 3000 else []), name=f"A{i}") for i in range(3000, -1, -1)]
    references = {part["name"]: text(part) for part in chain}
    first, second = (FORMAT.parse('"A0"', references) for _ in range(2))
    (found,) = first.unreadable(second)
    assert (
        found.text
        == f"Unexpected exception during compatibility check: the schemas are nested deeper than {MAX_AVRO_COMPARED_DEPTH} levels"
    )
