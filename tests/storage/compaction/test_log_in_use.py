"""A log that is compacted while others use it: readers, the bound on open files, truncations, retention, a disk that fails."""

from __future__ import annotations

import asyncio
import errno
from collections.abc import Callable
from pathlib import Path

import pytest
from msgspec.structs import replace

from barnabas.errors import CorruptLog, LogDirFailed, SegmentsGone
from barnabas.protocol.records.batch import split_batches
from barnabas.storage import file_region
from barnabas.storage.compaction.cleaner import clean
from barnabas.storage.compaction.segment_replacement import replace_segments
from barnabas.storage.compaction.task import CleanedGroup
from barnabas.storage.log import MAX_OFFSET, Log
from barnabas.storage.open_files import OpenFiles
from barnabas.testing.failing_files import FailingFiles
from tests.storage.compaction.support import SMALL, compact, compacted_log, engine_of, last_of_each_key, put, roll, task_of
from tests.storage.support import FILES, NOW, TOPIC_ID, bytes_of, open_log, read_all

PLAIN = engine_of("plain")


def filled(folder: Path, count: int = 60, keys: int = 9) -> Log:
    log = compacted_log(folder)
    for number in range(count):
        put(log, (b"%d" % (number % keys), b"%d" % number))
    roll(log)
    put(log, (b"active", b"segment"))
    return log


def groups_of(log: Log, **fields: int) -> list[CleanedGroup]:
    """All groups, written and not swapped."""
    return list(clean(task_of(log, **fields), FILES, PLAIN, lambda _read, _written: None))


def names_but_cleaned(log: Log) -> set[str]:
    return {path.name for path in log.directory.iterdir() if path.suffix != ".cleaned"}


class Steps:
    """Stops a swap before each of its steps in a thread."""

    def __init__(self, before: dict[int, Callable[[], None]]) -> None:
        self._before = before
        self.count = 0

    async def __call__(self, job: Callable[[], None]) -> None:
        self._before.get(self.count, lambda: None)()
        self.count += 1
        job()


def test_a_reader_finishes_what_it_began(tmp_path: Path) -> None:
    log = filled(tmp_path)
    region = log.reader.read(0, 10**6, limit_offset=log.log_end_offset, minimum_one=True)
    before = bytes_of(region)
    compact(log, PLAIN)
    assert bytes_of(region) == before
    for garbage in log.truncator.take_garbage():
        garbage.remove()
    assert not list(log.directory.glob("*.deleted"))
    log.close()


def test_only_segments_of_the_log_count_as_open(tmp_path: Path) -> None:
    waiting: list[Callable[[], None]] = []
    open_files = OpenFiles(2, waiting.append)
    filled(tmp_path).close()
    log = Log.open(
        tmp_path / "topic-0", config=SMALL, files=FILES, now_ms=NOW, clean_shutdown=True, topic_id=TOPIC_ID, open_files=open_files
    )
    before = read_all(log)
    compact(log, PLAIN, segment_bytes=300)
    assert len(log.segments) > 3
    assert last_of_each_key(read_all(log)) == last_of_each_key(before)
    assert len(open_files) == sum(segment._fileno is not None for segment in log.segments) > 2
    while waiting:
        waiting.pop()()
    assert len(open_files) == 2
    assert last_of_each_key(read_all(log)) == last_of_each_key(before)  # under their current names
    for garbage in log.truncator.take_garbage():
        garbage.remove()
    log.close()
    assert not len(open_files)


def test_retention_and_truncations_wait_for_a_swap(tmp_path: Path) -> None:
    log = filled(tmp_path)
    (group, *_) = groups_of(log)
    seen = []

    def look() -> None:
        assert log.is_swapping
        log.truncator.delete_records_before(40)
        assert log.truncator.apply_retention(NOW) == 0
        log.truncator.detach_below_start()
        assert log.first_offset == 0
        with pytest.raises(AssertionError, match="waits for the swap"):
            log.truncator.truncate_to(1)
        log.truncator.truncate_to(log.log_end_offset)
        seen.append(True)

    asyncio.run(replace_segments(log, group, NOW, Steps({1: look, 2: look})))
    assert seen == [True, True]
    assert not log.is_swapping
    log.truncator.detach_below_start()
    assert log.first_offset > 0
    log.close()


def test_a_log_says_how_far_it_was_cut(tmp_path: Path) -> None:
    log = filled(tmp_path)
    assert log.lowest_truncation == MAX_OFFSET
    log.truncator.truncate_to(30)
    put(log, (b"a", b"1"))
    log.truncator.truncate_to(31)
    log.truncator.truncate_to(30)
    assert log.lowest_truncation == 30
    log.close()


def test_a_swap_that_cannot_be_announced_changes_nothing(tmp_path: Path) -> None:
    log = filled(tmp_path)
    (group, *_) = groups_of(log)
    before, names = read_all(log), names_but_cleaned(log)
    files = FailingFiles()
    files.fail(frozenset({"sync_directory"}), log.directory, errno.ENOSPC)
    log.files = files
    with pytest.raises(OSError, match="No space"):
        asyncio.run(replace_segments(log, group, NOW, Steps({})))
    assert not log.is_swapping
    assert read_all(log) == before
    assert names_but_cleaned(log) == names
    log.close()


@pytest.mark.parametrize("step", [1, 2])
def test_a_disk_that_fails_within_a_swap_is_used_no_more(tmp_path: Path, step: int) -> None:
    log = filled(tmp_path)
    (group, *_) = groups_of(log)
    before = read_all(log)
    log.files = files = FailingFiles()

    def fail() -> None:
        files.fail(frozenset({"sync_directory", "rename"}), log.directory, errno.ENOSPC)

    with pytest.raises(LogDirFailed):
        asyncio.run(replace_segments(log, group, NOW, Steps({step: fail})))
    log.truncator.take_garbage()
    log.abandon()
    again = open_log(tmp_path, SMALL, clean=False, recovery_point=log.log_end_offset)
    assert last_of_each_key(read_all(again)) == last_of_each_key(before)
    assert again.log_end_offset == log.log_end_offset
    again.close()


def test_a_closed_log_takes_no_segments(tmp_path: Path) -> None:
    log = filled(tmp_path)
    (group, *_) = groups_of(log)
    log.close()
    with pytest.raises(SegmentsGone):
        asyncio.run(replace_segments(log, group, NOW, Steps({})))


def test_leftovers_of_a_cleaning_are_gone_before_the_next_one_swaps(tmp_path: Path) -> None:
    """A start takes a `.swap` behind a `.cleaned` for one that was not announced, and the old segments may be gone by then."""
    log = filled(tmp_path)
    groups_of(log)
    for name in ("00000000000000000040.log.cleaned", "00000000000000000050.index.swap"):
        (log.directory / name).write_bytes(b"of a process that was killed")
    cleaning = clean(task_of(log), FILES, PLAIN, lambda _read, _written: None)
    group = next(cleaning)
    left = {path.name for path in log.directory.iterdir() if path.suffix in (".cleaned", ".swap")}
    assert {int(name.partition(".")[0]) for name in left} == {group.base_offset}
    cleaning.close()
    log.close()


def emptied(folder: Path, count: int) -> Log:
    """A log that begins with as many emptied batches, of producers that the broker knows, in segments of four."""
    log = compacted_log(folder, replace(SMALL, segment_bytes=400))
    for number in range(count):
        put(log, (b"a" * 30, b"%d" % number), producer_id=number, producer_epoch=0, base_sequence=0)
    put(log, (b"a" * 30, b"last"))
    roll(log)
    compact(log, PLAIN, segment_bytes=250)
    assert len(log.segments) > 4
    return log


def counts_in(data: bytes) -> list[int]:
    return [header.records_count for _, header in split_batches(data)]


def test_a_read_steps_over_so_many_emptied_batches_and_no_more(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(file_region, "MOST_SKIPPED", 7)
    log = emptied(tmp_path, 20)
    read = log.reader.read(0, 1000, limit_offset=log.log_end_offset, minimum_one=True)
    assert read is not None
    assert set(counts_in(bytes_of(read))) == {0}
    (_, first), *_ = split_batches(bytes_of(read))
    assert first.base_offset == 7
    assert [record.offset for record in read_all(log)] == [20]  # the reader gets there in several reads
    log.close()


def test_who_copies_a_log_gets_emptied_batches_too(tmp_path: Path) -> None:
    log = emptied(tmp_path, 20)
    offset, seen = 0, []
    while offset < log.active_base_offset:
        data = bytes_of(log.reader.read(offset, 1000, limit_offset=log.log_end_offset, minimum_one=True, as_stored=True))
        for _, header in split_batches(data):
            seen.append(header.producer_id)
            offset = header.next_offset
    assert seen == [*range(20), -1]
    log.close()


def test_damage_is_not_stepped_over(tmp_path: Path) -> None:
    log = emptied(tmp_path, 20)
    with log.segments[1].path.open("r+b") as file:
        file.seek(8)
        file.write(b"\x00\x00\x00\x01")  # the length of its first batch
    read = log.reader.read(0, 1000, limit_offset=log.log_end_offset, minimum_one=True)
    assert read is not None
    assert read.position == 0
    assert set(counts_in(bytes_of(read))) == {0}
    damaged = log.segments[1].base_offset
    try:
        region = log.reader.read(damaged, 1000, limit_offset=log.log_end_offset, minimum_one=True)
    except CorruptLog:
        region = None
    assert region is None or region.position == 0
    log.abandon()


def test_a_log_of_records_is_read_without_a_look_at_what_follows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = filled(tmp_path)
    monkeypatch.setattr(file_region, "_skip_emptied", lambda *_, **__: pytest.fail("looked"))
    assert len(read_all(log)) == 61
    log.close()


def test_the_newest_record_is_found_where_a_newer_one_was_compacted(tmp_path: Path) -> None:
    log = compacted_log(tmp_path)
    put(log, (b"b", b"1"), time_ms=NOW + 5)
    put(log, (b"a", b"1"), time_ms=NOW + 100, producer_id=1, producer_epoch=0, base_sequence=0)
    put(log, (b"a", b"2"), time_ms=NOW + 10)
    roll(log)
    compact(log, PLAIN)
    found = log.reader.offset_of_max_timestamp()
    assert found is not None
    assert (found.offset, found.timestamp) == (2, NOW + 10)
    places = [log.reader.offset_for_timestamp(NOW + at) for at in (0, 6)]
    assert [place and place.offset for place in places] == [0, 2]
    assert log.reader.offset_for_timestamp(NOW + 50) is None
    log.close()


def test_a_segment_without_times_is_as_old_as_those_it_was_made_of(tmp_path: Path) -> None:
    log = filled(tmp_path)
    old = log.segments[0].created_ms
    for segment in log.segments:
        segment.written_ms = NOW - 5
    for group in groups_of(log):
        asyncio.run(replace_segments(log, group, NOW + 10**6, Steps({})))
    assert (log.segments[0].created_ms, log.segments[0].written_ms) == (old, NOW - 5)
    log.close()
