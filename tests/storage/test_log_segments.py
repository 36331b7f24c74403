"""The list of a log's segments: look-ups and the ways in which it changes."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from barnabas.protocol.records.rows import DESCRIBED
from barnabas.storage.log_segments import LogSegments, retire
from barnabas.storage.segment import Segment
from barnabas.storage.segment.active_segment import RECENT_BATCHES
from barnabas.storage.segment.file_names import file_name
from tests.storage.support import FILES, NOW


def make(folder: Path, *bases: int) -> list[Segment]:
    made = []
    for base in bases:
        segment = Segment.create(FILES, folder, base, NOW)
        segment.size, segment.next_offset = 100 + base, base + 10
        made.append(segment)
    return made


def close(*groups: list[Segment]) -> None:
    for segment in [each for group in groups for each in group]:
        segment.close()


def test_an_offset_belongs_to_the_last_segment_that_begins_at_or_before_it(tmp_path: Path) -> None:
    every = make(tmp_path, 5, 20, 40)
    segments = LogSegments(every)
    assert [segments.index_of(offset) for offset in (4, 5, 19, 20, 39, 40, 1000)] == [-1, 0, 0, 1, 1, 2, 2]
    assert segments.starting_at(0) == every
    assert segments.starting_at(25) == every[1:]
    assert [segments.count_below(offset) for offset in (0, 19, 20, 40, 99)] == [0, 0, 1, 2, 2]
    assert segments.size_bytes == 105 + 120 + 140
    close(every)


def test_replacing_keeps_the_order_and_what_lies_around(tmp_path: Path) -> None:
    folder = tmp_path / "cleaned"
    folder.mkdir()
    every, cleaned = make(tmp_path, 0, 10, 20, 30), make(folder, 10)
    segments = LogSegments(every)
    segments.replace(every[1:3], cleaned)
    assert list(segments) == [every[0], cleaned[0], every[3]]
    assert (segments.bases, segments.active) == ([0, 10, 30], every[3])
    assert cleaned[0].next_offset == 30
    assert segments.size_bytes == 100 + 110 + 130
    with pytest.raises(AssertionError, match="the active segment stays"):
        segments.replace(every[3:], [])
    close(every, cleaned)


def test_retired_segments_are_renamed_now_and_removed_later(tmp_path: Path) -> None:
    every = make(tmp_path, 0, 10, 20)
    segments = LogSegments(every)
    gone = segments.detach_first(2)
    garbage = retire(FILES, gone)
    assert (gone, list(segments)) == (every[:2], every[2:])
    names = {path.name for path in tmp_path.iterdir()}
    assert "00000000000000000000.log.deleted" in names
    assert "00000000000000000010.timeindex.deleted" in names
    garbage.remove()
    assert sorted(path.suffix for path in tmp_path.iterdir()) == [".index", ".log", ".timeindex"]
    close(every[2:])


def test_detaching_behind_an_offset_leaves_the_segment_that_holds_it_active(tmp_path: Path) -> None:
    every = make(tmp_path, 0, 10, 20)
    segments = LogSegments(every)
    assert segments.detach_behind(15) == every[2:]
    assert (segments.active, segments.sealed, segments.sealed_bytes) == (every[1], every[:1], 100)
    close(every)


@given(
    runs=st.lists(
        st.lists(st.tuples(st.integers(70, 5_000), st.integers(1, 60), st.integers(0, 50)), min_size=1, max_size=40),
        min_size=1,
        max_size=30,
    ),
    interval=st.sampled_from([0, 500, 4_096]),
)
@settings(deadline=None, max_examples=60)
def test_many_batches_leave_what_each_of_them_would(runs: list[list[tuple[int, int, int]]], interval: int) -> None:
    """Of a batch: its bytes, its records and its largest timestamp."""
    with TemporaryDirectory() as folder:
        at_once, one_by_one = (Segment.create(FILES, Path(folder), base_offset, 0) for base_offset in (1_000, 2_000))
        for batches in runs:
            described, last = b"", at_once.next_offset - 1
            for size, count, timestamp in batches:
                last += count
                described += DESCRIBED.pack(last, size, timestamp)
                one_by_one.appended(last + 1_000, size, timestamp, interval)
            at_once.appended_many(described, interval)
        for segment in (at_once, one_by_one):
            segment.write_indexes()
        first, second = (
            (
                segment.size,
                segment.next_offset - segment.base_offset,
                segment.max_timestamp,
                segment.offset_of_max_timestamp - segment.base_offset,
                segment.bytes_since_index_entry,
                [Path(folder, file_name(segment.base_offset, suffix)).read_bytes() for suffix in (".index", ".timeindex")],
                [last - segment.base_offset for last in segment.recent_last][-RECENT_BATCHES:],
                list(segment.recent_positions)[-RECENT_BATCHES:],
            )
            for segment in (at_once, one_by_one)
        )
        assert first == second
        for segment in (at_once, one_by_one):
            segment.close()
