"""A log that is compacted while it moves to another log directory: the copy holds what the log holds, whichever comes first."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from barnabas.errors import SegmentsGone
from barnabas.storage.compaction.cleaner import clean
from barnabas.storage.compaction.segment_replacement import replace_segments
from barnabas.storage.compaction.task import CleanedGroup, CleaningTask
from barnabas.storage.directory import LogDirectory
from barnabas.storage.files import Files, OsFiles
from barnabas.storage.log import Log
from barnabas.storage.log_move import LogMove
from barnabas.storage.manager import LogManager
from tests.storage.compaction.support import SMALL, compact, engine_of, put, roll, task_of
from tests.storage.support import FILES, NOW, TOPIC_ID, open_log, read_all

PLAIN = engine_of("plain")


class FixedClock:
    def now_ms(self) -> int:
        return NOW

    def monotonic_ms(self) -> float:
        return 0.0


def begin(root: Path, files: Files = FILES) -> tuple[LogManager, Log, LogMove, LogDirectory]:
    logs = LogManager([root / "a", root / "b"], files=files, clock=FixedClock(), broker_id=1, cluster_id="cluster")
    logs.open_all(lambda _topic: SMALL)
    log = logs.creation.create("topic", 0, TOPIC_ID, SMALL)
    for number in range(36):
        put(log, (b"%d" % (number % 9), b"%d" % number * 5), producer_id=5, base_sequence=number)
    roll(log)
    put(log, (b"9", b"in the active segment"))
    target = next(each for each in logs.directories if each is not logs.directory_of("topic", 0))
    move = logs.removal.begin_move("topic", 0, target)
    move.prepare()
    return logs, log, move, target


def copy_round(move: LogMove) -> None:
    plan = move.plan(10**9)
    plan.run()
    move.finish(plan)


def finish(logs: LogManager, move: LogMove, target: LogDirectory) -> None:
    for _ in range(10):
        if move.can_swap:
            break
        copy_round(move)
    logs.removal.leave(move, logs.removal.swap(move, target)).remove()


def assert_whole(log: Log, target: LogDirectory) -> None:
    """The disk contains what the log says, segment by segment, and after a start as well."""
    assert log.directory.parent == target.path
    for garbage in log.truncator.take_garbage():
        garbage.remove()
    names = {path.name for path in log.directory.glob("*.log*")}
    assert names == {segment.path.name for segment in log.segments}
    assert all(segment.path.stat().st_size == segment.size for segment in log.segments)
    expected = read_all(log)
    log.close()
    for clean_shutdown in (True, False):
        again = open_log(target.path, SMALL, clean=clean_shutdown)
        assert read_all(again) == expected
        again.abandon()


def one_group(log: Log) -> CleanedGroup:
    return next(clean(task_of(log), FILES, PLAIN, lambda _read, _written: None))


class Interrupted(OsFiles):
    """Before the file number `before` is opened, or a folder synced, something happens."""

    def __init__(self, before: int) -> None:
        self.left = before
        self.action: Callable[[], object] | None = None

    def _count(self) -> None:
        action = self.action
        if action is None:
            return
        self.left -= 1
        if self.left < 0:
            self.action = None
            action()

    def open(self, path: Path, *, create: bool = False) -> int:
        self._count()
        return super().open(path, create=create)

    def sync_directory(self, path: Path, /) -> None:
        self._count()
        super().sync_directory(path)


def test_segments_that_are_replaced_while_a_round_copies_are_copied_again(tmp_path: Path) -> None:
    lost = set()
    for step in range(0, 10**6, 3):  # every third file operation
        root, files = tmp_path / str(step), Interrupted(step)
        logs, log, move, target = begin(root, files)
        plan = move.plan(10**9)
        files.action = partial(compact, log, PLAIN)
        plan.run()
        is_over = files.action is not None
        files.action = None
        if is_over:
            compact(log, PLAIN)
        move.finish(plan)
        lost.add(len(plan.lost))
        assert not move.can_swap
        assert len(read_all(log)) == 10
        finish(logs, move, target)
        assert_whole(log, target)
        logs.close()
        if is_over:
            break
    assert step > 20
    assert len(lost) > 2


def test_a_segment_that_is_missing_without_a_reason_ends_the_move(tmp_path: Path) -> None:
    logs, log, move, _ = begin(tmp_path)
    plan = move.plan(10**9)
    log.segments[1].path.unlink()
    plan.run()
    with pytest.raises(OSError, match="missing or too short"):
        move.finish(plan)
    move.give_up()
    assert not move.folder.exists()
    logs.abandon()


def test_nothing_is_copied_or_put_in_place_while_names_change(tmp_path: Path) -> None:
    logs, log, move, target = begin(tmp_path)
    copy_round(move)
    assert move.can_swap
    seen = []

    async def watching(job: Callable[[], None]) -> None:
        job()
        if log.is_swapping:
            assert not move.can_swap
            with pytest.raises(AssertionError):
                move.plan(10**9)
            seen.append(job)

    asyncio.run(replace_segments(log, one_group(log), NOW, watching))
    assert seen
    finish(logs, move, target)
    assert_whole(log, target)
    logs.close()


@pytest.mark.parametrize("is_left", [False, True])
def test_a_cleaned_segment_of_the_old_folder_does_not_come_into_the_moved_log(tmp_path: Path, is_left: bool) -> None:
    logs, log, move, target = begin(tmp_path)
    task: CleaningTask = task_of(log)
    cleaning = clean(task, FILES, PLAIN, lambda _read, _written: None)
    group = next(cleaning)
    cleaning.close()
    copy_round(move)
    before = read_all(log)
    jobs = 0

    async def moving_between(job: Callable[[], None]) -> None:
        nonlocal jobs
        job()
        jobs += 1
        if jobs == 1:  # the cleaned segment has its final names, but is not in the log yet
            retired = logs.removal.swap(move, target)
            if is_left:
                logs.removal.leave(move, retired)

    with pytest.raises(SegmentsGone):
        asyncio.run(replace_segments(log, group, NOW, moving_between))
    assert read_all(log) == before
    with pytest.raises((SegmentsGone, FileNotFoundError)):  # later segments of the same cleaning fail too
        asyncio.run(replace_segments(log, group, NOW, moving_between))
    assert read_all(log) == before
    compact(log, PLAIN)
    assert len(read_all(log)) == 10
    assert_whole(log, target)
    logs.close()
