"""Hypothesis strategies: columns, and payloads of JSON that fit them, nearly fit them, or are damaged."""

from __future__ import annotations

import json
from base64 import b64encode
from typing import Any

import pyarrow as pa
from hypothesis import strategies as st

from barnabas.schemas.arrow.shapes import map_type
from barnabas.tables.column_types import LOCAL, TIME, UTC, Field, json_field, uuid_field

SCALARS: list[Field] = [
    *(pa.field("x", kind) for kind in (
        pa.bool_(), pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64(), pa.float32(),
        pa.float64(), pa.string(), pa.binary(), pa.date32(), TIME, LOCAL, UTC, pa.decimal128(10, 2), pa.decimal128(38, 18),
        pa.decimal128(5, 0),
    )),
    json_field("x"),
    uuid_field("x"),
]  # fmt: skip
NAMES = ["a", "b", "id", "é", 'q"t', "", "long name", "_x"]


def _nested(inner: st.SearchStrategy[Field]) -> st.SearchStrategy[Field]:
    return st.one_of(
        inner.map(lambda field: pa.field("x", pa.list_(field.with_name("item")))),
        st.lists(inner, min_size=1, max_size=3).map(
            lambda fields: pa.field("x", pa.struct([each.with_name(NAMES[n]) for n, each in enumerate(fields)]))
        ),
        st.tuples(st.sampled_from([pa.string(), pa.int32()]), inner).map(
            lambda pair: pa.field("x", map_type(pair[0], pair[1].with_name("value")))
        ),
    )


FIELD: st.SearchStrategy[Field] = st.recursive(st.sampled_from(SCALARS), _nested, max_leaves=4)
COLUMNS: st.SearchStrategy[list[Field]] = st.lists(FIELD, min_size=1, max_size=5).map(
    lambda fields: [each.with_name(NAMES[number]) for number, each in enumerate(fields)]
)

_NUMBERS = st.one_of(
    st.integers(-130, 130).map(str),
    st.integers(-(2**70), 2**70).map(str),
    st.sampled_from([
        str(sign * 2**bits + more) for bits in (7, 8, 15, 16, 31, 32, 63, 64) for more in (-1, 0, 1) for sign in (-1, 1)
    ]),
    st.floats(allow_nan=False, allow_infinity=False).map(repr),
    st.floats(width=32, allow_nan=False, allow_infinity=False).map(repr),
    st.decimals(allow_nan=False, allow_infinity=False, places=3, min_value=-(10**12), max_value=10**12).map(str),
    st.sampled_from([
        "1e400", "-1e400", "1e-400", "0e999999999", "1E5", "1e+2", "-0", "-0.0", "1.0", "3.00", "1.50", "0.005", "12345678.995",
        "123456789012345678901234567890", "1e99999999999999999999", "3.5e38", "1" * 50, "0." + "1" * 50, "99999999.995",
    ]),
)  # fmt: skip
_TEXTS = st.one_of(
    st.text(max_size=8),
    st.datetimes().map(lambda value: value.isoformat()),
    st.datetimes().map(lambda value: value.isoformat(" ") + "+02:00"),
    st.datetimes().map(lambda value: value.isoformat(timespec="milliseconds") + "Z"),
    st.dates().map(str),
    st.times().map(str),
    st.uuids().map(str),
    st.uuids().map(lambda value: str(value).upper()),
    st.binary(max_size=8).map(lambda value: b64encode(value).decode()),
    _NUMBERS,
    st.sampled_from([
        "NaN", "Infinity", "-Infinity", "2026-02-29", "2024-02-29", "0000-01-01", "0001-01-01T00:00:00+01:00", "9999-12-31T23:59:59-01:00",
        "2026-01-01T24:00", "2026-01-01T10", "2026-01-01T10:00:60", "2026-01-01T10:00.5", "2026-01-01 10:00+0530", "2026-01-01t10:00z",
        "2026-01-01T10:00:00.1234567899", "10:00", "2026-01-01T10:00:00.", "QQ=", "QR==", "QQ==QQ==", "====", "\x00", "😀", "1.",
    ]),
)  # fmt: skip
_ESCAPED = st.sampled_from(
    [r'"\u00e9"', r'"\ud83d\ude00"', r'"\ud800"', r'"\udc00x"', r'"\/\b\f\n\r\t\"\\"', r'"\ud800\u0041"', '"é😀"']
)
LEAVES = st.one_of(_NUMBERS, _TEXTS.map(lambda text: json.dumps(text)), _TEXTS.map(lambda text: json.dumps(text, ensure_ascii=False)),
                   _ESCAPED, st.sampled_from(["true", "false", "null", "{}", "[]"]))  # fmt: skip
_SPACE = st.sampled_from(["", "", "", " ", "\n\t", "\r "])
_KEYS = st.one_of(
    st.sampled_from([json.dumps(name) for name in NAMES]), st.sampled_from([r'"\u0061"', '"é"', '"A"', '"1"', '"01"', '"-7"'])
)


@st.composite
def _value(draw: st.DrawFn, depth: int) -> str:
    kind = draw(st.integers(0, 5))
    if depth == 0 or kind < 4:
        return draw(LEAVES)
    return draw(_array(depth - 1) if kind == 4 else objects(depth - 1))


@st.composite
def _array(draw: st.DrawFn, depth: int) -> str:
    space = draw(_SPACE)
    return f"[{space}{(space + ',' + space).join(draw(st.lists(_value(depth), max_size=3)))}{space}]"


@st.composite
def objects(draw: st.DrawFn, depth: int) -> str:
    space = draw(_SPACE)
    pairs = draw(st.lists(st.tuples(_KEYS, _value(depth)), max_size=5))
    return f"{{{space}{(space + ',' + space).join(f'{key}{space}:{space}{value}' for key, value in pairs)}{space}}}"


def fitting(field: Field) -> st.SearchStrategy[str]:
    """JSON of the form that the field has; its values may still not fit."""
    kind: Any = field.type
    if pa.types.is_list(kind):
        return st.lists(fitting(kind.value_field), max_size=3).map(lambda items: f"[{','.join(items)}]")
    if pa.types.is_struct(kind):
        return object_of(list(kind))
    if pa.types.is_map(kind):
        keys = _KEYS if pa.types.is_string(kind.key_type) else st.sampled_from(['"1"', '"2"', '"-7"', '"01"'])
        return st.lists(st.tuples(keys, fitting(kind.item_field)), max_size=3).map(
            lambda pairs: f"{{{','.join(f'{key}:{value}' for key, value in pairs)}}}"
        )
    if pa.types.is_integer(kind):
        return st.one_of(st.integers(0, 100).map(str), _NUMBERS)
    return st.one_of(_NUMBERS if pa.types.is_floating(kind) or pa.types.is_decimal(kind) else LEAVES, st.just("null"))


@st.composite
def object_of(draw: st.DrawFn, fields: list[Field]) -> str:
    space = draw(_SPACE)
    chosen = draw(st.lists(st.sampled_from(fields), max_size=len(fields) + 1))
    pairs = [f"{json.dumps(each.name, ensure_ascii=draw(st.booleans()))}{space}:{space}{draw(fitting(each))}" for each in chosen]
    return "{" + f",{space}".join(pairs) + "}"


@st.composite
def damaged(draw: st.DrawFn, texts: st.SearchStrategy[str]) -> bytes:
    """A text as bytes, mostly whole, else cut or with a byte replaced or inserted."""
    data = draw(texts).encode("utf-8", "surrogatepass")
    how = draw(st.integers(0, 7))
    at = draw(st.integers(0, len(data)))
    byte = draw(st.sampled_from([0, 9, 31, 34, 44, 48, 58, 91, 92, 93, 101, 123, 125, 127, 128, 192, 195, 237, 244, 255]))
    if how == 0:
        return data[:at]
    if how == 1:
        return data[:at] + bytes([byte]) + data[at + 1 :]
    if how == 2:
        return data[:at] + bytes([byte]) + data[at:]
    return b" " * (how == 3) + data + b"\n" * (how == 4)


@st.composite
def payloads_for(draw: st.DrawFn, fields: list[Field]) -> list[bytes | None]:
    texts = st.one_of(object_of(fields), object_of(fields), objects(2), _value(1))
    return draw(st.lists(st.one_of(st.none(), damaged(texts), damaged(texts), damaged(texts)), max_size=6))
