"""A move of a log that stops at every change of the disks, by a kill or by a loss of power, and the next start."""

from __future__ import annotations

from pathlib import Path
from random import Random
from uuid import UUID

import pytest

from barnabas.config.topic import TopicConfig
from barnabas.storage.log import Log
from barnabas.storage.log_move import MARKER
from barnabas.storage.manager import LogManager
from barnabas.testing.simulation.disk import Disk
from barnabas.testing.simulation.files import FaultyFiles, ProcessKilled
from tests.storage.support import NOW, TOPIC_ID, append, records_in

HOME = Path("/data")
CONFIG = TopicConfig(segment_bytes=600, index_interval_bytes=100, flush_messages=1)
RECORDS = 25


class FixedClock:
    def now_ms(self) -> int:
        return NOW

    def monotonic_ms(self) -> float:
        return 0.0


def manager(files: FaultyFiles) -> LogManager:
    ids = iter(range(1, 1000))
    directories = [HOME / "a", HOME / "b"]
    logs = LogManager(
        directories, files=files, clock=FixedClock(), broker_id=1, cluster_id="cluster", new_id=lambda: UUID(int=next(ids))
    )
    logs.open_all(lambda _topic: CONFIG)
    return logs


def write(log: Log, values: list[bytes], count: int) -> None:
    """Append records and bring them to the disk, as a produce with `flush.messages=1` does; `values` are those acknowledged."""
    for _ in range(count):
        value = b"%d" % len(values) * 10
        append(log, value, producer_id=7, producer_epoch=0, base_sequence=len(values))
        log.flush()
        values.append(value)


def move_under_load(logs: LogManager, values: list[bytes]) -> None:
    """A whole move, with records that come between all of its steps."""
    log = logs.get("t", 0)
    assert log is not None
    target = next(each for each in logs.directories if each is not logs.directory_of("t", 0))
    move = logs.removal.begin_move("t", 0, target)
    move.prepare()
    for _ in range(4):
        plan = move.plan(500)
        plan.run()
        move.finish(plan)
        write(log, values, 1)
    while not move.can_swap:
        plan = move.plan(10**9)
        plan.run()
        move.finish(plan)
    # the swap copies this batch
    append(log, b"%d" % len(values) * 10, producer_id=7, producer_epoch=0, base_sequence=len(values))
    retired = logs.removal.swap(move, target)
    log.flush()
    values.append(b"%d" % len(values) * 10)
    write(log, values, 1)
    garbage = logs.removal.leave(move, retired)
    write(log, values, 1)
    garbage.remove()


@pytest.mark.parametrize("is_power_cut", [False, True])
def test_wherever_a_move_stops_everything_acknowledged_is_there_once(is_power_cut: bool) -> None:
    step, is_done, moved = 0, False, set()
    while not is_done:
        disk = Disk(Random(step))
        for name in ("a", "b"):
            disk.make_durable(HOME / name)
        files = FaultyFiles(disk)
        logs = manager(files)
        log = logs.creation.create("t", 0, TOPIC_ID, CONFIG)
        values: list[bytes] = []
        for number in range(RECORDS):
            values.append(b"%d" % number * 10)
            append(log, values[-1], producer_id=7, producer_epoch=0, base_sequence=number)
        log.flush()
        log.truncator.delete_records_before(5)
        logs.checkpoints.write_recovery_points()
        logs.checkpoints.write_log_start_offsets()
        source = logs.directory_of("t", 0).path
        files.kill_in = step
        try:
            move_under_load(logs, values)
            is_done = True
        except ProcessKilled:
            pass
        files.die()
        if is_power_cut:
            disk.lose_power()
        for _ in range(2):  # the second start finds the files of the first
            files = FaultyFiles(disk)
            logs = manager(files)
            found = logs.get("t", 0)
            assert found is not None, step
            assert found.topic_id == TOPIC_ID
            assert found.log_start_offset == 5, step
            known = read_from(files, found, 5)
            assert known[: len(values) - 5] == values[5:], step
            assert len(known) <= len(values) - 5 + 1, step  # one unacknowledged record may be there
            assert [each.last_sequence for each in found.reader.producers()] == [found.log_end_offset - 1], step
            is_interrupted = ("t", 0) in logs.removal.interrupted
            beside = [path for path in folders(disk) if path != found.directory]
            assert [path.name[-7:] for path in beside] == ["-future"] * is_interrupted, step
            assert not files.exists(found.directory / MARKER)
            moved.add((found.directory.parent != source, is_interrupted))
            files.die()
        step += 1
    assert step > 100
    assert moved >= {(False, True), (True, False)}  # before and after the swap. (False, False): just begun or requested
    assert (True, True) not in moved


def read_from(files: FaultyFiles, log: Log, offset: int) -> list[bytes | None]:
    found: list[bytes | None] = []
    while offset < log.log_end_offset:
        region = log.reader.read(offset, 1, limit_offset=log.log_end_offset, minimum_one=True)
        assert region is not None
        for record in records_in(files.pread(region.fileno, region.size, region.position)):
            assert record.offset == offset
            found.append(record.value)
            offset += 1
    return found


def folders(disk: Disk) -> list[Path]:
    """The folders of partitions, whatever they are called."""
    found = []
    for name in ("a", "b"):
        found += [HOME / name / inner for inner in sorted(disk.folder(HOME / name).names) if inner.startswith("t-")]
    return found
