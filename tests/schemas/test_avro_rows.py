"""Rows encoded to Avro in bulk are byte by byte those that the codec encodes one by one, and what does not fit has the same error."""

from __future__ import annotations

import datetime
import json
from decimal import Decimal
from importlib import import_module
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from barnabas.schemas.arrow import avro_rows
from barnabas.schemas.arrow.columns import KERNELS, Writer, encode, encode_each
from barnabas.schemas.arrow.shapes import shape_of
from barnabas.schemas.avro_codec import parse
from barnabas.schemas.errors import SchemaDataError
from barnabas.schemas.registered import RegisteredSchema

TYPES = ["int", "long", "float", "double", "boolean", "bytes", "string", "null", "enum", "fixed", "union"]
LOGICAL = [
    ("int", "date"), ("int", "time-millis"), ("long", "time-micros"), ("long", "timestamp-millis"), ("long", "timestamp-micros"),
    ("long", "local-timestamp-millis"), ("long", "local-timestamp-micros"), ("string", "uuid"), ("string", "other"),
]  # fmt: skip
NAMES = st.sampled_from(["a", "b", "map", "null", "R", "r0"])
TEXTS = st.sampled_from(["", "a", "é", "😀 x", "\0", "map", "null", "A", "x" * 70])


class Schemas:
    """Draws schemas whose named types have names of their own, or the name of one before."""

    def __init__(self, draw: Any) -> None:
        self._draw = draw
        self._made = 0
        self._known: list[str] = []

    def of(self, depth: int) -> Any:
        kinds = ["plain", "logical", "decimal", "optional", *(["record", "array", "map"] if depth else [])]
        kind = self._draw(st.sampled_from([*kinds, "known"] if self._known else kinds))
        match kind:
            case "plain":
                return self._plain(self._draw(st.sampled_from(TYPES)))
            case "logical":
                of, logical = self._draw(st.sampled_from(LOGICAL))
                return {"type": of, "logicalType": logical}
            case "decimal":
                return self._decimal()
            case "known":
                return self._draw(st.sampled_from(self._known))
            case "optional":
                inner = self.of(depth)
                if isinstance(inner, list) or inner == "null":
                    return inner
                return self._draw(st.sampled_from([["null", inner], [inner, "null"], [inner], inner]))
            case "array":
                return {"type": "array", "items": self.of(depth - 1)}
            case "map":
                return {"type": "map", "values": self.of(depth - 1)}
        return self.record(depth)

    def record(self, depth: int) -> Any:
        name = self._name()
        names = self._draw(st.lists(NAMES, unique=True, max_size=3))
        made = {"type": "record", "name": name, "fields": [{"name": each, "type": self.of(depth - 1)} for each in names]}
        self._known.append(name)
        return made

    def _plain(self, kind: str) -> Any:
        if kind == "enum":
            made: Any = {"type": "enum", "name": self._name(), "symbols": ["A", "B", "map"]}
        elif kind == "fixed":
            made = {"type": "fixed", "name": self._name(), "size": self._draw(st.integers(0, 3))}
        elif kind == "union":
            return self._draw(st.sampled_from([["int", "long"], ["null", "int", "string"], ["null"], {"type": "string"}]))
        else:
            return kind
        self._known.append(made["name"])
        return made

    def _decimal(self) -> Any:
        precision = self._draw(st.sampled_from([1, 4, 18, 38, 40]))
        made = {"logicalType": "decimal", "precision": precision, "scale": min(2, precision)}
        if self._draw(st.booleans()):
            return {"type": "bytes", **made}
        return {"type": "fixed", "name": self._name(), "size": self._draw(st.sampled_from([1, 2, 16, 20])), **made}

    def _name(self) -> str:
        self._made += 1
        return f"{'R' if self._made % 2 else 'space.R'}{self._made}"


def value_of(kind: Any) -> st.SearchStrategy[Any]:
    """Values of a type of Arrow, each of which may be null."""
    return st.none() | present(kind) if not pa.types.is_struct(kind) else present(kind) | st.none()


def present(kind: Any) -> st.SearchStrategy[Any]:
    if pa.types.is_struct(kind):
        return st.fixed_dictionaries({each.name: value_of(each.type) for each in kind})
    if pa.types.is_list(kind):
        return st.lists(value_of(kind.value_type), max_size=3)
    if pa.types.is_map(kind):
        return st.lists(st.tuples(TEXTS, value_of(kind.item_type)), max_size=3)
    if pa.types.is_decimal(kind):
        most = 10**kind.precision - 1
        ends = [0, 1, -1, 127, 128, -128, -129, 2**63, -(2**63), 2**64, -(2**64), most, -most]
        fits = st.sampled_from([each for each in ends if abs(each) <= most])
        return fits.map(
            lambda value: Decimal(value).scaleb(-kind.scale, None) if abs(value) < 10**27 else exactly(value, kind.scale)
        )
    if pa.types.is_timestamp(kind):
        moments = st.datetimes() if kind.tz is None else st.datetimes(timezones=st.just(datetime.UTC))
        return moments
    return {
        pa.int32(): st.integers(-(2**31), 2**31 - 1), pa.int64(): st.integers(-(2**63), 2**63 - 1) | st.integers(-70, 70),
        pa.float32(): st.floats(width=32), pa.float64(): st.floats(), pa.bool_(): st.booleans(), pa.date32(): st.dates(),
        pa.binary(): st.binary(max_size=3), pa.string(): TEXTS,
    }[kind]  # fmt: skip


def exactly(value: int, scale: int) -> Decimal:
    sign, digits, _ = Decimal(value).as_tuple()
    return Decimal((sign, digits, -scale))


def outcome(make: Any, writer: Writer, data: Any) -> Any:
    try:
        return make(writer, data).to_pylist()
    except SchemaDataError as error:
        return str(error)


@pytest.fixture(autouse=True)
def _loaded() -> None:
    import_module(KERNELS)  # before that, few rows do not take the way that is tested here


def writer_of(schema: Any) -> Writer:
    return Writer(RegisteredSchema(7, None, "AVRO", json.dumps(schema)))


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_rows_are_those_of_the_codec(data: st.DataObject) -> None:
    schema = Schemas(data.draw).of(2) if data.draw(st.booleans()) else Schemas(data.draw).record(3)
    try:
        kind: Any = shape_of(writer_of(schema).schema).type
    except SchemaDataError:
        return
    rows = pa.array(data.draw(st.lists(value_of(kind), max_size=5)), kind)
    rows = rows.slice(data.draw(st.integers(0, 2)))
    assert outcome(encode, writer_of(schema), rows) == outcome(encode_each, writer_of(schema), rows)


OTHER_TYPES: list[tuple[Any, Any, list[Any]]] = [
    ("int", pa.int8(), [1, None, -128]),
    ("int", pa.int64(), [2**31]),
    ("long", pa.uint32(), [2**32 - 1]),
    ("long", pa.uint64(), [2**63 - 1, 2**63]),
    ("long", pa.int32(), [-1]),
    ("float", pa.float64(), [1e300, 0.1, float("nan")]),
    ("double", pa.float32(), [0.1, float("inf")]),
    ("string", pa.large_string(), ["a"]),
    ("bytes", pa.string(), ["YWI=", "?"]),
    ({"type": "int", "logicalType": "date"}, pa.int32(), [-5_000_000]),
    ({"type": "int", "logicalType": "date"}, pa.date32(), [datetime.date(1, 1, 1), datetime.date(9999, 12, 31)]),
    ({"type": "long", "logicalType": "timestamp-millis"}, pa.timestamp("ms", "UTC"), [-1]),
    ({"type": "long", "logicalType": "timestamp-millis"}, pa.timestamp("us", "UTC"), [-1, 1, -1000, 1999]),
    ({"type": "bytes", "logicalType": "decimal", "precision": 4, "scale": 1}, pa.decimal128(6, 1), [Decimal("12345.6")]),
]


@pytest.mark.parametrize(("schema", "kind", "values"), OTHER_TYPES)
def test_a_type_of_another_program_is_encoded_as_before(schema: Any, kind: Any, values: list[Any]) -> None:
    alone = pa.array(values, kind)
    assert outcome(encode, writer_of(schema), alone) == outcome(encode_each, writer_of(schema), alone)
    record = {"type": "record", "name": "R", "fields": [{"name": "x", "type": ["null", schema]}]}
    rows = pa.StructArray.from_arrays([pa.array(values, kind)], fields=[pa.field("x", kind)])
    for row in range(len(rows)):
        one = rows.slice(row, 1)
        assert outcome(encode, writer_of(record), one) == outcome(encode_each, writer_of(record), one)


def test_the_kernel_takes_the_schemas_that_it_should() -> None:
    optional = [
        {"type": "int", "logicalType": "date"},
        "string",
        {"type": "array", "items": "long"},
        {"type": "map", "values": "double"},
    ]
    inner = {
        "type": "record",
        "name": "I",
        "fields": [{"name": f"f{n}", "type": ["null", each]} for n, each in enumerate(optional)],
    }
    schema = {
        "type": "record",
        "name": "R",
        "fields": [{"name": "before", "type": ["null", inner]}, {"name": "after", "type": "I"}],
    }
    writer = writer_of(schema)
    plan = avro_rows.plan_of(parse(writer.schema), shape_of(writer.schema).type)
    assert plan is not None
    assert [part.op for part in plan.parts[1].parts] == [2, 9, 14, 15]


def test_a_row_that_does_not_fit_names_its_field_and_the_others_do_not_matter() -> None:
    schema = {"type": "record", "name": "R", "fields": [{"name": "x", "type": "int"}, {"name": "y", "type": "string"}]}
    rows = pa.array([{"x": 1, "y": "a"}, {"x": 2, "y": None}], pa.struct([("x", pa.int32()), ("y", pa.string())]))
    with pytest.raises(SchemaDataError, match="y: None is not string"):
        encode(writer_of(schema), rows)


def test_data_larger_than_a_kernel_may_write_is_encoded_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(avro_rows, "MOST_BYTES", 100)
    rows = pa.array([None if n % 7 == 0 else f"text {n}" for n in range(50)])
    assert encode(writer_of("string"), rows).equals(encode_each(writer_of("string"), rows))


def test_halves_that_are_no_smaller_are_encoded_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(avro_rows, "MOST_BYTES", 100)
    rows = pa.array([["text"] * 5] * 50)
    writer = writer_of({"type": "array", "items": "string"})
    assert avro_rows.encoded(avro_rows.plan_of(parse(writer.schema), rows.type) or avro_rows.Node(0), rows, b"") is None
    assert encode(writer, rows).equals(encode_each(writer, rows))


def test_texts_that_are_no_utf8_do_not_fit() -> None:
    rows = pa.array([b"\xff"]).view(pa.string())
    with pytest.raises(UnicodeDecodeError):
        encode(writer_of("string"), rows)
