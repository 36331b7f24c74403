"""All logs of a broker: opening, creating, deleting, checkpoints, locks and the marker of a clean stop."""

from __future__ import annotations

import errno
import json
import os
from pathlib import Path
from uuid import UUID

import pytest

from barnabas.config.topic import TopicConfig
from barnabas.errors import KafkaError, LogDirFailed, StorageExhausted
from barnabas.storage import checkpoints
from barnabas.storage.check.directory import read_data_folder
from barnabas.storage.directory import CLEAN_SHUTDOWN_FILE, read_cluster_id
from barnabas.storage.files import Files, OsFiles
from barnabas.storage.manager import LogManager
from barnabas.testing.failing_files import FailingFiles
from tests.storage.support import NOW, TOPIC_ID, append, read_all

CLUSTER = "abcdefghijklmnopqrstuv"
OTHER_ID = UUID(int=5)


class FixedClock:
    def now_ms(self) -> int:
        return NOW

    def monotonic_ms(self) -> float:
        return 0.0


def manager(*folders: Path, broker_id: int = 1, cluster_id: str = CLUSTER, files: Files | None = None) -> LogManager:
    return LogManager(folders, files=files, clock=FixedClock(), broker_id=broker_id, cluster_id=cluster_id)


def opened(*folders: Path) -> LogManager:
    logs = manager(*folders)
    logs.open_all(lambda _topic: TopicConfig())
    return logs


def test_logs_come_back_after_a_clean_stop(tmp_path: Path) -> None:
    logs = opened(tmp_path)
    for partition in range(3):
        append(logs.creation.create("my-topic.x", partition, TOPIC_ID, TopicConfig()), b"a", b"b")
    logs.close()
    assert json.loads((tmp_path / CLEAN_SHUTDOWN_FILE).read_text()) == {"version": 0, "brokerEpoch": -1}
    logs = opened(tmp_path)
    assert not (tmp_path / CLEAN_SHUTDOWN_FILE).exists()
    assert len(logs) == 3
    log = logs.get("my-topic.x", 2)
    assert log is not None
    assert (log.topic, log.partition, log.topic_id, log.log_end_offset) == ("my-topic.x", 2, TOPIC_ID, 2)
    assert log.recovery_point == 2
    logs.abandon()


def test_logs_come_back_after_a_crash(tmp_path: Path) -> None:
    logs = opened(tmp_path)
    log = logs.creation.create("t", 0, TOPIC_ID, TopicConfig())
    append(log, b"a")
    log.flush()
    append(log, b"b")
    log.truncator.delete_records_before(1)
    logs.checkpoints.write_recovery_points()
    logs.checkpoints.write_log_start_offsets()
    logs.checkpoints.write_high_watermarks({("t", 0): 2, ("gone", 1): 9})
    logs.abandon()
    logs = opened(tmp_path)
    found = logs.get("t", 0)
    assert found is not None
    assert (found.log_start_offset, found.log_end_offset, found.recovery_point) == (1, 2, 1)
    assert [record.value for record in read_all(found)] == [b"b"]
    assert logs.checkpoints.read_high_watermarks() == {("t", 0): 2}
    logs.close()


def test_a_second_broker_is_refused_by_name(tmp_path: Path) -> None:
    logs = manager(tmp_path)
    with pytest.raises(LogDirFailed) as refused:
        manager(tmp_path)
    assert str(tmp_path) in str(refused.value)
    logs.close()
    manager(tmp_path).close()


def test_a_folder_of_another_broker_or_cluster_is_refused(tmp_path: Path) -> None:
    manager(tmp_path).close()
    with pytest.raises(LogDirFailed, match="broker 1"):
        manager(tmp_path, broker_id=2)
    with pytest.raises(LogDirFailed, match="cluster"):
        manager(tmp_path, cluster_id="other")
    assert read_cluster_id([tmp_path], OsFiles()) == CLUSTER
    assert read_cluster_id([tmp_path / "new"], OsFiles()) is None
    properties = checkpoints.read_properties(OsFiles(), tmp_path / "meta.properties")
    assert properties | {"directory.id": ""} == {"version": "1", "cluster.id": CLUSTER, "node.id": "1", "directory.id": ""}
    first = properties["directory.id"]
    manager(tmp_path).close()
    assert checkpoints.read_properties(OsFiles(), tmp_path / "meta.properties")["directory.id"] == first


def test_a_second_directory_that_is_locked_frees_the_first(tmp_path: Path) -> None:
    held = manager(tmp_path / "b")
    with pytest.raises(LogDirFailed):
        manager(tmp_path / "a", tmp_path / "b")
    manager(tmp_path / "a").close()
    held.close()


def test_creating_is_repeatable(tmp_path: Path) -> None:
    logs = opened(tmp_path)
    log = logs.creation.create("t", 0, TOPIC_ID, TopicConfig())
    assert logs.creation.create("t", 0, TOPIC_ID, TopicConfig()) is log
    assert (tmp_path / "t-0" / "partition.metadata").read_text() == f"version: 0\ntopic_id: {checkpoints.encode_uuid(TOPIC_ID)}"
    logs.close()


def test_a_log_of_another_topic_of_that_name_is_set_aside(tmp_path: Path) -> None:
    logs = opened(tmp_path)
    append(logs.creation.create("t", 0, OTHER_ID, TopicConfig()), b"of another topic")
    log = logs.creation.create("t", 0, TOPIC_ID, TopicConfig())
    assert (log.topic_id, log.log_end_offset, len(logs)) == (TOPIC_ID, 0, 1)
    (stray,) = tmp_path.glob("t-0.*-stray")
    assert b"of another topic" in (stray / f"{0:020d}.log").read_bytes()
    logs.close()
    logs = opened(tmp_path)
    assert len(logs) == 1
    logs.close()


def test_deleting_renames_at_once_and_removes_later(tmp_path: Path) -> None:
    logs = opened(tmp_path)
    log = logs.creation.create("t", 0, TOPIC_ID, TopicConfig())
    append(log, b"a")
    region = log.reader.read(0, 1000, limit_offset=1, minimum_one=True)
    assert region is not None
    garbage = logs.removal.delete("t", 0)
    (renamed,) = [path.name for path in tmp_path.iterdir() if path.is_dir()]
    assert renamed.startswith("t-0.")
    assert renamed.endswith("-delete")
    assert logs.get("t", 0) is None
    assert len(OsFiles().pread(region.fileno, region.size, region.position)) == region.size
    again = logs.creation.create("t", 0, OTHER_ID, TopicConfig())
    assert (again.log_end_offset, again.topic_id) == (0, OTHER_ID)
    garbage.remove()
    garbage.remove()
    assert [path.name for path in tmp_path.iterdir() if path.is_dir()] == ["t-0"]
    with pytest.raises(KafkaError):
        logs.removal.delete("t", 1)
    logs.close()


def test_a_crash_in_the_middle_of_a_deletion_is_finished_at_the_start(tmp_path: Path) -> None:
    logs = opened(tmp_path)
    append(logs.creation.create("t", 0, TOPIC_ID, TopicConfig()))
    garbage = logs.removal.delete("t", 0)
    logs.abandon()
    logs = opened(tmp_path)
    assert len(logs) == 0
    assert not [path for path in tmp_path.iterdir() if path.is_dir()]
    garbage.remove()
    logs.close()


def test_what_others_put_into_a_log_goes_with_it(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "kept").touch()
    logs = opened(tmp_path / "data")
    folder = logs.creation.create("t", 0, TOPIC_ID, TopicConfig()).directory
    (folder / "notes" / "older").mkdir(parents=True)
    (folder / "notes" / "older" / "1.txt").touch()
    (folder / "notes" / "link").symlink_to(tmp_path / "elsewhere")
    logs.removal.delete("t", 0).remove()
    assert [path for path in (tmp_path / "data").iterdir() if path.is_dir()] == []
    assert (tmp_path / "elsewhere" / "kept").exists()
    logs.close()


def test_what_cannot_be_removed_is_left_to_the_next_start(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    files = FailingFiles()
    logs = manager(tmp_path, files=files)
    logs.open_all(lambda _: TopicConfig())
    log = logs.creation.create("t", 0, TOPIC_ID, TopicConfig())
    (log.directory / "held").touch()
    garbage = logs.removal.delete("t", 0)
    (doomed,) = tmp_path.glob("t-0.*-delete")
    files.fail(frozenset({"unlink"}), doomed / "held", errno.EPERM)
    for _ in range(2):
        garbage.remove()
        logs.close()
        assert [path.name for path in doomed.iterdir()] == ["held"]
        assert f"event=deleted-log-not-removed path={doomed}" in caplog.text
        caplog.clear()
        logs = manager(tmp_path, files=files)
        logs.open_all(lambda _: TopicConfig())
    logs.close()
    files.heal()
    opened(tmp_path).close()
    assert not doomed.exists()


def test_a_disk_that_does_not_let_go_of_a_deleted_log_has_failed(tmp_path: Path) -> None:
    files = FailingFiles()
    logs = manager(tmp_path, files=files)
    logs.open_all(lambda _: TopicConfig())
    logs.creation.create("t", 0, TOPIC_ID, TopicConfig())
    garbage = logs.removal.delete("t", 0)
    files.fail(frozenset({"unlink"}), tmp_path, errno.EIO)
    with pytest.raises(LogDirFailed):
        garbage.remove()
    logs.abandon()


@pytest.mark.parametrize("purpose", ["delete", "future"])
def test_a_file_with_the_name_of_a_folder_on_its_way_is_left_alone(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, purpose: str
) -> None:
    path = tmp_path / f"x.5f0e0c3a2b1d4e6f8091a2b3c4d5e6f7-{purpose}"
    path.write_text("mine")
    opened(tmp_path).close()
    assert path.read_text() == "mine"
    assert f"event=foreign-entry-left-alone path={path}" in caplog.text
    (finding,) = [each for each in read_data_folder(OsFiles(), tmp_path).findings if each.path == path]
    assert finding.repair is None


def test_a_folder_in_a_copy_that_was_interrupted_goes(tmp_path: Path) -> None:
    copy = tmp_path / "t-0.5f0e0c3a2b1d4e6f8091a2b3c4d5e6f7-future"
    (copy / "notes").mkdir(parents=True)
    (copy / "notes" / "1.txt").touch()
    logs = opened(tmp_path)
    assert list(copy.iterdir()) == []
    logs.close()


def test_a_long_name_is_cropped_when_deleted(tmp_path: Path) -> None:
    logs = opened(tmp_path)
    logs.creation.create("x" * 249, 0, TOPIC_ID, TopicConfig())
    garbage = logs.removal.delete("x" * 249, 0)
    assert garbage.directory is not None
    assert len(garbage.directory.name) == 255
    garbage.remove()
    logs.close()


def test_new_logs_spread_over_the_directories(tmp_path: Path) -> None:
    logs = opened(tmp_path / "a", tmp_path / "b")
    for partition in range(6):
        logs.creation.create("t", partition, TOPIC_ID, TopicConfig())
    for directory in logs.directories:
        assert len([path for path in directory.path.iterdir() if path.is_dir()]) == 3
    logs.checkpoints.write_recovery_points()
    homes = [directory.read(checkpoints.RECOVERY_POINTS) for directory in logs.directories]
    assert sum(map(len, homes)) == 6
    logs.close()


def test_a_partition_in_two_directories_is_refused(tmp_path: Path) -> None:
    for name in ("a", "b"):
        logs = opened(tmp_path / name)
        append(logs.creation.create("t", 0, TOPIC_ID, TopicConfig()), b"held")
        logs.close()
    logs = manager(tmp_path / "a", tmp_path / "b")
    with pytest.raises(LogDirFailed, match="too"):
        logs.open_all(lambda _topic: TopicConfig())
    logs.abandon()


@pytest.mark.parametrize("left", [["00000000000000000000.log"], ["partition.metadata"], []])
@pytest.mark.parametrize("first", [True, False])
def test_what_a_disk_left_of_a_log_made_in_vain_gives_way(tmp_path: Path, left: list[str], *, first: bool) -> None:
    one, two = tmp_path / "1", tmp_path / "2"
    logs = opened(one if first else two)
    append(logs.creation.create("orders", 0, TOPIC_ID, TopicConfig()), b"kept")
    logs.close()
    vain = (two if first else one) / "orders-0"
    vain.mkdir(parents=True)
    for name in left:
        (vain / name).write_bytes(b"")
    logs = manager(*((two, one) if first else (one, two)), broker_id=1)
    logs.open_all(lambda _: TopicConfig())
    found = logs.get("orders", 0)
    assert found is not None
    assert [record.value for record in read_all(found)] == [b"kept"]
    assert not vain.exists()
    logs.close()


def test_foreign_names_are_left_alone(tmp_path: Path) -> None:
    for name in ("lost+found", "notes", "t-0.5f0e0c3a2b1d4e6f8091a2b3c4d5e6f7-stray"):
        (tmp_path / name).mkdir(parents=True)
    logs = opened(tmp_path)
    assert len(logs) == 0
    logs.close()
    assert (tmp_path / "lost+found").exists()


def test_closing_twice_is_once(tmp_path: Path) -> None:
    logs = opened(tmp_path)
    logs.close()
    written = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")}
    logs.close()
    assert {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")} == written


class CountingFiles(OsFiles):
    """Counts what is opened, made or renamed."""

    def __init__(self) -> None:
        super().__init__()
        self.touched = 0

    def open(self, path: Path, *, create: bool = False) -> int:
        self.touched += 1
        return super().open(path, create=create)

    def rename(self, source: Path, target: Path) -> None:
        self.touched += 1
        super().rename(source, target)

    def replace_file(self, path: Path, data: bytes, *, sync: bool = True) -> None:
        self.touched += 1
        super().replace_file(path, data, sync=sync)


def test_closing_costs_nothing_for_the_logs_that_did_not_change(tmp_path: Path) -> None:
    files = CountingFiles()
    logs = LogManager([tmp_path], files=files, clock=FixedClock(), broker_id=1, cluster_id=CLUSTER)
    for partition in range(20):
        logs.creation.create("t", partition, TOPIC_ID, TopicConfig())
    before = files.touched
    append(logs.creation.create("t", 7, TOPIC_ID, TopicConfig()), b"a")
    logs.close()
    assert files.touched - before < 20
    logs = opened(tmp_path)
    assert [log.log_end_offset for log in sorted(logs.logs(), key=lambda log: log.partition)] == [0] * 7 + [1] + [0] * 12
    logs.close()


def test_retiring_a_log_does_not_touch_the_disk(tmp_path: Path) -> None:
    files = CountingFiles()
    logs = LogManager([tmp_path], files=files, clock=FixedClock(), broker_id=1, cluster_id=CLUSTER)
    for partition in range(3):
        logs.creation.create("t", partition, TOPIC_ID, TopicConfig())
    before = files.touched
    retired = [logs.removal.retire("t", partition) for partition in range(3)]
    assert (files.touched - before, len(logs), (tmp_path / "t-0").exists()) == (0, 0, True)
    for garbage in logs.removal.rename(retired):
        garbage.remove()
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith("t-")] == []
    logs.close()


def test_a_deletion_in_the_middle_of_a_flush_is_no_failure_of_the_disk(tmp_path: Path) -> None:
    class DeletedMeanwhile(OsFiles):
        def sync_directory(self, path: Path) -> None:
            if path.name == "t-0" and len(logs):
                logs.removal.delete("t", 0).remove()
            super().sync_directory(path)

    logs = LogManager([tmp_path], files=DeletedMeanwhile(), clock=FixedClock(), broker_id=1, cluster_id=CLUSTER)
    log = logs.creation.create("t", 0, TOPIC_ID, TopicConfig())
    append(log, b"a")
    log.flush()
    assert not logs.failed_directories
    assert len(logs) == 0
    logs.close()


def test_a_topic_made_anew_does_not_begin_where_its_namesake_was(tmp_path: Path) -> None:
    """Checkpoints outlive the logs that they tell of, and the crash comes before they are written again."""
    logs = opened(tmp_path)
    old = logs.creation.create("t", 0, TOPIC_ID, TopicConfig())
    for _ in range(5):
        append(old, b"old")
    old.truncator.delete_records_before(4)
    old.flush()
    logs.checkpoints.write_recovery_points()
    logs.checkpoints.write_log_start_offsets()
    logs.checkpoints.write_high_watermarks({("t", 0): 5})
    logs.removal.delete("t", 0).remove()
    assert logs.checkpoints.read_high_watermarks() == {}
    append(logs.creation.create("t", 0, OTHER_ID, TopicConfig()), b"new")
    logs.abandon()

    logs = opened(tmp_path)
    (log,) = logs.logs()
    assert (log.log_start_offset, log.log_end_offset, log.recovery_point) == (0, 1, 0)
    logs.close()


def test_entries_of_logs_that_are_gone_do_not_outlast_the_start(tmp_path: Path) -> None:
    """A crash in the middle of a deletion leaves the entries behind."""
    for name in checkpoints.OFFSET_CHECKPOINTS:
        (tmp_path / name).write_text("0\n1\ngone 0 7\n")
    logs = opened(tmp_path)
    append(logs.creation.create("gone", 0, TOPIC_ID, TopicConfig()), b"first")
    logs.abandon()
    logs = opened(tmp_path)
    (log,) = logs.logs()
    assert (log.log_start_offset, log.log_end_offset, log.recovery_point) == (0, 1, 0)
    assert logs.checkpoints.read_high_watermarks() == {}
    logs.close()


class FullForCheckpoints(OsFiles):
    """No room for checkpoints while `full`."""

    full = False

    def replace_file(self, path: Path, data: bytes, *, sync: bool = True) -> None:
        if self.full and path.name in checkpoints.OFFSET_CHECKPOINTS:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))
        super().replace_file(path, data, sync=sync)


def test_a_full_disk_lets_topics_go_and_their_namesakes_wait_for_room(tmp_path: Path) -> None:
    files = FullForCheckpoints()
    logs = LogManager([tmp_path], files=files, clock=FixedClock(), broker_id=1, cluster_id=CLUSTER)
    logs.open_all(lambda _topic: TopicConfig())
    append(logs.creation.create("t", 0, TOPIC_ID, TopicConfig()), b"a", b"b")
    logs.checkpoints.write_high_watermarks({("t", 0): 2})
    files.full = True
    logs.removal.delete("t", 0).remove()
    with pytest.raises(StorageExhausted):
        logs.creation.create("t", 0, OTHER_ID, TopicConfig())
    files.full = False
    logs.creation.create("t", 0, OTHER_ID, TopicConfig())
    assert logs.checkpoints.read_high_watermarks() == {}
    logs.abandon()


def test_what_is_none_of_the_brokers_is_left_alone_with_one_line(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "notes-2024").write_text("mine")
    (tmp_path / "photos").mkdir()
    for _ in range(2):
        logs = opened(tmp_path)
        assert logs.logs() == []
        logs.close()
    left_alone = [Path(line.rpartition("=")[2]).name for line in caplog.messages if "left-alone" in line]
    assert sorted(left_alone) == ["notes-2024"] * 2 + ["photos"] * 2
    assert (tmp_path / "notes-2024").read_text() == "mine"


def test_a_directory_tells_how_it_was_left_unless_no_broker_has_used_it(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO")
    made = tmp_path / "made"
    made.mkdir()
    for folder in (made, tmp_path / "to-be-made"):
        for end in (LogManager.abandon, LogManager.close, LogManager.close):
            end(opened(folder))
        assert [line for line in caplog.messages if f"path={folder}" in line] == [
            f"event=log-directory-new path={folder}",
            f"event=log-directory-found path={folder} logs=0 clean_shutdown=False",
            f"event=log-directory-found path={folder} logs=0 clean_shutdown=True",
        ]


def test_a_checkpoint_that_says_the_same_as_before_is_not_written_again(tmp_path: Path) -> None:
    files = FailingFiles()
    logs = manager(tmp_path / "a", files=files)
    logs.creation.create("t", 0, TOPIC_ID, TopicConfig())
    logs.checkpoints.write_high_watermarks({("t", 0): 1})
    before = files.counts["replace_file"]
    logs.checkpoints.write_high_watermarks({("t", 0): 1})
    assert files.counts["replace_file"] == before
    logs.checkpoints.write_high_watermarks({("t", 0): 2})
    assert files.counts["replace_file"] == before + 1
    files.fill(tmp_path / "a")
    with pytest.raises(StorageExhausted):
        logs.checkpoints.write_high_watermarks({("t", 0): 3})
    files.heal()
    logs.checkpoints.write_high_watermarks({("t", 0): 2})  # after a failure, the content of the file is unknown
    assert files.counts["replace_file"] == before + 3
    assert logs.checkpoints.read_high_watermarks() == {("t", 0): 2}
    logs.close()
