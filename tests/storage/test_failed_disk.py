"""Cases of failing disks that the simulator found: nothing stays open, and every error is one of the storage."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from pathlib import Path
from random import Random
from uuid import UUID

import pytest

from barnabas.config.topic import TopicConfig
from barnabas.errors import LogDirFailed, StorageExhausted
from barnabas.storage.files import OsFiles
from barnabas.storage.garbage import Garbage, remove_all
from barnabas.storage.log import Log
from barnabas.storage.manager import LogManager
from barnabas.storage.segment import Segment
from barnabas.testing.failing_files import FailingFiles
from barnabas.testing.simulation.disk import Disk
from barnabas.testing.simulation.disk_faults import Operation
from barnabas.testing.simulation.files import FaultyFiles
from tests.storage.support import NOW, TOPIC_ID, append, open_log, read_all

HOME = Path("/data")
FOLDER = HOME / "topic-0"


class FixedClock:
    def now_ms(self) -> int:
        return NOW

    def monotonic_ms(self) -> float:
        return 0.0


@pytest.fixture
def files() -> FaultyFiles:
    disk = Disk(Random(1))
    disk.make_durable(FOLDER)
    return FaultyFiles(disk)


def test_a_segment_that_cannot_be_made_leaves_nothing_open(files: FaultyFiles) -> None:
    files.faults.arm(Operation.TRUNCATE)
    with pytest.raises(OSError, match="Input/output"):
        Segment.create(files, FOLDER, 0, NOW)
    assert files.open_count == 0


class Crowded(OsFiles):
    """Has no room for another file with `suffix`, where that is given."""

    suffix = ""

    def open(self, path: Path, /, *, create: bool = False) -> int:
        if create and path.suffix == self.suffix and not path.exists():
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))
        return super().open(path, create=create)


@pytest.mark.parametrize("suffix", [".log", ".index", ".timeindex"])
def test_a_roll_that_fails_half_way_leaves_no_segment_behind(tmp_path: Path, suffix: str) -> None:
    files, config = Crowded(), TopicConfig(segment_bytes=1_000)
    log = open_log(tmp_path, config, files=files)
    append(log, b"a" * 500)
    files.suffix = suffix
    with pytest.raises(StorageExhausted):
        append(log, b"b" * 800)
    files.suffix = ""
    append(log, b"c")
    append(log, b"d" * 800)
    log.close()
    found = open_log(tmp_path, config)
    assert [(record.value or b"")[:1] for record in read_all(found)] == [b"a", b"c", b"d"]
    assert [record.offset for record in read_all(found, 1)] == [1, 2]
    found.close()


def test_segments_that_cannot_be_renamed_are_closed_with_the_log(files: FaultyFiles) -> None:
    config = TopicConfig(segment_bytes=300)
    log = Log.open(FOLDER, config=config, files=files, now_ms=NOW, clean_shutdown=True, topic_id=TOPIC_ID)
    for _ in range(12):
        append(log, b"x" * 100)
    log.truncator.delete_records_before(10)
    files.faults.arm(Operation.RENAME)
    with pytest.raises(LogDirFailed):
        log.truncator.detach_below_start()
    log.close()
    assert files.open_count == 0


@pytest.mark.parametrize("number", [errno.EIO, errno.ENOSPC])
@pytest.mark.parametrize("everything", [True, False])
def test_a_log_that_is_cut_by_half_fails(files: FaultyFiles, number: int, everything: bool) -> None:
    config = TopicConfig(segment_bytes=300)
    log = Log.open(FOLDER, config=config, files=files, now_ms=NOW, clean_shutdown=True, topic_id=TOPIC_ID)
    for _ in range(10):
        append(log, b"x" * 100)
    files.faults.arm(Operation.TRUNCATE, Operation.RENAME, errno=number)
    cut: Callable[[int], None] = log.truncator.truncate_fully_and_start_at if everything else log.truncator.truncate_to
    with pytest.raises(LogDirFailed):
        cut(3)
    log.abandon()
    assert files.open_count == 0


@pytest.mark.parametrize(("number", "kind"), [(errno.EIO, LogDirFailed), (errno.ENOSPC, StorageExhausted)])
def test_garbage_that_does_not_go_is_a_fault_of_its_directory_and_goes_the_next_time(
    files: FaultyFiles, number: int, kind: type[Exception]
) -> None:
    paths = [FOLDER / "a.deleted", FOLDER / "b.deleted"]
    for path in paths:
        files.close(files.open(path, create=True))
    garbage = [Garbage(files, [path], []) for path in paths]
    files.faults.arm(Operation.UNLINK, errno=number)
    with pytest.raises(kind) as caught:
        remove_all(garbage)
    assert getattr(caught.value, "path") == str(HOME)  # noqa: B009 - both kinds have it
    assert files.list_directory(FOLDER) == ["a.deleted"]
    remove_all(garbage)
    assert files.list_directory(FOLDER) == []


def test_a_log_for_which_there_was_no_room_leaves_no_folder_behind() -> None:
    folders = [Path("/one"), Path("/two")]
    files, logs = _logs_on(folders)
    files.faults.arm(Operation.WRITE, errno=errno.ENOSPC)
    with pytest.raises(StorageExhausted):
        logs.creation.create("t", 0, TOPIC_ID, TopicConfig())
    assert not any(files.exists(folder / "t-0") for folder in folders)
    logs.close()
    assert files.open_count == 0


def test_a_checkpoint_that_cannot_be_read_does_not_keep_a_log_from_being_deleted() -> None:
    files, logs = _logs_on([HOME])
    append(logs.creation.create("t", 0, TOPIC_ID, TopicConfig()), b"a")
    logs.checkpoints.write_recovery_points()
    files.faults.arm(Operation.READ)
    logs.removal.delete("t", 0).remove()
    assert logs.creation.create("t", 0, TOPIC_ID, TopicConfig()).log_end_offset == 0
    logs.close()


def test_a_folder_that_a_deleted_topic_left_is_not_taken_for_that_of_the_next() -> None:
    files, logs = _logs_on([HOME])
    append(logs.creation.create("t", 0, TOPIC_ID, TopicConfig()), b"deleted")
    retired = logs.removal.retire("t", 0)
    files.faults.arm(Operation.RENAME, errno=errno.ENOSPC)
    with pytest.raises(StorageExhausted):
        logs.removal.rename_folders([retired])
    retired.garbage.close()
    made = logs.creation.create("t", 0, UUID(int=7), TopicConfig())
    assert (made.topic_id, made.log_end_offset) == (UUID(int=7), 0)
    assert sum(name.endswith("-stray") for name in files.list_directory(HOME)) == 1
    logs.close()


@pytest.mark.parametrize("has_room", [True, False])
def test_a_folder_that_a_deleted_topic_left_is_not_opened_to_be_set_aside(tmp_path: Path, *, has_room: bool) -> None:
    """It may be long, or too damaged to be opened, and nothing of the next topic's stays where the disk has no room for that."""
    files = FailingFiles()
    logs = LogManager([tmp_path], files=files, clock=FixedClock(), broker_id=1, cluster_id="cluster")
    append(logs.creation.create("t", 0, TOPIC_ID, TopicConfig()), b"deleted")
    logs.removal.retire("t", 0).garbage.close()
    (tmp_path / "t-0" / "leader-epoch-checkpoint").write_text("damaged")
    if has_room:
        assert logs.creation.create("t", 0, UUID(int=7), TopicConfig()).log_end_offset == 0
    else:
        files.fail(frozenset({"create"}), tmp_path, errno.ENOSPC)
        with pytest.raises(StorageExhausted):
            logs.creation.create("t", 0, UUID(int=7), TopicConfig())
    assert (tmp_path / "t-0").exists() == has_room
    (stray,) = tmp_path.glob("t-0.*-stray")
    assert (stray / "leader-epoch-checkpoint").read_text() == "damaged"
    logs.close()


def test_no_second_folder_is_made_for_a_name_that_a_failed_directory_has() -> None:
    folders = [Path("/one"), Path("/two")]
    files, logs = _logs_on(folders)
    logs.creation.create("t", 0, TOPIC_ID, TopicConfig())
    home = logs.directory_of("t", 0)
    logs.fail(LogDirFailed(str(home.path), "the disk does not work"))
    with pytest.raises(LogDirFailed):
        logs.creation.create("t", 0, UUID(int=7), TopicConfig())
    assert [folder for folder in folders if files.exists(folder / "t-0")] == [home.path]
    logs.abandon()


def test_a_deleted_log_whose_folder_stays_can_be_closed() -> None:
    files, logs = _logs_on([HOME])
    append(logs.creation.create("t", 0, TOPIC_ID, TopicConfig(segment_bytes=300)), b"a" * 100)
    retired = logs.removal.retire("t", 0)
    files.faults.arm(Operation.RENAME)
    with pytest.raises(LogDirFailed):
        logs.removal.rename([retired])
    retired.garbage.close()
    logs.close()
    assert files.open_count == 0


def _logs_on(folders: list[Path]) -> tuple[FaultyFiles, LogManager]:
    """The logs of a broker in folders of a disk that has nothing yet, and the disk's faults."""
    disk = Disk(Random(1))
    for folder in folders:
        disk.make_durable(folder)
    files = FaultyFiles(disk)
    return files, LogManager(folders, files=files, clock=FixedClock(), broker_id=1, cluster_id="cluster")
