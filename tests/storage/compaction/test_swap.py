"""A crash at every step of a swap, and the next start."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from barnabas.storage.check.partition import PartitionContext, check_partition
from barnabas.storage.files import OsFiles
from tests.storage.compaction.support import SMALL, compact, compacted_log, engine_of, last_of_each_key, put, roll
from tests.storage.support import FILES, open_log, read_all

CHANGES = ("rename", "unlink", "sync", "sync_directory", "pwrite", "truncate", "replace_file")


class Crash(BaseException):
    """The process is gone."""


class CrashingFiles(OsFiles):
    """Does `left` changes to the disk; the next one is not done, nor any after it."""

    def __init__(self, left: int) -> None:
        self.left = left
        for name in CHANGES:
            setattr(self, name, self._counted(getattr(self, name)))

    def sync(self, fileno: int, /) -> None:
        """Nothing: a process that is gone takes none of its writes along."""

    def sync_directory(self, path: Path, /) -> None:
        """Nothing, as for files."""

    def _counted(self, change: Any) -> Any:
        def counted(*arguments: Any, **named: Any) -> Any:
            if self.left <= 0:
                raise Crash
            self.left -= 1
            return change(*arguments, **named)

        return counted


def test_at_every_step(tmp_path: Path) -> None:
    log = compacted_log(tmp_path / "original")
    for number in range(60):
        value = None if number % 7 == 3 else b"%d" % number
        put(log, (b"%d" % (number % 9), value), producer_id=5, base_sequence=number)
    roll(log)
    put(log, (b"9", b"in the active segment"))
    before = read_all(log)
    log.close()
    outcomes, step, crashed = set(), 0, True
    while crashed:
        folder = tmp_path / str(step)
        shutil.copytree(tmp_path / "original", folder)
        log = open_log(folder, SMALL)
        crashed = _crash(log, CrashingFiles(step))
        log.truncator.take_garbage()  # a crashed process removes no files
        log.abandon()
        context = PartitionContext(log.log_end_offset, False, log.topic_id, is_compacted=True)
        left_behind = check_partition(FILES, log.directory, context)
        assert all(finding.mended for finding in left_behind.findings), [str(each) for each in left_behind.findings]
        assert left_behind.end_offset == log.log_end_offset
        again = open_log(folder, SMALL, clean=False, recovery_point=log.log_end_offset)
        after = read_all(again)
        assert last_of_each_key(after) == last_of_each_key(before)
        assert set(after) <= set(before)
        assert [record.offset for record in after] == sorted(record.offset for record in after)
        assert again.log_end_offset == log.log_end_offset
        assert [each.last_sequence for each in again.reader.producers()] == [59]
        left = {path.suffix for path in again.directory.iterdir()}
        assert left <= {".log", ".index", ".timeindex", ".snapshot", ".metadata", ""}
        outcomes.add(len(after))
        compact(again, engine_of("plain"))
        assert len(read_all(again)) == 10
        again.close()
        shutil.rmtree(folder)
        step += 1
    assert step > 30
    assert len(outcomes) > 2  # none, some or all segments are replaced


def _crash(log: Any, files: CrashingFiles) -> bool:
    log._files = files
    try:
        compact(log, engine_of("plain"), files=files, segment_bytes=400)
    except Crash:
        return True
    return False


@pytest.mark.parametrize("state", [".cleaned", ".swap"])
def test_files_of_a_swap_by_kafka(tmp_path: Path, state: str) -> None:
    """Kafka renames the log first; an index left behind is made anew."""
    log = compacted_log(tmp_path)
    put(log, (b"a", b"1"))
    put(log, (b"b", b"1"))
    roll(log)
    put(log, (b"a", b"2"))
    log.close()
    folder = log.directory
    shutil.copy(folder / f"{0:020d}.log", folder / f"{0:020d}.log{state}")
    (folder / f"{0:020d}.index{state}").write_bytes(b"")
    (folder / f"{0:020d}.timeindex{state}").write_bytes(b"")
    again = open_log(tmp_path, SMALL)
    assert [record.offset for record in read_all(again)] == [0, 1, 2]
    assert not [path for path in folder.iterdir() if path.suffix in (".cleaned", ".swap", ".deleted")]
    again.close()
