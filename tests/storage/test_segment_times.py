"""Times of segments that were not read since the start, which a thread finds out instead of the loop."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from barnabas.config.topic import TopicConfig
from barnabas.storage.log import Log
from tests.storage.support import NOW, UnsyncedFiles, append, open_log, retain

DAY_MS = 86_400_000
CONFIG = TopicConfig(segment_bytes=1000, index_interval_bytes=100, retention_ms=30 * DAY_MS, segment_ms=1000 * DAY_MS)
SECOND_MS = 1000


class AskedFiles(UnsyncedFiles):
    """Notes which files are opened, and asked for their age."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def open(self, path: Path, *, create: bool = False) -> int:
        self.asked.append(path.name)
        return super().open(path, create=create)

    def modified_ms(self, path: Path, /) -> int:
        self.asked.append(path.name)
        return super().modified_ms(path)


@pytest.fixture
def files() -> AskedFiles:
    return AskedFiles()


@pytest.fixture
def log(tmp_path: Path, files: AskedFiles) -> Iterator[Log]:
    """Sealed segments of four records, one a second, of which nothing but their names is known."""
    written = open_log(tmp_path, CONFIG)
    for number in range(80):
        append(written, b"x" * 150, time_ms=NOW + number * SECOND_MS)
    assert len(written.segments) > 15
    written.close()
    log = open_log(tmp_path, CONFIG, files=files)
    files.asked.clear()
    yield log
    log.close()


def test_retention_asks_nothing_of_the_disk_that_a_thread_has_found(log: Log, files: AskedFiles) -> None:
    look = log.reader.unknown_ages(NOW)
    assert look is not None
    assert files.asked == []
    look.run()
    looked_at = set(files.asked)
    look.note()
    files.asked.clear()
    assert (log.appender.maybe_roll(NOW), retain(log)) == (False, 0)
    assert files.asked == []
    assert {name.partition(".")[0] for name in looked_at} == {f"{log.first_offset:020d}", f"{log.active_base_offset:020d}"}
    assert log.reader.unknown_ages(NOW) is None


def test_as_many_segments_are_looked_at_as_are_too_old_and_one(log: Log, files: AskedFiles) -> None:
    base = log.segments[5].base_offset
    now_ms = NOW + CONFIG.retention_ms + base * SECOND_MS
    look = log.reader.unknown_ages(now_ms)
    assert look is not None
    look.run()
    look.note()
    files.asked.clear()
    assert log.truncator.apply_retention(now_ms) == 5
    assert files.asked == []
    assert not log.segments[6].knows("max_timestamp")


@pytest.mark.parametrize(
    "changed",
    [replace(CONFIG, retention_ms=-1), replace(CONFIG, cleanup_policy=frozenset({"compact"}))],
    ids=["kept for ever", "compacted"],
)
def test_where_no_age_counts_the_active_segment_alone_is_looked_at(log: Log, files: AskedFiles, changed: TopicConfig) -> None:
    log.update_config(changed)
    look = log.reader.unknown_ages(NOW)
    assert look is not None
    look.run()
    assert {name.partition(".")[0] for name in files.asked} == {f"{log.active_base_offset:020d}"}


@pytest.mark.parametrize("second", [0, 41, 79, 80])
def test_a_time_is_looked_for_in_a_thread(log: Log, files: AskedFiles, second: int) -> None:
    time_ms = NOW + second * SECOND_MS
    search = log.reader.sealed_search(time_ms)
    assert search is not None
    assert files.asked == []
    search.run()
    search.note()
    files.asked.clear()
    found = log.reader.offset_for_timestamp(time_ms, search)
    assert (found and found.offset) == (second if second < 80 else None)
    assert not [name for name in files.asked if int(name.partition(".")[0]) < log.active_base_offset]
    again = log.reader.sealed_search(time_ms)
    assert (again is None) == (second >= log.active_base_offset), "what is known of times is not asked again"


def test_what_was_found_of_a_log_that_has_changed_is_not_believed(log: Log) -> None:
    search = log.reader.sealed_search(NOW)
    assert search is not None
    search.run()
    log.truncator.delete_records_before(10)
    log.truncator.detach_below_start()
    search.note()
    found = log.reader.offset_for_timestamp(NOW, search)
    assert found is not None
    assert found.offset == 10


def test_a_thread_makes_no_index_anew(log: Log) -> None:
    segment = log.segments[0]
    index = segment.directory / segment.time_index_name
    index.write_bytes(index.read_bytes()[:-1])
    damaged = index.read_bytes()
    look, search = log.reader.unknown_ages(NOW), log.reader.sealed_search(NOW)
    assert look is not None
    assert search is not None
    look.run()
    search.run()
    assert index.read_bytes() == damaged
    look.note()
    assert not segment.knows("max_timestamp")
    assert segment.max_timestamp == NOW + (segment.next_offset - 1) * SECOND_MS
    assert index.read_bytes() != damaged, "whoever needs it on the loop makes it anew"


def test_what_a_thread_cannot_read_is_left_to_the_loop(log: Log) -> None:
    look, search = log.reader.unknown_ages(NOW), log.reader.sealed_search(NOW)
    assert look is not None
    assert search is not None
    for segment in log.segments.sealed[:3]:
        segment.path.rename(segment.path.with_suffix(".away"))
    look.run()
    search.run()
    look.note()
    search.note()
    assert not log.segments[0].knows("max_timestamp")
    for segment in log.segments.sealed[:3]:
        segment.path.with_suffix(".away").rename(segment.path)
    found = log.reader.offset_for_timestamp(NOW, search)
    assert found is not None
    assert found.offset == 0
