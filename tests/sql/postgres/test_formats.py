"""Columns in Postgres' formats: whole columns give the same bytes as single values, and both give those of Postgres."""

from __future__ import annotations

import math
import struct
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID
from zoneinfo import ZoneInfo

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from barnabas import limits
from barnabas.sql.interface import SqlError
from barnabas.sql.postgres.codecs import codec_of
from barnabas.sql.postgres.messages import BINARY, TEXT
from barnabas.sql.postgres.parameters import value_of
from barnabas.sql.postgres.rows import RowWriter, fields_of
from barnabas.sql.postgres.types import TYPE_KEY, TYPES, describe

INT64 = st.integers(-(2**63), 2**63 - 1)
EXAMPLES = settings(max_examples=25)
FLOATS = st.floats() | st.sampled_from(
    [1e15, 1e14, 123456789012345.6, 1e-4, 1e-5, 9.999e-5, 0.1, 1e16, 1e22, 1e6, 123456.7, -0.0]
)
VALUES: list[tuple[Any, Any]] = [
    (pa.bool_(), st.booleans()),
    (pa.int8(), st.integers(-128, 127)),
    (pa.uint16(), st.integers(0, 65_535)),
    (pa.int32(), st.integers(-(2**31), 2**31 - 1)),
    (pa.int64(), INT64),
    (pa.uint64(), st.integers(0, 2**64 - 1)),
    (
        pa.float32(),
        st.floats(width=32) | st.sampled_from([1e6, 1e5, 999999.9, 1e-4, 1e-5, 0.1]).map(lambda x: float(np.float32(x))),
    ),
    (pa.float64(), FLOATS),
    (pa.decimal128(18, 7), st.decimals(-(10**10), 10**10, places=7)),
    (pa.decimal128(5, 0), st.integers(-99_999, 99_999).map(Decimal)),
    (pa.decimal128(38, 9), st.decimals(-(10**20), 10**20, places=9)),
    (pa.string(), st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"))),
    (pa.large_string(), st.text("ab\n,")),
    (pa.string_view(), st.text("ab\n,")),
    (pa.binary(), st.binary()),
    (pa.binary(4), st.binary(min_size=4, max_size=4)),
    (pa.date32(), st.dates()),
    (pa.time64("us"), st.times()),
    (pa.time32("s"), st.times().map(lambda each: each.replace(microsecond=0))),
    (pa.timestamp("us"), st.datetimes()),
    (pa.timestamp("ns"), st.datetimes(datetime(1700, 1, 1), datetime(2200, 1, 1))),  # noqa: DTZ001 - without a zone
    (pa.timestamp("s"), st.datetimes().map(lambda each: each.replace(microsecond=0))),
    (pa.timestamp("us", "UTC"), st.datetimes(timezones=st.just(UTC))),
    (pa.duration("us"), st.timedeltas(timedelta(-10_000), timedelta(10_000))),
    (
        pa.month_day_nano_interval(),
        st.tuples(*[st.integers(-100, 100)] * 2, st.integers(-(10**15), 10**15).map(lambda x: x * 1000)),
    ),
    (pa.uuid(), st.uuids().map(lambda each: each.bytes)),
    (pa.json_(), st.just('{"a":1}')),
    (pa.dictionary(pa.int8(), pa.string()), st.sampled_from(["a", "b"])),
    (pa.list_(pa.int32()), st.lists(st.none() | st.integers(-9, 9))),
    (pa.list_(pa.string()), st.lists(st.none() | st.text('ab ,{}"\\\n'))),
    (pa.list_(pa.timestamp("us")), st.lists(st.datetimes())),
    (pa.struct([("a", pa.int32()), ("b", pa.string())]), st.fixed_dictionaries({"a": st.integers(0, 9), "b": st.text("ab")})),
    (pa.map_(pa.string(), pa.int64()), st.lists(st.tuples(st.text("ab"), INT64), max_size=3)),
    (pa.null(), st.none()),
]


@pytest.mark.parametrize("form", [TEXT, BINARY])
@pytest.mark.parametrize(("kind", "value"), VALUES, ids=[str(kind) for kind, _ in VALUES])
def test_a_column_is_written_as_its_values_are(kind: Any, value: Any, form: int) -> None:
    @EXAMPLES
    @given(st.lists(st.none() | value, max_size=6), st.sampled_from([UTC, ZoneInfo("Europe/Zurich"), ZoneInfo("Asia/Kolkata")]))
    def check(values: list[Any], zone: Any) -> None:
        column = pa.array(values, kind) if not isinstance(kind, pa.BaseExtensionType) else pa.ExtensionArray.from_storage(
            kind, pa.array(values, kind.storage_type)
        )  # fmt: skip
        codec = codec_of(pa.field("a", kind), form, zone)
        one_by_one = [None if each is None else codec.write(each) for each in codec.values(column)]
        if codec.bulk is not None and (whole := codec.bulk(column)) is not None:
            assert whole.to_pylist() == one_by_one
        shifted = pa.concat_arrays([column, column]).slice(len(column))
        if codec.bulk is not None and (whole := codec.bulk(shifted)) is not None:
            assert whole.to_pylist() == one_by_one
        oid = codec.described.oid
        if kind in (pa.float32(), pa.float64()):
            for before, after in zip(values, one_by_one, strict=True):
                if before is not None:
                    read = value_of(after, oid, form)
                    assert (math.isnan(read) and math.isnan(before)) or pa.scalar(read, kind) == pa.scalar(before, kind)

    check()


READ_BACK = ["bool", "int32", "int64", "decimal128(18, 7)", "decimal128(38, 9)", "string", "binary", "date32[day]", "time64[us]",
             "timestamp[us]", "timestamp[us, tz=UTC]", "duration[us]", "list<item: int32>", "list<item: string>"]  # fmt: skip


@pytest.mark.parametrize("form", [TEXT, BINARY])
@pytest.mark.parametrize(("kind", "value"), [each for each in VALUES if str(each[0]) in READ_BACK], ids=str)
def test_a_value_that_was_written_is_read_back(kind: Any, value: Any, form: int) -> None:
    @EXAMPLES
    @given(value)
    def check(before: Any) -> None:
        codec = codec_of(pa.field("a", kind), form)
        (found,) = codec.values(pa.array([before], kind))
        after = value_of(codec.write(found), codec.described.oid, form)
        if kind == pa.duration("us") and form == TEXT:
            assert isinstance(after, str)
        else:
            assert after == before

    check()


@pytest.mark.parametrize(
    ("kind", "value", "shown"),
    [
        (pa.bool_(), True, "t"),
        (pa.float64(), 1e15, "1e+15"),
        (pa.float64(), 100000.0, "100000"),
        (pa.float64(), 1e-5, "1e-05"),
        (pa.float64(), math.inf, "Infinity"),
        (pa.float64(), math.nan, "NaN"),
        (pa.float64(), 1234567890123456.8, "1.2345678901234568e+15"),
        (pa.float32(), 1e6, "1e+06"),
        (pa.float32(), 0.1, "0.1"),
        (pa.decimal128(10, 7), Decimal("0.0000001"), "0.0000001"),
        (pa.decimal128(10, 2), Decimal("-1.50"), "-1.50"),
        (pa.binary(), b"\x00\xff", "\\x00ff"),
        (pa.date32(), date(2024, 2, 29), "2024-02-29"),
        (pa.time64("us"), time(1, 2, 3, 400_000), "01:02:03.4"),
        (pa.timestamp("us"), datetime(2024, 2, 29, 1, 2, 3), "2024-02-29 01:02:03"),  # noqa: DTZ001 - without a zone
        (pa.timestamp("us", "UTC"), datetime(2024, 7, 1, tzinfo=UTC), "2024-07-01 02:00:00+02"),
        (pa.month_day_nano_interval(), (14, -3, 4_500_000_000), "1 year 2 mons -3 days +00:00:04.5"),
        (pa.month_day_nano_interval(), (0, 0, 0), "00:00:00"),
        (pa.month_day_nano_interval(), (-1, 1, -1_000_000_000), "-1 mons +1 day -00:00:01"),
        (pa.list_(pa.string()), ["a", None, "NULL", "", 'q"\\', "x y"], '{a,NULL,"NULL","","q\\"\\\\","x y"}'),
        (pa.list_(pa.list_(pa.int32())), [[1, 2], [3]], "{{1,2},{3}}"),
        (
            pa.struct([("a", pa.int32()), ("b", pa.list_(pa.date32()))]),
            {"a": 1, "b": [date(2024, 1, 1)]},
            "(1,{2024-01-01})",
        ),
        (pa.map_(pa.int32(), pa.float64()), [(1, math.nan)], '{"1":"nan"}'),
    ],
)
def test_text_is_that_of_postgres(kind: Any, value: Any, shown: str) -> None:
    codec = codec_of(pa.field("a", kind), TEXT, ZoneInfo("Europe/Zurich"))
    (found,) = codec.values(pa.array([value], kind))
    assert codec.write(found).decode() == shown


def test_years_that_python_does_not_have() -> None:
    days = pa.array([-800_000, 3_000_000, 2**31 - 1, -(2**31) + 1], pa.date32())
    codec = codec_of(pa.field("a", pa.date32()), TEXT)
    assert codec.bulk is not None
    assert codec.bulk(days) is None
    assert [codec.write(each) for each in codec.values(days)] == [b"0222-09-04 BC", b"10183-09-21", b"infinity", b"-infinity"]
    binary = codec_of(pa.field("a", pa.date32()), BINARY)
    assert [struct.unpack(">i", binary.write(each))[0] for each in binary.values(days)] == [
        -800_000 - 10_957, 3_000_000 - 10_957, 2**31 - 1, -(2**31)
    ]  # fmt: skip
    microseconds = pa.array([2**63 - 1, -(2**63) + 1, -70_000_000_000_000_000], pa.timestamp("us"))
    stamps = codec_of(pa.field("a", pa.timestamp("us", "UTC")), TEXT)
    assert [stamps.write(each) for each in stamps.values(microseconds.cast(pa.timestamp("us", "UTC")))][:2] == [
        b"infinity",
        b"-infinity",
    ]


def test_arrays_of_lists_of_different_lengths_have_no_binary_format() -> None:
    kind = pa.list_(pa.list_(pa.int32()))
    codec = codec_of(pa.field("a", kind), BINARY)
    assert value_of(codec.write([[1, 2], [3, None]]), TYPES["int4"].array, BINARY) == [[1, 2], [3, None]]
    for ragged in ([[1], [1, 2]], [[1], None], [None, [1]]):
        with pytest.raises(SqlError, match="different lengths") as found:
            codec.write(ragged)
        assert found.value.sqlstate == "2202E"


def test_metadata_names_a_type_of_its_family() -> None:
    def described(name: bytes, kind: pa.DataType) -> Any:
        return describe(pa.field("a", kind, metadata={TYPE_KEY: name}))

    assert described(b"oid", pa.int64()).oid == 26
    assert described(b"uuid", pa.string()).oid == 2950
    assert described(b"json", pa.list_(pa.string())).oid == 199
    assert described(b"no such type", pa.int32()).oid == 23
    assert (described(b"int2vector", pa.list_(pa.int16())).oid, described(b"name", pa.string()).size) == (22, 64)
    codec = codec_of(pa.field("a", pa.string(), metadata={TYPE_KEY: b"uuid"}), BINARY)
    identity = UUID(int=5)
    assert codec.write(str(identity)) == identity.bytes
    assert codec_of(pa.field("a", pa.list_(pa.int16()), metadata={TYPE_KEY: b"int2vector"}), TEXT).write([1, 2]) == b"1 2"
    assert codec_of(pa.field("a", pa.int64(), metadata={TYPE_KEY: b"oid"}), BINARY).write(3_000_000_000) == struct.pack(
        ">I", 3_000_000_000
    )


def test_few_and_many_rows_are_the_same_bytes() -> None:
    columns: dict[str, Any] = {
        "i": pa.array([1, None, 3] * 50),
        "s": pa.array(["a", None, "ccc"] * 50),
        "n": pa.nulls(150),
        "f": pa.array([0.5] * 150),
    }
    batch = pa.record_batch(columns)
    for formats in ((), (BINARY,), (TEXT, BINARY, TEXT, BINARY)):
        writer = RowWriter(batch.schema, formats)
        many = b"".join(writer.pieces(batch))
        few = b"".join(piece for at in range(0, 150, 10) for piece in writer.pieces(batch.slice(at, 10)))
        assert many == few
    assert b"".join(RowWriter(pa.schema([])).pieces(pa.record_batch([]))) == b""


def test_a_row_has_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "MAX_POSTGRES_ROW_BYTES", 100)
    batch = pa.record_batch({"s": ["x" * 101] * 50})
    for rows in (1, 50):
        with pytest.raises(SqlError, match="a row has more than 100 bytes"):
            list(RowWriter(batch.schema).pieces(batch.slice(0, rows)))


def test_pieces_are_about_a_megabyte() -> None:
    batch = pa.record_batch({"s": ["x" * 1000] * 5000})
    sizes = [len(piece) for piece in RowWriter(batch.schema).pieces(batch)]
    assert len(sizes) >= 5
    assert max(sizes) < 2 << 20


@pytest.mark.parametrize("form", [TEXT, BINARY])
def test_texts_of_char_have_spaces(form: int) -> None:
    field = pa.field("c", pa.string(), metadata={b"barnabas.word": b"char(4)"})
    assert describe(field)[0].name == "bpchar"
    assert describe(field).modifier == 8
    column = pa.array(["ab", None, "é", "abcd"])
    codec = codec_of(field, form)
    assert fields_of(codec, column).to_pylist() == [b"ab  ", None, "é   ".encode(), b"abcd"]
    assert [None if each is None else codec.write(each) for each in column.to_pylist()] == fields_of(codec, column).to_pylist()


@pytest.mark.parametrize(
    ("word", "kind", "oid", "modifier"),
    [
        ("varchar", pa.string(), 1043, -1), ("varchar(3)", pa.string(), 1043, 7), ("timestamp_ntz(0)", pa.timestamp("us"), 1114, 0),
        ("timestamptz(3)", pa.timestamp("us", "UTC"), 1184, 3), ("time(2)", pa.time64("us"), 1083, 2),
    ],
)  # fmt: skip
def test_types_with_sizes_have_modifiers(word: str, kind: Any, oid: int, modifier: int) -> None:
    found = describe(pa.field("c", kind, metadata={b"barnabas.word": word.encode()}))
    assert (found.oid, found.modifier) == (oid, modifier)
