"""The fast look at repeated Produce requests takes nothing that the general reading and checking would not, and takes all that is plain."""

from __future__ import annotations

from typing import Any

import pytest
from crc32c import crc32c
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from barnabas.config.topic import TopicConfig
from barnabas.errors import KafkaError, ProtocolError
from barnabas.protocol.codec import encode
from barnabas.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from barnabas.protocol.produce import FIRST_FLEXIBLE_VERSION, read_produce
from barnabas.protocol.records import request_scan
from barnabas.protocol.records.batch import AppendOrigin, Record, build_batch, read_header, validate_batch
from barnabas.protocol.records.batch_header import HEADER, HEADER_SIZE, MAX_SEQUENCE, NO_PRODUCER_ID, BatchHeader, only_batch
from barnabas.protocol.records.compression import Compression
from barnabas.protocol.records.record import assemble
from barnabas.protocol.records.request_scan import Limits
from barnabas.protocol.records.rows import DESCRIBED, ROW, Run
from barnabas.protocol.records.scan import compiled
from barnabas.protocol.request_headers import read_request_header, write_request_header

NOW = 1_700_000_000_000
CONFIG = TopicConfig(message_timestamp_before_max_ms=100_000, message_timestamp_after_max_ms=50_000, max_message_bytes=2_000)
MAX_REQUEST_BYTES = 3_000
WALKS = [request_scan] if compiled is None else [request_scan, compiled]
Found = list[tuple[int, int, int, int, int]]
versions = st.sampled_from([7, 8, 9, 12])
records = st.lists(
    st.builds(
        Record,
        st.just(0),
        st.integers(NOW - 60_000, NOW + 20_000),
        st.none() | st.binary(max_size=4),
        st.binary(max_size=90),
        st.sampled_from([(), (("h", b"v"),)]),
    ),
    min_size=1,
    max_size=4,
)


def frame_of(version: int, batch: bytes, correlation_id: int, partition: int = 1) -> bytes:
    data = PartitionProduceData(index=partition, records=batch)
    request = ProduceRequest(acks=1, timeout_ms=500, topic_data=[TopicProduceData(name="topic", partition_data=[data])])
    frame = write_request_header(0, version, correlation_id, "client") + bytes(encode(request, version))
    return len(frame).to_bytes(4, "big") + frame


def start_of(version: int) -> bytes:
    """A request as far as the length of its records; that and what follows it takes four bytes in every version."""
    return frame_of(version, b"", 77)[4:-4]


def bounds(config: TopicConfig = CONFIG, *, requests: int = 100) -> Limits:
    oldest = NOW - config.message_timestamp_before_max_ms
    newest = NOW + config.message_timestamp_after_max_ms
    needs_keys, takes_codecs = "compact" in config.cleanup_policy, config.compression_type == "producer"
    return Limits(MAX_REQUEST_BYTES, config.max_message_bytes, oldest, newest, 2**40, 2**31, requests, needs_keys, takes_codecs)


def walked(walker: Any, stream: bytes, version: int, limits: Limits) -> Found:
    """The batches found, the sums of which are right."""
    found = Run._make(walker.walk_requests(stream, 0, start_of(version), version >= FIRST_FLEXIBLE_VERSION, limits))
    batches: Found = list(ROW.iter_unpack(found.rows))
    assert found.requests == len(batches)
    assert found.records == sum(count for *_, count, _ in batches)
    assert found.size == sum(end - start for _, start, end, *_ in batches)
    tags = 3 if version >= FIRST_FLEXIBLE_VERSION else 0
    assert found.behind == (batches[-1][2] + tags if batches else 0)
    assert not batches or found.has_producer == (read_header(stream, batches[0][1]).producer_id >= 0)
    return batches


def naive(stream: bytes, version: int, config: TopicConfig = CONFIG) -> Found:
    """The requests that the general way would append as they came, up to the first that it would not."""
    found: Found = []
    position, producer = 0, (NO_PRODUCER_ID, 0, 0)
    while len(stream) - position >= 4:
        size = int.from_bytes(stream[position : position + 4], "big", signed=True)
        frame = memoryview(stream)[position + 4 : position + 4 + size]
        if not 0 <= size <= MAX_REQUEST_BYTES or len(frame) < size:
            break
        try:
            header = read_request_header(frame)
            request = read_produce(frame, header.body, header.api_version)
            ((key, (wanted,)),) = request.topics
            batch = wanted.records
            assert batch is not None
            head = read_header(only_batch(batch))
            checked = validate_batch(batch, head, config=config, now_ms=NOW, origin=AppendOrigin.CLIENT)
        except (ProtocolError, KafkaError, ValueError, AssertionError):
            break
        same = (
            header.api_key,
            header.api_version,
            header.client_id,
            request.acks,
            request.timeout_ms,
            bytes(key),
            wanted.partition,
        )
        if same != (0, version, "client", 1, 500, b"topic", 1):
            break
        if head.size != len(batch) or head.attributes > Compression.ZSTD or checked.rewritten is not None:
            break
        if head.producer_id == NO_PRODUCER_ID:
            if producer[0] != NO_PRODUCER_ID:
                break
        elif head.producer_id < 0 or (found and (head.producer_id, head.producer_epoch, head.base_sequence) != producer):
            break
        else:
            producer = (head.producer_id, head.producer_epoch, (head.last_sequence + 1) & MAX_SEQUENCE)
        end = position + 4 + size - (3 if version >= FIRST_FLEXIBLE_VERSION else 0)
        found.append((header.correlation_id, end - len(batch), end, head.records_count, head.max_timestamp))
        position += 4 + size
    return found


@given(
    version=versions,
    counts=st.lists(st.integers(1, 3), min_size=1, max_size=6),
    first=st.sampled_from([0, 7, MAX_SEQUENCE - 4, MAX_SEQUENCE]),
    odd=st.none()
    | st.tuples(
        st.integers(0, 5),
        st.sampled_from(
            [("producer_id", -1), ("producer_id", 2**33), ("producer_epoch", 1), ("producer_epoch", 0x103), ("base_sequence", 1)]
        ),
    ),
)
def test_batches_of_a_producer_go_together_while_they_follow_each_other(
    version: int, counts: list[int], first: int, odd: tuple[int, tuple[str, int]] | None
) -> None:
    stream, sequence = b"", first
    for number, count in enumerate(counts):
        fields: dict[str, Any] = {"producer_id": 5, "producer_epoch": 3, "base_sequence": sequence}
        if odd is not None and odd[0] == number:
            fields[odd[1][0]] = odd[1][1]
        made = build_batch([Record(0, NOW, None, b"v", ())] * count, **fields)
        stream += frame_of(version, made, number)
        sequence = (sequence + count) & MAX_SEQUENCE
    expected = naive(stream, version)
    assert odd is not None or len(expected) == len(counts)
    for walker in WALKS:
        assert walked(walker, stream, version, bounds()) == expected


@given(
    version=versions,
    batches=st.lists(st.tuples(records, st.sampled_from(Compression)), min_size=1, max_size=5),
    cut=st.integers(0, 5),
    ids=st.integers(-(2**31), 2**31 - 10),
)
def test_plain_requests_are_all_taken(version: int, batches: list[tuple[list[Record], Compression]], cut: int, ids: int) -> None:
    made = [build_batch(batch, compression=codec) for batch, codec in batches]
    stream = b"".join(frame_of(version, batch, ids + number) for number, batch in enumerate(made))
    stream = stream[: len(stream) - cut]
    expected = naive(stream, version)
    assert len(expected) == len(batches) - (cut > 0)
    for walker in WALKS:
        assert walked(walker, stream, version, bounds()) == expected
        assert walked(walker, stream, version, bounds(requests=2)) == expected[:2]


@given(
    version=versions,
    batches=st.lists(records, min_size=1, max_size=3),
    codec=st.sampled_from(Compression),
    changes=st.lists(st.tuples(st.integers(0, 2**16), st.integers(0, 255)), min_size=1, max_size=3),
)
def test_nothing_is_taken_that_the_general_way_refuses(
    version: int, batches: list[list[Record]], codec: Compression, changes: list[tuple[int, int]]
) -> None:
    made = [build_batch(batch, compression=codec) for batch in batches]
    stream = bytearray(b"".join(frame_of(version, batch, number) for number, batch in enumerate(made)))
    for at, byte in changes:
        stream[at % len(stream)] = byte
    expected = naive(bytes(stream), version)
    for walker in WALKS:
        found = walked(walker, bytes(stream), version, bounds())
        assert found == expected[: len(found)]


@given(
    version=versions,
    batch=records,
    codec=st.sampled_from(Compression),
    changes=st.lists(st.tuples(st.integers(21, 2**10), st.integers(0, 255)), min_size=1, max_size=2),
)
def test_a_batch_that_is_wrong_under_a_right_checksum_is_not_taken(
    version: int, batch: list[Record], codec: Compression, changes: list[tuple[int, int]]
) -> None:
    made = bytearray(build_batch(batch, compression=codec))
    for at, byte in changes:
        made[at if at < len(made) else 21 + at % (len(made) - 21)] = byte
    made[17:21] = crc32c(made[21:]).to_bytes(4, "big")
    stream = frame_of(version, bytes(made), 3)
    for walker in WALKS:
        found = walked(walker, stream, version, bounds())
        assert found == naive(stream, version)[: len(found)]


@pytest.mark.parametrize("walker", WALKS)
def test_what_the_bounds_do_not_leave_room_for_is_left(walker: Any) -> None:
    batch = build_batch([Record(0, NOW, None, b"v", ()), Record(0, NOW + 1, None, b"w", ())])
    stream = frame_of(9, batch, 1) * 3
    size = len(batch)
    all_of_it = bounds()._replace(room=3 * size, offsets=6)
    left: list[tuple[str, Any, int]] = [  # limit, its value, number of requests taken
        ("max_request", len(stream) // 3 - 5, 0),
        ("max_batch", size - 1, 0),
        ("oldest", NOW + 1, 0),
        ("newest", NOW, 0),
        ("room", 3 * size - 1, 2),
        ("offsets", 5, 2),
        ("requests", 1, 1),
        ("needs_keys", True, 0),
        ("takes_codecs", False, 3),
    ]
    assert tuple(name for name, *_ in left) == Limits._fields
    assert len(walked(walker, stream, 9, all_of_it)) == 3
    for name, limit, taken in left:
        assert len(walked(walker, stream, 9, all_of_it._replace(**{name: limit}))) == taken, name


# For each batch header field: values that differ from those of a batch of two records. The CRC fits, except in its own case.
HEADERS: list[tuple[str, list[int]]] = [
    ("base_offset", [1, -1, 2**40]),
    ("batch_length", [0, 48, 49, 10_000, -1]),
    ("partition_leader_epoch", [0, 7, -2]),
    ("magic", [0, 1, 3, -1]),
    ("crc", [0, 1]),
    ("attributes", [1, 2, 3, 4, 5, 7, 0x08, 0x10, 0x20, 0x30, 0x40, 0x80, 0x100, -1]),
    ("last_offset_delta", [0, 2, -1, 2**31 - 1]),
    ("base_timestamp", [0, -1, -2, NOW - 100_001, NOW - 100_000, NOW + 50_000, NOW + 50_001, 2**62]),
    ("max_timestamp", [0, -1, NOW, NOW + 2, 2**62]),
    ("producer_id", [-2, 0, 5, 2**40]),
    ("producer_epoch", [0, 3, -2]),
    ("base_sequence", [0, 1, -2, 2**31 - 1]),
    ("records_count", [0, 1, 3, -1, 2**31 - 1]),
]
TOPICS = {
    "plain": CONFIG,
    "compacted": replace(CONFIG, cleanup_policy=frozenset({"compact"})),
    "uncompressed": replace(CONFIG, compression_type="uncompressed"),
    "small": replace(CONFIG, max_message_bytes=80),
}


def test_the_table_has_each_field_of_a_batch_header() -> None:
    assert tuple(name for name, _ in HEADERS) == BatchHeader._fields


@pytest.mark.parametrize("topic", TOPICS)
@pytest.mark.parametrize(("field", "values"), [("none", [0]), *HEADERS])
def test_each_check_of_a_header_is_that_of_the_general_way(field: str, values: list[int], topic: str) -> None:
    config = TOPICS[topic]
    for keys in (None, b"k"):
        plain = build_batch([Record(0, NOW, keys, b"v", ()), Record(0, NOW + 1, keys, b"w", ())])
        for value in values:
            made = bytearray(plain)
            if field != "none":
                made[:HEADER_SIZE] = HEADER.pack(*read_header(plain)._replace(**{field: value}))
            if field != "crc":
                made[17:21] = crc32c(made[21:]).to_bytes(4, "big")
            for version in (7, 9):
                stream = frame_of(version, bytes(made), 3)
                found = [walked(walker, stream, version, bounds(config)) for walker in WALKS]
                assert all(each == found[0] for each in found)
                assert found[0] == naive(stream, version, config), (value, keys)


@pytest.mark.parametrize("walker", WALKS)
def test_compressed_batches_are_taken_where_they_may_be_stored_so(walker: Any) -> None:
    records = [Record(0, NOW, None, b"v" * 90, ())] * 4
    for codec in Compression:
        stream = frame_of(9, build_batch(records, compression=codec), 1)
        assert len(walked(walker, stream, 9, bounds())) == 1
        assert len(walked(walker, stream, 9, bounds()._replace(takes_codecs=False))) == (codec == Compression.NONE)


@pytest.mark.parametrize("walker", WALKS)
@pytest.mark.parametrize("codec", [codec for codec in Compression if codec])
def test_what_unfolds_to_very_much_goes_the_way_that_is_counted(walker: Any, codec: Compression) -> None:
    largest = 2**20
    limits = bounds()._replace(max_request=largest, max_batch=largest)
    for size, taken in ((10_000, True), (1_000_000, False)):
        batch = build_batch([Record(0, NOW, None, bytes(size), ())], compression=codec)
        expected = taken or codec == Compression.SNAPPY  # Snappy compresses it to 1/20 only
        assert bool(walked(walker, frame_of(9, batch, 1), 9, limits)) == expected


@pytest.mark.parametrize("walker", WALKS)
def test_more_records_than_a_compressed_batch_may_have_are_not_taken(walker: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    stream = frame_of(9, build_batch([Record(0, NOW, None, b"v", ())] * 4, compression=Compression.LZ4), 1)
    monkeypatch.setattr("barnabas.limits.MAX_BATCH_RECORDS", 3)
    assert not walked(walker, stream, 9, bounds())
    monkeypatch.setattr("barnabas.limits.MAX_BATCH_RECORDS", 4)
    assert len(walked(walker, stream, 9, bounds())) == 1


@pytest.mark.parametrize("walker", WALKS)
def test_a_number_that_is_no_codec_is_not_taken(walker: Any) -> None:
    plain = bytearray(build_batch([Record(0, NOW, None, b"v", ())], compression=Compression.ZSTD))
    for attributes in (5, 6, 7, 8, 0x10, 0x20, 0x100):
        plain[21:23] = attributes.to_bytes(2, "big")
        plain[17:21] = crc32c(plain[21:]).to_bytes(4, "big")
        assert not walked(walker, frame_of(9, bytes(plain), 1), 9, bounds())


@given(
    version=versions,
    batches=st.lists(records, min_size=1, max_size=5),
    offset=st.integers(0, 2**60),
    epoch=st.integers(-1, 2**31 - 1),
)
def test_batches_are_stored_and_answered_with_their_offsets(
    version: int, batches: list[list[Record]], offset: int, epoch: int
) -> None:
    made = [build_batch(batch) for batch in batches]
    stream = b"".join(frame_of(version, batch, -number) for number, batch in enumerate(made))
    shape, rows = bytes(range(40)), b""
    for walker in WALKS:
        rows, *_ = walker.walk_requests(stream, 0, start_of(version), version >= FIRST_FLEXIBLE_VERSION, bounds())
        stored, described = walker.place_batches(memoryview(stream), rows, offset, epoch)
        answers = walker.answer_requests(rows, shape, 13, offset)
        position, next_offset = 0, offset
        for number, (batch, (last, size, newest)) in enumerate(zip(made, DESCRIBED.iter_unpack(described), strict=True)):
            header = read_header(stored, position)
            assert stored[position : position + len(batch)] == assemble(header, batch[HEADER_SIZE:])
            assert header == read_header(batch)._replace(base_offset=next_offset, partition_leader_epoch=epoch)
            told = (-number).to_bytes(4, "big", signed=True), next_offset.to_bytes(8, "big")
            assert answers[40 * number : 40 * number + 40] == shape[:4] + told[0] + shape[8:13] + told[1] + shape[21:]
            next_offset += header.records_count
            assert (last, size, newest) == (next_offset - 1, len(batch), header.max_timestamp)
            position += size
        assert (position, len(answers)) == (len(stored), 40 * len(made))


@pytest.mark.parametrize("walker", WALKS)
def test_tables_that_do_not_fit_what_they_tell_of_are_refused(walker: Any) -> None:
    row, known = ROW.pack(1, 0, 61, 1, NOW), start_of(9)
    refused: list[tuple[str, tuple[object, ...]]] = [
        ("place_batches", (bytes(60), row, 0, 0)),
        ("place_batches", (bytes(99), ROW.pack(1, 40, 100, 1, NOW), 0, 0)),
        ("place_batches", (bytes(99), ROW.pack(1, -1, 80, 1, NOW), 0, 0)),
        ("place_batches", (bytes(99), row[:-1], 0, 0)),
        ("answer_requests", (row[:-1], bytes(20), 10, 0)),
        ("answer_requests", (row, bytes(20), 13, 0)),
        ("answer_requests", (row, bytes(20), 7, 0)),
        ("note_batches", (row, 0, 0, 0, 0, 0, 0, 0, 0)),
        ("walk_requests", (b"", 1, known, True, bounds())),
        ("walk_requests", (b"", -1, known, True, bounds())),
        ("walk_requests", (b"", 0, known[:7], True, bounds())),
    ]
    for name, arguments in refused:
        with pytest.raises(ValueError, match=r"rows|data|offset|request"):
            getattr(walker, name)(*arguments)


@given(
    described=st.lists(st.tuples(st.integers(0, 2**40), st.integers(0, 9_000), st.integers(-1, 50)), max_size=20),
    state=st.tuples(*[st.integers(0, 5_000)] * 8),
)
def test_machine_code_notes_what_the_interpreted_text_notes(
    described: list[tuple[int, int, int]], state: tuple[int, ...]
) -> None:
    table = b"".join(DESCRIBED.pack(*each) for each in described)
    assert len({repr(walker.note_batches(table, *state)) for walker in WALKS}) == 1


@pytest.mark.skipif(compiled is None, reason="no machine code was made")
def test_machine_code_refuses_what_it_cannot_read() -> None:
    refused: list[tuple[str, tuple[object, ...]]] = [
        ("walk_records", (b"",)),
        ("walk_records", ("text", 1)),
        ("walk_records", (b"", "1")),
        ("walk_requests", (b"", 0, start_of(9), True, [1, 2])),
        ("walk_requests", (b"", 0, start_of(9), True, (1, 2))),
        ("walk_requests", (b"", 0, None, True, bounds())),
        ("place_batches", (b"", None, 0, 0)),
        ("answer_requests", (b"", None, 8, 0)),
        ("note_batches", (b"", *["x"] * 8)),
        ("name_known_schemas", (b"", 1, None)),
        ("name_known_schemas", ("text", 1, None, None)),
        ("name_known_schemas", (b"", "1", None, None)),
        ("name_known_schemas", (b"\x16\0\0\0\1\x0a\0\0\0\0\1\0", 1, None, 7)),
    ]
    for name, arguments in refused:
        with pytest.raises((TypeError, SystemError, IndexError)):
            getattr(compiled, name)(*arguments)
