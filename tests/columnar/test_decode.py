"""The decoder against batches made by another implementation, a naive model beside it, and bytes that are no batches."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from datetime import datetime
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from barnabas.columnar.batches import CorruptBatch, batch_table
from barnabas.columnar.codecs import OutputBuffer
from barnabas.columnar.decode import SCHEMA, SCHEMA_WITH_HEADERS, BadTimestamp, RecordDecoder
from barnabas.protocol.records import kernels
from tests.pipelines.batches import GZIP, LZ4, NONE, SNAPPY, ZSTD, Header, batch, marker, seal

APPEND_TIME, TRANSACTIONAL = 0x08, 0x10
small = st.none() | st.binary(max_size=200)
header_lists = st.lists(st.tuples(st.text(max_size=10), st.none() | st.binary(max_size=10)), max_size=4)


def rows(data: bytes, *arguments: Any, include_headers: bool = False, piece_bytes: int = 1 << 20) -> list[dict[str, Any]]:
    decoder = RecordDecoder("topic", 3, include_headers=include_headers, piece_bytes=piece_bytes)
    found = []
    for piece in decoder.decode(data, *arguments):
        piece.validate(full=True)
        assert piece.schema == (SCHEMA_WITH_HEADERS if include_headers else SCHEMA)
        found += piece.to_pylist()
    return found


def offsets(data: bytes, *arguments: Any) -> list[int]:
    return [row["offset"] for row in rows(data, *arguments)]


def milliseconds(row: dict[str, Any]) -> int:
    at: datetime = row["timestamp"]
    return round(at.timestamp() * 1000)


@settings(max_examples=60, deadline=None)
@given(
    st.lists(
        st.tuples(st.sampled_from([NONE, GZIP, SNAPPY, LZ4, ZSTD]), st.lists(st.tuples(small, small), min_size=1, max_size=20))
    ),
    st.integers(0, 60),
    st.integers(0, 60),
    st.sampled_from([1, 100, 1 << 20]),
)
def test_what_went_in_comes_out(
    batches: list[tuple[int, list[tuple[bytes | None, bytes | None]]]], start: int, end: int, piece_bytes: int
) -> None:
    data, expected, base = b"", [], 0
    for codec, records in batches:
        data += batch(base, records, codec=codec, first_timestamp=base)
        expected += [(base + i, key, value) for i, (key, value) in enumerate(records) if start <= base + i < end]
        base += len(records)
    found = rows(data, start, end, piece_bytes=piece_bytes)
    assert [(row["offset"], row["key"], row["value"]) for row in found] == expected
    assert all(row["topic"] == "topic" and row["partition"] == 3 and row["timestampType"] == 0 for row in found)
    assert [milliseconds(row) for row in found] == [offset for offset, _, _ in expected]


@settings(max_examples=60, deadline=None)
@given(st.lists(header_lists, min_size=1, max_size=12), st.integers(0, 12), st.sampled_from([NONE, ZSTD]))
def test_headers(lists: list[list[Header]], start: int, codec: int) -> None:
    data = batch(0, [(b"k", b"v")] * len(lists), headers=lists, codec=codec)
    found = rows(data, start, include_headers=True)
    expected: list[Any] = [[{"key": k, "value": v} for k, v in item] or None for item in lists[start:]]
    assert [row["headers"] for row in found] == expected


def test_keys_of_headers_that_are_no_utf8_have_replacement_characters() -> None:
    data = bytearray(batch(0, [(b"k", b"v")] * 2, headers=[[("bad key", b"x")], [("good é", b"y")]]))
    at = data.index(b"bad key")
    data[at : at + 3] = b"\xff\x80d"
    first, second = rows(seal(data), include_headers=True)
    assert first["headers"] == [{"key": "\ufffd\ufffdd key", "value": b"x"}]
    assert second["headers"] == [{"key": "good é", "value": b"y"}]


def test_a_batch_that_is_cut_short_is_left_for_later() -> None:
    data = batch(0, [(None, b"a")] * 3) + batch(3, [(None, b"b")] * 3)
    assert offsets(data[:-1]) == [0, 1, 2]
    assert offsets(data[:20]) == []
    assert offsets(b"") == []


def test_the_time_of_the_log_replaces_that_of_the_producer() -> None:
    found = rows(batch(0, [(None, b"a")] * 2, attributes=APPEND_TIME, max_timestamp=5_000))
    assert [(milliseconds(row), row["timestampType"]) for row in found] == [(5_000, 1)] * 2


def test_a_time_that_microseconds_cannot_hold_is_told_with_its_record() -> None:
    """As where a producer gives nanoseconds for milliseconds. Multiplied without a look they are some other time."""
    most = kernels.MOST_MILLISECONDS
    decoder = RecordDecoder("topic", 3)
    (fits,) = decoder.decode(
        batch(0, [(None, b"a")] * 2, first_timestamp=most - 1) + batch(2, [(None, b"b")], first_timestamp=-most)
    )
    assert pc.cast(fits["timestamp"], pa.int64()).to_pylist() == [(most - 1) * 1000, most * 1000, -most * 1000]
    wrong = batch(5, [(None, b"a")] * 3, first_timestamp=most - 1)
    with pytest.raises(BadTimestamp, match=f"topic-3: the record at offset 7 has the timestamp {most + 1}, which overflows"):
        rows(wrong)
    (asked,) = decoder.decode(wrong, 0, 7)
    assert asked.num_rows == 2, "the third is not asked for"
    for late in (
        batch(0, [(None, b"a")], attributes=APPEND_TIME, max_timestamp=2**63 - 1),
        batch(0, [(None, b"a")], first_timestamp=-most - 1),
    ):
        with pytest.raises(BadTimestamp, match="the record at offset 0 "):
            rows(late)


def test_control_batches_give_no_rows() -> None:
    data = (
        batch(0, [(None, b"a")] * 2, attributes=TRANSACTIONAL, producer_id=5)
        + marker(2, 5, commit=False)
        + batch(3, [(None, b"b")])
    )
    assert offsets(data) == [0, 1, 3]


def test_aborted_transactions_are_left_out_for_a_committed_reader() -> None:
    data = b"".join(
        [
            batch(0, [(None, b"aborted")] * 2, attributes=TRANSACTIONAL, producer_id=5),
            batch(2, [(None, b"other")], attributes=TRANSACTIONAL, producer_id=6),
            batch(3, [(None, b"plain")]),
            marker(4, 5, commit=False),
            marker(5, 6, commit=True),
            batch(6, [(None, b"again")], attributes=TRANSACTIONAL, producer_id=5),
            marker(7, 5, commit=True),
            batch(8, [(None, b"aborted")], attributes=TRANSACTIONAL, producer_id=6),
            marker(9, 6, commit=False),
        ]
    )
    assert offsets(data, 0, 100, [(6, 8), (5, 0)]) == [2, 3, 6]


def test_a_wrong_checksum_is_named() -> None:
    data = bytearray(batch(7, [(b"k", b"v")] * 3))
    data[-1] ^= 1
    with pytest.raises(CorruptBatch, match="topic-3: the batch at offset 7 is corrupt: its checksum is wrong"):
        rows(bytes(data))
    unchecked = RecordDecoder("topic", 3, check_crc=False).decode(bytes(data))
    assert sum(piece.num_rows for piece in unchecked) == 3


def test_an_older_format_is_named() -> None:
    data = bytearray(batch(0, [(b"k", b"v")]))
    data[16] = 1
    with pytest.raises(CorruptBatch, match="format 1, only version 2 is supported"):
        rows(bytes(data))


@pytest.mark.parametrize("count", [-1, 3, 2**31 - 1])
def test_a_count_that_the_bytes_cannot_hold_takes_no_memory(count: int) -> None:
    data = bytearray(batch(0, [(b"", b"")]))
    struct.pack_into(">i", data, 57, count)
    with pytest.raises(CorruptBatch, match="records in"):
        rows(seal(data))


def test_compressed_bytes_that_are_none() -> None:
    for codec in (GZIP, SNAPPY, LZ4, ZSTD, 6):
        data = bytearray(batch(0, [(b"key", b"value")] * 3))
        data[22] = codec
        with pytest.raises(CorruptBatch, match="the batch at offset 0 is corrupt"):
            rows(seal(data))


def test_both_shapes_of_snappy() -> None:
    import cramjam

    text = b"some text " * 100
    bare = bytes(cramjam.snappy.compress_raw(text))
    framed = b"\x82SNAPPY\0" + struct.pack(">ii", 1, 1) + struct.pack(">i", len(bare)) + bare
    room = OutputBuffer(16)
    assert room.append(SNAPPY, bare)
    assert not room.append(SNAPPY, framed), "the room is full, and what is in it must stay"
    assert bytes(room.data) == text
    room.clear()
    assert room.append(SNAPPY, framed)
    assert bytes(room.data) == text
    with pytest.raises(ValueError, match="snappy: a block of"):
        OutputBuffer(16).append(SNAPPY, framed[:-5])


@pytest.mark.parametrize("codec", [GZIP, SNAPPY, LZ4, ZSTD])
def test_a_batch_that_unfolds_to_too_much_is_refused(codec: int) -> None:
    data = batch(0, [(None, bytes(3_000_000))], codec=codec)
    assert len(data) < 200_000
    bounded = RecordDecoder("topic", 3, max_batch_bytes=2_000_000)
    with pytest.raises(CorruptBatch, match="it has more than 2000000 bytes after decompression"):
        list(bounded.decode(data))
    (piece,) = RecordDecoder("topic", 3, piece_bytes=10).decode(data)
    assert piece.num_rows == 1


@settings(max_examples=300, deadline=None)
@given(
    st.lists(st.tuples(small, small), min_size=1, max_size=4),
    st.lists(st.tuples(st.integers(61, 400), st.integers(0, 255)), max_size=4),
)
def test_broken_records_never_leave_the_kernel(
    records: Sequence[tuple[bytes | None, bytes | None]], damage: list[tuple[int, int]]
) -> None:
    data = bytearray(batch(0, records, headers=[[("h", b"x")]] * len(records)))
    for position, byte in damage:
        if position < len(data):
            data[position] = byte
    decoder = RecordDecoder("topic", 3, include_headers=True)
    try:
        for piece in decoder.decode(seal(data)):
            assert piece.num_rows <= len(records)
            for column in ("key", "value"):
                assert piece.column(column).cast(pa.binary()).nbytes <= 4 * len(data) + 1024
    except CorruptBatch:
        pass


@settings(max_examples=200, deadline=None)
@given(st.binary(max_size=300))
def test_any_bytes_are_scanned(data: bytes) -> None:
    table = batch_table(data)
    sizes = table[:, kernels.SIZE]
    assert (sizes >= 61).all()
    assert sizes.sum() <= len(data)


def test_the_table_of_headers() -> None:
    (row,) = batch_table(batch(9, [(b"k", b"v")] * 4, producer_id=77, attributes=TRANSACTIONAL)).tolist()
    assert row[kernels.BASE_OFFSET] == 9
    assert (row[kernels.PRODUCER_ID], row[kernels.COUNT], row[kernels.LAST_DELTA], row[kernels.MAGIC]) == (77, 4, 3, 2)
    assert (row[kernels.BASE_TIME], row[kernels.MAX_TIME], row[kernels.ATTRIBUTES]) == (1_000, 1_003, TRANSACTIONAL)
