"""Moving a log between log directories: its records are the same, with any event meanwhile and after a stop at any step."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from uuid import UUID

import pytest

from barnabas.config.topic import TopicConfig
from barnabas.errors import LogDirFailed
from barnabas.storage.directory import LogDirectory
from barnabas.storage.files import OsFiles
from barnabas.storage.log import Log
from barnabas.storage.log_move import MARKER, SWAP_BYTES, LogMove
from barnabas.storage.manager import LogManager
from tests.storage.support import FILES, NOW, TOPIC_ID, append, read_all

CONFIG = TopicConfig(segment_bytes=3000, index_interval_bytes=200)


class FixedClock:
    def now_ms(self) -> int:
        return NOW

    def monotonic_ms(self) -> float:
        return 0.0


def manager(root: Path, files: OsFiles = FILES) -> LogManager:
    logs = LogManager([root / "a", root / "b"], clock=FixedClock(), broker_id=1, cluster_id="cluster", files=files)
    logs.open_all(lambda _topic: CONFIG)
    return logs


def begin(root: Path, records: int = 100, files: OsFiles = FILES) -> tuple[LogManager, Log, LogMove, LogDirectory]:
    logs = manager(root, files)
    log = logs.creation.create("t", 0, TOPIC_ID, CONFIG)
    for number in range(records):
        append(log, b"%d" % number * 20, producer_id=7, producer_epoch=0, base_sequence=number)
    target = next(each for each in logs.directories if each is not logs.directory_of("t", 0))
    move = logs.removal.begin_move("t", 0, target)
    move.prepare()
    return logs, log, move, target


def copy_round(move: LogMove, max_bytes: int = 10**9) -> None:
    plan = move.plan(max_bytes)
    plan.run()
    move.finish(plan)


def copy_all(move: LogMove) -> None:
    for _ in range(1000):
        if move.can_swap:
            return
        copy_round(move, 2000)
    raise AssertionError("the copy never catches up")


def finish(logs: LogManager, move: LogMove, target: LogDirectory) -> None:
    logs.removal.leave(move, logs.removal.swap(move, target)).remove()


def values(log: Log) -> list[bytes | None]:
    return [record.value for record in read_all(log, 0)]


def wanted(count: int) -> list[bytes]:
    return [b"%d" % number * 20 for number in range(count)]


def files_of(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_a_moved_log_holds_the_same_and_goes_on(tmp_path: Path) -> None:
    logs, log, move, target = begin(tmp_path)
    old_folder = log.directory
    copy_all(move)
    finish(logs, move, target)
    assert logs.directory_of("t", 0) is target
    assert log.directory.parent == target.path
    assert not old_folder.exists()
    assert [path.name for path in old_folder.parent.iterdir() if path.is_dir()] == []
    assert values(log) == wanted(100)
    for number in range(100, 150):
        append(log, b"%d" % number * 20, producer_id=7, producer_epoch=0, base_sequence=number)
    repeated = append(log, b"149" * 20, producer_id=7, producer_epoch=0, base_sequence=149)
    assert repeated.duplicate
    assert values(log) == wanted(150)
    logs.close()
    again = manager(tmp_path)
    found = again.get("t", 0)
    assert found is not None
    assert (found.topic_id, values(found), found.reader.latest_epoch) == (TOPIC_ID, wanted(150), 0)
    again.close()


def test_the_copy_is_byte_for_byte_the_log(tmp_path: Path) -> None:
    logs, log, move, target = begin(tmp_path)
    log.flush()
    before = files_of(log.directory)
    copy_all(move)
    finish(logs, move, target)
    after = files_of(log.directory)
    assert {name: data for name, data in after.items() if name.endswith(".log")} == {
        name: data for name, data in before.items() if name.endswith(".log")
    }
    last = max(name for name in after if name.endswith(".log")).removesuffix(".log")
    sealed = [name for name in before if "index" in name and not name.startswith(last)]
    assert sealed
    assert all(after[name] == before[name] for name in sealed)
    logs.close()


def test_what_is_written_while_it_is_copied_is_moved_too(tmp_path: Path) -> None:
    logs, log, move, target = begin(tmp_path, records=20)
    count = 20
    while count < 200 or not move.can_swap:
        for _ in range(8 if count < 200 else 0):
            append(log, b"%d" % count * 20)
            count += 1
        copy_round(move, 1500)
    append(log, b"%d" % count * 20)  # less than the loop is allowed to copy
    assert move.size_bytes < log.size_bytes
    assert move.can_swap
    finish(logs, move, target)
    assert values(log) == wanted(count + 1)
    logs.abandon()
    again = manager(tmp_path)
    found = again.get("t", 0)
    assert found is not None
    assert values(found) == wanted(count + 1)
    again.close()


def test_far_behind_the_log_is_not_swapped(tmp_path: Path) -> None:
    logs, log, move, _ = begin(tmp_path, records=1)
    log.update_config(TopicConfig())
    copy_all(move)
    append(log, b"x" * (SWAP_BYTES + 1))
    assert not move.can_swap
    copy_round(move)
    assert move.can_swap
    logs.close()


def test_it_waits_until_the_copy_is_as_durable_as_the_log(tmp_path: Path) -> None:
    logs, log, move, _ = begin(tmp_path, records=3)
    log.update_config(TopicConfig())
    copy_all(move)
    append(log, b"a")
    log.flush()
    assert not move.can_swap
    copy_round(move)
    assert move.can_swap
    logs.close()


def test_retention_and_truncation_reach_the_copy(tmp_path: Path) -> None:
    logs, log, move, target = begin(tmp_path)
    copy_all(move)
    log.truncator.delete_records_before(50)
    log.truncator.truncate_to(90)
    assert not move.can_swap
    append(log, b"new")
    copy_all(move)
    finish(logs, move, target)
    kept = [record.value for record in read_all(log)]
    assert kept == [*wanted(90)[50:], b"new"]
    bases = sorted(int(path.stem) for path in log.directory.glob("*.log"))
    assert bases == [segment.base_offset for segment in log.segments]
    logs.close()
    again = manager(tmp_path)
    found = again.get("t", 0)
    assert found is not None
    assert [record.value for record in read_all(found)] == kept
    again.close()


class Meanwhile(OsFiles):
    """Does something when a file of this ending is opened to be copied."""

    def __init__(self, suffix: str) -> None:
        self.suffix = suffix
        self.then: Callable[[], object] = bool

    def open(self, path: Path, *, create: bool = False) -> int:
        if path.name.endswith(self.suffix):
            then, self.then = self.then, bool
            then()
        return super().open(path, create=create)


@pytest.mark.parametrize("suffix", [".log", ".index", ".timeindex"])
def test_what_retention_takes_amid_copying_leaves_nothing(tmp_path: Path, suffix: str) -> None:
    files = Meanwhile(suffix)
    logs, log, move, target = begin(tmp_path, files=files)

    def retain() -> None:
        log.truncator.delete_records_before(40)
        log.truncator.detach_below_start()

    files.then = retain
    copy_round(move)
    assert log.first_offset > 0
    copy_all(move)
    finish(logs, move, target)
    assert sorted(int(path.stem) for path in log.directory.glob("*.log")) == log.segments.bases
    assert {int(path.stem) for path in log.directory.glob("*.*index")} == set(log.segments.bases)
    assert [record.value for record in read_all(log)] == wanted(100)[40:]
    logs.close()


def test_a_flush_of_the_old_folder_says_nothing_about_the_moved_log(tmp_path: Path) -> None:
    logs, log, move, target = begin(tmp_path)
    copy_all(move)
    append(log, b"late")
    plan = log.plan_flush()
    assert plan is not None
    finish(logs, move, target)
    durable = log.durable_end
    plan.run()
    log.finish_flush(plan)
    assert log.durable_end == durable < log.log_end_offset
    log.flush()
    assert log.durable_end == log.log_end_offset
    logs.close()


@pytest.mark.parametrize("step", ["prepared", "half copied", "copied", "swapped", "left"])
@pytest.mark.parametrize("clean", [True, False])
def test_wherever_it_stops_the_next_start_has_all_records_once(tmp_path: Path, step: str, clean: bool) -> None:
    logs, log, move, target = begin(tmp_path)
    source = logs.directory_of("t", 0)
    if step == "half copied":
        copy_round(move, 2000)
    elif step != "prepared":
        copy_all(move)
    if step in ("swapped", "left"):
        retired = logs.removal.swap(move, target)
        append(log, b"after")
        if step == "left":
            logs.removal.leave(move, retired)
        retired.garbage.close()
    expected = values(log)
    logs.close() if clean else logs.abandon()
    again = manager(tmp_path)
    found = again.get("t", 0)
    assert found is not None
    assert values(found) == expected
    moved = step in ("swapped", "left")
    assert again.directory_of("t", 0).path == (target.path if moved else source.path)
    assert set(again.removal.interrupted) == (set() if moved else {("t", 0)})
    if not moved:
        assert again.removal.interrupted["t", 0].path == target.path
        again.removal.forget_move(("t", 0))
    folders = [path for each in again.directories for path in each.path.iterdir() if path.is_dir()]
    assert folders == [found.directory]
    assert not (found.directory / MARKER).exists()
    again.close()


def test_a_start_after_a_crash_knows_what_the_old_directory_knew(tmp_path: Path) -> None:
    logs, log, move, target = begin(tmp_path)
    log.truncator.delete_records_before(33)
    log.flush()
    logs.checkpoints.write_recovery_points()
    logs.checkpoints.write_log_start_offsets()
    copy_all(move)
    logs.removal.swap(move, target).garbage.close()
    append(log, b"after")
    logs.abandon()
    for _ in range(2):  # the second start finds no old directory to read from
        again = manager(tmp_path)
        found = again.get("t", 0)
        assert found is not None
        assert (found.recovery_point, found.log_start_offset, found.log_end_offset) == (100, 33, 101)
        again.abandon()


def test_two_folders_of_one_log_that_no_move_explains_are_refused(tmp_path: Path) -> None:
    logs, log, _, _ = begin(tmp_path)
    logs.close()
    for name in ("a", "b"):
        (tmp_path / name / "t-0").mkdir(exist_ok=True)
        (tmp_path / name / "t-0" / "00000000000000000007.log").touch()  # an empty folder would count as a creation that failed
    logs = LogManager([tmp_path / "a", tmp_path / "b"], clock=FixedClock(), broker_id=1, cluster_id="cluster")
    with pytest.raises(LogDirFailed, match="too"):
        logs.open_all(lambda _topic: CONFIG)
    logs.abandon()
    assert log.directory.exists()


def test_a_move_is_found_again_by_its_marker_though_the_name_is_cut(tmp_path: Path) -> None:
    topic = "n" * 249
    logs = manager(tmp_path)
    log = logs.creation.create(topic, 0, UUID(int=5), CONFIG)
    target = next(each for each in logs.directories if each is not logs.directory_of(topic, 0))
    move = logs.removal.begin_move(topic, 0, target)
    move.prepare()
    assert len(move.folder.name) == 255
    append(log)
    logs.close()
    again = manager(tmp_path)
    assert set(again.removal.interrupted) == {(topic, 0)}
    again.close()
    again = manager(tmp_path)  # a start that fails does not forget the move
    assert set(again.removal.interrupted) == {(topic, 0)}
    folder = again.removal.begin_move(topic, 0, next(each for each in again.directories if each.path == target.path)).folder
    assert folder == move.folder
    again.close()


def test_a_log_is_made_where_it_was_asked_for(tmp_path: Path) -> None:
    logs = manager(tmp_path)
    second = logs.directory_at(str(tmp_path / "b"))
    assert second is not None
    assert logs.directory_at(str(tmp_path / "c")) is None
    for index in range(3):
        logs.prefer("t", index, second)
        logs.creation.create("t", index, TOPIC_ID, CONFIG)
    assert {logs.directory_of("t", index) for index in range(3)} == {second}
    logs.creation.create("t", 3, TOPIC_ID, CONFIG)
    assert logs.directory_of("t", 3) is not second
    logs.close()
