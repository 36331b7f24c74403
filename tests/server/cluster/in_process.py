"""Whole brokers of a cluster in the test's own process: real sockets and files, one fake ZooKeeper."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import asynccontextmanager
from pathlib import Path

from barnabas.cluster.store.memory import MemoryStore, MemoryTree
from barnabas.config.broker import BrokerConfig
from barnabas.errors import ErrorCode
from barnabas.server.broker import Broker
from barnabas.server.environment import Environment
from barnabas.storage.directory import CLEAN_SHUTDOWN_FILE
from barnabas.testing.failing_files import FailingFiles
from tests.cluster.members import Inline
from tests.server.in_process import Client
from tests.waiting import until

ELSEWHERE = {  # errors of a broker that is not the coordinator, or not yet
    ErrorCode.NOT_COORDINATOR,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
}


def make_executor(count: int, name: str) -> Executor:
    return Inline() if name == "barnabas-metadata" else ThreadPoolExecutor(count, name)


class Cluster:
    """Brokers by id, and clients that each ask one of them.

    Args:
        directories: log directories of each broker.
    """

    def __init__(self, folder: Path, directories: int = 1, /, **settings: str) -> None:
        self._folder = folder
        self._directories = directories
        self.files = FailingFiles()  # shared by all brokers
        self._settings = {name.replace("_", "."): value for name, value in settings.items()}
        self.tree = MemoryTree()
        self.boot_id = "first boot"  # shared by all machines
        self.make_executor = make_executor
        self.stores: dict[int, MemoryStore] = {}
        self.brokers: dict[int, Broker] = {}
        self.clients: dict[int, Client] = {}

    def directories_of(self, broker_id: int) -> list[Path]:
        names = [f"broker-{broker_id}", *(f"broker-{broker_id}-{number}" for number in range(2, self._directories + 1))]
        return [self._folder / name for name in names]

    async def start(self, broker_id: int, **own: str) -> Broker:
        """Start a broker; `own` are settings that the others do not have."""
        properties = {
            "node.id": str(broker_id),
            "zookeeper.connect": "fake:1",
            "listeners": "PLAINTEXT://127.0.0.1:0",
            "log.dirs": ",".join(map(str, self.directories_of(broker_id))),
            "offsets.topic.num.partitions": "3",
            "offsets.topic.replication.factor": "3",
            "group.initial.rebalance.delay.ms": "0",
            **self._settings,
            **own,
        }
        config, _ = BrokerConfig.from_properties(properties)
        store = self.stores[broker_id] = MemoryStore(self.tree)
        environment = Environment(
            files=self.files,
            open_cluster_store=lambda *_: store,
            make_executor=self.make_executor,
            boot_id=lambda: self.boot_id,
        )
        broker = Broker(config, asyncio.get_running_loop(), environment)
        self.brokers[broker_id] = broker
        await broker.start()
        self.clients[broker_id] = Client(broker)
        return broker

    async def stop(self, broker_id: int) -> None:
        if broker_id in self.clients:
            self.clients.pop(broker_id).close()
        await self.brokers.pop(broker_id).stop()

    def lose_power(self) -> None:
        """As if all machines, whose brokers were stopped, had lost it: nothing tells that the logs were closed in order."""
        self.boot_id = "next boot"
        for marker in self._folder.glob(f"*/{CLEAN_SHUTDOWN_FILE}"):
            marker.unlink()

    @property
    def controller(self) -> Broker:
        (found,) = [broker for broker in self.brokers.values() if broker.controller.is_controller]
        return found

    @property
    def others(self) -> list[int]:
        """Ids of those that are not controller."""
        return [broker_id for broker_id, broker in self.brokers.items() if broker is not self.controller]

    async def until(self, condition: Callable[[], object]) -> None:
        await until(condition)


@asynccontextmanager
async def running(folder: Path, directories: int = 1, /, *, count: int = 3, **settings: str) -> AsyncIterator[Cluster]:
    cluster = Cluster(folder, directories, **settings)
    try:
        for broker_id in range(1, count + 1):
            await cluster.start(broker_id)
        yield cluster
    finally:
        for broker_id in list(cluster.brokers):
            await cluster.stop(broker_id)


async def create(client: Client, name: str, partitions: int = 3, replication_factor: int = 3) -> int:
    """The error code of making a topic."""
    return await client.create(partitions, name, replication_factor=replication_factor)
