"""All logs of a broker after a loss of power or a crash: data that must not be back or gone, and state that must be written before."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

from barnabas.config.topic import TopicConfig
from barnabas.storage.manager import LogManager
from barnabas.testing.simulation.disk import Disk
from barnabas.testing.simulation.files import FaultyFiles
from tests.storage.support import TOPIC_ID, append
from tests.storage.test_manager import manager, opened

DATA = Path("/data")


def begun(seed: int) -> tuple[Disk, FaultyFiles, LogManager]:
    """A disk whose folder is there for good, and a manager on it."""
    disk = Disk(Random(seed))
    disk.make_durable(DATA)
    files = FaultyFiles(disk)
    return disk, files, manager(DATA, files=files)


def after_a_power_cut(disk: Disk, files: FaultyFiles) -> LogManager:
    """The state that the next start finds."""
    files.die()
    disk.lose_power()
    logs = manager(DATA, files=FaultyFiles(disk))
    logs.open_all(lambda _topic: TopicConfig())
    return logs


def test_the_power_does_not_bring_a_deleted_log_back() -> None:
    for seed in range(40):
        disk, files, logs = begun(seed)
        log = logs.creation.create("t", 0, TOPIC_ID, TopicConfig())
        append(log, b"a")
        log.flush()
        logs.removal.delete("t", 0)
        logs = after_a_power_cut(disk, files)
        assert not len(logs), seed


def test_the_power_does_not_take_the_topic_id_of_a_log_with_records() -> None:
    """Without it the log would be taken for that of the next topic of the name, and its records for that one's."""
    for seed in range(30):
        disk = Disk(Random(seed))
        files = FaultyFiles(disk)
        logs = manager(DATA, files=files)
        append(logs.creation.create("t", 0, TOPIC_ID, TopicConfig()), b"a")
        logs = after_a_power_cut(disk, files)
        assert {log.topic_id for log in logs.logs()} <= {TOPIC_ID}, seed


def test_what_follows_a_cut_does_not_pass_for_synced_after_a_power_cut(caplog: pytest.LogCaptureFixture) -> None:
    """A torn record below an older recovery point would stay, as damage, and everything behind it would count as there. And what was cut
    is not back instead of what follows."""
    for seed in range(30):
        disk, files, logs = begun(seed)
        log = logs.creation.create("t", 0, TOPIC_ID, TopicConfig())
        for _ in range(9):
            append(log, b"x" * 400)
        log.flush()
        logs.checkpoints.write_recovery_points()
        log.truncator.truncate_to(3)
        assert not log.is_written_down
        mark = log.truncator.start_mark
        logs.checkpoints.write_log_start_offsets()
        log.truncator.start_written(mark)
        assert log.is_written_down
        for _ in range(5):
            append(log, b"y" * 400)
        logs = after_a_power_cut(disk, files)
        (log,) = logs.logs()
        assert log.recovery_point == 3, seed
        (segment,) = log.segments
        data = log.files.pread(segment.fileno, segment.size, 0)
        assert data.count(b"x" * 400) == 3, seed
    assert "event=corrupt-data-kept" not in caplog.text


@pytest.mark.parametrize("start_again", [True, False])
def test_a_log_that_is_cut_before_its_start_has_to_be_written_down(tmp_path: Path, *, start_again: bool) -> None:
    logs = opened(tmp_path)
    log = logs.creation.create("t", 0, TOPIC_ID, TopicConfig())
    for _ in range(5):
        append(log, b"x")
    log.truncator.delete_records_before(5)
    mark = log.truncator.start_mark
    logs.checkpoints.write_log_start_offsets()
    log.truncator.start_written(mark)
    assert log.is_written_down
    if start_again:
        log.truncator.truncate_fully_and_start_at(2)
    else:
        log.truncator.truncate_to(2)
    log.truncator.start_written(mark)  # the mark is from before the truncation
    assert (log.log_start_offset, log.is_written_down) == (2, False)
    logs.close()


def test_a_log_whose_topic_id_the_power_took_opens_again_after_a_clean_stop_too(tmp_path: Path) -> None:
    logs = opened(tmp_path)
    append(logs.creation.create("t", 0, TOPIC_ID, TopicConfig()), b"a")
    logs.abandon()
    (tmp_path / "t-0" / "partition.metadata").write_bytes(b"")
    for _ in range(2):
        logs = opened(tmp_path)
        log = logs.get("t", 0)
        assert log is not None
        assert (log.topic_id, log.log_end_offset) == (None, 1)
        logs.close()
