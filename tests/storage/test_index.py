"""The sparse index: the part in memory and the part in the file together, beside a list."""

from __future__ import annotations

import os
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from barnabas.config.topic import TopicConfig
from barnabas.protocol.records.batch import read_header
from barnabas.storage.files import OsFiles
from barnabas.storage.index import KEPT_ENTRIES, OFFSET_ENTRY, SparseIndex
from barnabas.storage.index_window import MAX_WINDOWS
from barnabas.storage.open_files import OpenFiles
from tests.storage.support import FILES, append, bytes_of, open_log, read_all, records_in

COUNT = 5 * KEPT_ENTRIES


def make(folder: Path, count: int = COUNT) -> tuple[SparseIndex, list[tuple[int, int]]]:
    index = SparseIndex(FILES, folder / "0.index", OFFSET_ENTRY)
    index.start_empty()
    index.write(exact=True)
    entries = [(3 * number + 2, 100 * number + 7) for number in range(count)]
    for entry in entries:
        index.append(*entry)
    return index, entries


def floor(entries: list[tuple[int, int]], bound: int, column: int) -> tuple[int, int] | None:
    slot = bisect_right(entries, bound, key=lambda entry: entry[column]) - 1
    return entries[slot] if slot >= 0 else None


@pytest.mark.parametrize("state", ["grown", "opened again", "sealed"])
def test_every_entry_is_found_wherever_it_is(tmp_path: Path, state: str) -> None:
    index, entries = make(tmp_path)
    if state != "grown":
        index.write(exact=True)
        index = SparseIndex(FILES, tmp_path / "0.index", OFFSET_ENTRY)
        index.load_active() if state == "opened again" else index.load_sealed()
    assert (len(index), index.first(), index.last()) == (COUNT, entries[0], entries[-1])
    for bound in [-1, 0, 1, 2, 3, 3 * COUNT, *range(0, 3 * COUNT, 61)]:
        assert index.floor(bound) == floor(entries, bound, 0), bound
        assert index.floor_by_value(bound * 33) == floor(entries, bound * 33, 1), bound
    assert [index.entry(slot) for slot in range(0, COUNT, 97)] == entries[::97]


@given(
    steps=st.lists(st.tuples(st.integers(1, 2_000), st.integers(1, 40)), min_size=1, max_size=300),
    bounds=st.lists(st.integers(-5, 500_000), min_size=1, max_size=20),
)
@settings(deadline=None)
def test_entries_that_lie_unevenly_are_found_in_the_file(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[int, int]], bounds: list[int]
) -> None:
    index = SparseIndex(FILES, tmp_path_factory.mktemp("index") / "0.index", OFFSET_ENTRY)
    index.start_empty()
    index.write(exact=True)
    entries = [(sum(step for step, _ in steps[:at]), sum(value for _, value in steps[:at])) for at in range(1, len(steps) + 1)]
    for entry in entries:
        index.append(*entry)
    index.write(exact=True)
    index.seal()
    for bound in [*bounds, *(entry[0] for entry in entries[::7]), *(entry[1] for entry in entries[::7])]:
        assert index.floor(bound) == floor(entries, bound, 0)
        assert index.floor_by_value(bound) == floor(entries, bound, 1)


class ColdFiles(OsFiles):
    """Nothing is in memory; which files are read all the same is noted."""

    def __init__(self) -> None:
        self.read: list[int] = []

    def preadv_nowait(self, fileno: int, buffers: Sequence[bytearray], position: int, /) -> int:
        raise BlockingIOError

    def pread(self, fileno: int, size: int, position: int, /) -> bytes:
        self.read.append(fileno)
        return os.pread(fileno, size, position)


def test_what_a_read_ends_with_is_not_fetched_from_the_disk(tmp_path: Path) -> None:
    files = ColdFiles()
    log = open_log(tmp_path, TopicConfig(index_interval_bytes=200), files=files)
    for number in range(900):
        append(log, b"%d" % number * 5)
    log.appender.maybe_roll(2**50)
    at, segment = 0, log.segments[0]
    while at + 5_000 < segment.size:
        end = segment.lookup.whole_batches_end(at, at + 5_000)
        assert end is not None, "it is asked for now"
        assert at < end <= at + 5_000
        assert end > at + 4_500, "at most an interval of the index and a batch less"
        assert segment.fileno not in files.read
        assert read_header(os.pread(segment.fileno, 100, end)).base_offset > 0, "a batch begins there"
        at = end
    log.close()


def test_a_reader_goes_on_where_it_stopped_without_a_search(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = open_log(tmp_path, TopicConfig(index_interval_bytes=200))
    for number in range(900):
        append(log, b"%d" % number * 5)
    log.appender.maybe_roll(2**50)
    searched: list[int] = []
    search = SparseIndex._search

    def spy(
        index: SparseIndex, count: int, column: int, bound: int, *, keeps_window: bool = False
    ) -> tuple[int, tuple[int, int] | None]:
        searched.append(column)
        return search(index, count, column, bound, keeps_window=keeps_window)

    monkeypatch.setattr(SparseIndex, "_search", spy)
    assert [record.offset for record in read_all(log, max_bytes=5_000)] == list(range(900))
    assert searched.count(1) > 10, "a look for where the read ends"
    assert searched.count(0) <= 1, "and one, at most, for where to begin"
    log.truncator.truncate_to(500)
    for number in range(400):
        append(log, b"other %d" % number)
    assert read_all(log, 400, max_bytes=3_000)[-1].value == b"other 399"
    log.close()


class CountingFiles(OsFiles):
    """How often each kind of file is opened."""

    def __init__(self) -> None:
        self.opened: Counter[str] = Counter()

    def open(self, path: Path, *, create: bool = False) -> int:
        self.opened[path.suffix] += 1
        return super().open(path, create=create)


def test_readers_in_order_open_the_index_once_for_many_reads(tmp_path: Path) -> None:
    files = CountingFiles()
    log = open_log(tmp_path, TopicConfig(index_interval_bytes=200), files=files, open_files=OpenFiles(10, lambda _: None))
    for number in range(3000):
        append(log, b"%d" % number * 5)
    log.appender.maybe_roll(2**50)
    files.opened.clear()
    places = [0, 1000, 2000]
    reads = 0
    while places[-1] < 2900:
        for slot, offset in enumerate(places):
            region = log.reader.read(offset, 3_000, limit_offset=log.log_end_offset, minimum_one=True)
            assert region is not None
            records = records_in(bytes_of(region))
            assert [record.offset for record in records] == list(range(offset, offset + len(records)))
            places[slot] += len(records)
            reads += 1
    assert reads > 60
    assert files.opened[".index"] < reads / 10
    assert len(log.segments[0].index._windows) <= MAX_WINDOWS
    log.close()


def test_memory_holds_the_end_of_an_active_index_only(tmp_path: Path) -> None:
    index, _ = make(tmp_path, 20 * KEPT_ENTRIES)
    assert index._tail is not None
    assert KEPT_ENTRIES <= len(index._tail.keys) <= 3 * KEPT_ENTRIES


@settings(max_examples=30, deadline=None)
@given(
    st.lists(st.tuples(st.sampled_from(["truncate", "key", "value", "append", "write"]), st.integers(0, 3 * COUNT)), max_size=12)
)
def test_truncating_keeps_what_a_list_keeps(tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[str, int]]) -> None:
    folder = tmp_path_factory.mktemp("index")
    index, entries = make(folder)
    for what, number in steps:
        if what == "truncate":
            count = min(number, len(entries))
            index.truncate(count)
            del entries[count:]
        elif what == "key":
            index.truncate_below(key=number)
            entries = [entry for entry in entries if entry[0] < number]
        elif what == "value":
            index.truncate_below(value=number * 33)
            entries = [entry for entry in entries if entry[1] < number * 33]
        elif what == "append":
            for _ in range(number % 1500):
                key, value = entries[-1] if entries else (0, 0)
                entries.append((key + 1, value + 40))
                index.append(*entries[-1])
        else:
            index.write(exact=number % 2 == 0)
        assert len(index) == len(entries)
        for bound in range(number % 977, 100 * COUNT, 33_000):
            assert index.floor_by_value(bound, keeps_window=True) == floor(entries, bound, 1)
            assert index.floor_in_windows(bound) in (None, floor(entries, bound, 1))
        assert index.last() == (entries[-1] if entries else None)
    index.write(exact=True)
    data = FILES.read_file(folder / "0.index")
    assert list(OFFSET_ENTRY.iter_unpack(data)) == entries


def damage_partial(data: bytes) -> bytes:
    return data[:-3]


def damage_order(data: bytes) -> bytes:
    return data[8:] + data[:8]


def damage_past_end(data: bytes) -> bytes:
    return data[:-4] + b"\x7f\xff\xff\xff"


@pytest.mark.parametrize("damage", [damage_partial, damage_order, damage_past_end])
def test_an_index_that_cannot_be_is_made_anew_when_it_is_used(
    tmp_path: Path, damage: Callable[[bytes], bytes], caplog: pytest.LogCaptureFixture
) -> None:
    config = TopicConfig(segment_bytes=20_000)
    log = open_log(tmp_path, config)
    for _ in range(60):
        append(log, b"x" * 1000)
    log.close()
    path = tmp_path / "topic-0" / f"{0:020d}.index"
    right = path.read_bytes()
    path.write_bytes(damage(right))
    caplog.set_level("WARNING")
    log = open_log(tmp_path, config)
    assert not caplog.records
    assert len(read_all(log, 0)) == 60
    assert not caplog.records, "reading from the beginning takes no index"
    assert len(read_all(log, 1)) == 59
    assert "event=indexes-made-anew" in caplog.text
    assert path.read_bytes() == right
    log.close()
