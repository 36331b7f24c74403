"""Reading what is not in memory: the loop asks nothing of the disk, and a thread finds where the batches end."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from barnabas.config.topic import TopicConfig
from barnabas.protocol.records.batch_header import HEADER_SIZE, split_batches
from barnabas.storage.file_region import FileRegion
from barnabas.storage.files import OsFiles
from barnabas.storage.log import Log
from barnabas.storage.verify import STEP_BYTES, Verified, verify
from tests.storage.support import append, bytes_of, open_log, with_emptied


class ColdFiles(OsFiles):
    """Only the files in `warm` are in memory. Reads of other files are recorded while `is_noting`."""

    def __init__(self) -> None:
        self.is_noting = False
        self.noted: list[tuple[int, int]] = []
        self.warm: set[int] = set()  # descriptors

    def preadv_nowait(self, fileno: int, buffers: Sequence[bytearray], position: int, /) -> int:
        if fileno in self.warm:
            return super().preadv_nowait(fileno, buffers, position)
        raise BlockingIOError

    def pread(self, fileno: int, size: int, position: int, /) -> bytes:
        if self.is_noting:
            self.noted.append((position, size))
        return os.pread(fileno, size, position)


def make_log(folder: Path, sizes: Sequence[int], config: TopicConfig | None = None) -> tuple[Log, ColdFiles]:
    """A log of batches with values of these sizes, opened anew, so that nothing of it is trusted."""
    log = open_log(folder, config)
    for size in sizes:
        append(log, b"x" * size)
    log.close()
    files = ColdFiles()
    return open_log(folder, config, files=files), files


def read(log: Log, files: ColdFiles, offset: int, max_bytes: int, *, minimum_one: bool = True) -> FileRegion | None:
    files.is_noting = True
    region = log.reader.read(offset, max_bytes, limit_offset=log.log_end_offset, minimum_one=minimum_one, is_verified_later=True)
    files.is_noting = False
    return region


def look(files: ColdFiles, region: FileRegion) -> Verified:
    found = verify(
        files,
        region.fileno,
        region.position,
        region.position + region.size,
        region.base_offset,
        region.integrity.end_offset(),
        region.reach,
    )
    region.integrity.add(region.position, found.end)
    region.integrity.note_end(found.next_offset, found.end)
    return found


@settings(max_examples=30, deadline=None)
@given(
    st.lists(st.integers(1, 3000), min_size=40, max_size=120),
    st.lists(st.integers(61, 6000), min_size=1, max_size=8),
)
def test_a_reader_in_order_gets_every_batch_and_the_loop_reads_nothing(
    tmp_path_factory: pytest.TempPathFactory, sizes: list[int], limits: list[int]
) -> None:
    log, files = make_log(tmp_path_factory.mktemp("cold"), sizes, TopicConfig(segment_bytes=30_000, index_interval_bytes=500))
    with closing(log):
        offset = turn = 0
        active = log.active_base_offset  # the active segment keeps its last batches in memory, so their lookup differs
        while offset < active:
            limit = limits[turn % len(limits)]
            turn += 1
            region = read(log, files, offset, limit)
            assert region is not None
            assert not files.noted, "in order, what the thread found out is enough"
            found = look(files, region)
            assert found.damage is None
            data = os.pread(region.fileno, found.end - region.position, region.position)
            batches = [header for _, header in split_batches(data)]
            assert batches[0].base_offset == offset
            assert len(data) <= limit or len(batches) == 1
            assert found.next_offset == batches[-1].next_offset
            offset = found.next_offset
        assert offset == active


def test_what_was_verified_and_has_left_memory_is_not_read_by_the_loop(tmp_path: Path) -> None:
    log, files = make_log(tmp_path, [500] * 40, TopicConfig(segment_bytes=8000, index_interval_bytes=500))
    segment = log.segments[0]
    segment.integrity.add(0, segment.size)
    segment.index.floor_by_value(segment.size)  # loads the index, which reads a little of it
    files.noted.clear()
    region = read(log, files, 0, 3000)
    assert region is not None
    assert region.size == 3000, "a thread finds where the last whole batch ends"
    assert all(size <= 512 for _, size in files.noted), "of the index"
    assert look(files, region).end < 3000
    log.close()


def test_a_first_batch_that_is_larger_than_the_limit(tmp_path: Path) -> None:
    log, files = make_log(tmp_path, [5000, 100, 100], TopicConfig(segment_bytes=6000))
    whole = split_batches(log.segments[0].path.read_bytes())[0][1].size
    region = read(log, files, 0, 1000)
    assert region is not None
    assert (region.position, region.size) == (0, 1000)
    assert look(files, region).end == whole
    region = read(log, files, 0, 1000, minimum_one=False)
    assert region is not None
    found = look(files, region)
    assert (found.end, found.damage, found.has_records) == (0, None, False)
    assert read(log, files, 0, 10, minimum_one=False) is None
    log.close()


def test_a_first_batch_that_claims_to_be_larger_than_its_segment_is_damage(tmp_path: Path) -> None:
    log, files = make_log(tmp_path, [5000, 100, 100], TopicConfig(segment_bytes=6000))
    path = log.segments[0].path
    data = bytearray(path.read_bytes())
    data[8:12] = (2**30).to_bytes(4, "big")
    path.write_bytes(data)
    region = read(log, files, 0, 1000)
    assert region is not None
    found = look(files, region)
    assert found.end == 0
    assert found.damage is not None
    assert found.damage.reason == "it is no batch"
    log.close()


def test_a_region_of_nothing_but_emptied_batches_is_told_apart(tmp_path: Path) -> None:
    """As compaction leaves them: headers without records."""
    log, files = make_log(tmp_path, [1000] * 20, TopicConfig(segment_bytes=10_000))
    path = log.segments[0].path
    data = with_emptied(path.read_bytes(), 5)
    path.write_bytes(data)
    log.segments[0].size = len(data)
    for limit, has_records in ((3 * HEADER_SIZE, False), (len(data) - 1, True)):
        region = read(log, files, 0, limit)
        assert region is not None
        found = look(files, region)
        assert (found.damage, found.has_records) == (None, has_records)
    log.close()


EMPTIED = 6  # number of batches; they fill two segments
HALVES = TopicConfig(segment_bytes=700, index_interval_bytes=500)  # bytes; a segment has three batches of 200 bytes


@pytest.fixture(name="emptied")
def _emptied(tmp_path: Path) -> Iterator[tuple[Log, ColdFiles]]:
    """A log whose first two segments have nothing but emptied batches."""
    log, files = make_log(tmp_path, [200 - HEADER_SIZE] * (EMPTIED + 4), HALVES)
    paths = [log.segments[slot].path for slot in (0, 1)]
    assert log.segments[2].base_offset == EMPTIED
    log.close()
    for path in paths:
        path.write_bytes(with_emptied(path.read_bytes(), EMPTIED))
        path.with_suffix(".index").unlink()
        path.with_suffix(".timeindex").unlink()
    log = open_log(tmp_path, HALVES, files=files)
    for segment in (*log.segments.sealed, log.segments.active):
        segment.index.floor_by_value(segment.size)  # rebuilds the index, which reads the segment
    yield log, files
    log.close()


def test_what_may_be_nothing_but_emptied_batches_is_for_the_thread_to_see(emptied: tuple[Log, ColdFiles]) -> None:
    log, files = emptied
    region = read(log, files, 0, 1000)
    assert not files.noted
    assert region is not None
    assert (region.position, region.size) == (0, log.segments[0].size)
    assert look(files, region).has_records is False


@pytest.mark.parametrize(("warm", "offset"), [(1, 3), (2, 6), (3, 6)])
def test_emptied_batches_are_stepped_over_as_far_as_they_are_in_memory(
    emptied: tuple[Log, ColdFiles], warm: int, offset: int
) -> None:
    log, files = emptied
    files.warm.update(log.segments[slot].fileno for slot in range(warm))
    region = read(log, files, 0, 1000)
    assert not files.noted
    assert region is not None
    assert region.base_offset == split_batches(bytes_of(region))[0][1].base_offset == offset


def test_no_batch_is_stepped_to_that_may_not_be_read(emptied: tuple[Log, ColdFiles]) -> None:
    log, files = emptied
    files.warm.add(log.segments[0].fileno)
    region = log.reader.read(0, 1000, limit_offset=3, minimum_one=True, is_verified_later=True)
    assert region is not None
    assert region.position == region.base_offset == 0


@pytest.mark.parametrize(
    "sizes", [[STEP_BYTES], [2 * STEP_BYTES + 1], [10, 3 * STEP_BYTES, 10], [STEP_BYTES - 100, 100, STEP_BYTES]]
)
@pytest.mark.parametrize("max_bytes", [1, STEP_BYTES, 100 * STEP_BYTES])
def test_batches_larger_than_what_is_read_at_once_are_whole(tmp_path: Path, sizes: list[int], max_bytes: int) -> None:
    log, files = make_log(tmp_path, sizes)
    offset = 0
    while offset < len(sizes):
        region = read(log, files, offset, max_bytes)
        assert region is not None
        found = look(files, region)
        assert found.damage is None
        assert found.next_offset > offset
        offset = found.next_offset
    log.close()


@pytest.mark.parametrize("max_bytes", [1, 2**20])
def test_a_reader_gets_past_a_segment_that_ends_in_a_gap(tmp_path: Path, max_bytes: int) -> None:
    """As Kafka's compaction leaves it."""
    config = TopicConfig(segment_bytes=500)
    log, files = make_log(tmp_path, [100] * 12, config)
    first = log.segments[0]
    last = split_batches(first.path.read_bytes())[-1]
    log.close()
    os.truncate(first.path, last[0])
    log = open_log(tmp_path, config, files=files)
    assert log.segments[0].next_offset == last[1].next_offset
    offset = 0
    for _ in range(20):
        region = read(log, files, offset, max_bytes)
        if region is None:
            break
        offset = look(files, region).next_offset
    assert offset == log.log_end_offset
    log.close()
