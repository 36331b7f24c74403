"""Several brokers in the test's own process, on real sockets, with a controller that does what the test says.

The metadata is the test's: every change is handed to the brokers as a cluster hands it to them, as the instructions that lead from one
image to the next. AlterPartition is answered by the controller's own core.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from uuid import UUID

from msgspec.structs import replace

from barnabas.cluster.membership.image_changes import config_instructions, replica_instructions
from barnabas.cluster.metadata.image import BrokerRegistration, BrokerState, MetadataDelta, MetadataImage, PartitionState, Topic
from barnabas.cluster.metadata.store_entries import CLUSTER, encode
from barnabas.cluster.planning.alter_partition import InSyncChange, alter
from barnabas.cluster.planning.leadership import Policy
from barnabas.cluster.store.interface import ABSENT, Put
from barnabas.cluster.store.memory import MemoryStore, MemoryTree
from barnabas.config.broker import BrokerConfig
from barnabas.error_codes import ErrorCode
from barnabas.errors import KafkaError
from barnabas.protocol.messages.alter_partition import (
    AlterPartitionRequest,
    AlterPartitionResponse,
    RequestPartitionData,
    ResponsePartitionData,
    ResponseTopicData,
)
from barnabas.protocol.values import ResourceType
from barnabas.replication.follower_partition import FollowerPartition
from barnabas.replication.leader_partition import LeaderPartition
from barnabas.replication.partition import OnlinePartition
from barnabas.server.apply_instructions import apply_instructions
from barnabas.server.broker import Broker
from barnabas.server.environment import Environment

TOPIC_ID = UUID(int=77)
TOPIC = "t"


class Controller:
    """Answers AlterPartition, in the place of the peers' connections."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self.reachable = asyncio.Event()
        self.reachable.set()
        self.refusal: ErrorCode | None = None

    async def send(self, _controller_id: int, request: AlterPartitionRequest) -> AlterPartitionResponse:
        await self.reachable.wait()
        topics = []
        for topic in request.topics:
            answers = [await self._alter(request.broker_id, topic.topic_id, data) for data in topic.partitions]
            topics.append(ResponseTopicData(topic_id=topic.topic_id, partitions=answers))
        return AlterPartitionResponse(topics=topics)

    async def close(self) -> None:
        """Nothing is open."""

    async def _alter(self, leader: int, topic_id: UUID, data: RequestPartitionData) -> ResponsePartitionData:
        cluster = self._cluster
        topic = cluster.image.topics_by_id[topic_id]
        state = topic.partitions[data.partition_index]
        in_sync = tuple((member.broker_id, member.broker_epoch) for member in data.new_isr_with_epochs)
        try:
            if self.refusal is not None:
                raise KafkaError(self.refusal)
            change = InSyncChange(data.leader_epoch, data.partition_epoch, in_sync)
            after = alter(state, change, leader=leader, brokers=cluster.image.brokers, policy=cluster.policy)
        except KafkaError as error:
            return ResponsePartitionData(partition_index=data.partition_index, error_code=error.code)
        await cluster.change(topic.name, data.partition_index, after)
        return ResponsePartitionData(
            partition_index=data.partition_index,
            leader_id=after.leader,
            leader_epoch=after.leader_epoch,
            isr=after.isr,
            partition_epoch=after.partition_epoch,
        )


class Cluster:
    """The brokers that run, by id, and what all of them know."""

    def __init__(self, folder: Path, **settings: str) -> None:
        self._folder = folder
        self._settings = {name.replace("_", "."): value for name, value in settings.items()}
        self.image = MetadataImage("test", controller_id=0)
        self.brokers: dict[int, Broker] = {}
        self.controller = Controller(self)
        self.policy = Policy(1, False)
        self._epoch = 100
        self._ports: dict[int, int] = {}
        self._turn = asyncio.Lock()

    async def start(self, broker_id: int) -> Broker:
        """Start a broker, or start it again on its data and port."""
        config, _ = BrokerConfig.from_properties(
            {
                "node.id": str(broker_id),
                "listeners": f"PLAINTEXT://127.0.0.1:{self._ports.get(broker_id, 0)}",
                "log.dirs": str(self._folder / str(broker_id)),
                "broker.rack": f"rack-{broker_id}",
                "offsets.topic.num.partitions": "1",
                "replica.fetch.backoff.ms": "50",
                **self._settings,
            }
        )
        store = MemoryStore(MemoryTree())
        # the store has a cluster id only: tests change the metadata themselves
        store.commit([Put(CLUSTER, encode({"id": "test"}), ABSENT)])
        broker = Broker(config, asyncio.get_running_loop(), Environment(open_store=lambda _: store))
        broker.isr._peers = self.controller  # type: ignore[assignment]  # has the methods that the code calls
        await broker.start()
        self._ports[broker_id] = broker.endpoints[0].port
        self._epoch += 1
        registered = BrokerRegistration(broker_id, tuple(broker.endpoints), f"rack-{broker_id}", epoch=self._epoch)
        self.brokers[broker_id] = broker
        broker.controller._core.image = MetadataImage("test")
        await self.apply(MetadataDelta(brokers=(registered,)), everything_to=broker_id)
        return broker

    async def stop(self, broker_id: int) -> None:
        await self.brokers.pop(broker_id).stop()

    async def gone(self, broker_id: int) -> None:
        """The controller notices that a broker is gone: nothing of it is registered any more."""
        await self.apply(MetadataDelta(gone_brokers=(broker_id,)))

    async def fence(self, broker_id: int, state: BrokerState) -> None:
        await self.apply(MetadataDelta(brokers=(replace(self.image.brokers[broker_id], state=state),)))

    async def apply(self, delta: MetadataDelta, everything_to: int | None = None) -> None:
        async with self._turn:
            before, self.image = self.image, self.image.apply(delta)
            for broker_id, broker in list(self.brokers.items()):
                known = broker.controller._core.image if broker_id == everything_to else before
                broker.controller._core.image = self.image
                config_of = broker.controller.topic_config
                names = (
                    self.image.topics if broker_id == everything_to else [t.name for t in delta.topics] + [*delta.deleted_topics]
                )
                instructions = replica_instructions(known, self.image, names, broker_id, config_of)
                instructions += config_instructions(known, self.image, delta, broker.controller._core)
                await apply_instructions(broker, instructions)

    async def create(self, *assignments: Sequence[int], **configs: str) -> None:
        """Topic TOPIC, a partition for each list of replicas, all of them in sync and led by the first."""
        states = tuple(PartitionState(replicas[0], 0, tuple(replicas), tuple(replicas)) for replicas in assignments)
        settings = {name.replace("_", "."): value for name, value in configs.items()}
        self.policy = Policy(int(settings.get("min.insync.replicas", "1")), False)
        configured = {(ResourceType.TOPIC, TOPIC): settings}
        await self.apply(MetadataDelta(topics=(Topic(TOPIC, TOPIC_ID, states),), configs=configured))

    async def change(self, topic: str, partition: int, state: PartitionState) -> None:
        known = self.image.topics[topic]
        states = list(known.partitions)
        states[partition] = state
        await self.apply(MetadataDelta(topics=(replace(known, partitions=tuple(states)),)))

    async def elect(self, leader: int, isr: Sequence[int] | None = None, partition: int = 0) -> None:
        """Another leader, in a new epoch."""
        state = self.state(partition)
        after = replace(
            state,
            leader=leader,
            leader_epoch=state.leader_epoch + 1,
            partition_epoch=state.partition_epoch + 1,
            isr=tuple(state.isr if isr is None else isr),
        )
        await self.change(TOPIC, partition, after)

    def state(self, partition: int = 0) -> PartitionState:
        return self.image.topics[TOPIC].partitions[partition]

    def replica(self, broker_id: int, partition: int = 0) -> OnlinePartition:
        found = self.brokers[broker_id].partitions.get(TOPIC, partition)
        assert found is not None, f"broker {broker_id} has no replica of {TOPIC}-{partition}"
        assert not found.is_offline
        return found

    def leader(self, broker_id: int, partition: int = 0) -> LeaderPartition:
        """As `replica`, of a broker that leads."""
        found = self.replica(broker_id, partition)
        assert found.is_leader
        return found

    def follower(self, broker_id: int, partition: int = 0) -> FollowerPartition:
        """As `replica`, of a broker that follows."""
        found = self.replica(broker_id, partition)
        assert isinstance(found, FollowerPartition)
        return found

    def ends(self, partition: int = 0) -> dict[int, int]:
        return {i: self.replica(i, partition).log.log_end_offset for i in self.state(partition).replicas if i in self.brokers}

    def marks(self, partition: int = 0) -> dict[int, int]:
        return {i: self.replica(i, partition).high_watermark for i in self.state(partition).replicas if i in self.brokers}

    def address(self, broker_id: int) -> str:
        return f"127.0.0.1:{self._ports[broker_id]}"

    @property
    def addresses(self) -> str:
        return ",".join(self.address(broker_id) for broker_id in self.brokers)


@asynccontextmanager
async def cluster_of(folder: Path, count: int = 3, **settings: str) -> AsyncIterator[Cluster]:
    cluster = Cluster(folder, **settings)
    try:
        for broker_id in range(1, count + 1):
            await cluster.start(broker_id)
        yield cluster
    finally:
        cluster.controller.reachable.set()
        for broker_id in list(cluster.brokers):
            await cluster.stop(broker_id)
