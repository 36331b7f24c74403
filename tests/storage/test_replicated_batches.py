"""Batches from a leader: the good batches in front of a bad one, and stretches that one write takes."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.config.topic import TopicConfig
from barnabas.errors import ErrorCode, KafkaError
from barnabas.storage.replicated_batches import good_batches, stretch_from
from tests.storage.support import NOW, batch, open_log

SIZES = st.lists(st.integers(1, 3), min_size=1, max_size=12)


def sent(records: list[int], epochs: list[int] | None = None) -> tuple[bytes, list[int]]:
    """Batches that follow each other from offset 0, of so many records each, and where each begins."""
    data, places, offset = bytearray(), [], 0
    for number, count in enumerate(records):
        places.append(len(data))
        epoch = 0 if epochs is None else epochs[number]
        data += batch(*[b"v" * (number + 1)] * count, base_offset=offset, partition_leader_epoch=epoch)
        offset += count
    return bytes(data), places


@given(SIZES, st.data())
def test_a_cut_last_batch_is_left_out(records: list[int], data: st.DataObject) -> None:
    whole, places = sent(records)
    cut = data.draw(st.integers(0, len(whole)))
    headers, fault = good_batches(memoryview(whole)[:cut], 0)
    assert fault is None
    assert len(headers) == sum(end <= cut for end in [*places[1:], len(whole)])


@given(SIZES, st.data())
def test_what_lies_before_a_flipped_bit_is_good(records: list[int], data: st.DataObject) -> None:
    whole, places = sent(records)
    bad = data.draw(st.integers(0, len(records) - 1))
    broken = bytearray(whole)
    broken[places[bad] + 61] ^= 1
    headers, fault = good_batches(memoryview(broken), 0)
    assert len(headers) == bad
    assert isinstance(fault, KafkaError)
    assert fault.code is ErrorCode.CORRUPT_MESSAGE


def test_batches_must_follow_the_end_of_the_log() -> None:
    whole, _ = sent([2, 1])
    assert [header.base_offset for header in good_batches(memoryview(whole), 0)[0]] == [0, 2]
    headers, fault = good_batches(memoryview(whole), 1)
    assert headers == []
    assert fault is not None
    assert fault.code is ErrorCode.OFFSET_OUT_OF_RANGE


def test_a_length_that_is_too_small_and_an_old_format_are_faults() -> None:
    whole, _ = sent([1])
    short = bytearray(whole)
    struct.pack_into(">i", short, 8, 48)
    old = bytearray(whole)
    old[16] = 1
    for broken, code in ((short, ErrorCode.CORRUPT_MESSAGE), (old, ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT)):
        headers, fault = good_batches(memoryview(broken), 0)
        assert (headers, fault is not None and fault.code) == ([], code)


@given(SIZES, st.lists(st.integers(0, 2), min_size=12, max_size=12), st.integers(1, 1_500))
def test_stretches_cover_everything_within_their_bounds(records: list[int], epochs: list[int], room: int) -> None:
    whole, places = sent(records, sorted(epochs)[: len(records)])
    headers, _ = good_batches(memoryview(whole), 0)
    at = position = 0
    while at < len(headers):
        stop, size = stretch_from(headers, at, room=room, time=NOW + 100, offset=10**6)
        assert stop > at
        assert position == places[at]
        assert size == sum(header.size for header in headers[at:stop])
        assert len({header.partition_leader_epoch for header in headers[at:stop]}) == 1
        assert stop == at + 1 or size <= room
        at, position = stop, position + size
    assert position == len(whole)


@pytest.mark.parametrize("segment_bytes", [200, 400, 10_000])
def test_a_log_takes_in_all_of_it_whatever_its_segments_are(tmp_path: Path, segment_bytes: int) -> None:
    whole, _ = sent([1, 2, 3] * 5, [0] * 4 + [1] * 6 + [4] * 5)
    log = open_log(tmp_path, TopicConfig(segment_bytes=segment_bytes))
    log.appender.append_as_follower(whole, now_ms=NOW)
    assert log.log_end_offset == 30
    assert [epoch for epoch, _ in log.epoch_entries] == [0, 1, 4]
    stored = b"".join(path.read_bytes() for path in sorted(log.directory.glob("*.log")))
    assert stored[: len(whole)] == whole
    log.close()
