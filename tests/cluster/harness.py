"""A broker with everything that the administrative handlers ask for, and nothing else."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple
from uuid import UUID

from barnabas.cluster.membership.standalone_controller import StandaloneController
from barnabas.cluster.metadata.image import BrokerRegistration, MetadataImage
from barnabas.cluster.planning.instructions import CreateLog, DeleteLog, Instruction
from barnabas.cluster.store.interface import MetadataStore
from barnabas.cluster.store.memory import MemoryStore
from barnabas.config.broker import BrokerConfig
from barnabas.config.listeners import Endpoint
from barnabas.protocol.base_message import Message
from barnabas.protocol.codec import decode, encode
from barnabas.protocol.messages import APIS
from barnabas.replication.hosted_partitions import HostedPartitions
from barnabas.server.apis import cluster, configs, describe_topic_partitions, log_dirs, metadata, topics, transactions

HANDLERS: dict[int, Any] = {
    **topics.HANDLERS,
    **configs.HANDLERS,
    **cluster.HANDLERS,
    **describe_topic_partitions.HANDLERS,
    **log_dirs.HANDLERS,
    **metadata.HANDLERS,
    **transactions.HANDLERS,
}


class Context(NamedTuple):
    api_version: int
    listener: str = "PLAINTEXT"
    client_id: str | None = "test"
    client_host: str = "127.0.0.1"
    principal: str = "User:ANONYMOUS"


class FakeLog(NamedTuple):
    directory: Path
    size_bytes: int = 0


class FakeLogs:
    """Logs as far as DescribeLogDirs looks: where they are and how long."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.logs: dict[tuple[str, int], FakeLog] = {}
        self.failed_directories: list[Path] = []

    def get(self, topic: str, partition: int) -> FakeLog | None:
        return self.logs.get((topic, partition))


class FakeMoves:
    """No log is on its way to another directory."""

    def of(self, topic: str, partition: int) -> None:
        return None


def counting_ids() -> Any:
    """Topic ids 1, 2, 3, ..."""
    numbers = iter(range(1, 1_000_000))
    return lambda: UUID(int=next(numbers))


class FakeBroker:
    """The broker as handlers see it. It keeps instructions, and executes those for logs."""

    def __init__(
        self,
        properties: Mapping[str, str] | None = None,
        *,
        store: MetadataStore | None = None,
        brokers: Sequence[int] = (1,),
        directory: Path = Path("/"),
    ) -> None:
        config, _ = BrokerConfig.from_properties({"node.id": "1", "log.dirs": str(directory), **(properties or {})})
        self.config = config
        self.client_quotas = None
        self.controller = StandaloneController(store or MemoryStore(), config, new_id=counting_ids(), cluster_id="test-cluster")
        self.logs = FakeLogs(directory)
        self.log_dir_moves = FakeMoves()
        self.partitions = HostedPartitions()
        self.all_topics = metadata.AllTopics()
        self.member = None
        self.client_quotas = None
        self.instructions: list[Instruction] = []
        for broker_id in brokers:
            endpoint = Endpoint("PLAINTEXT", "127.0.0.1", 29091 + broker_id, "PLAINTEXT")
            self.controller.start(BrokerRegistration(broker_id, (endpoint,)), self._apply)

    @property
    def metadata(self) -> MetadataImage:
        return self.controller.image

    async def _apply(self, instructions: Sequence[Instruction]) -> None:
        self.instructions += instructions
        for instruction in instructions:
            match instruction:
                case CreateLog(topic, partition):
                    self.logs.logs[topic, partition] = FakeLog(self.logs.directory / f"{topic}-{partition}")
                case DeleteLog(topic, partition):
                    del self.logs.logs[topic, partition]
                case _:
                    pass

    async def ask(self, request: Message, version: int) -> Any:
        """The answer to a request, both sent through the codec."""
        prefix = type(request).__name__.removesuffix("Request")
        api_key = next(key for key, api in APIS.items() if api[1] == prefix)
        arrived = decode(type(request), version, bytes(encode(request, version)))
        answer = HANDLERS[api_key].handle(self, Context(version), arrived)
        if inspect.isawaitable(answer):
            answer = await answer
        return decode(type(answer), version, bytes(encode(answer, version)))

    async def __aenter__(self) -> FakeBroker:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.controller.close()
