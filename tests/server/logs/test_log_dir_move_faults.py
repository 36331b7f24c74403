"""Moves between log directories of which one fails or fills up: the log stays where it is, and nothing is lost."""

from __future__ import annotations

from pathlib import Path

import pytest

from barnabas.protocol.messages.alter_replica_log_dirs import (
    AlterReplicaLogDir,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirsResponse,
    AlterReplicaLogDirTopic,
)
from barnabas.storage.directory import LogDirectory
from barnabas.testing.failing_files import READS, SYNCS, WRITES, FailingFiles
from tests.server.in_process import STORAGE_ERROR, TOPIC, Client, running
from tests.waiting import until

RECORDS = 20
SIZE = 40_000
SLOW = "262144"  # bytes/s: a move takes 3 s


async def fill(client: Client) -> tuple[LogDirectory, LogDirectory]:
    """A topic with some data; its directory and the other one."""
    assert await client.create(segment_bytes="1048576") == 0
    for index in range(RECORDS):
        assert await client.produce(b"%d" % index * SIZE) == 0
    home = client.broker.logs.directory_of(TOPIC, 0)
    (other,) = [each for each in client.broker.logs.directories if each is not home]
    return home, other


async def alter(client: Client, target: LogDirectory) -> int:
    wanted = AlterReplicaLogDir(path=str(target.path), topics=[AlterReplicaLogDirTopic(name=TOPIC, partitions=[0])])
    answer = await client.ask((34, 2), AlterReplicaLogDirsRequest(dirs=[wanted]), AlterReplicaLogDirsResponse)
    return int(answer.results[0].partitions[0].error_code)


async def assert_serves(client: Client, home: LogDirectory) -> None:
    assert client.broker.logs.directory_of(TOPIC, 0) is home
    for offset in range(RECORDS):
        code, values = await client.fetch(offset=offset)
        assert code == 0
        assert values[0] == b"%d" % offset * SIZE
    assert await client.produce(b"more") == 0


def copies(directory: LogDirectory) -> list[str]:
    return [path.name for path in directory.path.iterdir() if path.name.endswith("-future")]


async def test_a_full_target_ends_the_move_and_another_try_succeeds_when_there_is_room(tmp_path: Path) -> None:
    files = FailingFiles()
    async with running([tmp_path / "one", tmp_path / "two"], files) as client:
        home, other = await fill(client)
        files.fill(other.path)
        assert await alter(client, other) == STORAGE_ERROR
        await until(lambda: client.broker.log_dir_moves.failed == 1)
        await until(lambda: not copies(other))
        assert client.broker.logs.failed_directories == []
        await assert_serves(client, home)
        files.heal()
        assert await alter(client, other) == 0
        await until(lambda: client.broker.log_dir_moves.finished == 1)
        await assert_serves(client, other)


@pytest.mark.parametrize("operations", [WRITES, SYNCS])
async def test_a_target_that_fails_goes_out_of_use_and_the_log_stays(tmp_path: Path, operations: frozenset[str]) -> None:
    files = FailingFiles()
    folders = [tmp_path / "one", tmp_path / "two"]
    async with running(folders, files) as client:
        broker = client.broker
        broker.logs.prefer(TOPIC, 0, broker.logs.directories[0])
        home, other = await fill(client)
        files.fail(operations, other.path)
        assert await alter(client, other) == STORAGE_ERROR
        await until(lambda: broker.log_dir_moves.failed == 1)
        assert broker.logs.failed_directories == [other]
        assert await client.directories() == {"one": 0, "two": STORAGE_ERROR}
        await assert_serves(client, home)
        assert await alter(client, other) == STORAGE_ERROR
    async with running(folders) as client:
        assert client.broker.logs.directory_of(TOPIC, 0).path == home.path
        await until(lambda: not any(map(copies, client.broker.logs.directories)))


async def test_a_source_that_cannot_be_read_ends_the_move_and_no_more(tmp_path: Path) -> None:
    files = FailingFiles()
    async with running([tmp_path / "one", tmp_path / "two"], files) as client:
        home, other = await fill(client)
        files.fail(READS, home.path)
        assert await alter(client, other) == 0
        await until(lambda: client.broker.log_dir_moves.failed == 1)
        assert client.broker.logs.failed_directories == []
        files.heal()
        await until(lambda: not copies(other))
        await assert_serves(client, home)


async def test_a_source_that_fails_takes_its_moves_along(tmp_path: Path) -> None:
    files = FailingFiles()
    async with running(
        [tmp_path / "one", tmp_path / "two"], files, replica_alter_log_dirs_io_max_bytes_per_second=SLOW
    ) as client:
        broker = client.broker
        broker.logs.prefer(TOPIC, 0, broker.logs.directories[1])
        home, other = await fill(client)
        assert await alter(client, other) == 0
        await until(lambda: broker.log_dir_moves.bytes_copied)
        files.fail(WRITES, home.path)
        assert await client.produce(b"lost") == STORAGE_ERROR
        assert broker.logs.failed_directories == [home]
        assert len(broker.log_dir_moves) == 0
        await until(lambda: not copies(other))
        assert broker.logs.directory_of(TOPIC, 0) is home
        assert await client.fetch() == (STORAGE_ERROR, [])


async def test_a_target_that_fails_while_it_is_waited_for_takes_its_moves_along(tmp_path: Path) -> None:
    files = FailingFiles()
    folders = [tmp_path / "one", tmp_path / "two"]
    async with running(folders, files, replica_alter_log_dirs_io_max_bytes_per_second=SLOW) as client:
        broker = client.broker
        broker.logs.prefer(TOPIC, 0, broker.logs.directories[0])
        home, other = await fill(client)
        broker.logs.prefer("there", 0, other)
        assert await client.create(name="there") == 0
        assert await alter(client, other) == 0
        await until(lambda: broker.log_dir_moves.bytes_copied)
        files.fail(WRITES, other.path)
        assert await client.produce(b"lost", name="there") == STORAGE_ERROR
        assert broker.logs.failed_directories == [other]
        assert len(broker.log_dir_moves) == 0
        await assert_serves(client, home)
    async with running(folders) as client:  # the directory works again, so the move starts again
        await until(lambda: client.broker.log_dir_moves.finished == 1)
        code, values = await client.fetch(offset=RECORDS)
        assert (code, values) == (0, [b"more"])


async def test_a_log_whose_old_folder_stays_is_not_moved_again(tmp_path: Path) -> None:
    files = FailingFiles()
    folders = [tmp_path / "one", tmp_path / "two", tmp_path / "three"]
    async with running(folders, files) as client:
        assert await client.create() == 0
        assert await client.produce(b"a") == 0
        home = client.broker.logs.directory_of(TOPIC, 0)
        first, second = [each for each in client.broker.logs.directories if each is not home]
        # reads of its checkpoints, after the copy is complete and before the old folder is removed
        files.fail(frozenset({"read_file"}), first.path)
        assert await alter(client, first) == 0
        await until(lambda: client.broker.log_dir_moves.finished == 1)
        await client.broker.log_dir_moves.settle(TOPIC, 0)
        files.heal()
        assert await alter(client, second) == STORAGE_ERROR
        assert await alter(client, home) == STORAGE_ERROR
    async with running(folders, files) as client:
        assert client.broker.logs.directory_of(TOPIC, 0).path == first.path
        assert await alter(client, second) == 0
        await until(lambda: client.broker.log_dir_moves.finished == 1)
        assert await client.fetch() == (0, [b"a"])


async def test_a_broker_starts_though_the_disk_that_a_move_leaves_is_gone(tmp_path: Path) -> None:
    first, leaving = tmp_path / "one", tmp_path / "two"
    async with running([first, leaving], replica_alter_log_dirs_io_max_bytes_per_second=SLOW) as client:
        assert await client.create(2, segment_bytes="1048576") == 0
        (index,) = [p for p in range(2) if client.broker.logs.directory_of(TOPIC, p).path == leaving]
        for _ in range(RECORDS):
            assert await client.produce(b"x" * SIZE, index) == 0
        wanted = AlterReplicaLogDir(path=str(first), topics=[AlterReplicaLogDirTopic(name=TOPIC, partitions=[index])])
        answer = await client.ask((34, 2), AlterReplicaLogDirsRequest(dirs=[wanted]), AlterReplicaLogDirsResponse)
        assert answer.results[0].partitions[0].error_code == 0
        (target,) = [each for each in client.broker.logs.directories if each.path == first]
        await until(lambda: bool(copies(target)))
    files = FailingFiles()
    files.fail(READS, leaving)
    async with running([first, leaving], files) as client:
        assert await client.fetch(index) == (STORAGE_ERROR, [])
        assert await client.produce(b"other", 1 - index) == 0
        assert copies(target), "what was copied is kept"
    async with running([first, leaving]) as client:
        assert (await client.fetch(index))[0] == 0
