"""Few records in plain Python equal those of the kernels."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.client.batches import next_offset
from barnabas.columnar.decode import RecordDecoder
from barnabas.columnar.few_records import MOST_RECORDS, few_records
from barnabas.protocol.records import kernels
from barnabas.protocol.records.compression import Compression
from barnabas.protocol.records.record import Record, build_batch
from barnabas.sql.live.canonical import are_canonical
from barnabas.sql.live.rows import LivePartition, LiveRows, _is_canonical
from barnabas.tables.formats import Raw
from barnabas.tables.scalar_format import ScalarFormat

assert kernels.OK == 0  # loaded: a decoder uses them

FORMATS = (
    ScalarFormat(pa.field("id", pa.int64())),
    ScalarFormat(pa.field("id", pa.int16())),
    ScalarFormat(pa.field("id", pa.string())),
    Raw("key", pa.binary()),
    Raw("key", pa.string()),
    ScalarFormat(pa.field("id", pa.float64())),
)
PAYLOADS = st.none() | st.binary(max_size=20)
RECORDS = st.lists(st.tuples(PAYLOADS, PAYLOADS, st.integers(0, 10**13)), min_size=1, max_size=6)


def batch(base: int, records: list[tuple[bytes | None, bytes | None, int]], **options: Any) -> bytes:
    made = [Record(base + place, time, key, value) for place, (key, value, time) in enumerate(records)]
    return bytes(build_batch(made, base_offset=base, **options))


@given(batches=st.lists(RECORDS, min_size=1, max_size=4), start=st.integers(0, 8), cut=st.integers(0, 80))
def test_they_are_those_of_the_kernels(batches: list[Any], start: int, cut: int) -> None:
    data, base = b"", 0
    for each in batches:
        data += batch(base, each)
        base += len(each)
    data = data[: len(data) - cut] if cut < 61 else data
    few = few_records(data, start)
    assert few is not None
    found = [row for each in RecordDecoder("t", 0).decode(data, start) for row in each.to_pylist()]
    assert [row["key"] for row in found] == few.keys
    assert [row["value"] for row in found] == few.values
    assert [row["offset"] for row in found] == few.offsets
    assert [round(row["timestamp"].timestamp() * 1_000_000) for row in found] == few.times
    assert few.end == max(start, next_offset(data, start))


@given(keys=st.lists(st.one_of(PAYLOADS, st.integers(-(2**65), 2**65).map(lambda each: str(each).encode())), max_size=4))
def test_canonical_keys_are_those_that_the_format_writes(keys: list[bytes | None]) -> None:
    for layout in FORMATS:
        known = are_canonical(layout, keys)
        if known is not None:
            assert known
            assert _is_canonical(layout, pa.array(keys, pa.binary())) == known
    assert are_canonical(FORMATS[0], [b"1", None, b"-7", b"0"])
    assert are_canonical(FORMATS[0], [b"01"]) is are_canonical(FORMATS[0], [b"-0"]) is None
    assert are_canonical(FORMATS[5], [b"1.5"]) is None


@pytest.mark.parametrize(
    "data",
    [
        batch(0, [(b"k", b"v", 1)], compression=Compression.GZIP),
        batch(0, [(b"k", b"v", 1)] * (MOST_RECORDS + 1)),
        batch(0, [(b"k", b"v" * 10_000, 1)]),
        batch(0, [(b"k", b"v", 2**60)]),
        batch(0, [(b"k", b"v", 1)])[:-1] + b"\1",
    ],
)
def test_unusual_ones_are_left_to_the_kernels(data: bytes) -> None:
    assert few_records(data, 0) is None


@given(batches=st.lists(RECORDS, min_size=1, max_size=4), start=st.integers(0, 8), end=st.integers(0, 20))
def test_a_decoder_without_kernels_gives_the_same(batches: list[Any], start: int, end: int) -> None:
    data, base = b"", 0
    for each in batches:
        data += batch(base, each)
        base += len(each)
    plain, by_kernels = RecordDecoder("t", 3), RecordDecoder("t", 3)
    found = plain._few(data, start, end)
    assert found is not None
    assert found == list(by_kernels.decode(data, start, end))
    assert plain._few(data[:-1] + b"\xff", start, end) is None


def test_rows_take_few_records_as_they_take_many() -> None:
    records = [(b"1", b"a", 5), (None, b"b", 6), (b"2", b"c", 7), (b"1", None, 8), (b"3", b"d", 9)]
    data = batch(0, records)
    few, many = LiveRows(FORMATS[0]), LiveRows(FORMATS[0])
    for each in (few, many):
        each.partitions[0] = LivePartition()
    found = few_records(data, 0)
    assert found is not None
    few.take_few(0, found)
    for made in RecordDecoder("t", 0).decode(data):
        many.take(0, made)
    assert few.partitions[0].rows == many.partitions[0].rows
    assert (few.size, few.is_canonical) == (many.size, many.is_canonical)
    other = few_records(batch(5, [(b"1.0", b"x", 1)]), 5)
    assert other is not None
    few.take_few(0, other)
    assert not few.is_canonical
