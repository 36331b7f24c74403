"""Arrow columns to record batches: what comes out is read back by the record-by-record reader, which shares no code with the kernels."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from barnabas.columnar.decode import HEADER_TYPE
from barnabas.columnar.encode import STICKY_ROWS, RecordEncoder, RecordTooLarge, TopicShape
from barnabas.protocol.records.batch import Compression, iterate_records, read_header
from barnabas.protocol.records.record import Record
from barnabas.protocol.records.seal import Stamp, seal_batch

JAVA_PLACES = {"a": 0, "k1": 1, "foobar": 2, "k6": 1}  # of four partitions, asked of Kafka 4.3's own classes
NOW_MS = 1_700_000_000_000


class Taken:
    """Seals what the encoder hands on, and reads it back."""

    def __init__(self, codec: Compression = Compression.NONE) -> None:
        self.codec = codec
        self.batches: list[tuple[tuple[str, int], bytes]] = []

    def __call__(self, place: tuple[str, int], room: memoryview, count: int) -> None:
        self.batches.append((place, seal_batch(room, count, NOW_MS, Stamp(7, 3, 0, True), self.codec)))

    def records(self) -> dict[tuple[str, int], list[Record]]:
        found: dict[tuple[str, int], list[Record]] = {}
        for place, batch in self.batches:
            found.setdefault(place, []).extend(iterate_records(batch))
        return found


def encode(
    columns: dict[str, Any], *, topic: str | None = "t", shape: TopicShape | None = None, pieces: int = 1, **more: Any
) -> Taken:
    taken = Taken(more.pop("codec", Compression.NONE))
    encoder = RecordEncoder(lambda _: shape or TopicShape(4), taken, **more)
    batch = pa.RecordBatch.from_pydict(columns)
    size = -(-batch.num_rows // pieces)
    for start in range(0, batch.num_rows, max(size, 1)):
        encoder.write(batch.slice(start, size), topic)
    encoder.finish()
    return taken


bytes_or_null = st.none() | st.binary(max_size=300)
headers_or_null = st.none() | st.lists(
    st.fixed_dictionaries({"key": st.text(max_size=5), "value": st.none() | st.binary(max_size=5)}), max_size=3
)
rows = st.lists(st.tuples(bytes_or_null, bytes_or_null, headers_or_null, st.none() | st.integers(0, 3)), min_size=1, max_size=40)


@settings(max_examples=60, deadline=None)
@given(rows=rows, codec=st.sampled_from(Compression), pieces=st.integers(1, 4), limit=st.sampled_from([700, 20_000]))
def test_every_row_arrives_in_order(rows: list[Any], codec: Compression, pieces: int, limit: int) -> None:
    keys, values, headers, places = (list(column) for column in zip(*rows, strict=True))
    columns = {
        "key": pa.array(keys, pa.binary()),
        "value": pa.array(values, pa.binary()),
        "headers": pa.array(headers, HEADER_TYPE),
        "partition": pa.array(places, pa.int32()),
    }
    taken = encode(columns, codec=codec, pieces=pieces, shape=TopicShape(4, limit), max_record_bytes=20_000)
    found = taken.records()
    wanted = [
        (key, value, tuple((pair["key"], pair["value"]) for pair in pairs or ()), place)
        for key, value, pairs, place in zip(keys, values, headers, places, strict=True)
    ]
    arrived = [(r.key, r.value, r.headers) for records in found.values() for r in records]
    assert sorted(map(repr, arrived)) == sorted(repr(each[:3]) for each in wanted)
    for partition in range(4):
        given_one = [each[:3] for each in wanted if each[3] == partition]
        here = [(r.key, r.value, r.headers) for r in found.get(("t", partition), [])]
        remaining = iter(here)
        assert all(each in remaining for each in given_one), "rows of a partition keep their order"


def test_batches_are_what_a_broker_takes() -> None:
    taken = encode({"value": pa.array([b"x" * 90] * 500)}, shape=TopicShape(1, 10_000))
    assert len(taken.batches) == 5
    for _, batch in taken.batches:
        header = read_header(batch)
        assert len(batch) == header.size <= 10_000
        assert (header.producer_id, header.producer_epoch, header.is_transactional) == (7, 3, True)
        assert (header.base_timestamp, header.max_timestamp) == (NOW_MS, NOW_MS)
    assert sum(read_header(batch).records_count for _, batch in taken.batches) == 500


def test_keys_lie_where_a_java_producer_puts_them() -> None:
    taken = encode({"key": pa.array(list(JAVA_PLACES)), "value": pa.array(list(JAVA_PLACES))})
    placed = {(r.key or b"").decode(): partition for (_, partition), records in taken.records().items() for r in records}
    assert placed == JAVA_PLACES


def test_rows_without_a_key_are_dealt_out() -> None:
    taken = encode({"value": pa.array([b"v"] * 8 * STICKY_ROWS)}, first=3)
    assert {place: len(records) for place, records in taken.records().items()} == {("t", p): 2 * STICKY_ROWS for p in range(4)}


def test_partitions_may_have_any_number() -> None:
    places = [40_000, 2, 32_767, 32_768, 2, 40_000]
    columns = {"value": pa.array([str(n) for n in range(6)]), "partition": pa.array(places, pa.int32())}
    found = encode(columns, shape=TopicShape(50_000)).records()
    assert {place[1]: [r.value for r in records] for place, records in found.items()} == {
        2: [b"1", b"4"], 32_767: [b"2"], 32_768: [b"3"], 40_000: [b"0", b"5"]
    }  # fmt: skip


def test_a_column_says_the_topic() -> None:
    columns = {
        "topic": pa.array(["b", "a", "b"]),
        "value": pa.array(["1", "2", "3"]),
        "partition": pa.array([0, 0, 0], pa.int32()),
    }
    found = encode(columns, topic=None).records()
    assert {place: [r.value for r in records] for place, records in found.items()} == {("b", 0): [b"1", b"3"], ("a", 0): [b"2"]}


@pytest.mark.parametrize("first", ["two", "four"])
def test_a_key_lies_by_the_partitions_of_its_own_topic(first: str) -> None:
    counts = {"two": 2, "four": 4}
    keys = [key for key in JAVA_PLACES for _ in counts]
    topics = sorted(counts, reverse=first == "two") * len(JAVA_PLACES)
    taken = Taken(Compression.NONE)
    encoder = RecordEncoder(lambda topic: TopicShape(counts[topic]), taken)
    encoder.write(pa.RecordBatch.from_pydict({"topic": topics, "key": keys, "value": keys}), None)
    encoder.finish()
    placed = {(topic, (r.key or b"").decode()): place for (topic, place), found in taken.records().items() for r in found}
    assert placed == {(topic, key): place % count for key, place in JAVA_PLACES.items() for topic, count in counts.items()}


def test_large_types_and_slices_are_understood() -> None:
    values = pa.array([b"a", b"b", None, b"d"], pa.large_binary()).slice(1)
    taken = encode(
        {"key": pa.array(["x", None, "z"], pa.large_string()), "value": values, "partition": pa.array([0, 0, 0], pa.int32())}
    )
    assert [(r.key, r.value) for r in taken.records()["t", 0]] == [(b"x", b"b"), (None, None), (b"z", b"d")]


def test_a_record_larger_than_a_batch_should_be_has_one_to_itself() -> None:
    columns = {"value": pa.array([b"s", b"x" * 5_000, b"s"]), "partition": pa.array([0, 0, 0], pa.int32())}
    taken = encode(columns, shape=TopicShape(1, 1_000), max_record_bytes=6_000)
    assert [[len(r.value or b"") for r in iterate_records(batch)] for _, batch in taken.batches] == [[1], [5_000], [1]]


def test_a_record_above_the_limit_is_refused() -> None:
    with pytest.raises(
        RecordTooLarge, match=r"could not write to t: a record of 50\d\d bytes is too large \(max.request.size is 4000\)"
    ):
        encode({"value": pa.array([b"x" * 5_000])}, max_record_bytes=4_000)


def times_of(taken: list[tuple[tuple[str, int], bytes]]) -> list[int]:
    return [record.timestamp for _, batch in taken for record in iterate_records(batch)]


@settings(max_examples=40, deadline=None)
@given(
    times=st.lists(st.none() | st.integers(0, 2**45), min_size=1, max_size=60),
    codec=st.sampled_from([Compression.NONE, Compression.LZ4]),
    pieces=st.integers(1, 3),
)
def test_rows_keep_their_times(times: list[int | None], codec: Compression, pieces: int) -> None:
    found: list[tuple[tuple[str, int], bytes]] = []

    def take(place: tuple[str, int], room: memoryview, count: int, bounds: tuple[int, int]) -> None:
        found.append((place, seal_batch(room, count, bounds[0], Stamp(7, 3, 0, True), codec, bounds[1])))

    encoder = RecordEncoder(lambda _: TopicShape(1, 400), take, max_record_bytes=20_000, now_ms=lambda: NOW_MS)
    values = [b"x" * (number % 7) for number in range(len(times))]
    columns: dict[str, Any] = {"value": pa.array(values, pa.binary()), "timestamp": pa.array(times, pa.timestamp("ms", "UTC"))}
    batch = pa.record_batch(columns)
    size = -(-batch.num_rows // pieces)
    for start in range(0, batch.num_rows, size):
        encoder.write(batch.slice(start, size), "t")
    encoder.finish()
    wanted = [NOW_MS if each is None else each for each in times]
    assert times_of(found) == wanted
    assert sum(len(list(iterate_records(data))) for _, data in found) == len(times)
    for _, data in found:
        header = read_header(data)
        own = [record.timestamp for record in iterate_records(data)]
        assert (header.base_timestamp, header.max_timestamp) == (own[0], max(own))


def test_a_column_of_times_says_nothing_to_an_encoder_without_them() -> None:
    taken = encode({"value": [b"x"], "timestamp": pa.array([5], pa.timestamp("ms"))})
    assert times_of(taken.batches) == [NOW_MS]
