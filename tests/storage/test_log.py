"""Cases of a log that the model does not cover: rolling, limits, retention, flushing, duplicates of times, concurrent flush."""

from __future__ import annotations

import errno
import os
import threading
from pathlib import Path

import pytest
from msgspec.structs import replace

from barnabas.config.topic import HOUR_MS, TopicConfig
from barnabas.errors import ErrorCode, KafkaError, StorageExhausted
from barnabas.protocol.records.batch import build_batch, iterate_records, read_header
from barnabas.storage.files import OsFiles
from barnabas.storage.flushing import FlushPlan
from barnabas.storage.index import OFFSET_ENTRY, SparseIndex
from barnabas.storage.leader_epochs import LeaderEpochs
from barnabas.storage.log import Log
from barnabas.storage.segment import RESERVED_BYTES
from barnabas.testing.failing_files import FailingFiles
from tests.storage.support import FILES, NOW, append, batch, bytes_of, open_log, read_all, retain
from tests.waiting import WITHIN_S

SMALL = TopicConfig(segment_bytes=1000, index_interval_bytes=100)


def bases(folder: Path) -> list[int]:
    return sorted(int(path.stem) for path in (folder / "topic-0").glob("*.log"))


def test_segments_roll_by_size(tmp_path: Path) -> None:
    log = open_log(tmp_path, SMALL)
    for _ in range(30):
        append(log, b"x" * 200)
    assert all(path.stat().st_size <= 1000 for path in (tmp_path / "topic-0").glob("*.log"))
    assert len(bases(tmp_path)) == 10
    assert len(list((tmp_path / "topic-0").glob("*.snapshot"))) == 9
    log.close()


def test_segments_roll_by_the_time_of_their_records(tmp_path: Path) -> None:
    log = open_log(tmp_path, replace(SMALL, segment_bytes=10**6, segment_ms=1000))
    for step in (0, 500, 1000, 1001, 1500, 2002):
        append(log, b"x", time_ms=NOW + step)
    assert bases(tmp_path) == [0, 3, 5]
    assert not log.appender.maybe_roll(NOW + 3002)
    assert log.appender.maybe_roll(NOW + 3003)
    assert not log.appender.maybe_roll(NOW + 9000)
    assert bases(tmp_path) == [0, 3, 5, 6]
    log.close()


def test_what_lies_behind_a_segment_counts_up_to_an_end(tmp_path: Path) -> None:
    log = open_log(tmp_path, replace(SMALL, segment_bytes=10**6, segment_ms=1000))
    for step in (0, 500, 1000, 1001, 1500):
        append(log, b"x", time_ms=NOW + step)
    assert bases(tmp_path) == [0, 3]
    assert [log.reader.has_segment_behind(0, end) for end in (2, 3, 5)] == [False, True, True]
    assert not log.reader.has_segment_behind(3, 5)
    log.close()


def test_records_older_than_their_segment_do_not_end_it(tmp_path: Path) -> None:
    log = open_log(tmp_path, replace(SMALL, segment_bytes=10**6, segment_ms=1000))
    append(log, b"x", time_ms=NOW - 10**9)
    assert not log.appender.maybe_roll(NOW + 900)
    assert log.appender.maybe_roll(NOW + 1001)
    append(log, b"x", time_ms=NOW - 10**9)
    assert not log.appender.maybe_roll(NOW + 2000)
    assert bases(tmp_path) == [0, 1]
    log.close()


def test_a_segment_whose_first_batch_was_refused_is_empty_and_has_no_age(tmp_path: Path) -> None:
    files = FailingFiles()
    log = open_log(tmp_path, replace(SMALL, segment_bytes=10**6, segment_ms=1000), files=files)
    files.fill(tmp_path / "topic-0")
    with pytest.raises(StorageExhausted):
        append(log, b"refused")
    files.heal()
    assert not log.appender.maybe_roll(NOW + 9000)
    append(log, b"kept", time_ms=NOW + 9000)
    assert not log.appender.maybe_roll(NOW + 9500)
    log.close()
    again = open_log(tmp_path)
    assert [record.value for record in read_all(again)] == [b"kept"]
    again.close()


def test_segments_roll_when_an_index_is_full(tmp_path: Path) -> None:
    log = open_log(tmp_path, TopicConfig(index_interval_bytes=1, segment_index_bytes=120))
    for index in range(40):
        append(log, b"x", time_ms=NOW + index)
    assert all(path.stat().st_size <= 120 for path in (tmp_path / "topic-0").glob("*index"))
    assert len(bases(tmp_path)) > 2
    assert len(read_all(log)) == 40
    log.close()


def test_a_segment_ends_where_its_relative_offsets_do(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    append(log)
    far = batch(b"far", base_offset=2**31 + 5)
    log.appender.append_as_follower(memoryview(far), now_ms=NOW)
    assert bases(tmp_path) == [0, 2**31 + 5]
    assert [record.offset for record in read_all(log)] == [0, 2**31 + 5]
    log.close()


@pytest.mark.parametrize(
    ("data", "code"),
    [
        (b"", ErrorCode.INVALID_RECORD),
        (b"x" * 16, ErrorCode.INVALID_RECORD),
        (b"\0" * 61, ErrorCode.CORRUPT_MESSAGE),
        (b"\0" * 11 + b"\x31" + b"\0" * 49, ErrorCode.INVALID_RECORD),
        (bytes(batch(b"a"))[:-1], ErrorCode.INVALID_RECORD),
        (bytes(batch(b"a") + batch(b"b")), ErrorCode.INVALID_RECORD),
    ],
)
def test_what_is_not_one_batch_is_refused(tmp_path: Path, data: bytes, code: ErrorCode) -> None:
    log = open_log(tmp_path)
    with pytest.raises(KafkaError) as refused:
        log.appender.append_as_leader(data, leader_epoch=0, now_ms=NOW)
    assert refused.value.code == code
    assert log.log_end_offset == 0
    log.close()


def test_a_batch_larger_than_a_segment_is_refused(tmp_path: Path) -> None:
    log = open_log(tmp_path, SMALL)
    with pytest.raises(KafkaError) as refused:
        append(log, b"x" * 1000)
    assert refused.value.code == ErrorCode.RECORD_LIST_TOO_LARGE
    log.close()


@pytest.mark.parametrize(
    "kind", [bytes, bytearray, lambda data: memoryview(bytes(data)), lambda data: memoryview(bytearray(data))]
)
def test_every_kind_of_buffer_is_taken(tmp_path: Path, kind: type[bytes]) -> None:
    log = open_log(tmp_path)
    for _ in range(2):
        log.appender.append_as_leader(kind(batch(b"a", b"b")), leader_epoch=6, now_ms=NOW)
    stored = bytes_of(log.reader.read(2, 10**6, limit_offset=4, minimum_one=True))
    header = read_header(stored)
    assert (header.base_offset, header.partition_leader_epoch) == (2, 6)
    assert stored[16:] == bytes(batch(b"a", b"b"))[16:]
    log.close()


def test_log_append_time_is_answered_and_stored(tmp_path: Path) -> None:
    log = open_log(tmp_path, TopicConfig(message_timestamp_type="LogAppendTime"))
    fields = {"producer_id": 1, "producer_epoch": 0, "base_sequence": 0}
    assert append(log, b"a", time_ms=5, **fields).log_append_time_ms == NOW
    again = append(log, b"a", time_ms=5, **fields)
    assert (again.duplicate, again.log_append_time_ms) == (True, NOW)
    assert [record.timestamp for record in read_all(log)] == [NOW]
    log.close()
    log = open_log(tmp_path)
    assert append(log, b"a").log_append_time_ms == -1
    log.close()


def test_reading_obeys_its_limits(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    sizes = [append(log, b"x" * 100) and log.size_bytes for _ in range(3)]
    one = sizes[0]
    assert log.reader.read(0, one - 1, limit_offset=3, minimum_one=False) is None
    first = log.reader.read(0, one - 1, limit_offset=3, minimum_one=True)
    assert first is not None
    assert first.size == one
    two = log.reader.read(0, 2 * one + 5, limit_offset=3, minimum_one=True)
    assert two is not None
    assert two.size == 2 * one
    assert log.reader.read(0, 10**6, limit_offset=0, minimum_one=True) is None
    assert log.reader.read(3, 10**6, limit_offset=3, minimum_one=True) is None
    for offset in (-1, 4):
        with pytest.raises(KafkaError) as refused:
            log.reader.read(offset, 10**6, limit_offset=3, minimum_one=True)
        assert refused.value.code == ErrorCode.OFFSET_OUT_OF_RANGE
    log.close()


def test_gaps_of_compaction_are_stepped_over(tmp_path: Path) -> None:
    log = open_log(tmp_path, TopicConfig(segment_bytes=300, index_interval_bytes=50))
    for offset in (0, 10, 20, 30, 40, 50, 60):
        log.appender.append_as_follower(memoryview(batch(b"v" * 60, base_offset=offset)), now_ms=NOW)
    log.close()
    log = open_log(tmp_path)
    for offset in range(61):
        region = log.reader.read(offset, 1, limit_offset=61, minimum_one=True)
        assert next(iterate_records(bytes_of(region))).offset == -(-offset // 10) * 10
    log.close()


def test_a_follower_refuses_what_does_not_follow(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    append(log, b"a", b"b")
    for data, code in ((batch(b"x", base_offset=1), 1), (batch(b"x", base_offset=2)[:-1] + b"?", 2)):
        with pytest.raises(KafkaError) as refused:
            log.appender.append_as_follower(memoryview(data), now_ms=NOW)
        assert refused.value.code == code
    assert log.log_end_offset == 2
    log.close()


def test_a_log_of_which_all_is_too_old_becomes_empty_and_goes_on(tmp_path: Path) -> None:
    log = open_log(tmp_path, replace(SMALL, retention_ms=HOUR_MS))
    append(log, b"x", time_ms=NOW - 2 * HOUR_MS)
    assert retain(log) == 1
    assert (log.log_start_offset, log.log_end_offset, log.size_bytes) == (1, 1, 0)
    assert retain(log) == 0
    log.flush()  # all unflushed records are gone
    assert (log.recovery_point, log.unflushed_bytes) == (1, 0)
    append(log, b"y", time_ms=NOW)
    assert log.unflushed_bytes == log.size_bytes
    assert [record.offset for record in read_all(log)] == [1]
    log.close()


@pytest.mark.parametrize("is_follower", [False, True])
def test_records_without_a_time_are_as_old_as_the_last_write(tmp_path: Path, is_follower: bool) -> None:
    log = open_log(tmp_path, replace(SMALL, retention_ms=4000))
    for offset, now_ms in enumerate((NOW, NOW + 3500)):
        if is_follower:
            log.appender.append_as_follower(batch(b"x", time_ms=-1, base_offset=offset), now_ms=now_ms)
        else:
            log.appender.append_as_leader(batch(b"x", time_ms=-1), leader_epoch=0, now_ms=now_ms)
    assert retain(log, NOW + 7500) == 0
    assert retain(log, NOW + 7501) == 1
    log.close()


def test_records_without_a_time_are_as_old_as_their_file_after_a_start(tmp_path: Path) -> None:
    log = open_log(tmp_path, replace(SMALL, retention_ms=4000))
    append(log, b"x", time_ms=-1)
    log.close()
    (file,) = (tmp_path / "topic-0").glob("*.log")
    written_ms = NOW + 10_000
    os.utime(file, ns=(0, written_ms * 1_000_000))
    log = open_log(tmp_path, replace(SMALL, retention_ms=4000))
    assert retain(log, written_ms + 4000) == 0
    assert retain(log, written_ms + 4001) == 1
    log.close()


def test_retention_detaches_by_time_and_by_size(tmp_path: Path) -> None:
    config = replace(SMALL, retention_ms=HOUR_MS, retention_bytes=-1)
    log = open_log(tmp_path, config)
    for index in range(30):
        append(log, b"x" * 200, time_ms=NOW - (30 - index) * 10 * 60_000)
    assert retain(log) == 8
    assert log.log_start_offset == 24 == log.first_offset
    log.update_config(replace(config, retention_bytes=1000))
    assert retain(log) == 0
    for _ in range(6):
        append(log, b"x" * 200)
    assert retain(log) == 2
    assert log.size_bytes < 2000
    names = [path.name for path in (tmp_path / "topic-0").iterdir()]
    assert any(name.endswith(".deleted") for name in names)
    for garbage in log.truncator.take_garbage():
        garbage.remove()
    assert not [path for path in (tmp_path / "topic-0").iterdir() if path.suffix == ".deleted"]
    assert len(read_all(log)) == log.log_end_offset - log.log_start_offset
    log.close()


def test_deleting_past_the_end_is_refused(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    append(log, b"a", b"b")
    with pytest.raises(KafkaError) as refused:
        log.truncator.delete_records_before(3)
    assert refused.value.code == ErrorCode.OFFSET_OUT_OF_RANGE
    log.truncator.delete_records_before(1)
    log.truncator.delete_records_before(0)
    assert log.log_start_offset == 1
    log.close()


def test_records_become_durable_before_the_recovery_point_passes_them(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    append(log, b"a", b"b")
    plan = log.plan_flush(everything=False)
    assert plan is not None
    append(log, b"c")
    plan.run()
    assert (log.durable_end, log.recovery_point) == (0, 0)
    log.finish_flush(plan)
    assert (log.durable_end, log.recovery_point) == (2, 0)
    log.flush(1)
    assert (log.durable_end, log.recovery_point) == (2, 1)
    log.flush()
    assert (log.durable_end, log.recovery_point) == (3, 3)
    assert log.plan_flush(everything=False) is log.plan_flush() is None
    log.close()


class EpochsOneAtATime(OsFiles):
    """Holds whoever writes `leader-epoch-checkpoint` until told, and notes whether somebody else comes meanwhile."""

    def __init__(self) -> None:
        self.entered, self.entered_twice, self.go_on = threading.Event(), threading.Event(), threading.Event()

    def replace_file(self, path: Path, data: bytes, *, sync: bool = True) -> None:
        if path.name == "leader-epoch-checkpoint":
            (self.entered_twice if self.entered.is_set() else self.entered).set()
            self.go_on.wait(WITHIN_S)
        super().replace_file(path, data, sync=sync)


def test_flushes_that_write_the_same_files_run_one_after_the_other(tmp_path: Path) -> None:
    """The cleaner's and the periodic one."""
    files = EpochsOneAtATime()
    log = open_log(tmp_path, files=files)
    append(log, b"a")
    plans = [log.plan_flush(), log.plan_flush()]
    threads = [threading.Thread(target=plan.run) for plan in plans if plan is not None]
    threads[0].start()
    assert files.entered.wait(WITHIN_S)
    threads[1].start()
    assert not files.entered_twice.wait(0.1)
    files.go_on.set()
    for plan, thread in zip(plans, threads, strict=True):
        thread.join()
        assert plan is not None
        assert plan.errors == []
        log.finish_flush(plan)
    assert not files.entered_twice.is_set()  # the second flush finds the file of the first
    log.close()


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_flushes_that_have_both_run_are_finished_in_any_order(tmp_path: Path, order: tuple[int, int]) -> None:
    log = open_log(tmp_path)
    append(log, b"a")
    plans = [log.plan_flush(), log.plan_flush()]
    for plan in plans:
        assert plan is not None
        plan.run()
    for index in order:
        plan = plans[index]
        assert plan is not None
        log.finish_flush(plan)
    assert log.recovery_point == 1
    append(log, b"b")
    log.flush()
    assert snapshots_of(log) == ["00000000000000000001.snapshot", "00000000000000000002.snapshot"]
    log.close()


def test_a_flush_that_is_finished_after_one_that_went_further_leaves_that_ones_snapshot(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    append(log, b"a")
    shorter = log.plan_flush()
    append(log, b"b")
    longer = log.plan_flush()
    assert shorter is not None
    assert longer is not None
    shorter.run()
    longer.run()
    log.finish_flush(longer)
    log.finish_flush(shorter)
    assert log.recovery_point == 2
    append(log, b"c")
    log.flush()
    assert snapshots_of(log) == ["00000000000000000002.snapshot", "00000000000000000003.snapshot"]
    log.close()


def snapshots_of(log: Log) -> list[str]:
    return sorted(path.name for path in log.directory.iterdir() if ".snapshot" in path.name)


def test_a_thread_may_flush_while_the_loop_appends(tmp_path: Path) -> None:
    log = open_log(tmp_path, replace(SMALL, segment_bytes=8_000))
    done, failed = threading.Event(), []

    def flush(plan: FlushPlan) -> None:
        try:
            plan.run()
        except Exception as error:  # noqa: BLE001 - the test checks it
            failed.append(error)
        done.set()

    done.set()
    plan = log.plan_flush()
    threads = []
    for index in range(500):
        if done.is_set():
            if plan is not None:
                log.finish_flush(plan)
            done.clear()
            plan = log.plan_flush()
            threads.append(threading.Thread(target=flush, args=[plan]) if plan is not None else threading.Thread(target=done.set))
            threads[-1].start()
        append(log, b"%05d" % index * 20)
        if index % 100 == 99:
            log.truncator.truncate_to(log.log_end_offset - 10)
            assert log.recovery_point <= log.log_end_offset
    for thread in threads:
        thread.join()
    assert failed == []
    if plan is not None:
        log.finish_flush(plan)
    end = log.log_end_offset
    log.flush()
    assert log.recovery_point == end
    log.abandon()
    log = open_log(tmp_path, replace(SMALL, segment_bytes=8_000), clean=False, recovery_point=end)
    assert log.log_end_offset == end == len(read_all(log))
    assert all(log.reader.read(offset, 1, limit_offset=end, minimum_one=True) is not None for offset in range(0, end, 37))
    log.close()


def test_batches_of_producers_without_times_are_found_by_no_time(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    log.appender.append_as_leader(build_batch([(b"k", b"v")]), leader_epoch=0, now_ms=NOW)
    assert log.reader.offset_of_max_timestamp() is None
    assert log.reader.offset_for_timestamp(0) is None
    log.close()


def test_an_index_is_the_same_in_memory_and_in_its_file(tmp_path: Path) -> None:
    index = SparseIndex(FILES, tmp_path / "x.index", OFFSET_ENTRY)
    index.start_empty()
    for number in range(0, 3000, 3):
        index.append(number, number * 10)
    asked = range(-1, 3010, 7)
    in_memory = [(index.floor(key), index.floor_by_value(key * 10)) for key in asked]
    index.write(exact=True)
    index.seal()
    assert index.sealed
    assert [(index.floor(key), index.floor_by_value(key * 10)) for key in asked] == in_memory
    assert (len(index), index.last()) == (1000, (2997, 29970))
    assert (tmp_path / "x.index").stat().st_size == 8000
    again = SparseIndex(FILES, tmp_path / "x.index", OFFSET_ENTRY)
    again.load_active()
    again.truncate_below(key=300)
    again.write(exact=True)
    assert (len(again), again.last()) == (100, (297, 2970))
    assert (tmp_path / "x.index").stat().st_size == 800


def test_epochs_answer_as_kafka_does() -> None:
    epochs = LeaderEpochs()
    assert epochs.end_offset_for(0, 0) == (-1, -1)
    for epoch, offset in ((2, 10), (3, 20), (7, 30)):
        epochs.assign(epoch, offset)
    assert [epochs.end_offset_for(epoch, 40) for epoch in (-1, 0, 1, 2, 3, 5, 6, 7, 8)] == [
        (-1, -1),
        (0, 10),
        (1, 10),
        (2, 20),
        (3, 30),
        (3, 30),
        (3, 30),
        (7, 40),
        (-1, -1),
    ]
    assert [epochs.epoch_of(offset) for offset in (0, 10, 19, 20, 35)] == [-1, 2, 2, 3, 7]
    epochs.truncate_from_start(25)
    assert epochs.entries == [(3, 25), (7, 30)]
    epochs.truncate_from_end(30)
    assert epochs.entries == [(3, 25)]
    epochs.assign(4, 25)
    assert epochs.entries == [(4, 25)]


class ReservingFiles(OsFiles):
    """Counts, and can be a file system that has no such thing."""

    def __init__(self) -> None:
        self.reserved: list[tuple[int, int]] = []
        self.can = True

    def reserve(self, fileno: int, position: int, size: int, /) -> None:
        self.reserved.append((position, size))
        if not self.can:
            raise OSError(errno.EOPNOTSUPP, "not here")
        super().reserve(fileno, position, size)


def blocks_of(folder: Path) -> list[int]:
    """Bytes that the files of the log take on the disk beyond their sizes."""
    stats = [path.stat() for path in (folder / "topic-0").glob("*.log")]
    return [max(stat.st_blocks * 512 - stat.st_size, 0) for stat in stats]


@pytest.mark.parametrize("end", ["close", "roll", "crash"])
def test_space_reserved_for_large_batches_is_given_back(tmp_path: Path, end: str) -> None:
    files = ReservingFiles()
    log = open_log(tmp_path, TopicConfig(segment_bytes=300_000), files=files)
    append(log, b"small")
    assert not files.reserved
    for _ in range(2):
        append(log, b"x" * 100_000)
    assert len(files.reserved) == 1
    if end == "roll":
        append(log, b"x" * 200_000)
        assert len(files.reserved) == 2
    if end == "crash":
        log.abandon()
        log = open_log(tmp_path, clean=False)
    assert len(read_all(log)) == (4 if end == "roll" else 3)
    log.close()
    assert all(beyond < RESERVED_BYTES for beyond in blocks_of(tmp_path))


def test_a_file_system_that_reserves_nothing_is_asked_once(tmp_path: Path) -> None:
    files = ReservingFiles()
    files.can = False
    log = open_log(tmp_path, files=files)
    for _ in range(3):
        append(log, b"x" * 100_000)
    assert len(files.reserved) == 1
    assert len(read_all(log)) == 3
    log.close()


@pytest.mark.parametrize("jump_ms", [-6 * 3_600_000, 6 * 3_600_000])
def test_a_jump_of_the_clock_by_hours_deletes_and_forgets_nothing(tmp_path: Path, jump_ms: int) -> None:
    config = replace(SMALL, retention_ms=7 * 86_400_000, segment_ms=7 * 86_400_000, message_timestamp_after_max_ms=2**50)
    log = open_log(tmp_path, config)
    for index in range(20):
        append(log, b"x" * 90, producer_id=3, producer_epoch=0, base_sequence=index, time_ms=NOW + index)
    segments = len(list((tmp_path / "topic-0").glob("*.log")))
    after = NOW + jump_ms
    assert (log.appender.maybe_roll(after), log.truncator.apply_retention(after), log.reader.expire_producers(after)) == (
        False,
        0,
        0,
    )
    append(log, b"later", producer_id=3, producer_epoch=0, base_sequence=20, time_ms=after)
    for now in (after, NOW):
        assert (log.truncator.apply_retention(now), log.reader.expire_producers(now), log.log_start_offset) == (0, 0, 0)
    assert len(list((tmp_path / "topic-0").glob("*.log"))) in (segments, segments + 1)
    assert len(read_all(log)) == 21
    log.close()
