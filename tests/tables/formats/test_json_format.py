"""The rules for values of JSON, and rows written and read back."""

from __future__ import annotations

import datetime
import json
import math
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from barnabas.tables import json_encoding, json_format
from barnabas.tables.column_types import Field
from barnabas.tables.declaration import declared
from barnabas.tables.errors import TableError
from barnabas.tables.json_format import JsonFormat, decode_json
from tests.tables.formats.json_texts import COLUMNS, payloads_for
from tests.tables.formats.test_json_kernels import binary, reasons

UTC_AT = datetime.datetime(2026, 1, 2, 3, 4, 5, 678901, datetime.UTC)
AT = UTC_AT.replace(tzinfo=None)


@pytest.mark.parametrize(
    ("kind", "text", "value"),
    [
        ("boolean", "true", True),
        ("int", "1.0", 1), ("int", "1e3", 1000), ("tinyint", "-128", -128), ("bigint", str(2**63 - 1), 2**63 - 1),
        ("ubigint", str(2**64 - 1), 2**64 - 1), ("bigint", "-0", 0),
        ("double", "0.1", 0.1), ("double", "1.7976931348623157e308", 1.7976931348623157e308), ("double", '"-Infinity"', -math.inf),
        ("real", "0.1", 0.10000000149011612),
        ("decimal(10,2)", "1.005", Decimal("1.01")), ("decimal(10,2)", '"-2.5"', Decimal("-2.50")), ("decimal(38,18)", "7", Decimal(7)),
        ("decimal(38,0)", "9" * 38, Decimal("9" * 38)), ("decimal(38,0)", "-" + "9" * 38, Decimal("-" + "9" * 38)),
        ("text", '"a\\u00e9\\ud83d\\ude00"', "aé😀"), ("text", "1.50", "1.50"), ("text", '{"a": 1}', '{"a": 1}'),
        ("text", "false", "false"),
        ("json", '"x"', '"x"'), ("json", "[1, 2 ]", "[1, 2 ]"), ("json", "null", None),
        ("uuid", '"0189D1E2-0000-7000-8000-0000000000AF"', "0189d1e2-0000-7000-8000-0000000000af"),
        ("binary", '"AQID"', b"\1\2\3"), ("binary", '""', b""),
        ("date", '"2026-01-02"', AT.date()), ("date", "1767323045678", AT.date()), ("date", "-1", datetime.date(1969, 12, 31)),
        ("time", '"03:04"', datetime.time(3, 4)), ("time", "1000", datetime.time(0, 0, 1)),
        ("timestamptz", '"2026-01-02T03:04:05.678901999Z"', UTC_AT), ("timestamptz", '"2026-01-02 05:04:05.678901+0200"', UTC_AT),
        ("timestamptz", "1767323045678", UTC_AT.replace(microsecond=678000)), ("timestamptz", "0.5", UTC_AT.replace(
            year=1970, day=1, hour=0, minute=0, second=0, microsecond=500)),
        ("timestamp_ntz", '"2026-01-02T03:04:05.678901"', AT),
        ("timestamp_ntz", '"2026-01-02"', AT.replace(hour=0, minute=0, second=0, microsecond=0)),
        ("int[]", "[1, null]", [1, None]), ("int[]", "[]", []),
        ("struct<a int, b text>", '{"b": "x", "c": 1}', {"a": None, "b": "x"}),
        ("map<text, int>", '{"a": 1, "b": null, "a": 2}', [("a", 2), ("b", None)]), ("map<int, int>", '{"7": 1}', [(7, 1)]),
    ],
)  # fmt: skip
def test_values(kind: str, text: str, value: Any) -> None:
    found = JsonFormat(declared(f"x {kind}")).decode(binary([f' {{ "y": 0, "x" : {text} }} '.encode()]), None, ["x"])
    assert found.reasons is None, reasons(found)
    assert found.columns[0].to_pylist() == [value]


@pytest.mark.parametrize(
    ("kind", "text", "reason"),
    [
        ("boolean", "1", "x is 1, not boolean"),
        ("int", '"1"', 'x is "1", not int'),
        ("int", "1.5", "x is 1.5, not int"),
        ("tinyint", "128", "x is 128, out of the range of tinyint"),
        ("uint", "-1", "x is -1, out of the range of uint"),
        ("bigint", "1e999999999999999999999", "out of the range of bigint"),
        ("double", "1e309", "x is 1e309, out of the range of double"),
        ("real", "3.5e38", "x is 3.5e38, out of the range of real"),
        ("decimal(4,2)", "99.995", "x is 99.995, out of the range of decimal(4,2)"),
        ("decimal(38,0)", "1" + "0" * 38, "out of the range of decimal(38,0)"),
        ("decimal(4,2)", '"1,5"', 'x is "1,5", not decimal(4,2)'),
        ("text", r'"\ud800"', "half of a surrogate pair"),
        ("uuid", '"x"', 'x is "x", not uuid'),
        ("binary", '"A"', 'x is "A", not base64'),
        ("date", '"2026-02-29"', 'x is "2026-02-29", not date'),
        ("time", '"25:00"', 'x is "25:00", not time'),
        ("timestamptz", '"tomorrow"', 'x is "tomorrow", not timestamptz'),
        ("timestamptz", "1e300", "out of the range of timestamptz"),
        ("int[]", "[1, {}]", "x[1] is {}, not int"),
        ("int[]", "{}", "x is {}, not int[]"),
        ("struct<a struct<b int>>", '{"a": {"b": "z"}}', 'x.a.b is "z", not int'),
        ("map<text, int>", '{"k": true}', "x.k is true, not int"),
        ("map<int, int>", '{"k": 1}', 'a key of x is "k", not int'),
    ],
)
def test_values_that_do_not_fit_name_the_field(kind: str, text: str, reason: str) -> None:
    payload = f'{{"x": {text}, "good": 5}}'.encode()
    found = JsonFormat(declared(f"good int, x {kind}")).decode(binary([payload, None]), None, ["x", "good"])
    assert reason in str(reasons(found)[0])
    assert reasons(found)[1] is None
    assert [column.to_pylist() for column in found.columns] == [[None, None], [5, None]]


@pytest.mark.parametrize("few_rows", [0, 32])
def test_rows_are_read_back_as_they_were_written(few_rows: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """As Python objects and by Arrow."""
    monkeypatch.setattr(json_encoding, "FEW_ROWS", few_rows)
    compared: list[int] = []
    there_and_back(compared)
    assert sum(compared) > 0


@given(COLUMNS, st.data())
@settings(max_examples=60, deadline=None)
def there_and_back(compared: list[int], fields: list[Field], data: st.DataObject) -> None:
    """Compare rows, and note how many there are."""
    format_ = JsonFormat(fields)
    names = [field.name for field in format_.fields]
    rows = format_.decode(binary(data.draw(payloads_for(fields))), None, names)
    batch = pa.RecordBatch.from_arrays(list(rows.columns), names)
    payloads = format_.encode(batch)
    assert payloads.null_count == 0
    for payload in payloads.to_pylist():
        json.loads(payload)
    again = format_.decode(payloads, None, names)
    assert reasons(again) == []
    for field, before, after in zip(fields, rows.columns, again.columns, strict=True):
        if "json" not in str(field.metadata) + str(field.type):  # JSON null and SQL null are the same
            assert repr(before.to_pylist()) == repr(after.to_pylist())
    compared.append(batch.num_rows)


def test_deleted_rows_and_missing_columns() -> None:
    format_ = JsonFormat(declared("a int, b text"))
    batch = pa.record_batch({"a": pa.array([1, 2, None], pa.int64())})
    assert format_.encode(batch, pa.array([False, True, None])).to_pylist() == [b'{"a":1,"b":null}', None, b'{"a":null,"b":null}']


def test_both_ways_to_write_rows_give_the_same_json(monkeypatch: pytest.MonkeyPatch) -> None:
    format_ = JsonFormat(declared(
        'a bigint, b double, c real, d text, e json, f date, g time, h timestamptz, i timestamp_ntz, j decimal(9,2), k binary, l uuid, '
        '"q""uoted" boolean, m text[]'
    ))  # fmt: skip
    rows: list[dict[str, Any]] = [
        {
            "a": -1, "b": 0.1, "c": 0.1, "d": 'é "x"\n', "e": "[1, 2]", "f": AT.date(), "g": AT.time(), "h": UTC_AT, "i": AT,
            "j": Decimal("1.50"),
            "k": b"\xff", "l": "0189d1e2-0000-7000-8000-0000000000af", 'q"uoted': True, "m": ["x", None],
        },
        {"b": math.nan, "c": -math.inf, "d": "plain", "h": UTC_AT.replace(microsecond=0), "g": datetime.time(1)},
        {"b": math.inf},
    ]  # fmt: skip
    batch = pa.RecordBatch.from_pylist(rows, pa.schema(format_.fields))
    single = format_.encode(batch).to_pylist()
    monkeypatch.setattr(json_encoding, "FEW_ROWS", 0)
    bulk = format_.encode(batch).to_pylist()
    assert [json.loads(each) for each in bulk] == [json.loads(each) for each in single]


@pytest.mark.parametrize(
    ("columns", "said"),
    [
        ({"c": pa.array([1])}, "there is no column c to write"),
        ({"a": pa.array(["x"])}, "the column a does not fit int32"),
        ({"a": pa.array([2**40])}, "the column a does not fit int32"),
        ({"b": pa.array(["{"])}, "the column b has a text that does not fit: it is no JSON"),
        ({"d": pa.array([2**60], pa.timestamp("s"))}, "the column d"),
    ],
)
def test_rows_that_cannot_be_written(columns: dict[str, Any], said: str) -> None:
    with pytest.raises(TableError, match=said):
        JsonFormat(declared("a int, b json, d timestamptz")).encode(pa.record_batch(columns))


@pytest.mark.parametrize("loaded", [True, False])
def test_nulls_among_payloads_with_a_prefix(monkeypatch: pytest.MonkeyPatch, *, loaded: bool) -> None:
    monkeypatch.setattr(json_format, "is_loaded", lambda _: loaded)
    payloads = binary([b'12345{"s":"x"}', None, b'12345{"s":null}', b"12345no"])
    found = decode_json([pa.field("s", pa.string())], payloads, 5)
    assert found.columns[0].to_pylist() == ["x", None, None, None]
    assert [each is not None for each in reasons(found)] == [False, False, False, True]
