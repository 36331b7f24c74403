"""Message sets to batches and back: what has room in the old formats comes back as it was."""

from __future__ import annotations

from zlib import crc32

import cramjam
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from barnabas import limits
from barnabas.config.topic import TopicConfig
from barnabas.errors import ErrorCode, KafkaError
from barnabas.protocol.records.batch import Compression, Record, build_batch, iterate_records, read_header
from barnabas.protocol.records.compression import compress, decompress
from barnabas.protocol.records.message_sets.down_conversion import message_set_of
from barnabas.protocol.records.message_sets.lz4_frames import with_old_checksum, with_right_checksum
from barnabas.protocol.records.message_sets.message_codec import Message, read_messages, write_message
from barnabas.protocol.records.message_sets.up_conversion import batch_of
from barnabas.protocol.records.record import assemble
from barnabas.protocol.records.varint import varint
from tests.differential.older_formats.sets import message, message_set, taken_apart, wrapped

T = 1_700_000_000_000
CONFIG = TopicConfig()
OLD_CODECS = (Compression.NONE, Compression.GZIP, Compression.SNAPPY, Compression.LZ4)
fields = st.none() | st.binary(max_size=40)
times = st.integers(-1, 2**62)
written = st.lists(st.tuples(fields, fields, times), min_size=1, max_size=30)


def old_set(magic: int, codec: int, items: list[tuple[bytes | None, bytes | None, int]]) -> bytes:
    inner = b"".join(message(magic, key, value, offset=at, time=time) for at, (key, value, time) in enumerate(items))
    return (
        inner
        if codec == Compression.NONE
        else wrapped(codec, magic, inner, offset=len(items) - 1, time=max(t for *_, t in items))
    )


def record_bytes(record: Record, base_offset: int, base_time: int) -> bytes:
    """A record with a key and a value, at its own offset."""
    assert record.key is not None
    assert record.value is not None
    body = b"\0" + varint(record.timestamp - base_time) + varint(record.offset - base_offset)
    body += varint(len(record.key)) + record.key + varint(len(record.value)) + record.value + b"\0"
    return varint(len(body)) + body


def unwrapped(found: list[Message]) -> list[Message]:
    """The messages that a client sees, at the offsets that it works out."""
    seen = []
    for each in found:
        if not each.compression:
            seen.append(each)
            continue
        assert each.value is not None
        data = with_right_checksum(each.value) if each.compression == Compression.LZ4 and not each.magic else each.value
        inner = read_messages(decompress(each.compression, data), 1000)
        base = each.offset - inner[-1].offset if each.magic else 0
        seen += [one._replace(offset=one.offset + base) for one in inner]
    return seen


@settings(max_examples=150, deadline=None)
@given(written, st.sampled_from((0, 1)), st.sampled_from((0, 1)), st.sampled_from(OLD_CODECS), st.integers(0, 2**40))
def test_what_is_produced_is_fetched(
    items: list[tuple[bytes | None, bytes | None, int]], produced: int, fetched: int, codec: Compression, base: int
) -> None:
    batch = batch_of(old_set(produced, codec, items), CONFIG)
    assert batch is not None
    header = read_header(batch)
    assert (header.compression, header.records_count, header.last_offset_delta) == (codec, len(items), len(items) - 1)
    stored = assemble(header._replace(base_offset=base), batch[61:])
    seen = unwrapped(read_messages(message_set_of(stored, fetched, base).data, 1000))
    expected = [(base + at, key, value, time if produced and fetched else -1) for at, (key, value, time) in enumerate(items)]
    assert [(each.offset, each.key, each.value, each.timestamp) for each in seen] == expected
    assert {each.magic for each in seen} == {fetched}


@settings(max_examples=100, deadline=None)
@given(written, st.sampled_from((0, 1)), st.sampled_from(OLD_CODECS), st.data())
def test_a_reader_gets_what_lies_at_and_behind_its_offset(
    items: list[tuple[bytes | None, bytes | None, int]], magic: int, codec: Compression, data: st.DataObject
) -> None:
    batches = b"".join(
        build_batch(
            [Record(0, time, key, value, (("h", b"x"),)) for key, value, time in items], compression=codec, base_offset=base
        )
        for base in (100, 100 + len(items))
    )
    offset = data.draw(st.integers(100, 99 + 2 * len(items)))
    converted = message_set_of(batches, magic, offset)
    seen = [each.offset for each in unwrapped(read_messages(converted.data, 1000)) if each.offset >= offset]
    assert seen == list(range(offset, 100 + 2 * len(items)))
    assert not converted.is_empty
    assert converted.next_offset == 100 + 2 * len(items)


def damaged(good: bytes, at: int, byte: int) -> bytes:
    """With one byte changed, and the CRC of the first message right all the same."""
    data = bytearray(good)
    data[at % len(data)] = byte
    size = int.from_bytes(data[8:12], "big")
    data[12:16] = crc32(data[16 : 12 + size]).to_bytes(4, "big")
    return bytes(data)


GOOD = [old_set(magic, codec, [(b"k", b"v", T if magic else -1)] * 3) for magic in (0, 1) for codec in OLD_CODECS]


@settings(max_examples=300, deadline=None)
@given(st.binary(max_size=200) | st.builds(damaged, st.sampled_from(GOOD), st.integers(0, 120), st.integers(0, 255)))
def test_whatever_bytes_come_are_a_batch_or_refused(data: bytes) -> None:
    try:
        batch = batch_of(data, CONFIG)
    except KafkaError:
        return
    if batch is not None and batch[16] == 2 and batch is not data:
        assert len(list(iterate_records(batch))) == read_header(batch).records_count


def test_gaps_of_compaction_stay() -> None:
    for codec in OLD_CODECS:
        whole = build_batch([Record(0, T + at, b"k%d" % at, b"v") for at in range(5)], base_offset=10)
        kept = [record for record in iterate_records(whole) if record.offset in (11, 14)]
        header = read_header(whole)._replace(attributes=int(codec), records_count=len(kept))
        body = b"".join(record_bytes(each, 10, header.base_timestamp) for each in kept)
        batch = assemble(header, compress(codec, body))
        for magic in (0, 1):
            seen = unwrapped(read_messages(message_set_of(batch, magic, 10).data, 1000))
            assert [each.offset for each in seen] == [11, 14]
        header = header._replace(last_offset_delta=9)  # as if compaction had removed the end
        batch = assemble(header, compress(codec, body))
        converted = message_set_of(batch, 1, 16)
        assert converted.is_empty
        assert converted.next_offset == 20


def test_control_batches_and_emptied_ones_are_left_out() -> None:
    marker = build_batch([(bytes(4), bytes(6))], base_offset=5, control=True, transactional=True, producer_id=1, producer_epoch=0)
    emptied = assemble(read_header(marker)._replace(base_offset=6, attributes=0, records_count=0), b"")
    converted = message_set_of(marker + emptied, 1, 5)
    assert (bytes(converted.data), converted.is_empty, converted.next_offset) == (b"", True, 7)


def test_an_allowance_ends_a_set_between_batches() -> None:
    for codec in OLD_CODECS:
        batches = b"".join(build_batch([(b"k", bytes(1000))] * 10, compression=codec, base_offset=base) for base in (0, 10, 20))
        assert message_set_of(batches, 1, 0, allowance=1).next_offset == 10
        assert message_set_of(batches, 1, 0, allowance=20_500).next_offset == 20


def test_a_batch_that_unfolds_to_very_much_waits_or_is_refused() -> None:
    small, much = build_batch([(b"k", b"v")]), bytes(limits.MAX_DECOMPRESSED_BATCH_BYTES + 1)
    bomb = bytes(cramjam.gzip.compress(much, level=1))
    batch = assemble(read_header(small)._replace(attributes=1, base_offset=1), bomb)
    assert message_set_of(small + batch, 1, 0).next_offset == 1
    with pytest.raises(KafkaError) as refused:
        batch_of(message(1, None, bomb, attributes=1), CONFIG)
    assert refused.value.code is ErrorCode.MESSAGE_TOO_LARGE


def test_more_messages_than_a_batch_may_have_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "MAX_BATCH_RECORDS", 10)
    plain = message_set(0, [(None, None)] * 11)
    for records in (plain, wrapped(1, 0, plain)):
        with pytest.raises(KafkaError) as refused:
            batch_of(records, CONFIG)
        assert refused.value.code is ErrorCode.MESSAGE_TOO_LARGE


def test_zstd_is_refused_first_and_ends_a_set_behind_others() -> None:
    plain, zstd = build_batch([(b"k", b"v")]), build_batch([(b"k", b"v")], compression=Compression.ZSTD, base_offset=1)
    assert message_set_of(plain + zstd, 0, 0).next_offset == 1
    with pytest.raises(KafkaError) as refused:
        message_set_of(zstd, 0, 1)
    assert refused.value.code is ErrorCode.UNSUPPORTED_COMPRESSION_TYPE


def test_times_that_no_batch_can_have_are_refused() -> None:
    far = message(1, None, b"v", time=-1) + message(1, None, b"v", time=2**63 - 1)
    with pytest.raises(KafkaError) as refused:
        batch_of(far, CONFIG)
    assert refused.value.code is ErrorCode.INVALID_TIMESTAMP


def test_a_frame_gets_back_the_checksum_that_it_had() -> None:
    frame = compress(Compression.LZ4, b"hello" * 100)  # with LZ4's own checksum
    assert with_right_checksum(with_old_checksum(frame)) == frame
    assert with_right_checksum(frame) == frame
    with_size = b"\x04\x22\x4d\x18\x68\x40" + bytes(8) + b"\0"
    assert with_right_checksum(with_size)[:14] == with_size[:14]
    for broken in (b"", b"x" * 20, frame[:6], with_size[:14]):
        with pytest.raises(KafkaError):
            with_right_checksum(broken)


def test_a_message_is_laid_out_as_kafka_does() -> None:
    for magic in (0, 1):
        out = bytearray()
        write_message(7, magic, 0, T, b"k", None, out)
        assert out == message(magic, b"k", None, offset=7, time=T)
        assert taken_apart(bytes(out)) == [[7, magic, 0, T if magic else None, "k", None]]
