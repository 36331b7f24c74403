"""A real broker on disks that fail or fill up: what its clients are told, what goes on, and what a restart finds."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from barnabas.config.broker import BrokerConfig
from barnabas.errors import ErrorCode, LogDirFailed
from barnabas.protocol.messages.create_topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from barnabas.protocol.messages.describe_log_dirs import DescribeLogDirsRequest, DescribeLogDirsResponse
from barnabas.protocol.messages.fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic
from barnabas.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)
from barnabas.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse
from barnabas.protocol.messages.produce import PartitionProduceData, ProduceRequest, ProduceResponse, TopicProduceData
from barnabas.protocol.records.batch import build_batch, iterate_records, split_batches
from barnabas.server.broker import Broker
from barnabas.server.surroundings import Surroundings
from barnabas.testing.failing_files import READS, SYNCS, WRITES, FailingFiles
from tests.server.wire import NOW_MS, Line

TOPIC = "t"
STORAGE_ERROR = ErrorCode.KAFKA_STORAGE_ERROR


class Client:
    """What a client asks, each in a thread, for the broker has the loop."""

    def __init__(self, broker: Broker) -> None:
        self.broker = broker
        self._line = Line(cast(Any, SimpleNamespace(port=broker.endpoints[0].port)))

    async def ask(self, api: tuple[int, int], request: Any, answer: Any) -> Any:
        return await asyncio.to_thread(self._line.ask, api, request, answer)

    async def create(self, partitions: int = 1, name: str = TOPIC, **configs: str) -> int:
        settings = [CreatableTopicConfig(name=key.replace("_", "."), value=value) for key, value in configs.items()]
        topic = CreatableTopic(name=name, num_partitions=partitions, replication_factor=1, configs=settings)
        answer = await self.ask((19, 7), CreateTopicsRequest(topics=[topic], timeout_ms=10_000), CreateTopicsResponse)
        return int(answer.topics[0].error_code)

    async def produce(self, value: bytes, partition: int = 0, *, acks: int = -1, name: str = TOPIC) -> int:
        """The error code."""
        data = PartitionProduceData(index=partition, records=bytes(build_batch([(None, value)], timestamp_ms=NOW_MS)))
        request = ProduceRequest(acks=acks, timeout_ms=10_000, topic_data=[TopicProduceData(name=name, partition_data=[data])])
        answer = await self.ask((0, 8), request, ProduceResponse)
        return int(answer.responses[0].partition_responses[0].error_code)

    async def fetch(self, partition: int = 0, offset: int = 0, name: str = TOPIC) -> tuple[int, list[bytes | None]]:
        wanted = FetchTopic(
            topic=name, partitions=[FetchPartition(partition=partition, fetch_offset=offset, partition_max_bytes=2**20)]
        )
        request = FetchRequest(replica_id=-1, max_wait_ms=0, min_bytes=0, max_bytes=2**20, topics=[wanted])
        answer = await self.ask((1, 11), request, FetchResponse)
        found = answer.responses[0].partitions[0]
        data = bytes(found.records or b"")
        return int(found.error_code), [r.value for at, _ in split_batches(data) for r in iterate_records(data, at)]

    async def leaders(self, name: str = TOPIC) -> list[tuple[int, int, list[int]]]:
        """Error code, leader and offline replicas of each partition."""
        topics = [MetadataRequestTopic(name=name)]
        answer = await self.ask((3, 9), MetadataRequest(topics=topics, allow_auto_topic_creation=False), MetadataResponse)
        return [(p.error_code, p.leader_id, list(p.offline_replicas)) for p in answer.topics[0].partitions]

    async def directories(self) -> dict[str, int]:
        answer = await self.ask((35, 3), DescribeLogDirsRequest(topics=None), DescribeLogDirsResponse)
        return {Path(result.log_dir).name: result.error_code for result in answer.results}

    async def offset_at(self, timestamp: int) -> int:
        """The error code of looking a time up."""
        wanted = ListOffsetsTopic(name=TOPIC, partitions=[ListOffsetsPartition(partition_index=0, timestamp=timestamp)])
        answer = await self.ask((2, 4), ListOffsetsRequest(replica_id=-1, topics=[wanted]), ListOffsetsResponse)
        return int(answer.topics[0].partitions[0].error_code)

    def close(self) -> None:
        self._line.socket.close()


@asynccontextmanager
async def running(folders: Sequence[Path], files: FailingFiles | None = None, **settings: str) -> AsyncIterator[Client]:
    properties = {
        "listeners": "PLAINTEXT://127.0.0.1:0",
        "log.dirs": ",".join(map(str, folders)),
        "offsets.topic.num.partitions": "1",
        **{name.replace("_", "."): value for name, value in settings.items()},
    }
    files = files or FailingFiles()
    config, _ = BrokerConfig.from_properties(properties)
    broker = Broker(config, asyncio.get_running_loop(), Surroundings(files=files))
    client = None
    try:
        await broker.start()
        client = Client(broker)
        yield client
    except BaseException:
        files.heal()  # the test has failed already; the stop need not too
        raise
    finally:
        if client is not None:
            client.close()
        await broker.stop()


async def until(condition: Callable[[], object]) -> None:
    async with asyncio.timeout(10):
        while not condition():  # noqa: ASYNC110 (nothing tells when a retry was made)
            await asyncio.sleep(0.01)


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
        assert sum("refuses writes" in line for line in caplog.messages) == 1
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
        assert await client.produce(b"never" * 80_000) == STORAGE_ERROR  # would roll
        assert not await broker.faults.guard(broker.logs.checkpoint_recovery_points)
        assert partition.log.log_end_offset == before
        files.heal()
        for index in range(3, 6):
            assert await client.produce(b"%d" % index * 400_000) == 0
        assert await broker.faults.guard(broker.logs.checkpoint_recovery_points)
        found = []
        for offset in range(6):
            found += (await client.fetch(offset=offset))[1][:1]
        assert [value[:1] for value in found if value] == [b"0", b"1", b"2", b"3", b"4", b"5"]


async def test_a_topic_made_while_the_disk_is_full_serves_once_there_is_room(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("barnabas.server.hosting.RETRY_MS", 10)
    files = FailingFiles()
    async with running([tmp_path], files) as client:
        files.fill(tmp_path)
        assert await client.create() == 0
        assert await client.produce(b"never") == STORAGE_ERROR
        assert (await client.leaders())[0] == (ErrorCode.LEADER_NOT_AVAILABLE, -1, [client.broker.config.broker_id])
        files.heal()
        await until(lambda: client.broker.partitions.offline_count == 0)
        assert await client.produce(b"a") == 0
        assert await client.fetch() == (0, [b"a"])


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
        assert (code, values[:1]) == (0, [b"a"])  # the one whose fate was unknown may be there
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
        assert await client.fetch(offset=1) == (STORAGE_ERROR, [])  # in a sealed segment, which has to be searched
        assert await client.produce(b"more") == 0
        files.heal()
        assert (await client.fetch(offset=1))[0] == 0
        assert client.broker.metrics.read_errors >= 2
        assert client.broker.logs.failed_directories == []


async def test_a_first_directory_that_cannot_be_written_is_a_clear_error(tmp_path: Path) -> None:
    files = FailingFiles()
    files.fail(WRITES, tmp_path, 30)
    with pytest.raises(LogDirFailed, match="Read-only file system"):
        async with running([tmp_path], files):
            pass
