"""A Fetch response that is read while it arrives: the general codec makes it, and it comes in pieces of any size."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.client.streamed_fetch import PIECE_BYTES, STREAM_BYTES, FetchStream, StreamMemory
from barnabas.client.wire import Wire
from barnabas.errors import MalformedMessage
from barnabas.protocol.codec import encode
from barnabas.protocol.messages.api_versions import ApiVersion, ApiVersionsResponse
from barnabas.protocol.messages.fetch import (
    AbortedTransaction,
    EpochEndOffset,
    FetchableTopicResponse,
    FetchRequest,
    FetchResponse,
    PartitionData,
)
from barnabas.protocol.records.batch import build_batch, split_batches

VERSIONS = range(4, FetchResponse.LAST_VERSION + 1)
TOPIC_ID = UUID(int=77)


class Notes:
    """A receiver that keeps everything."""

    def __init__(self) -> None:
        self.began = 0
        self.partitions: list[dict[str, Any]] = []
        self.pieces: list[int] = []

    def begins(self) -> None:
        self.began += 1

    def partition_begins(
        self, topic: str | UUID, index: int, error_code: int, high_watermark: int, log_start_offset: int, size: int
    ) -> None:
        found = {"topic": topic, "index": index, "error": error_code, "high_watermark": high_watermark, "start": log_start_offset}
        self.partitions.append({**found, "size": size, "records": b"", "has_diverged": None})

    def records(self, batches: memoryview) -> None:
        self.pieces.append(len(batches))
        self.partitions[-1]["records"] += bytes(batches)

    def partition_ends(self, *, has_diverged: bool) -> None:
        self.partitions[-1]["has_diverged"] = has_diverged


def wire_of(version: int) -> Wire:
    """A connection with a Fetch request in flight."""
    wire = Wire("tests")
    wire.send_hello()
    versions = ApiVersionsResponse(api_keys=[ApiVersion(api_key=1, min_version=0, max_version=version)])
    wire.receive_hello((0).to_bytes(4, "big") + encode(versions, ApiVersionsResponse.LAST_VERSION))
    wire.send(FetchRequest())
    return wire


def stream(answer: FetchResponse, version: int, sizes: list[int], *, cut: int = 0) -> tuple[Notes, FetchStream]:
    """Pass the frame of an answer in pieces of these sizes, again and again; without its last `cut` bytes."""
    notes = Notes()
    found = FetchStream(notes)
    body = (1).to_bytes(4, "big") + (b"\0" if version >= 12 else b"") + encode(answer, version)
    frame = body[: len(body) - cut]
    memory, wire, at, turn = StreamMemory(found, len(frame)), wire_of(version), 0, 0
    while at < len(frame):
        room = memory.room()
        part = frame[at : at + min(len(room), sizes[turn % len(sizes)])]
        room[: len(part)] = part
        at, turn = at + len(part), turn + 1
        memory.take(len(part), wire)
    assert memory.is_done
    return notes, found


def answer_of(version: int, *partitions: PartitionData) -> FetchResponse:
    topic = FetchableTopicResponse(topic="orders", topic_id=TOPIC_ID, partitions=partitions)
    return FetchResponse(throttle_time_ms=3, responses=[topic], session_id=9 if version >= 7 else 0)


def batches(*sizes: int) -> bytes:
    return b"".join(build_batch([(None, bytes(size))], timestamp_ms=1) for size in sizes)


@pytest.mark.parametrize("version", VERSIONS)
def test_every_version_is_read(version: int) -> None:
    records = batches(10, 200)
    full = PartitionData(
        partition_index=1,
        high_watermark=7,
        last_stable_offset=6,
        log_start_offset=2 if version >= 5 else -1,
        aborted_transactions=[AbortedTransaction(producer_id=1, first_offset=2)] * 400,
        records=records,
    )
    refused = PartitionData(partition_index=2, error_code=6, high_watermark=-1, aborted_transactions=None, records=None)
    diverged = PartitionData(partition_index=3, high_watermark=4, records=b"")
    if version >= 12:
        diverged.diverging_epoch = EpochEndOffset(epoch=1, end_offset=3)
    notes, found = stream(answer_of(version, full, refused, diverged), version, [1000])
    assert notes.began == 1
    topic = TOPIC_ID if version >= 13 else "orders"
    assert [(each["topic"], each["index"], each["error"]) for each in notes.partitions] == [
        (topic, 1, 0),
        (topic, 2, 6),
        (topic, 3, 0),
    ]
    assert (notes.partitions[0]["high_watermark"], notes.partitions[0]["start"]) == (7, 2 if version >= 5 else -1)
    assert [each["records"] for each in notes.partitions] == [records, b"", b""]
    assert [each["has_diverged"] for each in notes.partitions] == [False, False, version >= 12]
    assert (found.throttle_ms, found.session_id) == (3, 9 if version >= 7 else 0)


@given(st.lists(st.integers(1, 3000), min_size=1, max_size=4), st.lists(st.integers(0, 6000), max_size=5), st.integers(0, 60))
def test_any_split_gives_the_same_records(sizes: list[int], values: list[int], cut: int) -> None:
    whole = batches(*values)
    partition = PartitionData(partition_index=0, records=whole + whole[:cut])
    notes, _ = stream(answer_of(17, partition, PartitionData(partition_index=1, records=whole)), 17, sizes)
    assert [each["records"] for each in notes.partitions] == [whole, whole]


def test_records_come_in_pieces_of_whole_batches() -> None:
    records = batches(*[16_000] * 200)
    notes, _ = stream(answer_of(17, PartitionData(records=records)), 17, [65_536])
    assert notes.partitions[0]["records"] == records
    assert len(notes.pieces) > 3
    assert all(PIECE_BYTES - 17_000 < piece <= STREAM_BYTES for piece in notes.pieces[:-1])


def test_records_of_up_to_a_piece_come_together() -> None:
    records = batches(*[100] * 50)
    notes, _ = stream(answer_of(17, PartitionData(records=records)), 17, [7])
    assert notes.pieces == [len(records)]


def test_a_batch_larger_than_the_memory_is_taken_whole() -> None:
    records = batches(3 * STREAM_BYTES, 5)
    notes, _ = stream(answer_of(17, PartitionData(records=records)), 17, [65_536])
    assert notes.partitions[0]["records"] == records


def test_a_batch_that_is_cut_off_is_left_out() -> None:
    records = batches(100, 2 * STREAM_BYTES)
    first = next(header.size for _, header in split_batches(records))
    notes, _ = stream(answer_of(17, PartitionData(records=records[:-1]), PartitionData(partition_index=1)), 17, [65_536])
    assert [each["records"] for each in notes.partitions] == [records[:first], b""]


@pytest.mark.parametrize("cut", [1, 30, 200])
def test_a_frame_that_ends_early_is_malformed(cut: int) -> None:
    with pytest.raises(MalformedMessage):
        stream(answer_of(17, PartitionData(records=batches(300))), 17, [64], cut=cut)


@given(st.integers(5, 150), st.integers(0, 255))
def test_damaged_bytes_never_raise_anything_else(at: int, byte: int) -> None:
    body = bytearray((1).to_bytes(4, "big") + b"\0" + encode(answer_of(17, PartitionData(records=batches(20, 30))), 17))
    body[at % len(body)] = byte
    notes = Notes()
    memory = StreamMemory(FetchStream(notes), len(body))
    wire = wire_of(17)
    try:
        for each in body:
            memory.room()[0] = each
            memory.take(1, wire)
    except MalformedMessage:
        return
    assert memory.is_done
