"""One value in each payload: what fits, what is written, and the only payload of a value."""

from __future__ import annotations

import datetime
import uuid
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from barnabas.tables.column_types import Field, mark_of
from barnabas.tables.declaration import declared
from barnabas.tables.scalar_format import ScalarFormat
from tests.tables.formats.json_texts import FIELD, LEAVES, damaged, fitting, objects
from tests.tables.formats.test_json_kernels import binary, reasons


def scalar(kind: str) -> ScalarFormat:
    return ScalarFormat(declared(f"k {kind}")[0])


UUID_TEXT = "0189d1e2-0000-7000-8000-0000000000af"
DAY = datetime.date(2026, 1, 31)


@pytest.mark.parametrize(
    ("kind", "payload", "value"),
    [
        ("bigint", b"-42", -42), ("ubigint", b"18446744073709551615", 2**64 - 1), ("boolean", b"true", True), ("date", b"2026-01-31", DAY),
        ("uuid", UUID_TEXT.encode(), UUID_TEXT), ("text", '"é'.encode(), '"é'), ("binary", b"\xff", b"\xff"),
        ("json", b' {"a": 1}', ' {"a": 1}'),
        ("text", b"", ""),
    ],
)  # fmt: skip
def test_exact_types_have_one_payload_for_a_value(kind: str, payload: bytes, value: Any) -> None:
    format_ = scalar(kind)
    found = format_.decode(binary([payload, None]), None, ["k"])
    assert (found.columns[0].to_pylist(), found.reasons) == ([value, None], None)
    assert format_.payload_of("k", value) == payload
    assert format_.encode(pa.RecordBatch.from_arrays(found.columns, ["k"])).to_pylist() == [payload, None]


@pytest.mark.parametrize(
    ("kind", "payload"),
    [
        ("bigint", b"042"), ("bigint", b"+1"), ("bigint", b" 1"), ("bigint", b"1 "), ("bigint", b"-0"), ("bigint", b"1.0"),
        ("bigint", b'"1"'),
        ("bigint", b"x"), ("bigint", b""), ("bigint", b"null"), ("bigint", b"0x10"), ("tinyint", b"128"), ("boolean", b"1"),
        ("boolean", b"True"),
        ("date", b"2026-1-31"), ("date", b"2026-02-30"), ("date", b"5"), ("date", b'"2026-01-31"'), ("uuid", UUID_TEXT.upper().encode()),
        ("uuid", b"x"), ("uuid", f'"{UUID_TEXT}"'.encode()), ("text", b"\xff"), ("json", b"{"), ("bigint", b"\xff"), ("double", b"x"),
        ("double", b"null"),
    ],
)  # fmt: skip
def test_other_payloads_have_a_reason(kind: str, payload: bytes) -> None:
    found = scalar(kind).decode(binary([payload]), None, ["k"])
    assert found.columns[0].to_pylist() == [None]
    assert reasons(found)[0]


@given(
    st.sampled_from(["bigint", "tinyint", "boolean", "date", "uuid", "text", "json"]),
    st.lists(st.binary(max_size=12), max_size=4),
)
def test_the_payload_of_a_value_is_the_one_it_came_from(kind: str, payloads: list[bytes]) -> None:
    samples = [*payloads, b"1", b"-5", b"00", b"true", b"2026-01-31", UUID_TEXT.encode()]
    found = scalar(kind).decode(binary(list(samples)), None, ["k"])
    for payload, value in zip(samples, found.columns[0].to_pylist(), strict=True):
        assert value is None or scalar(kind).payload_of("k", value) == payload


@pytest.mark.parametrize(
    ("kind", "payload", "value"),
    [
        ("double", b"1.50", 1.5),
        ("double", b"Infinity", float("inf")),
        ("timestamptz", b"2026-01-31 10:00", datetime.datetime(2026, 1, 31, 10, tzinfo=datetime.UTC)),
        ("timestamptz", b'"2026-01-31T10:00Z"', datetime.datetime(2026, 1, 31, 10, tzinfo=datetime.UTC)),
        ("struct<a int>", b'{"a": 1}', {"a": 1}),
        ("int[]", b"[1]", [1]),
    ],
)
def test_other_types_take_any_spelling_and_have_no_only_payload(kind: str, payload: bytes, value: Any) -> None:
    format_ = scalar(kind)
    found = format_.decode(binary([payload]), None, ["k"])
    assert (found.columns[0].to_pylist(), found.reasons) == ([value], None)
    assert format_.payload_of("k", value) is None
    again = format_.decode(format_.encode(pa.RecordBatch.from_arrays(found.columns, ["k"])), None, ["k"])
    assert again.columns[0].to_pylist() == [value]


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        ("bigint", 1.0), ("bigint", True), ("bigint", "1"), ("boolean", 1), ("date", datetime.datetime(2026, 1, 31, tzinfo=datetime.UTC)),
        ("text", 5), ("bigint", None), ("date", "2026-01-31"),
    ],
)  # fmt: skip
def test_values_of_other_types_are_not_looked_for(kind: str, value: Any) -> None:
    assert scalar(kind).payload_of("k", value) is None


@given(FIELD, st.data())
@settings(max_examples=60, deadline=None)
def test_bulk_equals_one_by_one(field: Field, data: st.DataObject) -> None:
    texts = data.draw(st.lists(st.one_of(st.none(), damaged(st.one_of(LEAVES, objects(1), fitting(field)))), max_size=5))
    format_ = ScalarFormat(field)
    if format_.fields[0].type in (pa.string(), pa.binary()) and not mark_of(field):
        return
    bulk, single = format_.decode(binary(texts), None, ["x"]), format_._each(binary(texts))
    assert repr(bulk.columns[0].to_pylist()) == repr(single.columns[0].to_pylist())
    assert reasons(bulk) == reasons(single)


def test_a_uuid_object_is_looked_for() -> None:
    assert scalar("uuid").payload_of("k", uuid.UUID(UUID_TEXT)) == UUID_TEXT.encode()


def test_deleted_rows_have_no_payload() -> None:
    batch = pa.record_batch({"k": pa.array([1, 2])})
    assert scalar("bigint").encode(batch, pa.array([True, False])).to_pylist() == [None, b"2"]
