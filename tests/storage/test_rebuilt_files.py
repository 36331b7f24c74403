"""Every small file beside the records, damaged as a loss of power leaves it: the logs open, and say of each what it was made of again."""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

from barnabas.config.topic import TopicConfig
from barnabas.errors import CorruptLog
from barnabas.storage import checkpoints
from barnabas.storage.directory import CLEAN_SHUTDOWN_FILE
from barnabas.storage.manager import LogManager
from barnabas.storage.producer_state import CompletedTransaction, ProducerDescription
from tests.storage.support import NOW, TOPIC_ID, UnsyncedFiles, append, batch, read_all
from tests.storage.test_manager import CLUSTER, FixedClock, manager
from tests.storage.test_producers import end_transaction, produce

CONFIG = TopicConfig(segment_bytes=1_000, index_interval_bytes=0)
PARTITION = "t-0"
CUT_BYTES = 3
DAMAGES: dict[str, Callable[[bytes], bytes]] = {
    "empty": lambda _: b"",
    "cut in half": lambda data: data[: len(data) // 2],
    "cut off": lambda data: data[:-CUT_BYTES],
    "zeros": lambda data: bytes(len(data)),
    "no text": lambda data: b"\xff" * len(data),
}
OF_DIRECTORY = (*checkpoints.OFFSET_CHECKPOINTS, checkpoints.META_PROPERTIES)
OF_PARTITION = (checkpoints.LEADER_EPOCHS, ".index", ".timeindex", ".txnindex", ".snapshot")


class Told(NamedTuple):
    """The state of a log as it reports it."""

    records: list[tuple[int, bytes | None]]
    epochs: list[tuple[int, int]]
    aborted: list[CompletedTransaction]
    producers: list[ProducerDescription]


def opened(folder: Path) -> LogManager:
    logs = LogManager([folder], files=UnsyncedFiles(), clock=FixedClock(), broker_id=1, cluster_id=CLUSTER)
    logs.open_all(lambda _topic: CONFIG)
    return logs


def told(logs: LogManager) -> Told:
    log = logs.get("t", 0)
    assert log is not None
    records = [(record.offset, record.value) for record in read_all(log)]
    return Told(records, log.epoch_entries, log.reader.aborted_transactions(0, log.log_end_offset), log.reader.producers())


def filled(folder: Path) -> Told:
    """Several segments and epochs, aborted transactions in two segments, and a log start; closed."""
    logs = opened(folder)
    log = logs.creation.create("t", 0, TOPIC_ID, CONFIG)
    for epoch in range(3):
        append(log, b"x" * 300, epoch=epoch)
        produce(log, epoch, transactional=1, leader_epoch=epoch)
        end_transaction(log, abort=True, leader_epoch=epoch)
        append(log, b"y" * 500, epoch=epoch)
    logs.checkpoints.write_recovery_points()
    logs.checkpoints.write_log_start_offsets()
    logs.checkpoints.write_high_watermarks({("t", 0): log.log_end_offset})
    logs.checkpoints.write_cleaned_offsets(lambda: {("t", 0): 0})
    before = told(logs)
    assert len(list((folder / PARTITION).glob("*.log"))) > 3
    assert len(before.aborted) == 3
    logs.close()
    return before


def targets(folder: Path, name: str) -> list[Path]:
    return sorted((folder / PARTITION).glob(f"*{name}")) if name in OF_PARTITION else [folder / name]


@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("name", [*OF_DIRECTORY, *OF_PARTITION])
@pytest.mark.parametrize("was_clean", [True, False], ids=["clean", "crashed"])
def test_a_damaged_file_is_made_again(tmp_path: Path, *, name: str, damage: str, was_clean: bool) -> None:
    before = filled(tmp_path)
    if not was_clean:
        (tmp_path / CLEAN_SHUTDOWN_FILE).unlink()
    for path in targets(tmp_path, name):
        path.write_bytes(DAMAGES[damage](path.read_bytes()))
    for _ in range(2):  # the second start finds no damage
        logs = opened(tmp_path)
        assert told(logs) == before
        logs.close()


@pytest.mark.parametrize("damage", ["empty", "zeros", "no text"])
def test_a_topic_id_is_taken_from_the_metadata_after_a_crash_alone(tmp_path: Path, *, damage: str) -> None:
    before = filled(tmp_path)
    (tmp_path / CLEAN_SHUTDOWN_FILE).unlink()
    path = tmp_path / PARTITION / checkpoints.PARTITION_METADATA
    path.write_bytes(DAMAGES[damage](path.read_bytes()))
    logs = opened(tmp_path)
    log = logs.get("t", 0)
    assert log is not None
    assert log.topic_id is None
    log.adopt_topic_id(TOPIC_ID)
    assert told(logs) == before
    logs.close()
    path.write_bytes(DAMAGES[damage](path.read_bytes()))
    logs = manager(tmp_path)
    with pytest.raises(CorruptLog, match=r"partition\.metadata"):
        logs.open_all(lambda _topic: CONFIG)
    logs.abandon()


@pytest.mark.parametrize("name", [*checkpoints.OFFSET_CHECKPOINTS, checkpoints.LEADER_EPOCHS])
def test_what_a_damaged_file_is_made_of_is_said_once(tmp_path: Path, caplog: pytest.LogCaptureFixture, *, name: str) -> None:
    filled(tmp_path)
    path = tmp_path / PARTITION / name if name == checkpoints.LEADER_EPOCHS else tmp_path / name
    path.write_bytes(b"")
    with caplog.at_level(logging.INFO):
        opened(tmp_path).close()
        opened(tmp_path).close()
    said = [record.getMessage() for record in caplog.records if str(path) in record.getMessage()]
    assert len(said) == 1
    assert "consequence=" in said[0]


def test_a_lost_log_start_begins_with_the_first_segment(tmp_path: Path) -> None:
    filled(tmp_path)
    logs = opened(tmp_path)
    log = logs.get("t", 0)
    assert log is not None
    log.truncator.delete_records_before(5)
    logs.close()
    (tmp_path / checkpoints.LOG_START_OFFSETS).write_bytes(b"")
    logs = opened(tmp_path)
    log = logs.get("t", 0)
    assert log is not None
    assert log.log_start_offset <= 5
    assert [record.offset for record in read_all(log)] == list(range(log.log_start_offset, log.log_end_offset))
    logs.close()


def test_epochs_that_compaction_cut_short_begin_behind_the_batch_before(tmp_path: Path) -> None:
    """A follower that has other records there must not keep them."""
    folder = tmp_path / PARTITION
    logs = opened(tmp_path)
    log = logs.creation.create("t", 0, TOPIC_ID, CONFIG)
    for offset, epoch in ((0, 0), (10, 3)):
        log.appender.append_as_follower(batch(b"x", base_offset=offset, partition_leader_epoch=epoch), now_ms=NOW)
    logs.close()
    (folder / checkpoints.LEADER_EPOCHS).write_bytes(b"")
    logs = opened(tmp_path)
    assert told(logs).epochs == [(0, 0), (3, 1)]
    logs.close()
