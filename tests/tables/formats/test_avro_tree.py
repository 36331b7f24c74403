"""Nested Avro in bulk gives what decoding record by record gives, for pairs of schemas and for damaged data."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from barnabas.schemas.arrow.shapes import shape_of
from barnabas.schemas.avro_codec import parse
from barnabas.schemas.codecs import codec_of
from barnabas.schemas.registered import RegisteredSchema
from barnabas.tables.avro_columns import decode_nested
from barnabas.tables.avro_tree import Tree, compile_tree
from barnabas.tables.formats import binary_parts
from barnabas.tables.kernels.json_spans import LATER
from tests.tables.formats.test_avro_program import TYPES, one_by_one, schema_of

LEAVES = [each for each in TYPES if not isinstance(each[0], dict) or "name" not in each[0]]


@st.composite
def types(draw: st.DrawFn, depth: int, name: str) -> tuple[Any, st.SearchStrategy[Any]]:
    """A type, and values of it."""
    form = draw(st.integers(0, 7)) if depth else 0
    if form < 3:
        kind, values = LEAVES[draw(st.integers(0, len(LEAVES) - 1))]
        return (["null", kind], st.none() | values) if form == 1 else (kind, values)
    if form == 3:
        item, values = draw(types(depth - 1, name + "i"))
        return {"type": "array", "items": item}, st.lists(values, max_size=3)
    if form == 4:
        item, values = draw(types(depth - 1, name + "m"))
        return {"type": "map", "values": item}, st.dictionaries(st.text(max_size=3), values, max_size=3)
    parts = [draw(types(depth - 1, f"{name}{number}")) for number in range(draw(st.integers(1, 3)))]
    record = {"type": "record", "name": name, "fields": [{"name": f"f{n}", "type": kind} for n, (kind, _) in enumerate(parts)]}
    made = st.fixed_dictionaries({f"f{number}": values for number, (_, values) in enumerate(parts)})
    return (["null", record], st.none() | made) if form > 5 else (record, made)


def evolved(draw: st.DrawFn, kind: Any) -> Any:
    """A reader's type for a writer's: fields come, go and change their places, numbers become wider."""
    if isinstance(kind, list):
        return [evolved(draw, each) for each in kind]
    if kind == "int":
        return draw(st.sampled_from(["int", "long", "double", "int", ["null", "int"]]))
    if not isinstance(kind, dict) or "logicalType" in kind:
        return kind
    if kind["type"] == "array":
        return kind | {"items": evolved(draw, kind["items"])}
    if kind["type"] == "map":
        return kind | {"values": evolved(draw, kind["values"])}
    if kind["type"] != "record":
        return kind
    fields = [each | {"type": evolved(draw, each["type"])} for each in kind["fields"] if draw(st.integers(0, 5))]
    if draw(st.booleans()) or not fields:
        extra = draw(st.sampled_from([["null", "string"], ["null", {"type": "array", "items": "int"}], "null"]))
        fields.append({"name": "more", "type": extra, "default": None})
    return kind | {"fields": draw(st.permutations(fields))}


@st.composite
def pairs(draw: st.DrawFn) -> tuple[RegisteredSchema, RegisteredSchema, list[bytes]]:
    parts = [draw(types(3, f"T{number}")) for number in range(draw(st.integers(1, 3)))]
    fields = [{"name": f"f{number}", "type": kind} for number, (kind, _) in enumerate(parts)]
    writer = schema_of(fields)
    values = st.fixed_dictionaries({f"f{number}": values for number, (_, values) in enumerate(parts)})
    data = [codec_of(writer).encode(value) for value in draw(st.lists(values, max_size=4))]
    for number, each in enumerate(data):
        at = draw(st.integers(0, len(each)))
        damage = [
            each,
            each,
            each,
            each[:at],
            each + b"\0",
            each[:at] + b"\xff" + each[at:],
            each[:at] + b"\x7e" + each[at + 1 :],
        ]
        data[number] = draw(st.sampled_from(damage))
    if draw(st.booleans()):
        return writer, writer, data
    reader = evolved(draw, {"type": "record", "name": "R", "fields": fields})
    return writer, schema_of(reader["fields"]), data


def tree_for(writer: RegisteredSchema, reader: RegisteredSchema) -> Tree | None:
    ours = parse(writer)
    kind: Any = shape_of(reader).type
    return compile_tree(ours, ours if writer is reader else parse(reader), list(kind))


def in_bulk(tree: Tree, reader: RegisteredSchema, data: list[bytes]) -> list[Any]:
    """The rows; `...` for a record that the kernel leaves."""
    kind: Any = shape_of(reader).type
    buffer, ends = binary_parts(pa.array(data, pa.binary()))
    states = np.zeros(len(data), np.uint8)
    columns = decode_nested(tree, buffer, ends[:-1], ends[1:], states)
    for column in columns:
        column.validate(full=True)
        assert len(column) == len(data)
    made: Any = pa.StructArray.from_arrays(columns, fields=list(kind))
    return [... if state == LATER else row for row, state in zip(made.to_pylist(), states, strict=True)]


@given(pairs())
@settings(max_examples=200, deadline=None)
def test_bulk_equals_record_by_record(pair: tuple[RegisteredSchema, RegisteredSchema, list[bytes]]) -> None:
    writer, reader, data = pair
    tree = tree_for(writer, reader)
    if tree is None:
        return
    for bulk, single in zip(in_bulk(tree, reader, data), one_by_one(writer, reader, data), strict=True):
        assert bulk is ... or repr(bulk) == repr(single)


PLACE = {
    "type": "record",
    "name": "Place",
    "fields": [{"name": "city", "type": "string"}, {"name": "zip", "type": ["null", "int"]}],
}
NESTED = schema_of([
    {"name": "place", "type": ["null", PLACE]},
    {"name": "places", "type": {"type": "array", "items": "Place"}},
    {"name": "scores", "type": {"type": "map", "values": {"type": "array", "items": "double"}}},
])  # fmt: skip
VALUE = {
    "place": {"city": "Bern", "zip": 3000},
    "places": [{"city": "é", "zip": None}, {"city": "Thun", "zip": 1}],
    "scores": {"a": [1.5, 2.5], "b": []},
}


def test_nested_records_arrays_and_maps_are_taken() -> None:
    tree = tree_for(NESTED, NESTED)
    assert tree is not None
    codec = codec_of(NESTED)
    data = [codec.encode(VALUE), codec.encode({"place": None, "places": [], "scores": {}}), b"", codec.encode(VALUE) + b"x"]
    rows = in_bulk(tree, NESTED, data)
    assert rows[:2] == one_by_one(NESTED, NESTED, data)[:2]
    assert rows[2:] == [..., ...]


def test_blocks_with_their_size_and_hostile_counts() -> None:
    schema = schema_of([{"name": "a", "type": {"type": "array", "items": "int"}}])
    tree = tree_for(schema, schema)
    assert tree is not None
    sized = b"\x03\x04\x02\x04\x00"  # -2 items in 2 bytes
    hostile = [b"\xfe\xff\xff\xff\xff\xff\xff\xff\xff\x01\x02", b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01\x02", b"\x80" * 12]
    assert in_bulk(tree, schema, [sized, *hostile]) == [{"a": [1, 2]}, ..., ..., ...]


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        ({"type": "array", "items": "null"}, None),
        ({"type": "array", "items": "long"}, {"type": "array", "items": "int"}),
        (["null", PLACE, "string"], None),
        (PLACE, PLACE | {"name": "Other"}),
        (PLACE, PLACE | {"fields": [{"name": "n", "type": "int"}]}),
        (PLACE, PLACE | {"fields": [{"name": "n", "type": "int", "default": 7}]}),
        ({"type": "array", "items": "int"}, {"type": "map", "values": "int"}),
    ],
)
def test_other_pairs_have_no_tree(ours: Any, theirs: Any) -> None:
    writer = schema_of([{"name": "a", "type": ours}])
    assert tree_for(writer, writer if theirs is None else schema_of([{"name": "a", "type": theirs}])) is None


def test_a_schema_that_names_its_types_again_and_again_has_no_tree() -> None:
    last: Any = {"type": "record", "name": "T0", "fields": [{"name": "x", "type": "int"}]}
    for number in range(1, 14):
        last = {
            "type": "record",
            "name": f"T{number}",
            "fields": [{"name": "a", "type": last}, {"name": "b", "type": f"T{number - 1}"}],
        }
    writer = schema_of([{"name": "deep", "type": last}])
    reader = schema_of([{"name": "other", "type": ["null", "int"], "default": None}])
    assert tree_for(writer, reader) is None


def test_a_schema_that_is_nested_deeper_than_python_calls_has_no_tree() -> None:
    kind: Any = "int"
    for number in range(2000):
        kind = {"type": "record", "name": f"T{number}", "fields": [{"name": "a", "type": kind}]}
    writer = {"type": "record", "name": "R", "fields": [{"name": "deep", "type": kind}]}
    assert compile_tree(writer, writer, [pa.field("deep", pa.int32())]) is None
