"""Regions that are kept: readable until the last holder lets go, by one descriptor for each segment."""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path
from threading import Thread

import pytest

from barnabas.server.pinned_regions import PinnedFiles
from barnabas.storage.file_region import FileRegion
from barnabas.storage.files import OsFiles
from barnabas.storage.integrity import SegmentIntegrity


class CountedFiles(OsFiles):
    """Counts the descriptors that were made and closed."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()

    def dup(self, fileno: int, /) -> int:
        self.counts["dup"] += 1
        return os.dup(fileno)

    def close(self, fileno: int, /) -> None:
        self.counts["close"] += 1
        os.close(fileno)


@pytest.fixture
def files() -> CountedFiles:
    return CountedFiles()


@pytest.fixture
def pinned_files(files: CountedFiles) -> PinnedFiles:
    return PinnedFiles(files, 100)


def region(path: Path, data: bytes) -> FileRegion:
    path.write_bytes(data)
    return FileRegion(os.open(path, os.O_RDONLY), 0, len(data), 0, SegmentIntegrity(OsFiles(), 0))


def test_all_regions_of_a_segment_share_a_descriptor(tmp_path: Path, files: CountedFiles, pinned_files: PinnedFiles) -> None:
    found = region(tmp_path / "0.log", b"records")
    regions = [pinned_files.hold(found._replace(position=number)) for number in range(5)]
    assert [each.position for each in regions] == list(range(5))
    assert len({each.fileno for each in regions}) == len(pinned_files) == 1
    assert files.counts == {"dup": 1}
    del regions[1:]
    assert not files.counts["close"]
    regions.clear()
    assert (files.counts["close"], len(pinned_files)) == (1, 0)
    assert pinned_files.hold(found).size == len(b"records"), "the next one has a descriptor again"
    os.close(found.fileno)


def test_a_segment_that_is_deleted_is_read_to_the_end(tmp_path: Path, pinned_files: PinnedFiles) -> None:
    path = tmp_path / "0.log"
    found = region(path, b"records")
    first, second = pinned_files.hold(found), pinned_files.hold(found._replace(position=3, size=4))
    os.close(found.fileno)
    path.unlink()
    other = region(tmp_path / "1.log", b"another")  # its descriptor may have the number of the first one
    del first
    assert os.pread(second.fileno, second.size, second.position) == b"ords"
    assert pinned_files.hold(other).fileno != second.fileno
    os.close(other.fileno)


def test_a_thread_may_be_the_last_to_let_go(tmp_path: Path, files: CountedFiles, pinned_files: PinnedFiles) -> None:
    found = region(tmp_path / "0.log", b"records")
    regions = [pinned_files.hold(found)]
    thread = Thread(target=regions.clear)
    thread.start()
    thread.join()
    assert (files.counts["close"], len(pinned_files)) == (1, 0)
    os.close(found.fileno)
