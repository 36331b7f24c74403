"""Requests taken apart by partition have the batches that the general reading finds in them, and get the answers that it would write."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.errors import ProtocolError
from barnabas.protocol.codec import encode
from barnabas.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from barnabas.protocol.produce import FIRST_TOPIC_ID_VERSION, PartitionAnswer, read_produce, write_produce_answer
from barnabas.protocol.records import multi_partition_scan
from barnabas.protocol.records.batch import Record, build_batch, read_header
from barnabas.protocol.records.batch_header import HEADER_SIZE, MAX_SEQUENCE
from barnabas.protocol.records.request_scan import Limits
from barnabas.protocol.records.rows import NUMBER, REQUEST, ROW
from barnabas.protocol.records.scan import compiled
from barnabas.protocol.request_headers import read_request_header, write_request_header

NOW = 1_700_000_000_000
WALKS = [multi_partition_scan] if compiled is None else [multi_partition_scan, compiled]
MAX_REQUEST, MAX_BATCH = 3_000, 500
BOUNDS = Limits(0, MAX_BATCH, NOW - 100, NOW + 100, 2**40, 2**31, 0, needs_keys=False, takes_codecs=False)
TOPICS = (b"a", b"orders.of.the.day")
IDS = tuple(UUID(int=number + 1) for number in range(len(TOPICS)))
PARTITIONS = 3
VERSIONS = (7, 8, 9, 12, 13)
Wanted = list[tuple[int, list[tuple[int, bytes]]]]  # topic number -> batches by partition

batches = st.lists(st.binary(max_size=40), min_size=1, max_size=3).map(
    lambda values: build_batch([Record(0, NOW, None, value, ()) for value in values])
)
partitions = st.lists(st.tuples(st.integers(0, PARTITIONS), batches), min_size=1, max_size=4)
wanted = st.lists(st.tuples(st.integers(0, 1), partitions), min_size=1, max_size=3)


class Found(NamedTuple):
    """The result of `read_requests` without the tables: ids and positions of requests, and the batches by group."""

    requests: list[tuple[int, int, int, int]]
    order: list[int]
    numbers: list[int]
    rows: list[list[tuple[int, int, int]]]
    behind: int


def key_of(version: int, topic: int) -> bytes:
    return IDS[topic].bytes if version >= FIRST_TOPIC_ID_VERSION else TOPICS[topic]


def numbers_of(version: int) -> dict[bytes, int]:
    """All partitions but the last of each topic, which nobody knows."""
    names = [key_of(version, topic) + index.to_bytes(4, "big") for topic in range(len(TOPICS)) for index in range(PARTITIONS)]
    return {name: number for number, name in enumerate(names)}


def frame_of(version: int, request: Wanted, correlation_id: int) -> bytes:
    topics = [
        TopicProduceData(
            name=TOPICS[topic].decode(),
            topic_id=IDS[topic],
            partition_data=[PartitionProduceData(index=index, records=batch) for index, batch in data],
        )
        for topic, data in request
    ]
    made = encode(ProduceRequest(acks=1, timeout_ms=500, topic_data=topics), version)
    frame = write_request_header(0, version, correlation_id, "client") + bytes(made)
    return len(frame).to_bytes(4, "big") + frame


def start_of(version: int) -> bytes:
    whole = frame_of(version, [], 99)
    return whole[4 : -2 if version >= 9 else -4]  # without the empty array and the tagged fields


def found_by(walker: Any, stream: bytes, version: int, most: int = 100) -> Found:
    numbers = numbers_of(version)
    arguments = (stream, 0, start_of(version), version, MAX_REQUEST, MAX_BATCH, most, numbers, len(numbers))
    requests, order, told, tables, behind = walker.read_requests(*arguments)
    rows = [list(ROW.iter_unpack(table)) for table in tables]
    assert all(row[3:] == (0, 0) for table in rows for row in table)
    ordered = [number for (number,) in NUMBER.iter_unpack(order)]
    return Found(list(REQUEST.iter_unpack(requests)), ordered, list(told), [[row[:3] for row in table] for table in rows], behind)


def naive(stream: bytes, version: int, most: int = 100) -> Found:
    """The same by the general reading."""
    numbers = numbers_of(version)
    found, groups, position = Found([], [], [], [], 0), list[int](), 0
    while len(stream) - position >= 4:
        size = int.from_bytes(stream[position : position + 4], "big", signed=True)
        frame = memoryview(stream)[position + 4 : position + 4 + size]
        if not 0 <= size <= MAX_REQUEST or len(frame) < size:
            break
        try:
            header = read_request_header(frame)
            head = read_produce(frame, header.body, header.api_version)
        except (ProtocolError, ValueError):
            break
        same = (header.api_key, header.api_version, header.client_id, head.transactional_id, head.acks, head.timeout_ms)
        if same != (0, version, "client", None, 1, 500):
            break
        batches = [(numbers.get(key + i.to_bytes(4, "big", signed=True)), r) for key, data in head.topics for i, r in data]
        if not batches or not all(data for _, data in head.topics) or len(found.order) + len(batches) > most:
            break
        if any(number is None or r is None or not HEADER_SIZE <= len(r) <= MAX_BATCH for number, r in batches):
            break
        at = position + 4
        for number, records in batches:
            assert number is not None
            assert records is not None
            at = stream.index(bytes(records), at)
            if number not in groups:
                groups.append(number)
                found.rows.append([])
            found.order.append(groups.index(number))
            found.rows[groups.index(number)].append((len(found.requests), at, at + len(records)))
            at += len(records)
        found.requests.append((header.correlation_id, position + 4, position + 4 + size, len(batches)))
        position += 4 + size
    return found._replace(numbers=groups, behind=position)


@given(version=st.sampled_from(VERSIONS), requests=st.lists(wanted, min_size=1, max_size=4), ids=st.integers(-(2**31), 2**31 - 9))
def test_batches_are_found_by_partition(version: int, requests: list[Wanted], ids: int) -> None:
    stream = b"".join(frame_of(version, request, ids + number) for number, request in enumerate(requests))
    expected = naive(stream, version)
    few = naive(stream, version, most=3)
    for walker in WALKS:
        assert found_by(walker, stream, version) == expected
        assert found_by(walker, stream, version, most=3) == few
        assert found_by(walker, stream[:-1], version).requests == expected.requests[: len(requests) - 1]
    known = [all(index < PARTITIONS for _, data in request for index, _ in data) for request in requests]
    assert all(known) == (len(expected.requests) == len(requests))


@given(
    version=st.sampled_from(VERSIONS),
    requests=st.lists(wanted, min_size=1, max_size=3),
    changes=st.lists(st.tuples(st.integers(0, 2**16), st.integers(0, 255)), min_size=1, max_size=3),
)
def test_nothing_is_found_that_the_general_reading_does_not_find(
    version: int, requests: list[Wanted], changes: list[tuple[int, int]]
) -> None:
    stream = bytearray(b"".join(frame_of(version, request, number) for number, request in enumerate(requests)))
    for at, byte in changes:
        stream[at % len(stream)] = byte
    data = bytes(stream)
    seen = [found_by(walker, data, version) for walker in WALKS]
    assert all(each == seen[0] for each in seen)
    expected = naive(data, version)
    assert seen[0].requests == expected.requests[: len(seen[0].requests)]
    assert seen[0].order == expected.order[: len(seen[0].order)]
    for number, rows in zip(seen[0].numbers, seen[0].rows, strict=True):
        assert rows == expected.rows[expected.numbers.index(number)][: len(rows)]


@given(
    counts=st.lists(st.integers(1, 3), min_size=1, max_size=5),
    first=st.none() | st.sampled_from([0, MAX_SEQUENCE - 2]),
    odd=st.none() | st.tuples(st.integers(0, 4), st.sampled_from(["checksum", "codec", "sequence", "length"])),
    room=st.integers(0, 5),
)
def test_batches_are_checked_as_those_of_a_run(
    counts: list[int], first: int | None, odd: tuple[int, str] | None, room: int
) -> None:
    data, rows, sequence = b"", [], first
    made = []
    for number, count in enumerate(counts):
        is_odd = odd is not None and odd[0] == number
        fields: dict[str, Any] = {}
        if sequence is not None:
            wrong = is_odd and odd is not None and odd[1] == "sequence"
            fields = {"producer_id": 5, "producer_epoch": 0, "base_sequence": 77 if wrong else sequence}
            sequence = (sequence + count) & MAX_SEQUENCE
        batch = bytearray(
            build_batch(
                [Record(0, NOW + number, None, b"v", ())] * count, compression=int(is_odd and odd == (number, "codec")), **fields
            )
        )
        if odd == (number, "checksum"):
            batch[-1] ^= 1
        if odd == (number, "length"):
            batch[11] += 1
        rows.append((number, len(data), len(data) + len(batch), 0, 0))
        data += bytes(batch) + b"between"
        made.append(count)
    table = b"".join(ROW.pack(*row) for row in rows)
    bounds = BOUNDS._replace(offsets=sum(counts[:room]))
    stop = len(counts) if odd is None or (odd[1] == "sequence" and (first is None or odd[0] == 0)) else min(odd[0], len(counts))
    for walker in WALKS:
        taken, number, records, size, _, has_producer = walker.check_batches(data, table, bounds)
        if odd is not None and odd[1] == "sequence" and odd[0] == 0 and first is not None:
            stop = 1  # the second batch does not continue the wrong sequence
        expected = [(*row[:3], count, NOW + row[0]) for row, count in zip(rows, made, strict=True)][: min(stop, room)]
        assert list(ROW.iter_unpack(taken)) == expected
        assert (number, records) == (len(expected), sum(row[3] for row in expected))
        assert size == sum(row[2] - row[1] for row in expected)
        assert has_producer == (first is not None and bool(expected))


@given(
    version=st.sampled_from(VERSIONS),
    requests=st.lists(wanted, min_size=1, max_size=4),
    offsets=st.lists(st.integers(0, 2**60), min_size=6, max_size=6),
    log_start=st.integers(0, 2**40),
)
def test_answers_are_those_that_the_general_way_writes(
    version: int, requests: list[Wanted], offsets: list[int], log_start: int
) -> None:
    stream = b"".join(frame_of(version, request, -number) for number, request in enumerate(requests))
    numbers = numbers_of(version)
    next_offsets, expected = list(offsets), b""
    taken = len(naive(stream, version).requests)
    for number, request in enumerate(requests[:taken]):
        topics = []
        for topic, data in request:
            told = []
            for index, batch in data:
                target = numbers[key_of(version, topic) + index.to_bytes(4, "big")]
                told.append(PartitionAnswer(index, 0, next_offsets[target], -1, log_start))
                next_offsets[target] += read_header(batch).records_count
            topics.append((key_of(version, topic), told))
        expected += write_produce_answer(version, -number, topics)
    for walker in WALKS:
        arguments = (stream, 0, start_of(version), version, MAX_REQUEST, MAX_BATCH, 100, numbers, len(numbers))
        table, order, targets, tables, _ = walker.read_requests(*arguments)
        groups = []
        for target, rows in zip(targets, tables, strict=True):
            checked = walker.check_batches(stream, rows, BOUNDS)[0]
            assert len(checked) == len(rows)
            groups.append((checked, offsets[target], log_start))
        assert walker.answer_spread(stream, table, order, tuple(groups), len(start_of(version)), version) == expected


def _refused() -> Sequence[tuple[str, tuple[object, ...]]]:
    batch = build_batch([Record(0, NOW, None, b"v", ())])
    stream = frame_of(9, [(0, [(0, batch)])], 1)
    start, numbers = start_of(9), numbers_of(9)
    table, order, _, (rows,), _ = multi_partition_scan.read_requests(
        stream, 0, start, 9, MAX_REQUEST, MAX_BATCH, 9, numbers, len(numbers)
    )
    (request,) = REQUEST.iter_unpack(table)
    read = (start, 9, MAX_REQUEST, MAX_BATCH, 9, numbers, len(numbers))
    size, groups = len(start), ((rows, 0, 0),)
    return [
        ("read_requests", (stream, -1, *read)),
        ("read_requests", (stream, len(stream) + 1, *read)),
        ("read_requests", (stream, 0, start[:7], *read[1:])),
        ("read_requests", (stream, 0, *read[:-1], -1)),
        ("check_batches", (stream, rows[:-1], BOUNDS)),
        ("check_batches", (stream, ROW.pack(0, -1, 90, 0, 0), BOUNDS)),
        ("check_batches", (stream, ROW.pack(0, 0, len(stream) + 1, 0, 0), BOUNDS)),
        ("check_batches", (stream, ROW.pack(0, 0, 60, 0, 0), BOUNDS)),
        ("answer_spread", (stream, table[:-1], order, groups, size, 9)),
        ("answer_spread", (stream, table, order[:-1], groups, size, 9)),
        ("answer_spread", (stream, table, order, ((rows[:-1], 0, 0),), size, 9)),
        ("answer_spread", (stream, table, b"", groups, size, 9)),
        ("answer_spread", (stream, table, order, (), size, 9)),
        ("answer_spread", (stream, table, order, ((b"", 0, 0),), size, 9)),
        ("answer_spread", (stream, table, NUMBER.pack(-1), groups, size, 9)),
        ("answer_spread", (stream, table, NUMBER.pack(1), groups, size, 9)),
        ("answer_spread", (stream, table, order, groups, 7, 9)),
        ("answer_spread", (stream, table, order, groups, size + 1, 9)),
        ("answer_spread", (stream, table, order, groups, 2**40, 9)),
        ("answer_spread", (stream, REQUEST.pack(*request[:3], 2), order * 2, ((rows * 2, 0, 0),), size, 9)),
        ("answer_spread", (stream, REQUEST.pack(1, -1, *request[2:]), order, groups, size, 9)),
        ("answer_spread", (stream, REQUEST.pack(1, request[1], len(stream) + 1, 1), order, groups, size, 9)),
        ("answer_spread", (stream, REQUEST.pack(1, request[1], request[1] + size - 1, 1), order, groups, size, 9)),
        ("answer_spread", (stream[:-1] + b"\1", table, order, groups, size, 9)),
    ]


@pytest.mark.parametrize("walker", WALKS)
@pytest.mark.parametrize("case", range(len(_refused())))
def test_tables_that_do_not_fit_what_they_tell_of_are_refused(walker: Any, case: int) -> None:
    name, arguments = _refused()[case]
    with pytest.raises(ValueError, match=r"rows|data|start"):
        getattr(walker, name)(*arguments)


@pytest.mark.skipif(compiled is None, reason="no machine code was made")
def test_machine_code_refuses_what_it_cannot_read() -> None:
    start, numbers = start_of(9), numbers_of(9)
    stream = frame_of(9, [(0, [(0, build_batch([Record(0, NOW, None, b"v", ())]))])], 1)
    read = (start, 9, MAX_REQUEST, MAX_BATCH, 9)
    refused: list[tuple[str, tuple[object, ...]]] = [
        ("read_requests", (stream, 0, *read, numbers)),
        ("read_requests", (stream, "0", *read, numbers, 6)),
        ("read_requests", (stream, 0, *read, [], 6)),
        ("read_requests", (stream, 0, *read, dict.fromkeys(numbers, "one"), 6)),
        ("read_requests", ("text", 0, *read, numbers, 6)),
        ("check_batches", (stream, b"", (1, 2))),
        ("check_batches", (stream, None, BOUNDS)),
        ("answer_spread", (stream, b"", b"", [], 30, 9)),
        ("answer_spread", (stream, b"", b"", (1,), 30, 9)),
        ("answer_spread", (stream, b"", b"", ((b"", 1),), 30, 9)),
        ("answer_spread", (stream, b"", None, (), 30, 9)),
        ("answer_spread", (stream, b"", b"", (), "30", 9)),
    ]
    for name, arguments in refused:
        with pytest.raises((TypeError, SystemError, IndexError)):
            getattr(compiled, name)(*arguments)
