"""Flat Avro in bulk gives what decoding record by record gives, for pairs of schemas and for damaged data."""

from __future__ import annotations

import datetime
import json
from collections.abc import Sequence
from decimal import Decimal
from typing import Any
from uuid import UUID

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from barnabas.schemas.arrow.shapes import shape_of
from barnabas.schemas.avro_codec import parse
from barnabas.schemas.codecs import codec_of
from barnabas.schemas.errors import CannotDecode, SchemaDataError
from barnabas.schemas.registered import RegisteredSchema
from barnabas.tables.avro_columns import decode_flat
from barnabas.tables.avro_program import Program, compile_program
from barnabas.tables.formats import binary_parts
from barnabas.tables.kernels.json_spans import LATER


def logical(kind: str, logical_type: str, **more: Any) -> dict[str, Any]:
    return {"type": kind, "logicalType": logical_type, **more}


ENUM = {"type": "enum", "name": "E", "symbols": ["A", "B", "C"]}
FIXED = {"type": "fixed", "name": "F", "size": 3}
TYPES: list[tuple[Any, st.SearchStrategy[Any]]] = [
    ("boolean", st.booleans()),
    ("int", st.integers(-(2**31), 2**31 - 1)),
    ("long", st.integers(-(2**63), 2**63 - 1)),
    ("float", st.floats(width=32)),
    ("double", st.floats()),
    ("string", st.text(max_size=6)),
    ("bytes", st.binary(max_size=6)),
    (ENUM, st.sampled_from(["A", "B", "C"])),
    (FIXED, st.binary(min_size=3, max_size=3)),
    (logical("int", "date"), st.dates()),
    (logical("int", "time-millis"), st.times().map(lambda value: value.replace(microsecond=value.microsecond // 1000 * 1000))),
    (logical("long", "time-micros"), st.times()),
    (logical("long", "timestamp-millis"), st.datetimes(timezones=st.just(datetime.UTC))),
    (logical("long", "timestamp-micros"), st.datetimes(timezones=st.just(datetime.UTC))),
    (logical("long", "local-timestamp-millis"), st.datetimes()),
    (logical("long", "local-timestamp-micros"), st.datetimes()),
    (logical("string", "uuid"), st.uuids()),
    (logical("bytes", "decimal", precision=12, scale=3), st.decimals(-(10**8), 10**8, places=3)),
    (logical("fixed", "decimal", precision=20, scale=2, name="D", size=9), st.decimals(-(10**17), 10**17, places=2)),
    (logical("bytes", "decimal", precision=38), st.integers(-(10**38) + 1, 10**38 - 1).map(Decimal)),
]  # fmt: skip
PROMOTED: dict[str, list[Any]] = {
    "int": ["int", "long", "float", "double", ["null", "long"], ["int", "long"], "string"],
    "long": ["long", "float", "double", "int", ["null", "long"]],
    "float": ["float", "double", ["null", "float"], "int"],
    "double": ["double", "float", ["null", "double"]],
    "string": ["string", "bytes", ["null", "string"], logical("string", "uuid")],
    "bytes": ["bytes", "string", ["null", "bytes"], logical("bytes", "decimal", precision=12, scale=3)],
    "boolean": ["boolean", ["boolean", "null"]],
}
DEFAULTS: list[tuple[Any, Any]] = [
    (["null", "string"], None), ("int", 7), ("long", 2**40), ("double", 1), ("float", 0.1), ("string", "é"), ("bytes", "\u00ff"),
    ("boolean", True), (["long", "null"], 3), (ENUM | {"name": "E2"}, "B"), (logical("int", "date"), 1), ("null", None),
    ({"type": "array", "items": "int"}, []),
]  # fmt: skip


def schema_of(fields: list[Any]) -> RegisteredSchema:
    return RegisteredSchema(1, None, "AVRO", json.dumps({"type": "record", "name": "R", "fields": fields}))


@st.composite
def pairs(draw: st.DrawFn) -> tuple[RegisteredSchema, RegisteredSchema, list[bytes]]:
    """A writer's schema, a reader's, and data of the writer, some of it damaged."""
    writer: list[Any] = []
    reader: list[Any] = []
    values: dict[str, Any] = {}
    chosen = draw(st.lists(st.integers(0, len(TYPES) - 1), min_size=1, max_size=6, unique=True))
    for number in chosen:
        kind, strategy = TYPES[number]
        name = f"f{number}"
        ours: Any = kind
        theirs: Any = kind
        form = draw(st.integers(0, 5))
        if form == 0:
            ours, theirs, strategy = ["null", kind], ["null", kind], st.none() | strategy
        elif form == 1:
            ours, theirs, strategy = [kind, "null"], draw(st.sampled_from([[kind, "null"], ["null", kind]])), st.none() | strategy
        elif form == 2 and isinstance(kind, str):
            theirs = draw(st.sampled_from(list[Any](PROMOTED[kind])))
        elif form == 3 and kind == "int":
            ours = theirs = ["int", "long", "null"]
        elif form == 4 and kind is ENUM:
            theirs = ENUM | {"symbols": ["C", "A"]}
        writer.append({"name": name, "type": ours})
        values[name] = strategy
        if draw(st.integers(0, 5)):
            reader.append({"name": name, "type": theirs})
    for number, (kind, default) in enumerate(DEFAULTS):
        if draw(st.integers(0, 9)) == 0:
            reader.append({"name": f"d{number}", "type": kind, "default": default})
    ours_schema = schema_of(writer)
    codec = codec_of(ours_schema)
    data = [codec.encode(value) for value in draw(st.lists(st.fixed_dictionaries(values), max_size=4))]
    for number, each in enumerate(data):
        at = draw(st.integers(0, len(each)))
        data[number] = draw(
            st.sampled_from([each, each, each, each[:at], each + b"\0", each[:at] + b"\xff" + each[at:], b"\x80" * 12])
        )
    same = draw(st.booleans())
    return ours_schema, ours_schema if same else schema_of(draw(st.permutations(reader))), data


def one_by_one(writer: RegisteredSchema, reader: RegisteredSchema, data: list[bytes]) -> list[Any]:
    """The values of each record as Arrow has them; None for data that does not fit."""
    shape = shape_of(reader)
    rows: list[Any] = []
    try:
        codec = codec_of(writer, reader)
    except CannotDecode:
        return [None] * len(data)
    for each in data:
        try:
            value = codec.decode(each)
            made: Any = pa.array([value if shape.to_arrow is None else shape.to_arrow(value)], shape.type)
            rows += made.to_pylist()
        except (SchemaDataError, ValueError, TypeError, KeyError, AttributeError, OverflowError, pa.ArrowException):
            rows.append(None)
    return rows


def program_for(writer: RegisteredSchema, reader: RegisteredSchema) -> Program | None:
    ours = parse(writer)
    kind: Any = shape_of(reader).type
    return compile_program(ours, ours if writer is reader else parse(reader), list(kind))


def in_bulk(program: Program, reader: RegisteredSchema, data: list[bytes], wanted: Sequence[int] | None = None) -> list[Any]:
    """The same by the kernel; `...` for a record that it leaves."""
    kind: Any = shape_of(reader).type
    payloads = pa.array(data, pa.binary())
    buffer, ends = binary_parts(payloads)
    states = np.zeros(len(data), np.uint8)
    fields = list(kind) if wanted is None else [kind.field(number) for number in wanted]
    columns = decode_flat(program, list(kind), fields, buffer, ends[:-1], ends[1:], states)
    for column in columns:
        column.validate(full=True)
    made: Any = pa.StructArray.from_arrays(columns, fields=fields) if columns else pa.array([{} for _ in data])
    return [... if state == LATER else row for row, state in zip(made.to_pylist(), states, strict=True)]


@given(pairs())
@settings(max_examples=150, deadline=None)
def test_bulk_equals_record_by_record(pair: tuple[RegisteredSchema, RegisteredSchema, list[bytes]]) -> None:
    writer, reader, data = pair
    program = program_for(writer, reader)
    if program is None:
        return
    for bulk, single in zip(in_bulk(program, reader, data), one_by_one(writer, reader, data), strict=True):
        assert bulk is ... or repr(bulk) == repr(single)


@given(pairs(), st.data())
@settings(max_examples=50, deadline=None)
def test_columns_do_not_depend_on_the_others(
    pair: tuple[RegisteredSchema, RegisteredSchema, list[bytes]], data: st.DataObject
) -> None:
    writer, reader, payloads = pair
    program = program_for(writer, reader)
    if program is None or not program.columns:
        return
    wanted = data.draw(st.lists(st.integers(0, len(program.columns) - 1), unique=True, min_size=1))
    names = [shape_of(reader).type.field(number).name for number in wanted]
    for part, whole in zip(in_bulk(program, reader, payloads, wanted), in_bulk(program, reader, payloads), strict=True):
        assert repr(part) == repr(whole if whole is ... else {name: whole[name] for name in names})


@pytest.mark.parametrize("number", range(len(TYPES)))
def test_each_flat_type_has_a_program_that_takes_its_values(number: int) -> None:
    kind = TYPES[number][0]
    schema = schema_of([{"name": "a", "type": kind}, {"name": "b", "type": ["null", kind if isinstance(kind, str) else "long"]}])
    program = program_for(schema, schema)
    assert program is not None
    data = [codec_of(schema).encode({"a": _example(kind), "b": None})]
    assert in_bulk(program, schema, data) == one_by_one(schema, schema, data)


def _example(kind: Any) -> Any:
    at = datetime.datetime(2026, 1, 2, 3, 4, 5, 6000, datetime.UTC)
    name = kind if isinstance(kind, str) else kind.get("logicalType", kind["type"])
    return {
        "boolean": True, "int": -5, "long": 2**40, "float": 0.5, "double": 0.1, "string": "é", "bytes": b"\0", "enum": "B", "fixed": b"abc",
        "date": at.date(), "time-millis": at.time(), "time-micros": at.time(), "timestamp-millis": at, "timestamp-micros": at,
        "local-timestamp-millis": at.replace(tzinfo=None), "local-timestamp-micros": at.replace(tzinfo=None), "uuid": UUID(int=5),
        "decimal": Decimal(-7),
    }[name]  # fmt: skip


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        ({"type": "array", "items": "int"}, {"type": "array", "items": "int"}),
        ({"type": "record", "name": "I", "fields": []}, {"type": "record", "name": "I", "fields": []}),
        ("long", "int"),
        ("int", "string"),
        (["null", "int"], "int"),
        (["int", "string"], ["int", "string"]),
        (ENUM, ENUM | {"default": "A"}),
        (FIXED, FIXED | {"size": 4}),
        ("int", logical("int", "date")),
        (logical("bytes", "decimal", precision=5), logical("bytes", "decimal", precision=6)),
    ],
)
def test_other_pairs_have_none(ours: Any, theirs: Any) -> None:
    assert program_for(schema_of([{"name": "a", "type": ours}]), schema_of([{"name": "a", "type": theirs}])) is None


@pytest.mark.parametrize(("kind", "default"), [("string", "\ud800"), ("long", 2**70), ("int", 2**31)])
def test_records_without_a_field_whose_default_no_column_can_have_do_not_fit(kind: str, default: Any) -> None:
    fields = [{"name": "a", "type": "int"}, {"name": "b", "type": kind, "default": default}]
    writer, reader = schema_of(fields[:1]), schema_of(fields)
    assert program_for(writer, reader) is None
    assert one_by_one(writer, reader, [codec_of(writer).encode({"a": 1})]) == [None]


def test_a_field_without_default_that_the_writer_lacks_has_none() -> None:
    assert program_for(schema_of([{"name": "a", "type": "int"}]), schema_of([{"name": "b", "type": "int"}])) is None


def test_types_by_name_are_known() -> None:
    schema = schema_of([{"name": "a", "type": ENUM}, {"name": "b", "type": ["null", "E"]}])
    program = program_for(schema, schema)
    assert program is not None
    data = [codec_of(schema).encode({"a": "A", "b": "C"}), codec_of(schema).encode({"a": "B", "b": None})]
    assert in_bulk(program, schema, data) == [{"a": "A", "b": "C"}, {"a": "B", "b": None}]
