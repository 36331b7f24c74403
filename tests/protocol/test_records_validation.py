"""The batches that a leader accepts and refuses; the fast check never accepts a batch that the slow one refuses."""

from __future__ import annotations

import struct
import sys
import zlib
from contextlib import suppress
from pathlib import Path
from types import ModuleType

import pytest
from crc32c import crc32c
from hypothesis import example, given
from hypothesis import strategies as st
from msgspec.structs import replace

from barnabas import limits
from barnabas.config.topic import TopicConfig
from barnabas.errors import ErrorCode, InvalidRecordError, KafkaError
from barnabas.protocol.records import request_scan as walk_module
from barnabas.protocol.records.batch import (
    HEADER_SIZE,
    AppendOrigin,
    BatchHeader,
    Compression,
    Record,
    ValidatedBatch,
    build_batch,
    iterate_records,
    read_header,
    validate_batch,
)
from barnabas.protocol.records.batch_header import HEADER, only_batch
from barnabas.protocol.records.record import assemble, read_record
from barnabas.protocol.records.scan import Scan, compiled_scan, scan_interpreted, scan_records, walker

NOW = 1_700_000_000_000
CONFIG = TopicConfig()
COMPACTED = TopicConfig(cleanup_policy=frozenset({"compact"}))


def check(batch: bytes, config: TopicConfig = CONFIG, origin: AppendOrigin = AppendOrigin.CLIENT) -> ValidatedBatch:
    return validate_batch(batch, read_header(batch), config=config, now_ms=NOW, origin=origin)


def refusal(batch: bytes, config: TopicConfig = CONFIG) -> KafkaError:
    with pytest.raises(KafkaError) as refused:
        check(batch, config)
    return refused.value


def with_header(batch: bytes, **changes: int) -> bytes:
    """The batch with header fields changed and the CRC made right."""
    return assemble(read_header(batch)._replace(**changes), batch[HEADER_SIZE:])


def batch_of(*values: bytes | None, key: bytes | None = b"k", step_ms: int = 0, codec: int = 0) -> bytes:
    return build_batch([Record(0, NOW + index * step_ms, key, value) for index, value in enumerate(values)], compression=codec)


def slow_scan(data: bytes, count: int) -> Scan | None:
    """The naive model of `scan_records`."""
    header = BatchHeader(0, 0, 0, 2, 0, 0, count - 1, 0, 0, -1, -1, -1, count)
    position, records = 0, []
    try:
        for index in range(count):
            record, position = read_record(data, position, header, index)
            if record.offset != index:
                return None
            records.append(record)
    except KafkaError:
        return None
    if position != len(data):
        return None
    deltas = [0, *(record.timestamp for record in records)]
    return Scan(min(deltas), max(deltas), any(record.key is None for record in records))


@st.composite
def bodies(draw: st.DrawFn) -> tuple[bytearray, int]:
    """Records of runs of equal sizes and of odd ones between them, as the fast check meets them."""
    records: list[Record] = []
    for _ in range(draw(st.integers(1, 4))):
        count, step = draw(st.integers(1, 90)), draw(st.sampled_from([0, 0, 1, 3, 40, 200]))
        key = draw(st.none() | st.binary(max_size=3))
        value = draw(st.none() | st.binary(max_size=150))
        headers = draw(st.sampled_from([(), (), (("h", b"v"),), (("h", None), ("", b""))]))
        start = draw(st.integers(0, 500))
        records += [Record(0, start + index * step, key, value, headers) for index in range(count)]
    return bytearray(build_batch([Record(0, 0, b"", b"first"), *records])[HEADER_SIZE:]), len(records) + 1


@st.composite
def varied_bodies(draw: st.DrawFn) -> tuple[bytearray, int]:
    """Records whose sizes differ from one to the next, with some among them that bulk checks do not cover."""
    random = draw(st.randoms(use_true_random=False))
    count = draw(st.integers(1, 300))
    longest = draw(st.sampled_from([10, 75, 300]))
    longest_key = draw(st.sampled_from([None, 0, 20, 80]))
    step, odd_ones = draw(st.sampled_from([-3, 0, 1, 70])), draw(st.sampled_from([0.0, 0.0, 0.03, 0.5]))
    records = []
    for index in range(count):
        key = None if longest_key is None else random.randbytes(random.randint(0, longest_key))
        value = random.randbytes(random.randint(0, longest))
        record = Record(0, 50_000 + index * step, key, value)
        if random.random() < odd_ones:
            changes = ({"key": None}, {"value": None}, {"headers": (("h", b"v"),)}, {"timestamp": 3}, {"value": b"x" * 9000})
            record = record._replace(**random.choice(changes))
        records.append(record)
    base = Record(0, draw(st.sampled_from([0, 50_000])), b"", b"first")
    return bytearray(build_batch([base, *records])[HEADER_SIZE:]), count + 1


def walk(data: bytearray | bytes, count: int) -> Scan | None:
    """`walk_records`, interpreted."""
    found = walk_module.walk_records(data, count)
    return None if found is None else Scan(*found)


CHECKS = [scan_interpreted, walk, scan_records]


def test_machine_code_of_another_text_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("BARNABAS_WITHOUT_C", raising=False)
    stale = ModuleType("_request_scan")
    vars(stale).update(SOURCE_CHECKSUM=1, walk_records=walk)
    monkeypatch.setitem(sys.modules, "barnabas.protocol.records._request_scan", stale)
    assert compiled_scan() is None
    source = Path(walk_module.__file__).with_name("_request_scan.c").read_bytes()
    vars(stale).update(SOURCE_CHECKSUM=zlib.crc32(source))
    assert compiled_scan() is stale
    monkeypatch.setenv("BARNABAS_WITHOUT_C", "1")
    assert compiled_scan() is None


@given(body=bodies() | varied_bodies())
def test_good_records_pass_the_fast_check(body: tuple[bytearray, int]) -> None:
    data, count = body
    expected = slow_scan(bytes(data), count)
    assert expected is not None
    for check_records in CHECKS:
        assert check_records(data, count) == expected
        assert check_records(data, count + 1) is None
        assert check_records(data, count - 1) is None


@given(
    body=bodies() | varied_bodies(),
    changes=st.lists(st.tuples(st.integers(0, 2**16), st.integers(0, 255)), min_size=1, max_size=3),
)
def test_the_fast_check_accepts_nothing_that_the_slow_one_refuses(
    body: tuple[bytearray, int], changes: list[tuple[int, int]]
) -> None:
    data, count = body
    for at, byte in changes:
        data[at % len(data)] = byte
    for check_records in CHECKS:
        found = check_records(data, count)
        if found is not None:
            assert found == slow_scan(bytes(data), count)


@given(data=st.binary(max_size=60), count=st.integers(1, 5))
@example(data=b"\x0c\x00\x00\x00\x00\x00\x00", count=1)
def test_arbitrary_bytes_pass_both_checks_or_none(data: bytes, count: int) -> None:
    for check_records in CHECKS:
        found = check_records(data, count)
        if found is not None:
            assert found == slow_scan(data, count)


@given(data=st.binary(max_size=40), size=st.integers(0, 40), count=st.integers(-1, 3))
def test_machine_code_says_what_the_interpreted_text_says(data: bytes, size: int, count: int) -> None:
    record = bytes((size << 1,)) + data
    for body in (record, memoryview(bytearray(record))[1:], record + b"\x0c\x00\x00\x02\x00\x00\x00"):
        assert walker.walk_records(body, count) == walk_module.walk_records(body, count)


@pytest.mark.parametrize("count", [1, 63, 64, 65, 66, 100, 8191, 8192, 8193, 8300])
@pytest.mark.parametrize("step_ms", [0, 1, 100])
def test_offset_deltas_of_every_width_pass(count: int, step_ms: int) -> None:
    data = build_batch([Record(0, NOW + index * step_ms, b"k", b"v" * 20) for index in range(count)])[HEADER_SIZE:]
    for check_records in CHECKS:
        assert check_records(data, count) == Scan(0, (count - 1) * step_ms, False)


@pytest.mark.parametrize("codec", Compression)
def test_a_good_batch_is_taken_as_it_came(codec: Compression) -> None:
    batch = batch_of(b"a", None, b"c" * 500, step_ms=5, codec=codec)
    assert check(batch) == ValidatedBatch(read_header(batch), None)


@pytest.mark.parametrize("position", [17, 21, 23, 40, HEADER_SIZE, HEADER_SIZE + 5])
def test_a_wrong_crc_is_corrupt(position: int) -> None:
    batch = bytearray(batch_of(b"value"))
    batch[position] ^= 1
    assert refusal(bytes(batch)).code == ErrorCode.CORRUPT_MESSAGE


def test_a_length_that_does_not_fit_is_corrupt() -> None:
    batch = bytearray(batch_of(b"value"))
    for length in (-5, 0, 48):
        struct.pack_into(">i", batch, 8, length)
        assert refusal(bytes(batch)).code == ErrorCode.CORRUPT_MESSAGE


def test_a_batch_cut_short_is_invalid() -> None:
    batch = bytearray(batch_of(b"value"))
    for length in (len(batch), 900_000):
        struct.pack_into(">i", batch, 8, length)
        assert refusal(bytes(batch)).code == ErrorCode.INVALID_RECORD


@pytest.mark.parametrize(
    "changes",
    [
        {"base_offset": 1},
        {"records_count": 0},
        {"records_count": -1},
        {"records_count": 3},
        {"last_offset_delta": 0},
        {"last_offset_delta": -1},
        {"last_offset_delta": 5, "records_count": 6},
        {"last_offset_delta": 0, "records_count": 1},
        {"attributes": 0x20},
        {"producer_id": 5, "producer_epoch": 0, "base_sequence": -1},
    ],
)
def test_a_header_that_contradicts_itself_is_an_invalid_record(changes: dict[str, int]) -> None:
    assert refusal(with_header(batch_of(b"a", b"b"), **changes)).code == ErrorCode.INVALID_RECORD


def test_a_coordinator_may_write_control_batches() -> None:
    marker = with_header(batch_of(b"a"), attributes=0x30, producer_id=1, producer_epoch=0)
    assert check(marker, origin=AppendOrigin.COORDINATOR).rewritten is None


def test_a_batch_over_the_limit_is_too_large() -> None:
    batch = batch_of(b"a" * 1000)
    assert refusal(batch, replace(CONFIG, max_message_bytes=len(batch) - 1)).code == ErrorCode.MESSAGE_TOO_LARGE
    assert check(batch, replace(CONFIG, max_message_bytes=len(batch))).rewritten is None


@pytest.mark.parametrize("codec", [5, 6, 7])
def test_an_unknown_codec_is_refused(codec: int) -> None:
    assert refusal(with_header(batch_of(b"a"), attributes=codec)).code == ErrorCode.UNSUPPORTED_COMPRESSION_TYPE


@pytest.mark.parametrize("codec", Compression)
def test_a_compacted_topic_wants_keys(codec: Compression) -> None:
    batch = build_batch([(b"k", b"v"), (None, b"w"), (None, b"x")], timestamp_ms=NOW, compression=codec)
    error = refusal(batch, COMPACTED)
    assert isinstance(error, InvalidRecordError)
    assert error.code == ErrorCode.INVALID_RECORD
    assert [index for index, _ in error.record_errors] == [1, 2]
    assert check(batch).rewritten is None
    assert check(batch_of(b"v", None, key=b""), COMPACTED).rewritten is None


@pytest.mark.parametrize(("timestamp", "index"), [(NOW - 1001, 0), (NOW + 2001, 0), (NOW - 1000, None), (NOW + 2000, None)])
@pytest.mark.parametrize("codec", [Compression.NONE, Compression.ZSTD])
def test_timestamps_out_of_range_are_named(timestamp: int, index: int | None, codec: Compression) -> None:
    config = replace(CONFIG, message_timestamp_before_max_ms=1000, message_timestamp_after_max_ms=2000)
    batch = build_batch([Record(0, timestamp, None, b"v"), Record(0, NOW, None, b"v")], compression=codec)
    if index is None:
        assert check(batch, config).rewritten is None
        return
    error = refusal(batch, config)
    assert isinstance(error, InvalidRecordError)
    assert (error.code, [number for number, _ in error.record_errors]) == (ErrorCode.INVALID_TIMESTAMP, [index])


def test_records_without_a_timestamp_are_taken() -> None:
    config = replace(CONFIG, message_timestamp_before_max_ms=1000)
    assert check(build_batch([(b"k", b"v")]), config).rewritten is None


def test_good_batches_need_no_look_at_each_record(monkeypatch: pytest.MonkeyPatch) -> None:
    """Those that do may have few: a walk through a million tiny ones would hold the broker up."""
    monkeypatch.setattr(limits, "MAX_RECORDS_ONE_BY_ONE", 1)
    strict = replace(CONFIG, message_timestamp_before_max_ms=10)
    assert check(build_batch([(b"k", b"v")] * 3), strict).rewritten is None
    stamped = replace(strict, message_timestamp_type="LogAppendTime")
    assert check(build_batch([Record(0, 5, b"k", b"v")] * 3), stamped).header.max_timestamp == NOW
    assert refusal(build_batch([Record(0, 5, b"k", b"v")] * 3), strict).code == ErrorCode.INVALID_RECORD


def test_a_timestamp_past_int64_is_refused() -> None:
    config = replace(CONFIG, message_timestamp_after_max_ms=2**63 - 1)
    batch = with_header(batch_of(b"a", b"b", step_ms=10), base_timestamp=2**63 - 5, max_timestamp=2**63 - 1)
    assert refusal(batch, config).code == ErrorCode.INVALID_TIMESTAMP


def test_a_wrong_largest_timestamp_is_mended() -> None:
    batch = with_header(batch_of(b"a", b"b", step_ms=7), max_timestamp=NOW - 50)
    mended = check(batch)
    assert mended.rewritten is not None
    assert read_header(mended.rewritten).max_timestamp == NOW + 7 == mended.header.max_timestamp
    assert list(iterate_records(mended.rewritten)) == list(iterate_records(batch))
    assert crc32c(mended.rewritten[21:]) == read_header(mended.rewritten).crc


@pytest.mark.parametrize("codec", Compression)
def test_log_append_time_replaces_the_producers(codec: Compression) -> None:
    batch = build_batch([Record(0, 5, b"k", b"v"), Record(0, 9, b"k", b"w")], compression=codec)
    stamped = check(batch, replace(CONFIG, message_timestamp_type="LogAppendTime", message_timestamp_before_max_ms=10))
    assert stamped.rewritten is not None
    assert stamped.header.has_log_append_time
    assert [record.timestamp for record in iterate_records(stamped.rewritten)] == [NOW, NOW]
    assert read_header(stamped.rewritten).compression == codec


@pytest.mark.parametrize("codec", Compression)
def test_a_producer_that_claims_log_append_time_is_put_right(codec: Compression) -> None:
    batch = batch_of(b"a", b"b", step_ms=3, codec=codec)
    mended = check(with_header(batch, attributes=codec | 0x08))
    assert mended.rewritten == batch
    assert not mended.header.has_log_append_time


def test_a_producer_cannot_claim_log_append_time_where_it_is_the_brokers_to_set() -> None:
    batch = with_header(batch_of(b"a", b"b"), attributes=0x08)
    refused = refusal(batch, replace(CONFIG, message_timestamp_type="LogAppendTime"))
    assert isinstance(refused, InvalidRecordError)
    assert (refused.code, [index for index, _ in refused.record_errors]) == (ErrorCode.INVALID_TIMESTAMP, [0, 1])


WHOLE = build_batch([Record(0, NOW, b"k", b"v")])
EMPTY_BATCH = struct.pack(">qi", 0, 14) + bytes(4) + b"\2" + bytes(9)  # the smallest length that any format allows


@pytest.mark.parametrize("behind", [b"", b"\0", b"\1" * 16, b"\1" * 17, WHOLE[:-1]], ids=["nothing", "1", "16", "17", "cut"])
def test_what_is_no_batch_behind_the_only_one_is_let_pass(behind: bytes) -> None:
    assert only_batch(WHOLE + behind[:11]) == WHOLE
    if len(behind) > 11:
        assert only_batch(WHOLE + behind) == WHOLE


@pytest.mark.parametrize(
    ("data", "code"),
    [
        (b"", ErrorCode.INVALID_RECORD),
        (bytes(11), ErrorCode.INVALID_RECORD),
        (bytes(12), ErrorCode.CORRUPT_MESSAGE),
        (WHOLE[:30], ErrorCode.INVALID_RECORD),
        (WHOLE[:-1], ErrorCode.INVALID_RECORD),
        (WHOLE[:16] + b"\1" + WHOLE[17:], ErrorCode.INVALID_RECORD),
        (WHOLE[:16] + b"\3" + WHOLE[17:], ErrorCode.CORRUPT_MESSAGE),
        (WHOLE[:16] + b"\xff" + WHOLE[17:], ErrorCode.CORRUPT_MESSAGE),
        (WHOLE + WHOLE, ErrorCode.INVALID_RECORD),
        (WHOLE + bytes(80), ErrorCode.CORRUPT_MESSAGE),
        (EMPTY_BATCH, ErrorCode.CORRUPT_MESSAGE),
    ],
)
def test_what_is_not_one_batch_is_refused(data: bytes, code: ErrorCode) -> None:
    with pytest.raises(KafkaError) as refused:
        only_batch(data)
    assert refused.value.code == code


@given(st.binary(max_size=200))
def test_any_bytes_are_one_batch_or_refused(data: bytes) -> None:
    for candidate in (data, WHOLE + data):
        assert size_or_code(candidate) in {*range(HEADER_SIZE, 400), ErrorCode.INVALID_RECORD, ErrorCode.CORRUPT_MESSAGE}


def size_or_code(data: bytes) -> int:
    try:
        return len(only_batch(data))
    except KafkaError as error:
        return error.code


@pytest.mark.parametrize("source", Compression)
@pytest.mark.parametrize("target", ["uncompressed", "gzip", "snappy", "lz4", "zstd"])
def test_compression_type_recompresses(source: Compression, target: str) -> None:
    batch = build_batch(
        [Record(0, NOW + index, b"k", b"value" * 10, (("h", b"1"),)) for index in range(100)],
        compression=source,
        producer_id=4,
        producer_epoch=2,
        base_sequence=17,
    )
    result = check(batch, replace(CONFIG, compression_type=target))
    stored = batch if result.rewritten is None else result.rewritten
    header = read_header(stored)
    assert header.compression == codecs_by_name()[target]
    assert header.batch_length == result.header.batch_length
    assert (header.producer_id, header.producer_epoch, header.base_sequence) == (4, 2, 17)
    assert list(iterate_records(stored)) == list(iterate_records(batch))
    assert (result.rewritten is None) == (source == header.compression)


def codecs_by_name() -> dict[str, Compression]:
    return {"uncompressed": Compression.NONE} | {codec.name.lower(): codec for codec in Compression if codec}


def test_a_batch_that_grows_past_the_limit_by_recompression_is_too_large() -> None:
    batch = batch_of(bytes(100_000), codec=Compression.ZSTD)
    config = replace(CONFIG, compression_type="uncompressed", max_message_bytes=50_000)
    assert refusal(batch, config).code == ErrorCode.MESSAGE_TOO_LARGE


@pytest.mark.parametrize("codec", Compression)
def test_offset_deltas_must_count_up(codec: Compression) -> None:
    from barnabas.protocol.records.compression import compress

    body = bytearray(batch_of(b"a", b"b", b"c")[HEADER_SIZE:])
    size = len(body) // 3
    body[size + 3] = 4
    error = refusal(with_body(batch_of(b"a", b"b", b"c", codec=codec), compress(codec, body)))
    assert isinstance(error, InvalidRecordError)
    assert [index for index, _ in error.record_errors] == [1]


def with_body(batch: bytes, body: bytes) -> bytes:
    return assemble(BatchHeader._make(HEADER.unpack_from(batch)), body)


@given(
    changes=st.lists(st.tuples(st.integers(0, 500), st.integers(0, 255)), min_size=1, max_size=4),
    codec=st.sampled_from(Compression),
)
def test_whatever_is_wrong_is_a_kafka_error(changes: list[tuple[int, int]], codec: Compression) -> None:
    batch = bytearray(batch_of(b"abc", b"defg", None, b"h" * 100, codec=codec))
    for at, byte in changes:
        batch[at % len(batch)] = byte
    header = read_header(batch)
    if header.size == len(batch):
        struct.pack_into(">I", batch, 17, crc32c(batch[21:]))
    with suppress(KafkaError):
        check(bytes(batch))
