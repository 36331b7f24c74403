"""Record batches: round trips in all codecs, against two other implementations, and what is refused."""

from __future__ import annotations

import struct

import cramjam
import pytest
from aiokafka.record.default_records import DefaultRecordBatch, DefaultRecordBatchBuilder
from crc32c import crc32c
from hypothesis import given
from hypothesis import strategies as st
from kio.records.readers import read_batch

from barnabas import limits
from barnabas.errors import ErrorCode, KafkaError
from barnabas.protocol.records import compression as codecs
from barnabas.protocol.records.batch import (
    HEADER_SIZE,
    Compression,
    Record,
    build_batch,
    build_pairs,
    compress,
    decompress,
    iterate_records,
    read_header,
    split_batches,
)
from barnabas.protocol.records.varint import MalformedVarint, read_varint, read_varlong, varint

NOW = 1_700_000_000_000

fields = st.none() | st.binary(max_size=300)
headers = st.lists(st.tuples(st.text(max_size=8), st.none() | st.binary(max_size=20)), max_size=3).map(tuple)
timestamps = st.integers(0, NOW * 2)


@st.composite
def record_lists(draw: st.DrawFn, *, min_size: int = 1) -> list[Record]:
    items = draw(st.lists(st.tuples(timestamps, fields, fields, headers), min_size=min_size, max_size=80))
    base = draw(st.integers(0, 2**40))
    return [Record(base + index, *item) for index, item in enumerate(items)]


@given(
    pairs=st.lists(st.tuples(fields, fields), min_size=1, max_size=80),
    timestamp=timestamps,
    producer=st.tuples(st.integers(-1, 2**63 - 1), st.integers(-1, 2**15 - 1)),
    transactional=st.booleans(),
    control=st.booleans(),
)
def test_pairs_are_built_as_any_batch_of_them(
    pairs: list[tuple[bytes | None, bytes | None]], timestamp: int, producer: tuple[int, int], transactional: bool, control: bool
) -> None:
    producer_id, epoch = producer
    built = build_pairs(pairs, timestamp, producer_id, epoch, transactional=transactional, control=control)
    assert built.header == read_header(built.data)
    assert built.data == build_batch(
        pairs,
        timestamp_ms=timestamp,
        producer_id=producer_id,
        producer_epoch=epoch,
        transactional=transactional,
        control=control,
    )


@given(records=record_lists(), codec=st.sampled_from(Compression))
def test_what_is_built_is_read_back(records: list[Record], codec: Compression) -> None:
    batch = build_batch(
        records, base_offset=records[0].offset, compression=codec, producer_id=7, producer_epoch=1, base_sequence=3
    )
    ((position, header),) = split_batches(batch)
    assert (position, header.size, header.records_count) == (0, len(batch), len(records))
    assert header.compression == codec
    assert header.max_timestamp == max(record.timestamp for record in records)
    assert (header.last_offset, header.last_sequence) == (records[-1].offset, 2 + len(records))
    assert list(iterate_records(batch)) == records


@given(records=record_lists(), codec=st.sampled_from(Compression))
def test_aiokafka_reads_what_is_built(records: list[Record], codec: Compression) -> None:
    batch = DefaultRecordBatch(build_batch(records, base_offset=5, compression=codec))
    assert batch.validate_crc()
    assert [(r.timestamp, r.key, r.value, tuple(r.headers)) for r in batch] == [record[1:] for record in records]


@given(records=record_lists(), codec=st.sampled_from(Compression))
def test_what_aiokafka_builds_is_read(records: list[Record], codec: Compression) -> None:
    builder = DefaultRecordBatchBuilder(
        magic=2,
        compression_type=codec,
        is_transactional=False,
        producer_id=-1,
        producer_epoch=-1,
        base_sequence=-1,
        batch_size=2**20,
    )
    for index, record in enumerate(records):
        builder.append(index, record.timestamp, record.key, record.value, list(record.headers))
    batch = bytes(builder.build())
    header = read_header(batch)
    assert header.crc == crc32c(batch[21:])
    assert list(iterate_records(batch)) == [record._replace(offset=index) for index, record in enumerate(records)]


@given(data=st.binary(max_size=200_000), codec=st.sampled_from(Compression))
def test_codecs_give_back_what_they_got(data: bytes, codec: Compression) -> None:
    assert decompress(codec, compress(codec, data)) == data


@pytest.mark.parametrize("codec", [Compression.GZIP, Compression.SNAPPY, Compression.LZ4, Compression.ZSTD])
def test_a_bomb_is_refused(codec: Compression) -> None:
    bomb = compress(codec, bytes(1_000_000))
    with pytest.raises(KafkaError) as refused:
        decompress(codec, bomb, limit=999_999)
    assert refused.value.code == ErrorCode.MESSAGE_TOO_LARGE
    assert len(decompress(codec, bomb, limit=1_000_000)) == 1_000_000
    assert limits.MAX_DECOMPRESSED_BATCH_BYTES > 2**20


@given(data=st.binary(min_size=1, max_size=100), codec=st.sampled_from([Compression.GZIP, Compression.LZ4, Compression.ZSTD]))
def test_bytes_of_no_codec_are_refused(data: bytes, codec: Compression) -> None:
    with pytest.raises(KafkaError) as refused:
        decompress(codec, b"\xff" + data)
    assert refused.value.code == ErrorCode.INVALID_RECORD


def test_an_unknown_codec_is_refused() -> None:
    with pytest.raises(KafkaError) as refused:
        decompress(5, b"abc")
    assert refused.value.code == ErrorCode.UNSUPPORTED_COMPRESSION_TYPE


def test_snappy_is_read_plain_and_in_javas_framing() -> None:
    data = b"twice" * 20_000
    framed = compress(Compression.SNAPPY, data)
    assert framed.startswith(codecs.SNAPPY_MAGIC)
    assert decompress(Compression.SNAPPY, framed) == data
    assert decompress(Compression.SNAPPY, bytes(cramjam.snappy.compress_raw(data))) == data


@pytest.mark.parametrize("cut", [1, 3, 10])
def test_cut_snappy_frames_are_refused(cut: int) -> None:
    framed = compress(Compression.SNAPPY, b"x" * 100)
    with pytest.raises(KafkaError) as refused:
        decompress(Compression.SNAPPY, framed[:-cut])
    assert refused.value.code == ErrorCode.INVALID_RECORD


def test_lz4_blocks_are_independent_as_java_demands() -> None:
    frame = compress(Compression.LZ4, b"abc" * 100_000)
    assert frame[:4] == bytes.fromhex("04224d18")
    assert frame[4] & 0x20


@given(value=st.integers(-(2**31), 2**31 - 1))
def test_varints_round_trip(value: int) -> None:
    data = varint(value)
    assert read_varint(data, 0) == (value, len(data))
    assert len(data) <= 5


@given(value=st.integers(-(2**63), 2**63 - 1))
def test_varlongs_round_trip(value: int) -> None:
    assert read_varlong(varint(value), 0) == (value, len(varint(value)))


@pytest.mark.parametrize("data", [b"", b"\x80", b"\x80\x80\x80\x80\x80\x80"])
def test_bad_varints_are_refused(data: bytes) -> None:
    with pytest.raises(MalformedVarint):
        read_varint(data, 0)


@given(records=record_lists())
def test_kio_reads_what_is_built(records: list[Record]) -> None:
    parsed, size = read_batch(memoryview(build_batch(records, base_offset=4)), 0)
    assert [(record.key, record.value) for record in parsed.records] == [(record.key, record.value) for record in records]
    assert size == len(build_batch(records, base_offset=4))


def test_split_walks_batches_and_refuses_what_is_cut() -> None:
    first, second = build_batch([(b"k", b"v")]), build_batch([(None, b"w"), (None, None)], base_offset=1)
    assert [position for position, _ in split_batches(first + second)] == [0, len(first)]
    for cut in range(1, len(second)):
        with pytest.raises(KafkaError) as refused:
            split_batches((first + second)[:-cut])
        assert refused.value.code == ErrorCode.CORRUPT_MESSAGE
        assert len(split_batches((first + second)[:-cut], allow_partial=True)) == 1


@pytest.mark.parametrize(("magic", "code"), [(0, 43), (1, 43), (3, 2), (255, 2)])
def test_other_formats_are_refused(magic: int, code: int) -> None:
    batch = bytearray(build_batch([(b"k", b"v")]))
    batch[16] = magic
    with pytest.raises(KafkaError) as refused:
        split_batches(batch)
    assert refused.value.code == code


@pytest.mark.parametrize("length", [-1, 0, 48])
def test_a_length_below_the_header_is_refused(length: int) -> None:
    batch = bytearray(build_batch([(b"k", b"v")]))
    struct.pack_into(">i", batch, 8, length)
    with pytest.raises(KafkaError):
        split_batches(batch)
    with pytest.raises(KafkaError):
        list(iterate_records(batch))
    assert len(batch) > HEADER_SIZE
