"""The snapshots of producers that flushes leave: how much a start after a kill reads, and what it believes."""

from __future__ import annotations

from pathlib import Path

import pytest

from barnabas.config.topic import TopicConfig
from barnabas.errors import StorageExhausted
from barnabas.storage.log import Log, appender
from barnabas.storage.producer_state import ProducerStates
from barnabas.storage.snapshot import decode_snapshot
from barnabas.testing.failing_files import FailingFiles
from tests.storage.support import CountingFiles, append, open_log

SMALL = TopicConfig(segment_bytes=4000, index_interval_bytes=100)


def produce(log: Log, count: int, producer_id: int = 7) -> None:
    known = {each.producer_id: each.last_sequence for each in log.reader.producers()}
    first = known.get(producer_id, -1) + 1
    for number in range(first, first + count):
        append(log, b"x" * 100, producer_id=producer_id, producer_epoch=0, base_sequence=number)


def snapshots(folder: Path) -> list[int]:
    return sorted(int(path.stem) for path in (folder / "topic-0").glob("*.snapshot"))


@pytest.mark.parametrize("is_idempotent", [True, False])
def test_a_start_after_a_kill_reads_what_lies_past_the_recovery_point(tmp_path: Path, is_idempotent: bool) -> None:
    log = open_log(tmp_path)
    for number in range(500):
        append(log, b"x" * 1000, **({"producer_id": 7, "producer_epoch": 0, "base_sequence": number} if is_idempotent else {}))
    log.flush()
    before, size, recovery_point = log.reader.producers(), log.size_bytes, log.recovery_point
    log.abandon()
    files = CountingFiles()
    log = open_log(tmp_path, clean=False, recovery_point=recovery_point, files=files)
    assert (log.reader.producers(), log.log_end_offset) == (before, 500)
    assert files.bytes_read < 30_000 < size
    log.abandon()


def test_flushes_leave_two_snapshots_in_a_segment_and_those_of_rolls_stay(tmp_path: Path) -> None:
    log = open_log(tmp_path, SMALL)
    ends = []
    while len(log.segments) < 4:
        produce(log, 3)
        log.flush()
        ends.append(log.log_end_offset)
    bases = {segment.base_offset for segment in log.segments} - {0}
    assert set(snapshots(tmp_path)) == bases | set(ends[-2:])
    log.abandon()
    log = open_log(tmp_path, SMALL, clean=False, recovery_point=ends[-1])
    assert set(snapshots(tmp_path)) == bases | {ends[-1]}
    log.close()


def test_the_last_snapshot_but_one_stays_from_the_first_flush_on(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    found = []
    for _ in range(3):
        produce(log, 3)
        log.flush()
        found.append(snapshots(tmp_path))
    assert found == [[3], [3, 6], [6, 9]]
    log.abandon()


def test_a_flush_at_which_a_segment_then_begins_leaves_its_snapshot(tmp_path: Path) -> None:
    log = open_log(tmp_path, SMALL)
    produce(log, 3)
    log.flush()
    log.update_config(TopicConfig(segment_bytes=600))
    produce(log, 1)
    assert log.active_base_offset == 3
    for _ in range(3):
        produce(log, 1)
        log.flush()
    assert 3 in snapshots(tmp_path)
    log.abandon()


def test_a_cut_that_comes_while_a_flush_runs_leaves_no_snapshot_of_what_it_took(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    produce(log, 10)
    plan = log.plan_flush()
    assert plan is not None
    plan.run()
    log.truncator.truncate_to(4)
    produce(log, 6, producer_id=8)
    log.finish_flush(plan)
    assert snapshots(tmp_path) == []
    assert sorted(path.name for path in (tmp_path / "topic-0").glob("*.tmp")) == []
    before = log.reader.producers()
    log.abandon()
    log = open_log(tmp_path, clean=False)
    assert log.reader.producers() == before
    log.abandon()


def test_a_kill_before_a_flush_is_finished_leaves_nothing(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    produce(log, 10)
    plan = log.plan_flush()
    assert plan is not None
    plan.run()
    log.abandon()
    assert [path.suffixes for path in (tmp_path / "topic-0").glob("*.tmp")] == [[".snapshot", ".0", ".flushing", ".tmp"]]
    log = open_log(tmp_path, clean=False)
    assert [each.last_sequence for each in log.reader.producers()] == [9]
    assert not list((tmp_path / "topic-0").glob("*.tmp"))
    log.close()


def test_a_snapshot_there_is_no_room_for_moves_no_recovery_point(tmp_path: Path) -> None:
    files = FailingFiles()
    log = open_log(tmp_path, files=files)
    produce(log, 10)
    files.fill(tmp_path / "topic-0" / f"{10:020d}.snapshot.0.flushing.tmp")
    with pytest.raises(StorageExhausted):
        log.flush()
    assert (log.recovery_point, list((tmp_path / "topic-0").glob("*.tmp"))) == (0, [])
    files.heal()
    log.flush()
    assert (log.recovery_point, snapshots(tmp_path)) == (10, [10])
    log.close()


def test_a_roll_of_many_producers_leaves_their_snapshot_to_a_flush(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Which writes them as they were then, whatever they have written since."""
    monkeypatch.setattr(appender, "WRITTEN_AT_ONCE", 2)
    log = open_log(tmp_path, SMALL)
    for producer_id in (5, 6, 7):
        produce(log, 2, producer_id)
    while len(log.segments) < 2:
        before = log.reader.producers()
        produce(log, 1)
    base = log.active_base_offset
    produce(log, 3)
    assert snapshots(tmp_path) == []
    log.flush(base)
    assert snapshots(tmp_path) == [base]
    path = log.directory / f"{base:020d}.snapshot"
    assert ProducerStates(decode_snapshot(path.read_bytes(), path)).describe() == before
    log.flush()
    before, end = log.reader.producers(), log.log_end_offset
    assert snapshots(tmp_path) == [base, end]
    log.abandon()
    log = open_log(tmp_path, SMALL, clean=False, recovery_point=end)
    assert log.reader.producers() == before
    log.close()


def test_a_cut_forgets_what_a_roll_left_to_a_flush(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(appender, "WRITTEN_AT_ONCE", 0)
    log = open_log(tmp_path, SMALL)
    while len(log.segments) < 2:
        produce(log, 1)
    base = log.active_base_offset
    log.truncator.truncate_to(base - 3)
    log.update_config(TopicConfig())
    produce(log, 10, producer_id=8)
    log.flush(base)
    assert snapshots(tmp_path) == []
    log.close()
