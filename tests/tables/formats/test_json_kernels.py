"""The kernels for JSON give what the rules for single values give, for good, bad and hostile records."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from barnabas import limits
from barnabas.tables import formats
from barnabas.tables.column_types import Field
from barnabas.tables.declaration import declared
from barnabas.tables.formats import Decoded
from barnabas.tables.json_columns import decode_objects
from barnabas.tables.json_format import JsonFormat, decode_each
from tests.tables.formats.json_texts import COLUMNS, payloads_for


def binary(values: list[bytes | None]) -> Any:
    return pa.array(values, pa.binary())


def decoded(fields: list[Field], payloads: Any) -> tuple[Decoded, Decoded]:
    format_ = JsonFormat(fields)
    return format_.decode(payloads, None, [each.name for each in fields]), decode_each(format_.fields, payloads)


def reasons(found: Decoded) -> list[Any]:
    return [] if found.reasons is None else found.reasons.to_pylist()


def texts(found: Decoded) -> list[Any]:
    """Texts, since NaN does not equal itself."""
    for column in found.columns:
        column.validate(full=True)
    return [*(repr(column.to_pylist()) for column in found.columns), reasons(found)]


@st.composite
def tables(draw: st.DrawFn) -> tuple[list[Field], list[bytes | None]]:
    fields = draw(COLUMNS)
    return fields, draw(payloads_for(fields))


@given(tables())
@settings(max_examples=250, deadline=None)
def test_bulk_equals_one_by_one(table: tuple[list[Field], list[bytes | None]]) -> None:
    bulk, single = decoded(table[0], binary(table[1]))
    assert texts(bulk) == texts(single)


@given(st.lists(st.binary(max_size=40), max_size=5))
@settings(max_examples=200, deadline=None)
def test_any_bytes(payloads: list[bytes]) -> None:
    fields = declared("a bigint, b text, c json, d double[], e map<text, json>")
    bulk, single = decoded(fields, binary(list(payloads)))
    assert texts(bulk) == texts(single)


def test_a_slice_of_an_array_is_decoded_from_its_own_bytes() -> None:
    payloads = binary([b'{"a":1}', None, b'{"a":2}', b"bad", b'{"a":3}'])
    found = JsonFormat(declared("a int")).decode(payloads.slice(1, 3), None, ["a"])
    assert found.columns[0].to_pylist() == [None, 2, None]
    assert reasons(found) == [None, None, "it is no JSON: Expecting value at character 1"]


def test_no_rows_and_null_rows() -> None:
    format_ = JsonFormat(declared("a int, b text[]"))
    assert [len(each) for each in format_.decode(binary([]), None, ["a", "b"]).columns] == [0, 0]
    found = format_.decode(pa.nulls(3, pa.binary()), None, ["b"])
    assert (found.columns[0].to_pylist(), found.reasons) == ([None] * 3, None)


ORDINARY = {
    "id": 2**53 + 1, "small": -7, "price": 1234.5678901234567, "amount": 12.34, "name": 'Zoë "Z" \\ \n', "ok": True, "none": None,
    "at": "2026-01-02T03:04:05.678901+01:00", "day": "2026-01-02", "hour": "03:04:05", "key": "0189d1e2-0000-7000-8000-0000000000AF",
    "blob": "AQID", "tags": ["a", None, "ü"], "address": {"city": "Bern", "zip": 3000, "more": {"x": 1}}, "scores": {"a": 1.5, "b": None},
    "any": [1, {"x": [True]}], "other": "ignored",
}  # fmt: skip
COLUMN_TEXT = (
    "id bigint, small tinyint, price double, amount decimal(10,2), name text, ok boolean, none int, at timestamptz, day date, hour time, "
    "key uuid, blob binary, tags text[], address struct<city text, zip int>, scores map<text, double>, any json"
)


@pytest.mark.parametrize("ensure_ascii", [True, False])
def test_ordinary_records_are_taken_by_the_kernels(ensure_ascii: bool) -> None:
    fields = declared(COLUMN_TEXT)
    payloads = binary([json.dumps(ORDINARY, ensure_ascii=ensure_ascii).encode()] * 3)
    _, later = decode_objects(fields, payloads)
    assert len(later) == 0


def nested(levels: int, opening: bytes = b"[", closing: bytes = b"]") -> bytes:
    return b'{"a":' + opening * levels + closing * levels + b"}"


@pytest.mark.parametrize("name", ["a", "b"])
def test_depth_has_the_limit_max_value_depth(name: str) -> None:
    """MAX_VALUE_DEPTH counts the record's own object."""
    most = limits.MAX_VALUE_DEPTH - 1
    fields = declared(f"{name} json")
    bulk, single = decoded(fields, binary([nested(most), nested(most + 1), nested(100_000), b'{"a":' * 100_000]))
    assert texts(bulk) == texts(single)
    assert [each is None for each in reasons(bulk)] == [True, False, False, False]


def test_lists_and_maps_have_the_limit_max_table_items(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "MAX_TABLE_ITEMS", 3)
    few, many = '{"a": [1, 2, 3], "m": {"x": 1, "y": 2}}', '{"a": [1, 2, 3, 4], "m": {"x": 1, "y": 2, "z": 3, "u": 4}}'
    bulk, single = decoded(declared("a int[], m map<text, int>"), binary([few.encode(), many.encode()]))
    assert texts(bulk) == texts(single)
    assert reasons(bulk) == [None, "a has more than 3 items"]
    assert [column.null_count for column in bulk.columns] == [1, 1]


@given(tables())
@settings(max_examples=50, deadline=None)
def test_slices_of_few_rows_give_the_same(table: tuple[list[Field], list[bytes | None]]) -> None:
    whole, _ = decoded(table[0], binary(table[1]))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(formats, "MAX_CELLS", 1)
        patch.setattr(formats, "MIN_ROWS", 2)
        assert texts(decoded(table[0], binary(table[1]))[0]) == texts(whole)


def test_long_names_and_many_columns() -> None:
    long = "n" * 300
    fields = [pa.field(f"c{number}", pa.int64()) for number in range(300)] + [pa.field(long, pa.string())]
    record = {f"c{number}": number for number in range(0, 300, 3)} | {long: "x"}
    escaped = json.dumps({"é" * 200: 1, "c0": 5}).encode()
    bulk, single = decoded(fields, binary([json.dumps(record).encode(), escaped, b"{}"]))
    assert texts(bulk) == texts(single)


def test_numbers_of_a_million_digits_end() -> None:
    payload = b'{"a":' + b"9" * 1_000_000 + b',"b":0.' + b"1" * 1_000_000 + b"}"
    bulk, single = decoded(declared("a bigint, b double"), binary([payload]))
    assert texts(bulk) == texts(single)
    assert "out of the range of bigint" in reasons(bulk)[0]
    bulk, single = decoded(declared("c bigint"), binary([payload]))
    assert bulk.reasons is None
