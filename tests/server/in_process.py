"""A broker in the test's own process, on files of the test's choice, and a client that asks it from threads."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any, TypeVar, cast

from barnabas.clock import Clock, SystemClock
from barnabas.config.broker import BrokerConfig
from barnabas.errors import ErrorCode
from barnabas.protocol.messages.create_topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from barnabas.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicsResponse
from barnabas.protocol.messages.describe_log_dirs import DescribeLogDirsRequest, DescribeLogDirsResponse
from barnabas.protocol.messages.fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic
from barnabas.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)
from barnabas.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse
from barnabas.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
)
from barnabas.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
    OffsetFetchResponse,
)
from barnabas.protocol.messages.produce import PartitionProduceData, ProduceRequest, ProduceResponse, TopicProduceData
from barnabas.protocol.records.batch import build_batch, iterate_records, split_batches
from barnabas.server.broker import Broker
from barnabas.server.environment import Environment
from barnabas.testing.failing_files import FailingFiles
from tests.server.wire import NOW_MS, Line

Answer = TypeVar("Answer")
TOPIC = "t"
STORAGE_ERROR = ErrorCode.KAFKA_STORAGE_ERROR


class Client:
    """A client in a thread, because the broker has the loop."""

    def __init__(self, broker: Broker) -> None:
        self.broker = broker
        self._thread = ThreadPoolExecutor(1)
        self.line = Line(cast(Any, SimpleNamespace(port=broker.endpoints[0].port)))

    async def in_thread(self, ask: Callable[[], Answer]) -> Answer:
        """The result of `ask`, which blocks, with `line`."""
        return await self.broker.loop.run_in_executor(self._thread, ask)

    async def delete(self, name: str = TOPIC) -> None:
        await self.ask((20, 4), DeleteTopicsRequest(topic_names=[name], timeout_ms=10_000), DeleteTopicsResponse)

    async def ask(self, api: tuple[int, int], request: Any, answer: Any) -> Any:
        return await self.broker.loop.run_in_executor(self._thread, self.line.ask, api, request, answer)

    async def create(self, partitions: int = 1, name: str = TOPIC, *, replication_factor: int = 1, **configs: str) -> int:
        settings = [CreatableTopicConfig(name=key.replace("_", "."), value=value) for key, value in configs.items()]
        topic = CreatableTopic(name=name, num_partitions=partitions, replication_factor=replication_factor, configs=settings)
        answer = await self.ask((19, 7), CreateTopicsRequest(topics=[topic], timeout_ms=10_000), CreateTopicsResponse)
        return int(answer.topics[0].error_code)

    async def produce(
        self,
        value: bytes | None,
        partition: int = 0,
        *,
        key: bytes | None = None,
        acks: int = -1,
        name: str = TOPIC,
        time_ms: int = NOW_MS,
        sequence: int = -1,
        transactional_id: str | None = None,
        in_transaction: bool = True,
    ) -> int:
        """The error code; with a sequence the batch is an idempotent producer's, with a transactional id too it is of a transaction."""
        fields: dict[str, Any] = {"producer_id": 7, "producer_epoch": 0, "base_sequence": sequence} if sequence >= 0 else {}
        if transactional_id is not None and in_transaction:
            fields["transactional"] = True
        batch = build_batch([(key, value)], timestamp_ms=time_ms, **fields)
        data = PartitionProduceData(index=partition, records=bytes(batch))
        topics = [TopicProduceData(name=name, partition_data=[data])]
        request = ProduceRequest(acks=acks, timeout_ms=10_000, topic_data=topics, transactional_id=transactional_id)
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

    async def commit_offset(self, group: str, offset: int, name: str = TOPIC) -> int:
        """The error code of committing an offset of partition 0 as a group without members."""
        partition = OffsetCommitRequestPartition(partition_index=0, committed_offset=offset)
        topic = OffsetCommitRequestTopic(name=name, partitions=[partition])
        request = OffsetCommitRequest(group_id=group, topics=[topic])
        answer = await self.ask((8, 8), request, OffsetCommitResponse)
        return int(answer.topics[0].partitions[0].error_code)

    async def committed_offset(self, group: str, name: str = TOPIC) -> tuple[int, int]:
        """Error code, and the offset of partition 0; -1 with an error."""
        wanted = OffsetFetchRequestGroup(group_id=group, topics=[OffsetFetchRequestTopics(name=name, partition_indexes=[0])])
        (found,) = (await self.ask((9, 8), OffsetFetchRequest(groups=[wanted]), OffsetFetchResponse)).groups
        return (found.error_code, -1) if found.error_code else (0, found.topics[0].partitions[0].committed_offset)

    def close(self) -> None:
        self.line.socket.close()
        self._thread.shutdown()


@asynccontextmanager
async def running(
    folders: Sequence[Path], files: FailingFiles | None = None, clock: Clock | None = None, /, **settings: str
) -> AsyncIterator[Client]:
    properties = {
        "listeners": "PLAINTEXT://127.0.0.1:0",
        "log.dirs": ",".join(map(str, folders)),
        "offsets.topic.num.partitions": "1",
        **{name.replace("_", "."): value for name, value in settings.items()},
    }
    files = files or FailingFiles()
    config, _ = BrokerConfig.from_properties(properties)
    broker = Broker(config, asyncio.get_running_loop(), Environment(clock=clock or SystemClock(), files=files))
    client = None
    try:
        await broker.start()
        client = Client(broker)
        yield client
    except BaseException:
        files.heal()  # the test has failed already; let the broker stop without faults
        raise
    finally:
        if client is not None:
            client.close()
        await broker.stop()
