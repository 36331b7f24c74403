"""Cases that the simulator found, each in the fewest steps: logs on a disk that loses what was not synced."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from random import Random

import pytest
from msgspec.structs import replace

from barnabas.config.topic import TopicConfig
from barnabas.errors import StorageExhausted
from barnabas.storage.log import Log
from barnabas.storage.replicated_batches import good_batches
from barnabas.testing.simulation.disk import CrashOutcome, Disk
from barnabas.testing.simulation.files import FaultyFiles, ProcessKilled
from tests.storage.support import NOW, TOPIC_ID, append, batch, records_in

HOME = Path("/data")
FOLDER = HOME / "topic-0"
SMALL = TopicConfig(segment_bytes=300, index_interval_bytes=0, retention_ms=3_600_000)
SEEDS = range(40)


@pytest.fixture(params=SEEDS)
def disk(request: pytest.FixtureRequest) -> Disk:
    made = Disk(Random(request.param))
    made.make_durable(HOME)
    return made


def opened(
    disk: Disk,
    *,
    clean: bool = False,
    recovery_point: int = 0,
    log_start_offset: int = 0,
    cleaned_offset: int = 0,
    config: TopicConfig = SMALL,
) -> tuple[Log, FaultyFiles]:
    files = FaultyFiles(disk)
    log = Log.open(
        FOLDER,
        config=config,
        files=files,
        now_ms=NOW,
        clean_shutdown=clean,
        recovery_point=recovery_point,
        log_start_offset=log_start_offset,
        cleaned_offset=cleaned_offset,
        topic_id=TOPIC_ID,
    )
    return log, files


def power_cut(disk: Disk, files: FaultyFiles) -> None:
    files.die()
    disk.lose_power()


def is_dense(log: Log) -> bool:
    """Whether every offset from the log's start to its end can be read."""
    offset = log.log_start_offset
    while offset < log.log_end_offset:
        region = log.reader.read(offset, 1, limit_offset=log.log_end_offset, minimum_one=True)
        if region is None or region.base_offset > offset:
            return False
        offset += 1
    return True


@pytest.mark.parametrize("policy", ["delete", "compact"])
def test_what_is_left_of_segments_that_were_not_flushed_has_no_hole(disk: Disk, policy: str) -> None:
    config = replace(SMALL, cleanup_policy=frozenset({policy}))
    log, files = opened(disk, config=config)
    for _ in range(12):
        append(log, b"x" * 100)
    assert log.active_base_offset > 4
    power_cut(disk, files)
    log, _ = opened(disk, config=config)
    assert log.log_start_offset == 0
    assert is_dense(log)


def test_a_gap_of_compaction_between_segments_is_no_lost_tail(disk: Disk) -> None:
    config = replace(SMALL, cleanup_policy=frozenset({"compact"}), segment_ms=1)
    log, files = opened(disk, config=config)
    append(log, b"first")
    log.flush()
    log.appender.maybe_roll(NOW + 10)
    gap = batch(b"behind the gap", time_ms=NOW + 10, base_offset=7, partition_leader_epoch=0)
    log.appender.append_as_follower(gap, now_ms=NOW)
    log.flush()
    log.close()
    files.rename(FOLDER / "00000000000000000001.log", FOLDER / "00000000000000000007.log")  # Kafka's compaction gives this name
    for suffix in ("index", "timeindex"):
        files.unlink(FOLDER / f"00000000000000000001.{suffix}")
    log, _ = opened(disk, config=config, cleaned_offset=8)
    assert (log.log_start_offset, log.log_end_offset) == (0, 8)
    log.close()


def test_a_follower_leaves_no_gap_between_segments(disk: Disk) -> None:
    config = replace(SMALL, cleanup_policy=frozenset({"compact"}))
    log, files = opened(disk, config=config)
    for offset in range(0, 60, 5):
        log.appender.append_as_follower(batch(b"x" * 100, base_offset=offset, partition_leader_epoch=0), now_ms=NOW)
    assert log.active_base_offset > 20
    files.die()  # without a power cut
    log, _ = opened(disk, config=config)
    assert (log.log_start_offset, log.log_end_offset) == (0, 56)


def test_what_recovery_dropped_does_not_come_back() -> None:
    for seed in range(400):
        disk = Disk(Random(seed))
        disk.make_durable(HOME)
        log, files = opened(disk)
        for _ in range(4):
            append(log, b"old" * 40)
        power_cut(disk, files)
        log, files = opened(disk)
        end = log.log_end_offset
        append(log, b"new" * 20)
        append(log, b"new" * 20)
        power_cut(disk, files)
        log, files = opened(disk)
        assert end <= log.log_end_offset <= end + 2, seed
        assert is_dense(log), seed
        log.close()


def cut(log: Log, offset: int) -> None:
    """As a follower does, when it is written down that the log is synced no further; the recovery point is `log.recovery_point`."""
    if not log.truncator.may_cut(offset):
        log.truncator.start_written(log.truncator.start_mark)
    assert log.truncator.may_cut(offset)
    log.truncator.truncate_to(offset)


def values(log: Log) -> list[bytes]:
    log.validate()
    found = []
    for offset in range(log.log_start_offset, log.log_end_offset):
        region = log.reader.read(offset, 1, limit_offset=log.log_end_offset, minimum_one=True)
        assert region is not None
        data = log.files.pread(region.fileno, region.size, region.position)
        found += [bytes(record.value or b"") for record in records_in(data) if record.offset == offset]
    return found


@pytest.mark.parametrize("ends", ["crash", "clean"])
def test_what_was_cut_does_not_come_back(disk: Disk, ends: str) -> None:
    """Neither in the place of what another leader had written there, nor behind it."""
    log, files = opened(disk)
    old = [b"old%d" % number + b"." * 100 for number in range(10)]
    for value in old:
        append(log, value)
    log.flush()
    cut(log, 4)
    if ends == "clean":
        log.close()
    else:
        log.truncator.sync_cut()
        append(log, b"new" * 20, epoch=1)
        append(log, b"new" * 20, epoch=1)
    power_cut(disk, files)
    log, _ = opened(disk, clean=ends == "clean")
    found = values(log)
    assert found[:4] == old[:4]
    assert set(found[4:]) <= {b"new" * 20}
    assert log.epoch_entries == [(0, 0), (1, 4)][: 1 + (len(found) > 4)]


@pytest.mark.parametrize("dies", ["process", "machine"])
def test_a_cut_that_is_half_done_leaves_no_hole(disk: Disk, dies: str) -> None:
    log, files = opened(disk)
    for _ in range(12):
        append(log, b"x" * 100)
    log.flush()
    assert log.recovery_point == 12
    cut_at = 3
    assert not log.truncator.may_cut(cut_at)
    log.truncator.start_written(log.truncator.start_mark)
    recovery_point = log.recovery_point
    if dies == "process":
        files.kill_in = disk.random.randrange(12)
        with suppress(ProcessKilled):
            log.truncator.truncate_to(cut_at)
        files.die()
    else:
        log.truncator.truncate_to(cut_at)
        power_cut(disk, files)
    log, _ = opened(disk, recovery_point=recovery_point)
    assert log.log_end_offset >= cut_at
    assert is_dense(log)


def test_a_segment_that_came_back_beside_what_took_its_place_is_dropped(disk: Disk) -> None:
    """Of folders from before cuts were synced."""
    large = replace(SMALL, segment_bytes=10_000)
    log, files = opened(disk, config=large)
    for value in (b"a", b"b", b"c"):
        append(log, value * 100)
    log.abandon()
    for suffix in ("log", "index", "timeindex"):
        number = files.open(FOLDER / f"00000000000000000001.{suffix}", create=True)
        files.close(number)
    log, _ = opened(disk, config=large)
    assert values(log) == [b"a" * 100, b"b" * 100, b"c" * 100]


def refuse(log: Log, disk: Disk, whole: int) -> None:
    """A full disk takes `whole` batches and a half of what a leader sends, and refuses the rest."""
    first = log.log_end_offset
    batches = [batch(b"refused" * 20, base_offset=first + number, partition_leader_epoch=0) for number in range(whole + 1)]
    disk.capacity_bytes = disk.used_bytes + sum(map(len, batches[:whole])) + len(batches[whole]) // 2
    with pytest.raises(StorageExhausted):
        log.appender.append_as_follower(b"".join(batches), now_ms=NOW)
    disk.capacity_bytes = None
    assert log.log_end_offset == first


def spare_bytes(log: Log) -> list[int]:
    """The bytes of each segment that belong to no record of it."""
    found = []
    for segment in log.segments:
        batches, _ = good_batches(memoryview(segment.files.read_file(segment.path)), segment.base_offset)
        found.append(segment.size - sum(each.size for each in batches if each.next_offset <= segment.next_offset))
    return found


def flush_records(log: Log) -> None:
    """As `flush.messages` has it: the recovery point stays."""
    plan = log.plan_flush(everything=False)
    assert plan is not None
    plan.run()
    log.finish_flush(plan)
    assert log.durable_end == log.log_end_offset


@pytest.mark.parametrize("whole", [0, 2])
@pytest.mark.parametrize("dies_before", [None, "the roll", "the flush"])
@pytest.mark.parametrize("has_indexes", [False, True])
def test_what_a_full_disk_refused_does_not_come_back_before_the_next_segment(
    disk: Disk, whole: int, dies_before: str | None, has_indexes: bool
) -> None:
    """Records in the next segment are on the disk only when the end of the segment before them is."""
    config = TopicConfig(index_interval_bytes=1, segment_ms=1)
    log, files = opened(disk, config=config)
    append(log, b"a" * 100)
    append(log, b"b" * 700)
    if has_indexes:
        log.flush()
    else:
        flush_records(log)
    point = log.recovery_point
    refuse(log, disk, whole)
    if dies_before == "the roll":
        files.die()
        log, files = opened(disk, config=config, recovery_point=point)
    assert log.appender.maybe_roll(NOW + 10_000)
    if dies_before == "the flush":
        files.die()
        log, files = opened(disk, config=config, recovery_point=point)
    append(log, b"c" * 100)
    flush_records(log)
    assert not disk.file(log.segments[0].path).pending
    power_cut(disk, files)
    log, _ = opened(disk, config=config, recovery_point=point)
    assert values(log) == [b"a" * 100, b"b" * 700, b"c" * 100]
    assert spare_bytes(log) == [0, 0]


@pytest.mark.parametrize("whole", [0, 2])
def test_what_a_full_disk_refused_does_not_hide_what_a_power_failure_left_behind_it(disk: Disk, whole: int) -> None:
    """The records of the next segment may be gone, but no refused ones are in their place for who reads across the border."""
    config = TopicConfig(index_interval_bytes=1, segment_ms=1)
    log, files = opened(disk, config=config)
    append(log, b"a" * 100)
    log.flush()
    refuse(log, disk, whole)
    assert log.appender.maybe_roll(NOW + 10_000)
    append(log, b"b" * 100)
    power_cut(disk, files)
    log, _ = opened(disk, config=config, recovery_point=1)
    log.validate()
    assert spare_bytes(log) == [0] * len(log.segments)
    assert values(log)[:1] == [b"a" * 100]
    log.close()


@pytest.mark.parametrize("whole", [0, 2])
@pytest.mark.parametrize("rolls", [False, True])
@pytest.mark.parametrize("dies", [False, True])
def test_what_a_full_disk_refused_does_not_come_back_after_a_clean_stop(disk: Disk, whole: int, rolls: bool, dies: bool) -> None:
    config = TopicConfig(index_interval_bytes=1, segment_ms=1)
    log, files = opened(disk, config=config)
    append(log, b"a" * 100)
    log.close()
    log, files = opened(disk, config=config, clean=True, recovery_point=1)
    refuse(log, disk, whole)
    if rolls:
        assert log.appender.maybe_roll(NOW + 10_000)
    if dies:
        files.die()
        log, files = opened(disk, config=config, recovery_point=1)
    log.close()
    files.disk.folder(HOME).sync()  # the marker of a clean shutdown does the same
    power_cut(disk, files)
    log, _ = opened(disk, config=config, clean=True, recovery_point=1)
    assert values(log) == [b"a" * 100]
    assert spare_bytes(log) == [0] * len(log.segments)
    log.close()


def test_a_roll_between_a_cut_and_its_sync_leaves_the_cut_to_the_sync(disk: Disk) -> None:
    config = TopicConfig(index_interval_bytes=1, segment_ms=1)
    log, files = opened(disk, config=config)
    for number in range(6):
        append(log, b"old%d" % number + b"." * 100)
    log.flush()
    cut(log, 4)
    assert log.appender.maybe_roll(NOW + 10_000)
    log.truncator.sync_cut()
    assert not disk.file(log.segments[0].path).pending
    append(log, b"new" * 20, epoch=1)
    flush_records(log)
    power_cut(disk, files)
    log, _ = opened(disk, config=config, recovery_point=0)
    assert values(log)[4:] == [b"new" * 20]


def test_a_segment_that_was_empty_at_a_clean_stop_keeps_its_name(disk: Disk) -> None:
    log, files = opened(disk, config=TopicConfig(segment_ms=1))
    append(log, b"a", time_ms=NOW)
    log.flush()
    assert log.appender.maybe_roll(NOW + 10_000)
    log.close()
    files.disk.folder(HOME).sync()  # the marker of a clean shutdown does the same
    log, files = opened(disk, clean=True)
    append(log, b"b", time_ms=NOW)
    flush_records(log)
    power_cut(disk, files)
    log, _ = opened(disk)
    assert log.log_end_offset == 2
    assert is_dense(log)


def test_segments_removed_by_retention_leave_no_hole(disk: Disk) -> None:
    log, files = opened(disk)
    for hours in (9, 8, 7, 6, 5, 4, 3, 2, 0):
        append(log, b"x" * 100, time_ms=NOW - hours * 3_600_000)
    log.flush()
    assert log.truncator.apply_retention(NOW) > 2
    start = log.log_start_offset  # the broker writes and syncs the log start offset before the next line
    log.truncator.detach_below_start()
    power_cut(disk, files)
    log, _ = opened(disk, log_start_offset=start)
    assert (log.log_start_offset, log.log_end_offset) == (start, 9)
    assert is_dense(log)


def test_a_log_opens_whose_last_segment_holds_all_that_is_kept(disk: Disk) -> None:
    log, files = opened(disk)
    for number in range(10):
        append(log, b"x" * 100, producer_id=1, producer_epoch=0, base_sequence=number)
    start = log.active_base_offset
    files.unlink(FOLDER / f"{start:020d}.snapshot")
    files.die()
    log, _ = opened(disk, log_start_offset=start)
    assert (log.log_start_offset, log.log_end_offset) == (start, 10)
    assert is_dense(log)


def test_the_fates_of_unsynced_changes_are_all_drawn() -> None:
    assert {Random(seed).choice(list(CrashOutcome)) for seed in SEEDS} == set(CrashOutcome)
