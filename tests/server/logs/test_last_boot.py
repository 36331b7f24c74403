"""The knowledge of a log directory about the last stop: whether all written data is surely there."""

from __future__ import annotations

from pathlib import Path
from uuid import UUID

import pytest

from barnabas.clock import SystemClock
from barnabas.cluster.metadata.image import Kept
from barnabas.server.cluster.cluster_session import what_was_kept
from barnabas.storage.directory import LAST_BOOT_FILE, LogDirectory
from barnabas.storage.files import OsFiles
from barnabas.storage.manager import LogManager
from barnabas.testing.failing_files import READS, FailingFiles


def directory(path: Path, boot_id: str | None) -> LogDirectory:
    return LogDirectory(path, files=OsFiles(), broker_id=1, cluster_id="c", new_id=UUID(int=1), boot_id=boot_id)


def run(path: Path, boot_id: str | None, *, clean: bool, settles: bool = True) -> Kept:
    """One life of a broker; returns its knowledge at the start."""
    found = directory(path, boot_id)
    kept = what_was_kept([found])
    if settles:
        found.remember_boot()
    if clean:
        found.mark_clean()
    found.unlock()
    return kept


@pytest.mark.parametrize(
    ("clean", "boot_id", "kept"),
    [
        (True, "one", Kept.ALL),
        (True, "two", Kept.ALL),
        (False, "one", Kept.ALL),
        (False, "two", Kept.SYNCED),
        (True, "", Kept.ALL),
        (False, "", Kept.SYNCED),
    ],
)
def test_a_stop_in_order_or_the_same_boot_keeps_all(tmp_path: Path, clean: bool, boot_id: str, kept: Kept) -> None:
    assert run(tmp_path, "one", clean=clean) is (Kept.UNKNOWN)
    assert run(tmp_path, boot_id, clean=False) is kept


def test_a_system_that_names_no_boot_has_none_that_is_the_same(tmp_path: Path) -> None:
    run(tmp_path, "", clean=False)
    assert run(tmp_path, "", clean=False) is Kept.SYNCED


def test_a_start_that_came_to_nothing_does_not_pass_for_one(tmp_path: Path) -> None:
    """It ended before the others had stopped to count on what was lost: the next one has to say so again."""
    run(tmp_path, "one", clean=False)
    assert run(tmp_path, "two", clean=False, settles=False) is Kept.SYNCED
    assert run(tmp_path, "two", clean=False) is Kept.SYNCED
    assert run(tmp_path, "two", clean=False) is Kept.ALL


def test_after_a_stop_in_order_a_start_that_came_to_nothing_loses_nothing(tmp_path: Path) -> None:
    run(tmp_path, "one", clean=True)
    assert run(tmp_path, "two", clean=False, settles=False) is Kept.ALL
    assert run(tmp_path, "two", clean=False) is Kept.ALL


def test_one_directory_that_cannot_say_is_enough(tmp_path: Path) -> None:
    run(tmp_path / "a", "one", clean=True)
    directories = [directory(tmp_path / "a", "one"), directory(tmp_path / "b", "one")]
    assert what_was_kept(directories) is Kept.UNKNOWN
    for each in directories:
        each.unlock()


def test_what_a_disk_refused_is_not_taken_for_kept(tmp_path: Path) -> None:
    run(tmp_path, "one", clean=False)
    failed = directory(tmp_path, "one")
    failed.forget_boot()
    failed.unlock()
    assert run(tmp_path, "one", clean=False) is Kept.UNKNOWN


def test_a_single_broker_writes_nothing(tmp_path: Path) -> None:
    run(tmp_path, None, clean=True)
    run(tmp_path, None, clean=False)
    assert not (tmp_path / LAST_BOOT_FILE).exists()


@pytest.mark.parametrize("clean", [True, False])
def test_beside_a_directory_that_cannot_be_opened_no_other_counts_as_kept(tmp_path: Path, clean: bool) -> None:
    """It says at the next start what it said before, whatever its disk has lost by then."""
    paths = [tmp_path / "a", tmp_path / "b"]
    for path in paths:
        run(path, "one", clean=False)
    files = FailingFiles()
    files.fail(READS, paths[0])
    for _ in range(2):  # the second round finds the files of the first
        logs = LogManager(
            paths, files=files, clock=SystemClock(), broker_id=1, cluster_id="c", boot_id="one", first_has_metadata=False
        )
        assert what_was_kept(logs.directories) is Kept.UNKNOWN
        logs.remember_boot()
        (logs.close if clean else logs.abandon)()
        files.heal()
