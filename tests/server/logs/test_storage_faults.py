"""A real broker on disks that fail or fill up: the answers to its clients, the parts that continue, and the state after a restart."""

from __future__ import annotations

import asyncio
import errno
import logging
from collections.abc import Callable, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from barnabas.cluster.metadata.image import OFFSETS_TOPIC
from barnabas.cluster.planning.configs import AlterOperation, ResourceChange
from barnabas.cluster.planning.instructions import CreateLog
from barnabas.errors import ErrorCode, LogDirFailed, StartsUnwritten, StorageError, StorageExhausted
from barnabas.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicsResponse
from barnabas.protocol.messages.fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic
from barnabas.protocol.values import ResourceType
from barnabas.replication.partition import OnlinePartition
from barnabas.server import maintenance
from barnabas.server.logs.log_creation import make_logs
from barnabas.server.services import Services
from barnabas.storage.log import Log
from barnabas.testing.failing_files import READS, SYNCS, WRITES, FailingFiles
from tests.server.in_process import STORAGE_ERROR, TOPIC, running
from tests.server.wire import NOW_MS
from tests.waiting import until


async def test_a_full_disk_refuses_produce_only_and_takes_it_again_when_there_is_room(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    files = FailingFiles()
    async with running([tmp_path], files) as client:
        await client.create()
        assert await client.produce(b"a") == 0
        files.fill(tmp_path)
        with caplog.at_level(logging.WARNING):
            assert [await client.produce(b"never", acks=acks) for acks in (-1, 1, -1)] == [STORAGE_ERROR] * 3
        assert sum("event=log-directory-refuses-writes" in line for line in caplog.messages) == 1
        assert await client.fetch() == (0, [b"a"])
        assert await client.leaders() == [(0, client.broker.config.broker_id, [])]
        files.heal()
        assert await client.produce(b"b") == 0
        assert client.broker.metrics.storage_refusals >= 3
        assert client.broker.logs.failed_directories == []
    async with running([tmp_path]) as client:
        assert await client.fetch() == (0, [b"a", b"b"])


async def test_a_full_disk_survives_rolls_checkpoints_and_retention(tmp_path: Path) -> None:
    files = FailingFiles()
    async with running([tmp_path], files) as client:
        await client.create(segment_bytes="1048576")
        broker = client.broker
        partition = broker.partitions.require(TOPIC, 0)
        for index in range(3):
            assert await client.produce(b"%d" % index * 400_000) == 0
        files.fill(tmp_path)
        before = partition.log.log_end_offset
        assert await client.produce(b"never" * 80_000) == STORAGE_ERROR  # this append needs a roll
        assert not await broker.faults.guard(broker.logs.checkpoints.write_recovery_points)
        assert partition.log.log_end_offset == before
        files.heal()
        for index in range(3, 6):
            assert await client.produce(b"%d" % index * 400_000) == 0
        assert await broker.faults.guard(broker.logs.checkpoints.write_recovery_points)
        found = []
        for offset in range(6):
            found += (await client.fetch(offset=offset))[1][:1]
        assert [value[:1] for value in found if value] == [b"0", b"1", b"2", b"3", b"4", b"5"]


async def test_retention_makes_room_on_a_full_disk(tmp_path: Path) -> None:
    files = FailingFiles()
    async with running([tmp_path], files, log_retention_check_interval_ms="3600000") as client:
        await client.create(segment_bytes="1048576", retention_bytes="1")
        for index in range(9):
            assert await client.produce(b"%d" % index * 400_000) == 0
        log = client.broker.partitions.require(TOPIC, 0).log
        files.fill(tmp_path, until_removal=True)
        assert await client.produce(b"never") == STORAGE_ERROR
        await maintenance.apply_retention(client.broker.services)
        assert (log.first_offset, log.log_start_offset, log.log_end_offset) == (8, 8, 9)
        assert await client.produce(b"b") == 0
        assert (await client.fetch(offset=9)) == (0, [b"b"])


async def test_segments_are_let_go_in_turns_and_only_below_what_is_written_down(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with running([tmp_path], log_retention_check_interval_ms="3600000") as client:
        await client.create(8, retention_ms="3600000")
        broker = client.broker
        logs = [broker.partitions.require(TOPIC, index).log for index in range(8)]
        for index in range(8):
            assert await client.produce(b"old", index, time_ms=1_000) == 0
        guard, detach = broker.faults.guard, maintenance._detach
        turns: list[int] = []
        turn = 0

        async def guard_and_delete(write: Callable[[], None]) -> bool:
            done = await guard(write)
            assert await client.produce(b"new", 0, time_ms=broker.clock.now_ms()) == 0
            logs[0].truncator.delete_records_before(2)  # after the checkpoint has the log start offset
            return done

        def noted(services: Services, partition: OnlinePartition) -> None:
            if turn not in turns:
                services.loop.call_soon(pass_on)
            turns.append(turn)
            detach(services, partition)

        def pass_on() -> None:
            nonlocal turn
            turn += 1

        monkeypatch.setattr(broker.faults, "guard", guard_and_delete)
        monkeypatch.setattr(maintenance, "_detach", noted)
        monkeypatch.setattr(maintenance, "LOGS_PER_TURN", 2)
        await maintenance.apply_retention(broker.services)
        assert [log.first_offset for log in logs] == [0, *[1] * 7]
        assert len(set(turns)) >= 4
        monkeypatch.undo()
        await maintenance.apply_retention(broker.services)
        assert logs[0].first_offset > 0


async def test_a_full_directory_keeps_no_other_s_records_from_being_deleted(tmp_path: Path) -> None:
    files = FailingFiles()
    async with running([tmp_path / "one", tmp_path / "two"], files) as client:
        assert await client.create(2) == 0
        broker = client.broker
        homes = [broker.logs.directory_of(TOPIC, index).path for index in range(2)]
        assert homes[0] != homes[1]
        logs = [broker.partitions.require(TOPIC, index).log for index in range(2)]
        for index, log in enumerate(logs):
            assert await client.produce(b"v", index) == 0
            log.truncator.delete_records_before(1)
        files.fill(homes[0])
        await broker.log_start_offsets.keep([logs[1]])
        with pytest.raises(StartsUnwritten) as unwritten:
            await broker.log_start_offsets.keep(logs)
        assert unwritten.value.paths == {str(homes[0])}
        assert not logs[0].is_written_down
        assert logs[1].is_written_down
        files.heal()


async def test_starts_that_could_not_be_written_are_not_acknowledged_since_another_run_has_failed_nowhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = FailingFiles()
    async with running([tmp_path], files) as client:
        assert await client.create() == 0
        broker = client.broker
        log = broker.partitions.require(TOPIC, 0).log
        assert await client.produce(b"v") == 0
        log.truncator.delete_records_before(1)
        files.fill(tmp_path)
        done = broker.log_start_offsets.done

        async def done_beside_retention() -> None:
            try:
                await done()
            finally:
                with monkeypatch.context() as patched:  # a retention run wrote earlier and ends now
                    patched.setattr(broker.logs.checkpoints, "_try_checkpoint", lambda *_: [])
                    broker.logs.checkpoints.prepare_removal([])

        monkeypatch.setattr(broker.log_start_offsets, "done", done_beside_retention)
        with pytest.raises(StartsUnwritten):
            await broker.log_start_offsets.keep([log])
        assert not log.is_written_down
        files.heal()


async def test_each_directory_that_refuses_to_be_written_to_is_told_of(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async with running([tmp_path]) as client:
        client.broker.faults.report(StartsUnwritten([StorageExhausted("one", "full"), StorageExhausted("two", "full")]))
        assert [line.split()[:2] for line in caplog.messages if "refuses-writes" in line] == [
            ["event=log-directory-refuses-writes", f"path={path}"] for path in ("one", "two")
        ]


async def test_retention_that_comes_to_a_deleted_log_leaves_it_alone(tmp_path: Path) -> None:
    async with running([tmp_path]) as client:
        await client.create(retention_ms="1000")
        assert await client.produce(b"old", time_ms=1_000) == 0
        broker = client.broker
        found = broker.partitions.require(TOPIC, 0)
        request = DeleteTopicsRequest(topic_names=[TOPIC], timeout_ms=10_000)
        assert (await client.ask((20, 4), request, DeleteTopicsResponse)).responses[0].error_code == 0
        begun_before: Any = SimpleNamespace(partitions=[found], clock=broker.clock, faults=broker.faults, logs=broker.logs)
        await maintenance.apply_retention(begun_before)
        assert broker.logs.failed_directories == []


async def test_a_topic_made_while_the_disk_is_full_serves_once_there_is_room(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("barnabas.server.logs.replica_manager.RETRY_MS", 10)
    files = FailingFiles()
    async with running([tmp_path], files) as client:
        files.fill(tmp_path)
        assert await client.create() == 0
        assert await client.produce(b"never") == STORAGE_ERROR
        assert await client.produce(b"never", sequence=0, transactional_id="x") == STORAGE_ERROR
        assert (await client.leaders())[0] == (ErrorCode.LEADER_NOT_AVAILABLE, -1, [client.broker.config.broker_id])
        files.heal()
        await until(lambda: client.broker.partitions.offline_count == 0)
        assert await client.produce(b"a") == 0
        assert await client.fetch() == (0, [b"a"])


async def test_a_log_for_which_there_was_no_room_at_the_start_either_is_made_once_there_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("barnabas.server.logs.replica_manager.RETRY_MS", 3_600_000)  # the broker stops before the next attempt
    files = FailingFiles()
    async with running([tmp_path], files) as client:
        files.fail(frozenset({"create", "make_directory"}), tmp_path, errno.ENOSPC)
        assert await client.create() == 0
        assert await client.produce(b"never") == STORAGE_ERROR
        files.heal()
    monkeypatch.setattr("barnabas.server.logs.replica_manager.RETRY_MS", 10)
    files.fail(frozenset({"make_directory"}), tmp_path, errno.ENOSPC)
    async with running([tmp_path], files) as client:
        assert await client.produce(b"never") == STORAGE_ERROR
        files.heal()
        await until(lambda: client.broker.partitions.offline_count == 0)
        assert await client.produce(b"a") == 0


async def test_a_log_that_is_made_late_has_the_settings_of_then(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("barnabas.server.logs.replica_manager.RETRY_MS", 10)
    files = FailingFiles()
    async with running([tmp_path], files) as client:
        files.fill(tmp_path)
        assert await client.create(retention_ms="1000") == 0
        change = ResourceChange(ResourceType.TOPIC, TOPIC, [("retention.ms", AlterOperation.SET, "5000")])
        assert await client.broker.controller.alter_configs([change]) == [None]
        files.heal()
        await until(lambda: client.broker.partitions.offline_count == 0)
        assert client.broker.partitions.require(TOPIC, 0).log.config.retention_ms == 5000


async def test_a_coordinator_s_log_that_is_made_late_is_loaded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("barnabas.server.logs.replica_manager.RETRY_MS", 10)
    files = FailingFiles()
    async with running([tmp_path], files, offsets_topic_num_partitions="2") as client:
        groups = client.broker.groups
        files.fail(frozenset({"make_directory"}), tmp_path / f"{OFFSETS_TOPIC}-1", errno.ENOSPC)
        await groups.prepare()
        assert set(groups.shards) == {0}
        files.heal()
        await until(lambda: set(groups.shards) == {0, 1})


async def test_a_log_that_is_made_late_is_not_in_the_way_of_a_topic_that_took_the_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("barnabas.server.logs.replica_manager.RETRY_MS", 10)
    files, begun, go_on = FailingFiles(), asyncio.Event(), asyncio.Event()

    async def make_slowly(services: Services, instructions: Sequence[CreateLog]) -> list[Log | StorageError]:
        begun.set()
        await go_on.wait()
        return await make_logs(services, instructions)

    async with running([tmp_path], files) as client:
        files.fill(tmp_path)
        assert await client.create() == 0
        monkeypatch.setattr("barnabas.server.logs.replica_manager.make_logs", make_slowly)
        files.heal()
        await begun.wait()
        await client.delete()
        made_anew = asyncio.ensure_future(client.create())
        await until(lambda: TOPIC in client.broker.metadata.topics)
        go_on.set()
        assert await made_anew == 0
        assert await client.produce(b"a") == 0
        assert await client.fetch() == (0, [b"a"])
        assert folders(tmp_path) == [f"{TOPIC}-0"]
        log = client.broker.partitions.require(TOPIC, 0).log
        assert log.topic_id == client.broker.metadata.topics[TOPIC].topic_id


def folders(directory: Path) -> list[str]:
    """Of logs of the topic that nobody is about to remove."""
    return [each.name for each in directory.glob(f"{TOPIC}-0*") if not each.name.endswith("-delete")]


async def test_a_failed_sync_acknowledges_nothing_and_stops_a_broker_with_one_directory(tmp_path: Path) -> None:
    files = FailingFiles()
    async with running([tmp_path], files) as client:
        await client.create(flush_messages="1")
        assert await client.produce(b"a") == 0
        files.fail(SYNCS, tmp_path)
        assert await client.produce(b"unknown") == STORAGE_ERROR
        files.heal()
        assert await client.produce(b"never") == STORAGE_ERROR
        assert await client.fetch() == (STORAGE_ERROR, [])
        assert "Input/output error" in str(await client.broker.failure)
    assert not (tmp_path / ".kafka_cleanshutdown").exists()
    async with running([tmp_path]) as client:
        code, values = await client.fetch()
        assert (code, values[:1]) == (0, [b"a"])  # the record whose sync failed may be there
        assert b"never" not in values
        assert await client.produce(b"b") == 0


@pytest.mark.parametrize(("operations", "flush"), [(WRITES, "9223372036854775807"), (SYNCS, "1")])
async def test_one_directory_fails_and_the_others_go_on(tmp_path: Path, operations: frozenset[str], flush: str) -> None:
    files = FailingFiles()
    folders = [tmp_path / "first", tmp_path / "second"]
    async with running(folders, files) as client:
        await client.create(partitions=2, flush_messages=flush)
        broker_id = client.broker.config.broker_id
        homes = [client.broker.logs.directory_of(TOPIC, index).path for index in (0, 1)]
        bad, good = homes.index(folders[1]), homes.index(folders[0])
        for index in (bad, good):
            assert await client.produce(b"a", index) == 0
        files.fail(operations, folders[1])
        assert await client.produce(b"never", bad) == STORAGE_ERROR
        assert await client.produce(b"never", bad, acks=1) == STORAGE_ERROR
        assert await client.fetch(bad) == (STORAGE_ERROR, [])
        assert await client.produce(b"b", good) == 0
        assert await client.fetch(good) == (0, [b"a", b"b"])
        leaders = await client.leaders()
        assert leaders[bad] == (ErrorCode.LEADER_NOT_AVAILABLE, -1, [broker_id])
        assert leaders[good] == (0, broker_id, [])
        assert await client.directories() == {"first": 0, "second": STORAGE_ERROR}
        assert not client.broker.failure.done()
        await client.create(partitions=3, name="later")
        assert [await client.produce(b"x", index, name="later") for index in range(3)] == [0, 0, 0]
        assert {client.broker.logs.directory_of("later", index).path for index in range(3)} == {folders[0]}
    async with running(folders) as client:
        assert (await client.fetch(bad))[1][:1] == [b"a"]
        assert await client.fetch(good) == (0, [b"a", b"b"])
        assert await client.directories() == {"first": 0, "second": 0}


async def test_a_directory_that_cannot_be_read_at_the_start_is_left_out_and_nothing_is_made_in_its_place(tmp_path: Path) -> None:
    folders = [tmp_path / "first", tmp_path / "second"]
    async with running(folders) as client:
        await client.create(partitions=2)
        homes = [client.broker.logs.directory_of(TOPIC, index).path for index in (0, 1)]
        bad, good = homes.index(folders[1]), homes.index(folders[0])
        for index in (bad, good):
            assert await client.produce(b"a", index) == 0
    files = FailingFiles()
    files.fail(WRITES | READS | SYNCS, folders[1])
    async with running(folders, files) as client:
        assert await client.fetch(good) == (0, [b"a"])
        assert await client.fetch(bad) == (STORAGE_ERROR, [])
        assert await client.produce(b"never", bad) == STORAGE_ERROR
        assert not (folders[0] / f"{TOPIC}-{bad}").exists()
        assert await client.directories() == {"first": 0, "second": STORAGE_ERROR}
    async with running(folders) as client:
        assert await client.fetch(bad) == (0, [b"a"])


async def test_a_read_that_fails_refuses_only_that_read(tmp_path: Path) -> None:
    files = FailingFiles()
    async with running([tmp_path], files) as client:
        await client.create(segment_bytes="1048576", index_interval_bytes="1000000")
        for index in range(4):
            assert await client.produce(b"%d" % index * 400_000) == 0
        files.fail(READS, tmp_path)
        assert await client.offset_at(NOW_MS) == STORAGE_ERROR
        assert (await client.fetch(offset=1))[
            0
        ] == 0  # the lookup walks from the segment's start, and the kernel sends the records
        assert await client.produce(b"more") == 0
        files.heal()
        assert (await client.fetch(offset=1))[0] == 0
        assert client.broker.metrics.read_errors >= 1
        assert client.broker.logs.failed_directories == []


async def test_a_first_directory_that_cannot_be_written_is_a_clear_error(tmp_path: Path) -> None:
    files = FailingFiles()
    files.fail(WRITES, tmp_path, 30)
    with pytest.raises(LogDirFailed, match="Read-only file system"):
        async with running([tmp_path], files):
            pass


async def test_an_index_that_cannot_be_read_keeps_no_other_log_from_being_compacted(tmp_path: Path) -> None:
    files = FailingFiles()
    small = {"cleanup_policy": "compact", "internal_segment_bytes": "300"}
    compacted: dict[str, Any] = {**small, "min_cleanable_dirty_ratio": "0.01", "min_compaction_lag_ms": "1"}
    async with running([tmp_path], log_cleaner_enable="false") as client:
        for name in (TOPIC, "u"):
            assert await client.create(name=name, **compacted) == 0
            for number in range(4):
                assert await client.produce(b"%d" % number * 200, key=b"k", name=name) == 0
    for index in sorted((tmp_path / f"{TOPIC}-0").glob("*.timeindex"))[:-1]:  # the broker reads the last index when it starts
        files.fail(READS, index)
    async with running([tmp_path], files, log_cleaner_backoff_ms="10") as client:
        cleaner = client.broker.cleaner
        await until(lambda: cleaner.statistics.failures > 1 and cleaner.statistics.runs == 1)
        assert not cleaner.uncleanable
        assert client.broker.logs.failed_directories == []
        files.heal()
        await until(lambda: cleaner.statistics.runs == 2)
        for name in (TOPIC, "u"):
            assert await client.fetch(name=name) == (0, [b"2" * 200])  # the only record left in its first segment


async def test_old_consumers_are_told_of_a_failed_disk_by_a_code_that_they_know(tmp_path: Path) -> None:
    async with running([tmp_path / "one", tmp_path / "two"]) as client:
        await client.create()
        home = client.broker.logs.directory_of(TOPIC, 0)
        client.broker.faults.report(LogDirFailed(str(home.path), "the disk does not work"))
        wanted = FetchTopic(topic=TOPIC, partitions=[FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1)])
        codes = {}
        for version in (4, 5, 6, 7):
            request = FetchRequest(replica_id=-1, max_wait_ms=10_000, min_bytes=1, max_bytes=1, topics=[wanted])
            answer = await client.ask((1, version), request, FetchResponse)
            codes[version] = answer.responses[0].partitions[0].error_code
        old = ErrorCode.NOT_LEADER_OR_FOLLOWER
        assert codes == {4: old, 5: old, 6: STORAGE_ERROR, 7: STORAGE_ERROR}
