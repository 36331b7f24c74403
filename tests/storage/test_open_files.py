"""The bound on open files of segments: which are closed and when, and that no reader notices."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from barnabas import limits
from barnabas.config.topic import TopicConfig
from barnabas.storage.log import Log
from barnabas.storage.open_files import OpenFiles
from barnabas.storage.segment import Segment
from tests.storage.support import FILES, NOW, TOPIC_ID, append, bytes_of, read_all


class Turns:
    """The calls that wait for a later turn of the loop."""

    def __init__(self) -> None:
        self.waiting: list[Callable[[], None]] = []

    def later(self, action: Callable[[], None]) -> None:
        self.waiting.append(action)

    def run(self) -> None:
        waiting, self.waiting = self.waiting, []
        for action in waiting:
            action()


def make(folder: Path, open_files: OpenFiles, count: int) -> list[Segment]:
    made = [Segment.create(FILES, folder, number, NOW) for number in range(count)]
    for segment in made:
        segment.join(open_files)
    return made


def is_open(segment: Segment) -> bool:
    return segment._fileno is not None


def open_log(folder: Path, open_files: OpenFiles) -> Log:
    return Log.open(
        folder / "topic-0",
        config=TopicConfig(segment_bytes=200),
        files=FILES,
        now_ms=NOW,
        clean_shutdown=True,
        topic_id=TOPIC_ID,
        open_files=open_files,
    )


def test_nothing_is_closed_before_the_turn_of_the_loop_ends(tmp_path: Path) -> None:
    turns = Turns()
    segments = make(tmp_path, OpenFiles(2, turns.later), 5)
    assert all(map(is_open, segments))
    assert len(turns.waiting) == 1
    turns.run()
    assert [is_open(segment) for segment in segments] == [False, False, False, True, True]
    for segment in segments:
        segment.close()


def test_one_that_was_used_is_passed_over_once(tmp_path: Path) -> None:
    turns = Turns()
    open_files = OpenFiles(2, turns.later)
    segments = make(tmp_path, open_files, 2)
    assert segments[0].fileno >= 0
    third = Segment.create(FILES, tmp_path, 9, NOW)
    third.join(open_files)
    turns.run()
    assert (is_open(segments[0]), is_open(segments[1])) == (True, False)
    assert segments[1].fileno >= 0
    turns.run()
    assert (is_open(segments[0]), is_open(segments[1]), is_open(third)) == (True, True, False)
    for segment in (*segments, third):
        segment.close()
    assert len(open_files) == 0


def test_one_that_a_flush_works_on_stays_open(tmp_path: Path) -> None:
    turns = Turns()
    segments = make(tmp_path, OpenFiles(1, turns.later), 3)
    for segment in segments:
        segment.pins = 1
    turns.run()
    assert all(map(is_open, segments))
    for segment in segments:
        segment.close()


def test_files_that_are_held_elsewhere_count_up_to_half(tmp_path: Path) -> None:
    turns, held = Turns(), ["a file"]
    open_files = OpenFiles(4, turns.later, held)
    segments = make(tmp_path, open_files, 4)
    turns.run()
    assert len(open_files) == 3
    held += ["another"] * 5
    more = Segment.create(FILES, tmp_path, 7, NOW)
    more.join(open_files)
    turns.run()
    assert len(open_files) == 2
    for segment in (*segments, more):
        segment.close()


def test_readers_are_told_when_there_are_far_too_many(tmp_path: Path) -> None:
    turns = Turns()
    open_files = OpenFiles(4, turns.later)
    segments = make(tmp_path, open_files, 5)
    assert not open_files.is_crowded
    more = Segment.create(FILES, tmp_path, 7, NOW)
    more.join(open_files)
    assert open_files.is_crowded
    turns.run()
    assert not open_files.is_crowded
    for segment in (*segments, more):
        segment.close()


def test_a_log_of_many_segments_is_read_and_written_with_few_open(tmp_path: Path) -> None:
    turns = Turns()
    open_files = OpenFiles(2, turns.later)
    log = open_log(tmp_path, open_files)
    for number in range(40):
        append(log, b"%d" % number)
        turns.run()
        assert len(open_files) <= 2
    offset = 0
    while offset < 40:
        region = log.reader.read(offset, 1, limit_offset=40, minimum_one=True)
        assert len(bytes_of(region)) > 61
        offset += 1
        turns.run()
        assert len(open_files) <= 2
    assert [record.value for record in read_all(log)] == [b"%d" % number for number in range(40)]
    log.close()
    assert len(open_files) == 0


def test_segments_that_leave_the_log_are_not_counted_and_stay_readable(tmp_path: Path) -> None:
    turns = Turns()
    open_files = OpenFiles(2, turns.later)
    log = open_log(tmp_path, open_files)
    for _ in range(20):
        append(log, b"x" * 50)
    turns.run()
    region = log.reader.read(0, 1, limit_offset=20, minimum_one=True)
    before = bytes_of(region)
    log.truncator.delete_records_before(15)
    turns.run()
    assert bytes_of(region) == before
    assert len(open_files) <= 2
    log.abandon()


def test_a_log_that_opens_again_has_no_file_open_until_it_is_used(tmp_path: Path) -> None:
    open_files = OpenFiles(100, Turns().later)
    log = open_log(tmp_path, open_files)
    for _ in range(20):
        append(log)
    log.close()
    log = open_log(tmp_path, open_files)
    assert len(open_files) == 0
    append(log)
    assert 1 <= len(open_files) <= 2  # the active segment and, after a roll, the previous one
    assert len(read_all(log)) == 21
    assert len(open_files) > 5
    log.close()


def test_windows_of_indexes_are_bounded_and_go_with_their_segment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "MAX_WINDOWED_INDEXES", 2)
    open_files = OpenFiles(100, Turns().later)
    segments = make(tmp_path, open_files, 4)
    for segment in segments:
        for number in range(5):
            segment.index.append(number, 10 * number)
        segment.index.write()
        segment.index.seal()

    def look(segment: Segment) -> None:
        assert segment.index.floor_by_value(25, keeps_window=True) == (2, 20)
        open_files.keep_windows(segment)

    def with_windows() -> list[bool]:
        return [segment.index.floor_in_windows(25) is not None for segment in segments]

    for segment in (*segments[:3], segments[1], segments[3]):
        look(segment)
    assert with_windows() == [False, True, False, True]
    segments[1].close()
    segments[3].leave()
    assert with_windows() == [False] * 4
    for segment in segments:
        segment.close()
