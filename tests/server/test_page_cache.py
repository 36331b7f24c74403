"""Regions that may be sent directly, regions small enough to be copied, and regions that a thread must check first."""

from __future__ import annotations

import errno
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from barnabas.protocol.fetch import Copied
from barnabas.server.page_cache import COPIED_BYTES, at_hand
from barnabas.storage.file_region import FileRegion
from barnabas.storage.files import OsFiles
from barnabas.storage.integrity import SegmentIntegrity

DATA = bytes(range(256)) * 256


class Disk(OsFiles):
    """Its reads that do not wait fail as told, or give fewer bytes."""

    def __init__(self, *, fault: int = 0, most: int = 2**30) -> None:
        self._fault, self._most = fault, most
        self.reads = 0

    def preadv_nowait(self, fileno: int, buffers: Sequence[bytearray], position: int, /) -> int:
        self.reads += 1
        if self._fault:
            raise OSError(self._fault, "as told")
        return min(super().preadv_nowait(fileno, buffers, position), self._most)


@pytest.fixture
def fileno(tmp_path: Path) -> Iterator[int]:
    path = tmp_path / "0.log"
    path.write_bytes(DATA)
    with path.open("rb") as file:
        yield file.fileno()


def region_of(fileno: int, size: int, *, trusted_from: int = 0, reach: int = 0) -> FileRegion:
    return FileRegion(fileno, 100, size, 0, SegmentIntegrity(OsFiles(), trusted_from), reach)


@pytest.mark.parametrize("size", [1, COPIED_BYTES])
def test_what_is_small_is_copied_with_one_read(fileno: int, size: int) -> None:
    disk = Disk()
    found = at_hand(disk, region_of(fileno, size), may_copy=True)
    assert isinstance(found, Copied)
    assert (bytes(found.data), disk.reads) == (DATA[100 : 100 + size], 1)


def test_what_is_large_is_asked_for_and_sent_as_it_lies(fileno: int) -> None:
    region = region_of(fileno, COPIED_BYTES + 1)
    assert at_hand(Disk(), region, may_copy=True) is region


def test_an_answer_with_enough_copies_has_the_rest_sent_as_it_lies(fileno: int) -> None:
    region = region_of(fileno, 10)
    assert at_hand(Disk(), region, may_copy=False) is region


@pytest.mark.parametrize("size", [10, COPIED_BYTES + 1])
@pytest.mark.parametrize("fault", [errno.EAGAIN, errno.EIO])
def test_what_is_not_in_memory_or_cannot_be_read_is_for_a_thread(fileno: int, size: int, fault: int) -> None:
    assert at_hand(Disk(fault=fault), region_of(fileno, size), may_copy=True) is None


def test_what_is_in_memory_in_part_is_for_a_thread(fileno: int) -> None:
    assert at_hand(Disk(most=9), region_of(fileno, 10), may_copy=True) is None


@pytest.mark.parametrize("size", [10, COPIED_BYTES + 1])
def test_where_the_platform_cannot_tell_it_is_sent_as_it_lies(fileno: int, size: int) -> None:
    region = region_of(fileno, size)
    assert at_hand(Disk(fault=errno.EOPNOTSUPP), region, may_copy=True) is region


def test_another_fault_is_for_who_asked(fileno: int) -> None:
    with pytest.raises(OSError, match="as told"):
        at_hand(Disk(fault=errno.EBADF), region_of(fileno, 10), may_copy=True)


@pytest.mark.parametrize("doubt", [{"trusted_from": 105}, {"reach": 200}])
def test_what_was_not_verified_is_for_a_thread_and_not_read_here(fileno: int, doubt: dict[str, int]) -> None:
    disk = Disk()
    assert at_hand(disk, region_of(fileno, 10, **doubt), may_copy=True) is None
    assert disk.reads == 0
