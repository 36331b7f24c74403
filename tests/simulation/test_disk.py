"""The faulty disk: a file system like the real one while the power is on, and no better than POSIX allows when it goes."""

from __future__ import annotations

import errno
from pathlib import Path
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.storage.files import Files
from barnabas.testing.conformance_files import FilesConformance
from barnabas.testing.simulation.disk import SECTOR_BYTES, Disk
from barnabas.testing.simulation.disk_faults import Operation
from barnabas.testing.simulation.files import FaultyFiles, ProcessKilled

HOME = Path("/data")
SEEDS = range(60)


class TestFaultyFiles(FilesConformance):
    @pytest.fixture
    def files(self, tmp_path: Path) -> Files:
        disk = Disk(Random(1))
        disk.make_durable(tmp_path)
        return FaultyFiles(disk)


def made(seed: int) -> FaultyFiles:
    disk = Disk(Random(seed))
    disk.make_durable(HOME)
    return FaultyFiles(disk)


def after_power_cut(files: FaultyFiles) -> FaultyFiles:
    files.die()
    files.disk.lose_power()
    return FaultyFiles(files.disk)


def test_what_was_synced_survives_a_power_cut() -> None:
    for seed in SEEDS:
        files = made(seed)
        fileno = files.open(HOME / "a", create=True)
        files.pwrite(fileno, b"x" * 2000, 0)
        files.sync(fileno)
        files.sync_directory(HOME)
        files.pwrite(fileno, b"y" * 2000, 2000)
        assert after_power_cut(files).read_file(HOME / "a").startswith(b"x" * 2000)


def test_what_was_not_synced_is_kept_lost_and_torn_by_sector() -> None:
    seen = set()
    for seed in SEEDS:
        files = made(seed)
        fileno = files.open(HOME / "a", create=True)
        files.sync_directory(HOME)
        files.pwrite(fileno, b"a" * 4 * SECTOR_BYTES, 0)
        left = after_power_cut(files).read_file(HOME / "a")
        sectors = [left[i : i + SECTOR_BYTES] for i in range(0, len(left), SECTOR_BYTES)]
        assert all(set(sector) in ({0}, {97}) for sector in sectors)
        seen.add((len(left), b"a" in left, b"\0" in left))
    assert {(0, False, False), (2048, True, False), (2048, True, True)} <= seen


def test_a_name_without_a_sync_of_its_folder_may_be_lost() -> None:
    left = set()
    for seed in SEEDS:
        files = made(seed)
        for name in ("a", "b"):
            fileno = files.open(HOME / name, create=True)
            files.pwrite(fileno, b"x", 0)
            files.sync(fileno)
        left.add(tuple(after_power_cut(files).list_directory(HOME)))
    assert left == {(), ("a",), ("b",), ("a", "b")}


def test_a_replaced_file_is_the_old_one_or_the_new_one() -> None:
    left = set()
    for seed in SEEDS:
        files = made(seed)
        files.replace_file(HOME / "a", b"old")
        files.faults.arm(Operation.SYNC_DIRECTORY)
        with pytest.raises(OSError, match="Input/output"):
            files.replace_file(HOME / "a", b"new")
        left.add(after_power_cut(files).read_file(HOME / "a"))
    assert left == {b"old", b"new"}


def test_a_file_replaced_without_sync_may_be_empty() -> None:
    left = set()
    for seed in SEEDS:
        files = made(seed)
        files.replace_file(HOME / "a", b"old")
        files.replace_file(HOME / "a", b"new", sync=False)
        left.add(after_power_cut(files).read_file(HOME / "a"))
    assert {b"old", b"new", b""} <= left


def test_a_failed_sync_forgets_what_the_next_one_then_does_not_write() -> None:
    lost = 0
    for seed in SEEDS:
        files = made(seed)
        fileno = files.open(HOME / "a", create=True)
        files.sync_directory(HOME)
        files.pwrite(fileno, b"x", 0)
        files.faults.arm(Operation.SYNC)
        with pytest.raises(OSError, match="Input/output"):
            files.sync(fileno)
        files.sync(fileno)
        assert files.pread(fileno, 1, 0) == b"x"
        lost += after_power_cut(files).read_file(HOME / "a") != b"x"
    assert 0 < lost < len(SEEDS)


def test_a_full_disk_takes_a_part_then_nothing_and_more_once_there_is_room() -> None:
    files = made(0)
    files.disk.capacity_bytes = 10
    fileno = files.open(HOME / "a", create=True)
    assert files.pwrite(fileno, b"x" * 8, 0) == 8
    assert files.pwrite(fileno, b"x" * 8, 8) == 2
    with pytest.raises(OSError) as full:  # noqa: PT011 - the errno tells which error
        files.pwrite(fileno, b"x", 10)
    assert full.value.errno == errno.ENOSPC
    files.unlink(HOME / "a")
    other = files.open(HOME / "b", create=True)
    assert files.pwrite(other, b"x" * 8, 0) == 8


def test_a_killed_process_leaves_what_it_wrote_and_can_do_nothing_more() -> None:
    for seed in SEEDS:
        files = made(seed)
        fileno = files.open(HOME / "a", create=True)
        lock = files.lock(HOME / ".lock")
        assert lock is not None
        files.kill_in = 2
        files.pwrite(fileno, b"0", 0)
        files.pwrite(fileno, b"1", 1)
        with pytest.raises(ProcessKilled):
            files.pwrite(fileno, b"234", 2)
        with pytest.raises(ProcessKilled):
            files.read_file(HOME / "a")
        files.close(fileno)
        again = FaultyFiles(files.disk)
        assert b"01234".startswith(again.read_file(HOME / "a"))
        assert len(again.read_file(HOME / "a")) >= 2
        assert again.lock(HOME / ".lock") is not None


@given(st.data())
def test_a_disk_without_faults_is_a_file_system(data: st.DataObject) -> None:
    """Random writes, truncations and syncs against plain bytes; a power cut after a sync of everything changes nothing."""
    files, model = made(0), bytearray()
    fileno = files.open(HOME / "a", create=True)
    for _ in range(data.draw(st.integers(0, 12))):
        if data.draw(st.booleans()):
            size = data.draw(st.integers(0, 2000))
            files.truncate(fileno, size)
            model = model[:size].ljust(size, b"\0")
        else:
            position, piece = data.draw(st.integers(0, 2000)), data.draw(st.binary(max_size=700))
            files.pwrite(fileno, piece, position)
            if piece:
                model = model.ljust(position, b"\0")
                model[position : position + len(piece)] = piece
        if data.draw(st.booleans()):
            files.sync(fileno)
        assert files.pread(fileno, 5000, 0) == model
    files.sync(fileno)
    files.sync_directory(HOME)
    assert after_power_cut(files).read_file(HOME / "a") == model
