"""The content of a log after a crash: torn tails at every byte, damage in the middle, missing and wrong side files."""

from __future__ import annotations

import errno
import logging
import os
import shutil
from collections.abc import Sequence
from pathlib import Path

import pytest
from msgspec.structs import replace

from barnabas.config.topic import TopicConfig
from barnabas.errors import KafkaError, LogDirFailed, StorageExhausted
from barnabas.protocol.records.batch_header import split_batches
from barnabas.storage.check.partition import PartitionContext, check_partition
from barnabas.storage.files import Buffer, OsFiles
from barnabas.storage.recovery import scan_batches
from tests.storage.support import FILES, NOW, TOPIC_ID, CountingFiles, append, batch, open_log, read_all

SMALL = TopicConfig(segment_bytes=1000, index_interval_bytes=100)


class BadSector(OsFiles):
    """A disk that cannot read one file."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._opened: set[int] = set()

    def open(self, path: Path, *, create: bool = False) -> int:
        fileno = super().open(path, create=create)
        (self._opened.add if path == self._path else self._opened.discard)(fileno)
        return fileno

    def pread(self, fileno: int, size: int, position: int, /) -> bytes:
        if fileno in self._opened:
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        return os.pread(fileno, size, position)


def newest(folder: Path) -> Path:
    return max((folder / "topic-0").glob("*.log"))


def test_a_torn_tail_is_cut_at_every_byte(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    log = open_log(tmp_path)
    append(log, b"a", b"b")
    whole = log.size_bytes
    append(log, b"c" * 50)
    size = log.size_bytes
    log.abandon()
    for cut in range(whole, size):
        folder = tmp_path / str(cut)
        shutil.copytree(tmp_path / "topic-0", folder / "topic-0")
        with newest(folder).open("r+b") as file:
            file.truncate(cut)
        caplog.clear()
        with caplog.at_level(logging.WARNING):
            log = open_log(folder, clean=False)
        assert (log.log_end_offset, log.size_bytes, newest(folder).stat().st_size) == (2, whole, whole)
        assert [record.value for record in read_all(log)] == [b"a", b"b"]
        assert append(log, b"again").first_offset == 2
        log.abandon()
        dropped = [record.getMessage() for record in caplog.records if "event=log-tail-dropped" in record.getMessage()]
        assert len(dropped) == (1 if cut > whole else 0)
        assert all(f"dropped_bytes={cut - whole}" in message for message in dropped)
        shutil.rmtree(folder)


def test_damage_in_the_middle_ends_the_log_there(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    log = open_log(tmp_path, SMALL)
    for index in range(40):
        append(log, b"%03d" % index * 30)
    assert len(list((tmp_path / "topic-0").glob("*.log"))) > 3
    log.abandon()
    second = sorted((tmp_path / "topic-0").glob("*.log"))[1]
    base = int(second.stem)
    data = bytearray(second.read_bytes())
    data[len(data) // 2] ^= 0xFF
    second.write_bytes(data)
    with caplog.at_level(logging.WARNING):
        log = open_log(tmp_path, SMALL, clean=False)
    assert base < log.log_end_offset < base + 8
    assert [record.value for record in read_all(log)] == [b"%03d" % index * 30 for index in range(log.log_end_offset)]
    assert newest(tmp_path) == second
    assert "dropped_segments=" in caplog.text
    log.close()


@pytest.mark.parametrize(
    "rest", [b"\0" * 90, bytes(batch(b"refused", base_offset=6)) + b"x", b"y"], ids=["zeros", "batch", "byte"]
)
@pytest.mark.parametrize(
    ("point", "has_index"), [("0", True), ("0", False), ("its end", True), ("its end", False), ("behind it", False)]
)
def test_bytes_behind_the_records_of_a_sealed_segment_take_no_later_segment_with_them(
    tmp_path: Path, rest: bytes, point: str, has_index: bool
) -> None:
    """A part of a write that the disk refused; only if whole batches are in it past the recovery point, it is unknown which are right."""
    values = [b"%03d" % index * 30 for index in range(30)]
    log = open_log(tmp_path, SMALL)
    for value in values:
        append(log, value)
    sealed, following = log.segments[0], log.segments[1].base_offset
    assert following == 6 < log.active_base_offset
    log.abandon()
    size = sealed.path.stat().st_size
    sealed.path.write_bytes(sealed.path.read_bytes() + rest)
    if not has_index:
        sealed.path.with_suffix(".index").unlink()
    recovery_point = {"0": 0, "its end": following, "behind it": 30}[point]
    log = open_log(tmp_path, SMALL, clean=False, recovery_point=recovery_point)
    if point == "0" and b"refused" in rest:
        assert log.log_end_offset == 7
    else:
        assert [record.value for record in read_all(log)] == values
        assert sealed.path.stat().st_size == size
    log.close()


def test_a_rest_behind_a_sealed_segment_without_index_takes_nothing_with_it_after_a_clean_stop(tmp_path: Path) -> None:
    log = open_log(tmp_path, SMALL)
    for _ in range(30):
        append(log, b"x" * 90)
    first = log.segments[0].path
    log.close()
    first.write_bytes(first.read_bytes() + b"rest")
    first.with_suffix(".index").unlink()
    log = open_log(tmp_path, SMALL, recovery_point=30)
    assert [record.offset for record in read_all(log)] == list(range(30))
    log.close()


@pytest.mark.parametrize("clean", [True, False])
@pytest.mark.parametrize(("number", "flip"), [(0, 1 << 4), (0, 1 << 20), (0, 1 << 40), (-1, 1 << 40)])
def test_a_wrong_base_offset_in_a_segment_without_index_costs_only_its_batch(
    tmp_path: Path, clean: bool, number: int, flip: int
) -> None:
    log = open_log(tmp_path, SMALL)
    for _ in range(29):
        append(log, b"x" * 90)
    path, lost = log.segments[number].path, log.segments[number].next_offset - 2
    log.close()
    data = bytearray(path.read_bytes())
    position, header = list(split_batches(bytes(data)))[-2]
    assert header.base_offset == lost
    data[position : position + 8] = (lost ^ flip).to_bytes(8, "big")
    path.write_bytes(data)
    path.with_suffix(".index").unlink()
    log = open_log(tmp_path, SMALL, clean=clean, recovery_point=29)
    assert log.log_end_offset == 29
    before = [record.offset for record in read_all(log, max_bytes=1)][:lost]
    assert [*before, *(record.offset for record in read_all(log, lost + 1))] == [at for at in range(29) if at != lost]
    log.close()


@pytest.mark.parametrize("suffix", ["log", "index"])
def test_a_segment_that_the_disk_cannot_read_does_not_keep_a_log_from_opening(tmp_path: Path, suffix: str) -> None:
    log = open_log(tmp_path, SMALL)
    for _ in range(30):
        append(log, b"x" * 90)
    first, following = log.segments[0].path, log.segments[1].base_offset
    log.abandon()

    log = open_log(tmp_path, SMALL, clean=False, recovery_point=following, files=BadSector(first.with_suffix(f".{suffix}")))
    assert [record.offset for record in read_all(log, following)] == list(range(following, 30))
    log.close()


def test_what_lies_below_the_recovery_point_is_not_read(tmp_path: Path) -> None:
    log = open_log(tmp_path, SMALL)
    for index in range(40):
        append(log, b"%03d" % index * 30)
    log.flush()
    append(log, b"after")
    recovery_point = log.recovery_point
    log.abandon()
    first = min((tmp_path / "topic-0").glob("*.log"))
    data = bytearray(first.read_bytes())
    data[70] ^= 0xFF  # a recovery that reads this byte ends the log here
    first.write_bytes(data)
    log = open_log(tmp_path, SMALL, clean=False, recovery_point=recovery_point)
    assert log.log_end_offset == 41
    log.abandon()


def test_a_clean_start_reads_next_to_nothing(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    for _ in range(200):
        append(log, b"x" * 10_000)
    size = log.size_bytes
    log.close()
    files = CountingFiles()
    log = open_log(tmp_path, files=files)
    assert log.log_end_offset == 200
    assert files.bytes_read < 30_000 < size
    log.abandon()


@pytest.mark.parametrize("suffix", ["index", "timeindex", "snapshot"])
@pytest.mark.parametrize("clean", [True, False])
def test_missing_side_files_are_made_anew(tmp_path: Path, suffix: str, clean: bool) -> None:
    log = open_log(tmp_path, SMALL)
    for index in range(30):
        append(log, b"x" * 90, producer_id=3, producer_epoch=0, base_sequence=index, time_ms=NOW + index)
    log.close()
    for path in (tmp_path / "topic-0").glob(f"*.{suffix}"):
        path.unlink()
    log = open_log(tmp_path, SMALL, clean=clean)
    assert len(read_all(log)) == 30
    assert log.reader.offset_for_timestamp(NOW + 17) == (NOW + 17, 17, 0)
    assert [producer.last_sequence for producer in log.reader.producers()] == [29]
    assert log.reader.read(5, 200, limit_offset=30, minimum_one=True) is not None
    log.close()


@pytest.mark.parametrize("suffix", ["index", "timeindex", "snapshot"])
def test_garbage_in_side_files_is_survived_after_a_crash(tmp_path: Path, suffix: str) -> None:
    log = open_log(tmp_path, SMALL)
    for index in range(30):
        append(log, b"x" * 90, producer_id=3, producer_epoch=0, base_sequence=index, time_ms=NOW + index)
    log.close()
    for path in (tmp_path / "topic-0").glob(f"*.{suffix}"):
        path.write_bytes(b"\x7f" * 120)
    log = open_log(tmp_path, SMALL, clean=False)
    assert len(read_all(log)) == 30
    assert log.reader.offset_for_timestamp(NOW + 17) == (NOW + 17, 17, 0)
    assert [producer.last_sequence for producer in log.reader.producers()] == [29]
    log.close()


def test_leftovers_of_a_crash_are_removed(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    append(log, b"a")
    log.close()
    for name in ("00000000000000000000.log.deleted", "leader-epoch-checkpoint.tmp", "00000000000000000007.log.cleaned"):
        (tmp_path / "topic-0" / name).write_bytes(b"junk")
    log = open_log(tmp_path, clean=False)
    assert not [path for path in (tmp_path / "topic-0").iterdir() if path.suffix in (".deleted", ".tmp", ".cleaned")]
    log.close()


def test_what_a_removal_of_a_segment_left_is_removed_after_a_crash(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    append(log, b"a")
    log.close()
    for suffix in ("index", "timeindex", "txnindex"):
        (tmp_path / "topic-0" / f"{7:020d}.{suffix}").touch()
    log = open_log(tmp_path)
    assert len(list((tmp_path / "topic-0").glob(f"{7:020d}.*"))) == 3, "after a clean stop nobody knows why they are there"
    log.close()
    log = open_log(tmp_path, clean=False)
    assert not list((tmp_path / "topic-0").glob(f"{7:020d}.*"))
    assert len(read_all(log)) == 1
    log.close()


@pytest.mark.parametrize("removed", range(1, 4))
def test_a_kill_while_segments_are_retired_leaves_nothing_that_a_start_does_not_mend(tmp_path: Path, removed: int) -> None:
    log = open_log(tmp_path, SMALL)
    for _ in range(30):
        append(log, b"x" * 90)
    log.flush()
    log.abandon()
    folder = tmp_path / "topic-0"
    for suffix in ("log", "index", "timeindex")[:removed]:
        path = folder / f"{0:020d}.{suffix}"
        path.rename(path.with_name(path.name + ".deleted"))
    report = check_partition(FILES, folder, PartitionContext(30, False, TOPIC_ID, log_start_offset=1))
    assert [str(each) for each in report.findings if not each.mended] == []
    log = open_log(tmp_path, SMALL, clean=False, recovery_point=30, log_start_offset=1)
    start = log.log_start_offset
    assert 0 < start < 30
    assert len(read_all(log)) == 30 - start
    log.close()
    assert check_partition(FILES, folder, PartitionContext(30, True, TOPIC_ID, log_start_offset=start)).findings == []


def test_epochs_that_were_written_down_before_a_cut_give_way_to_what_the_batches_say(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    append(log, b"a", epoch=1)
    append(log, b"b", epoch=7)
    log.flush()
    log.truncator.truncate_to(1)
    append(log, b"c", epoch=3)
    append(log, b"d", epoch=4)
    log.abandon()
    assert "7 1" in (tmp_path / "topic-0" / "leader-epoch-checkpoint").read_text()
    log = open_log(tmp_path, clean=False, recovery_point=1)
    assert log.epoch_entries == [(1, 0), (3, 1), (4, 2)]
    log.close()


def test_a_log_ends_in_the_epoch_of_its_last_record_though_that_was_removed(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    assert log.reader.epoch_of_end == -1
    append(log, b"a", epoch=1)
    append(log, b"b", epoch=4)
    assert log.reader.epoch_of_end == 4
    log.truncator.delete_records_before(2)
    assert (log.log_start_offset, log.log_end_offset, log.reader.epoch_of_end) == (2, 2, 4)
    log.close()
    log = open_log(tmp_path, log_start_offset=2)
    assert (log.log_end_offset, log.reader.epoch_of_end) == (2, 4)
    log.close()


def test_lost_epochs_come_back_from_the_batches(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    append(log, b"a", epoch=1)
    append(log, b"b", epoch=4)
    log.flush()
    log.abandon()
    (tmp_path / "topic-0" / "leader-epoch-checkpoint").unlink()
    log = open_log(tmp_path, clean=False)
    assert (log.reader.latest_epoch, log.reader.end_offset_for_epoch(1), log.reader.end_offset_for_epoch(2)) == (
        4,
        (1, 1),
        (1, 1),
    )
    log.close()


class FullDisk(OsFiles):
    """Takes `room` more bytes, then no more."""

    def __init__(self, room: int) -> None:
        self.room = room

    def pwrite(self, fileno: int, data: Buffer, position: int, /) -> int:
        if not self.room and len(data):
            raise OSError(28, "No space left on device")
        taken = min(self.room, len(data))
        self.room -= taken
        return super().pwrite(fileno, memoryview(data)[:taken], position)


def test_a_write_that_fails_half_way_leaves_nothing_behind(tmp_path: Path) -> None:
    files = FullDisk(10_000)
    log = open_log(tmp_path, files=files)
    append(log, b"a")
    files.room = 40
    with pytest.raises(StorageExhausted):
        append(log, b"never", producer_id=1, producer_epoch=0, base_sequence=0)
    assert (log.log_end_offset, len(read_all(log)), log.reader.producers()) == (1, 1, [])
    files.room = 10_000
    assert append(log, b"b").first_offset == 1
    files.room = 40
    with pytest.raises(StorageExhausted):
        append(log, b"never")
    files.room = 10_000
    log.close()
    log = open_log(tmp_path)
    assert [record.value for record in read_all(log)] == [b"a", b"b"]
    log.close()


def test_a_disk_that_takes_parts_gets_the_rest(tmp_path: Path) -> None:
    class InParts(OsFiles):
        def pwrite(self, fileno: int, data: Buffer, position: int, /) -> int:
            return super().pwrite(fileno, memoryview(data)[:13], position)

        def pwritev(self, fileno: int, buffers: Sequence[Buffer], position: int, /) -> int:
            return super().pwritev(fileno, [memoryview(buffers[0])[:5]], position)

    log = open_log(tmp_path, files=InParts())
    append(log, b"a" * 100)
    log.appender.append_as_leader(bytes(batch(b"b" * 100)), leader_epoch=0, now_ms=NOW)
    assert [record.value for record in read_all(log)] == [b"a" * 100, b"b" * 100]
    log.close()
    log = open_log(tmp_path, clean=False)
    assert log.log_end_offset == 2
    log.close()


def test_a_failed_sync_keeps_the_recovery_point(tmp_path: Path) -> None:
    class NoSync(OsFiles):
        def sync(self, fileno: int, /) -> None:
            raise OSError(5, "Input/output error")

    log = open_log(tmp_path, files=NoSync())
    append(log, b"a")
    with pytest.raises(LogDirFailed):
        log.flush()
    append(log, b"b")
    with pytest.raises(LogDirFailed):
        log.plan_flush()
    assert (log.recovery_point, log.durable_end) == (0, 0)
    log.close()
    log = open_log(tmp_path, clean=False)
    assert log.log_end_offset == 2
    log.close()


def test_a_log_that_ends_before_its_start_begins_anew(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    append(log, b"a", b"b", b"c")
    log.abandon()
    log = open_log(tmp_path, clean=False, log_start_offset=10)
    assert (log.log_start_offset, log.log_end_offset) == (10, 10)
    assert append(log, b"d").first_offset == 10
    log.close()


def test_scanning_stops_at_offsets_that_go_back(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    append(log, b"a", b"b")
    append(log, b"c")
    log.abandon()
    path = newest(tmp_path)
    data = bytearray(path.read_bytes())
    size = len(data)
    data += bytes(data)  # the same batches again
    path.write_bytes(data)
    log = open_log(tmp_path, clean=False)
    assert (log.log_end_offset, log.size_bytes) == (3, size)
    assert len(list(scan_batches(log.segments.active, 0, size))) == 2
    log.close()


def test_records_past_a_smaller_limit_stay_readable(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    append(log, b"x" * 5000)
    log.update_config(replace(log.config, max_message_bytes=100))
    with pytest.raises(KafkaError):
        append(log, b"x" * 5000)
    assert len(read_all(log)) == 1
    log.close()


def test_foreign_files_are_left_alone_with_one_line(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    log = open_log(tmp_path)
    append(log, b"a")
    log.close()
    folder = tmp_path / "topic-0"
    for name in ("notes.txt", "backup.log", "old.snapshot"):
        (folder / name).write_text("mine")
    log = open_log(tmp_path)
    assert log.log_end_offset == 1
    append(log, b"b")
    log.close()
    assert [(folder / name).read_text() for name in ("notes.txt", "backup.log", "old.snapshot")] == ["mine"] * 3
    assert [line for line in caplog.messages if "notes.txt" in line and "backup.log" in line] == caplog.messages


def test_a_topic_id_that_a_loss_of_power_emptied_is_given_anew(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    append(log, b"a")
    log.abandon()
    (tmp_path / "topic-0" / "partition.metadata").write_bytes(b"")
    log = open_log(tmp_path, clean=False)
    assert (log.topic_id, log.log_end_offset) == (TOPIC_ID, 1)
    log.close()
    log = open_log(tmp_path)
    assert log.topic_id == TOPIC_ID
    log.close()
