"""Brokers of a cluster as far as their metadata goes: `Member`s on one fake ZooKeeper in one loop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import Executor, Future
from itertools import count
from typing import Any
from uuid import UUID

from barnabas.cluster.membership.lost_partitions import LastRecord
from barnabas.cluster.membership.member import Member
from barnabas.cluster.metadata.image import BrokerRegistration, Kept, MetadataImage, PartitionState
from barnabas.cluster.planning.instructions import ChangeReplica, CreateLog, DeleteLog, Instruction, StandDown
from barnabas.cluster.planning.topics import NewTopic
from barnabas.cluster.store.interface import Operation, StoreUnavailable
from barnabas.cluster.store.memory import MemoryStore, MemoryTree
from barnabas.config.broker import BrokerConfig
from barnabas.config.listeners import Endpoint

WITHIN_S = 60
SESSION_TIMEOUT_MS = 60


class Inline(Executor):
    """Runs what it is given at once, on the loop's own thread: the fake store does not block."""

    def submit(self, function: Callable[..., Any], /, *arguments: Any, **named: Any) -> Future[Any]:
        future: Future[Any] = Future()
        try:
            future.set_result(function(*arguments, **named))
        except Exception as error:  # noqa: BLE001 - the caller gets the error from the future
            future.set_exception(error)
        return future


class Crashed(StoreUnavailable):
    """The process that owned the store is dead."""


class CrashingStore(MemoryStore):
    """The session of a process that dies at the commit it is told to, before it is done or right after."""

    def __init__(self, tree: MemoryTree) -> None:
        super().__init__(tree)
        self.commits = 0
        self.crash_at: int | None = None
        self.crash_done = False
        self.on_crash: Callable[[], None] = lambda: None

    @property
    def session_timeout_ms(self) -> int:
        return SESSION_TIMEOUT_MS

    def commit(self, operations: Sequence[Operation]) -> int:
        crashes = self.crash_at == self.commits
        self.commits += 1
        revision = 0 if crashes and not self.crash_done else super().commit(operations)
        if crashes:
            self.crash_at = None
            self.on_crash()
            raise Crashed("dead")
        return revision


class Node:
    """One broker; `roles` is what its hosting would know."""

    def __init__(self, tree: MemoryTree, broker_id: int, incarnation: str, new_id: Callable[[], UUID]) -> None:
        properties = {"node.id": str(broker_id), "default.replication.factor": "3", "offsets.topic.num.partitions": "2"}
        config, _ = BrokerConfig.from_properties(properties)
        self.broker_id = broker_id
        self.incarnation = incarnation
        self.store = CrashingStore(tree)
        self.store.on_crash = self.crash
        self.member = Member(self.store, config, new_id=new_id, incarnation=incarnation, thread=Inline())
        self.roles: dict[tuple[UUID, int], PartitionState] = {}
        self.logs: set[tuple[UUID, int]] = set()
        self.heard: list[Instruction] = []
        self.is_dead = False
        self.kept = Kept.ALL
        self.log_end: LastRecord | None = None  # the last record of each log
        self.settled: list[PartitionState] = []  # states of all partitions just before this broker became active

    @property
    def image(self) -> MetadataImage:
        return self.member.image

    async def join(self) -> None:
        await self.member.open("cluster", timeout_ms=WITHIN_S * 1000)
        self.logs = set(_expected_roles(self))  # a broker that starts creates its missing logs
        endpoint = Endpoint("PLAINTEXT", "127.0.0.1", 9000 + self.broker_id, "PLAINTEXT")
        registration = BrokerRegistration(self.broker_id, (endpoint,), log_dirs=(f"folder-{self.broker_id}",), kept=self.kept)

        self.member.find_log = lambda *_: self.log_end

        async def settled() -> None:
            self.settled = [state for topic in self.image.topics.values() for state in topic.partitions]

        await self.member.join(registration, self.apply, settled, timeout_ms=WITHIN_S * 1000)

    async def apply(self, instructions: Sequence[Instruction]) -> None:
        self.heard += instructions
        for instruction in instructions:
            match instruction:
                case CreateLog(_, partition, topic_id):
                    assert (topic_id, partition) not in self.logs
                    self.logs.add((topic_id, partition))
                case DeleteLog(_, partition, topic_id):
                    self.logs.discard((topic_id, partition))
                    self.roles.pop((topic_id, partition), None)
                case ChangeReplica(_, partition, topic_id, state):
                    self.roles[topic_id, partition] = state
                case StandDown():
                    self.roles.clear()
                case _:
                    pass

    def crash(self) -> None:
        """The process ends; its session is over as soon as that is noticed, which is now."""
        if self.is_dead:
            return
        self.is_dead = True
        if self.member._looking is not None:
            self.member._looking.cancel()
        if self.member._lapse is not None:
            self.member._lapse.cancel()
        self.store._watchers.clear()
        self.store._session_watchers.clear()
        self.store.close()

    async def close(self) -> None:
        if self.is_dead:
            await asyncio.gather(*self.member._running, *filter(None, [self.member._looking]), return_exceptions=True)
            await self.member._instruction_queue.close()
        else:
            await self.member.close()


class Members:
    """A cluster; leaves nothing running."""

    def __init__(self, brokers: int = 3) -> None:
        self._brokers = brokers
        self.tree = MemoryTree()
        self.ids = count(1)
        self.names = count(1)
        self.nodes: dict[int, Node] = {}
        self._all: list[Node] = []

    async def __aenter__(self) -> Members:
        for broker_id in range(1, self._brokers + 1):
            await self.start(broker_id)
        return self

    async def __aexit__(self, *_: object) -> None:
        for node in self._all:
            await node.close()

    async def start(self, broker_id: int, kept: Kept = Kept.ALL, log_end: LastRecord | None = None) -> Node:
        node = self.add(broker_id)
        node.kept, node.log_end = kept, log_end
        await node.join()
        return node

    def add(self, broker_id: int) -> Node:
        node = Node(self.tree, broker_id, f"process-{next(self.names)}", lambda: UUID(int=next(self.ids)))
        self.nodes[broker_id] = node
        self._all.append(node)
        return node

    @property
    def live(self) -> list[Node]:
        return [node for node in self.nodes.values() if not node.is_dead]

    @property
    def controller(self) -> Node:
        (found,) = [node for node in self.live if node.member.is_controller]
        return found

    async def until(self, condition: Callable[[], object]) -> None:
        """Conditions are about images; all members tell when theirs change, and one of them changes last."""
        async with asyncio.timeout(WITHIN_S):
            while not condition():
                waits = [asyncio.ensure_future(node.member._changed.wait()) for node in self.live]
                await asyncio.wait(waits, timeout=0.02, return_when=asyncio.FIRST_COMPLETED)
                for wait in waits:
                    wait.cancel()

    def is_settled(self) -> bool:
        """One controller, everybody has the same image, everything is led by who is alive, and everybody knows its roles."""
        live = self.live
        if sum(node.member.is_controller for node in live) != 1:
            return False
        member = self.controller.member
        if member._core.is_unsettled or member._turn.locked():  # or the controller is still writing a plan
            return False
        alive = {node.broker_id for node in live}
        images = [node.image for node in live]
        if any(set(image.brokers) != alive or not all(b.is_active for b in image.brokers.values()) for image in images):
            return False
        if any(_content(image) != _content(images[0]) for image in images):
            return False
        return all(node.roles == _expected_roles(node) and node.logs >= set(node.roles) for node in live)

    def state(self, topic: str, partition: int = 0) -> PartitionState:
        found = self.controller.image.partition(topic, partition)
        assert found is not None
        return found


def _content(image: MetadataImage) -> tuple[object, ...]:
    return image.topics, image.configs, image.deletions


def _expected_roles(node: Node) -> dict[tuple[UUID, int], PartitionState]:
    return {
        (topic.topic_id, number): state
        for topic in node.image.topics.values()
        for number, state in enumerate(topic.partitions)
        if node.broker_id in state.replicas
    }


async def created(cluster: Members, name: str = "t", partitions: int = 3) -> None:
    outcomes = await cluster.controller.member.create_topics([NewTopic(name, partitions, 3)])
    assert [outcome.error for outcome in outcomes] == [None]
    await cluster.until(cluster.is_settled)


def stop_silently(node: Node) -> None:
    """Its process is gone, and its session lives on."""
    node.store._watchers.clear()
    node.store._session_watchers.clear()
    node.is_dead = True
    if node.member._looking is not None:
        node.member._looking.cancel()
