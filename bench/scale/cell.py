"""The metadata part of a cluster: the real controller core, one other broker that follows it, and a fake store between them.

Owns the measurement of the controller's work. It makes the same calls as `cluster.membership.member`. The network, the disks of
ZooKeeper and further brokers are missing; further brokers would do the same as the one follower.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from itertools import count
from uuid import UUID

from msgspec.structs import replace

from barnabas.cluster.controller.core import Controller
from barnabas.cluster.controller.registration import register, update
from barnabas.cluster.metadata import store_entries
from barnabas.cluster.metadata.image import BrokerRegistration, BrokerState, MetadataDelta, PartitionState
from barnabas.cluster.metadata.observation import observe
from barnabas.cluster.planning.alter_partition import InSyncChange
from barnabas.cluster.planning.partitions import InSyncRequest
from barnabas.cluster.planning.plan import Plan
from barnabas.cluster.planning.topics import NewTopic
from barnabas.cluster.store.interface import ROOT, Operation, Put
from barnabas.cluster.store.memory import MemoryStore, MemoryTree
from barnabas.config.broker import BrokerConfig
from barnabas.config.listeners import Endpoint
from barnabas.protocol.codec import encode
from barnabas.protocol.messages.metadata import (
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from barnabas.server.replication.isr_changes import MAX_CHUNKS_PER_REQUEST

REPLICAS = 3
TOPICS_AT_ONCE = 50  # topics per request
CONTROLLER, FOLLOWER, LOST = 1, 2, 3  # broker ids
METADATA_VERSION = 12


@dataclass
class Work:
    """The cost of one action.

    Fields:
        controller_s: the seconds for the plan and the next image.
        commits, written: the commits to the store, and their bytes.
        follower_s: the seconds in which one broker applies the changes.
        read: the bytes that such a broker reads.
    """

    controller_s: float = 0.0
    commits: int = 0
    written: int = 0
    follower_s: float = 0.0
    read: int = 0


class Cell:
    """Args:
    brokers: the number of brokers, in three racks.
    """

    def __init__(self, brokers: int) -> None:
        self.tree = MemoryTree()
        self._store = MemoryStore(self.tree)
        self._sessions = {number: MemoryStore(self.tree) for number in range(2, brokers + 1)}
        ids = random.Random(1)
        self._new_id = lambda: UUID(int=ids.getrandbits(128))
        self.controller = self._core(CONTROLLER)
        self.follower = self._core(FOLLOWER)
        self._told: set[str] = set()
        self._sessions[FOLLOWER].watch(lambda paths: self._told.update(paths))
        self._seen: set[str] = set()
        self._store.watch(lambda paths: self._seen.update(paths))
        self._names = count()
        self._join(brokers)
        self.work = Work()

    def _core(self, number: int) -> Controller:
        config, _ = BrokerConfig.from_properties(
            {"node.id": str(number), "log.dirs": "/nowhere", "default.replication.factor": str(REPLICAS)}
        )
        return Controller(config, (), new_id=self._new_id, alone=False, incarnation=str(number))

    def _join(self, brokers: int) -> None:
        self.work = Work()
        self._commit(self.controller.set_cluster_id("a-cluster-of-some-brokers"))
        self._commit(self.controller.register(registration(CONTROLLER)))
        self._commit(self.controller.change_own_state(BrokerState.ACTIVE))
        for number in range(2, brokers + 1):
            self.come(number)

    def come(self, number: int) -> None:
        """A broker registers, the controller sees it, and the broker becomes active."""
        core = self.controller
        registered, operations = register(registration(number), None, core._last_broker_epoch, core.versions)
        self._write_as(number, operations, MetadataDelta(brokers=(registered,)))
        active = replace(registered, state=BrokerState.ACTIVE)
        self._write_as(number, update(active, core.versions), MetadataDelta(brokers=(active,)))

    def _write_as(self, number: int, operations: list[Operation], delta: MetadataDelta) -> None:
        self._sessions[number].commit(operations)
        self.settle()

    def go(self, number: int) -> None:
        """A broker's session ends."""
        self._sessions[number].close()
        self._sessions[number] = MemoryStore(self.tree)
        self.settle()

    def settle(self) -> None:
        """The controller reads the changes and makes its plans for them."""
        began = time.process_time()
        paths = set(self._seen)
        self._seen.clear()
        if paths:
            self.controller.observe(observe(self._store, self.controller.image, paths))
        self.work.controller_s += time.process_time() - began
        while self.controller.is_unsettled:
            began = time.process_time()
            plan = self.controller.settle()
            self.work.controller_s += time.process_time() - began
            self._commit(plan)

    def create(self, topics: int, partitions: int) -> None:
        for first in range(0, topics, TOPICS_AT_ONCE):
            numbers = range(first, min(first + TOPICS_AT_ONCE, topics))
            wanted = [NewTopic(f"topic-{next(self._names):06d}", partitions) for _ in numbers]
            self._do(partial(self._create, wanted))

    def _create(self, wanted: list[NewTopic]) -> Plan:
        outcomes, plan = self.controller.create_topics(wanted)
        assert all(outcome.error is None for outcome in outcomes), outcomes
        return plan

    def rejoin(self, number: int) -> None:
        """Every leader reports that a broker that came back is in sync again."""
        image = self.controller.image
        asked: dict[int, list[InSyncRequest]] = {}
        for topic in image.topics.values():
            for index, state in enumerate(topic.partitions):
                if number in state.replicas and number not in state.isr and state.leader >= 0:
                    members = tuple((member, image.brokers[member].epoch) for member in (*state.isr, number))
                    change = InSyncChange(state.leader_epoch, state.partition_epoch, members)
                    asked.setdefault(state.leader, []).append(InSyncRequest(topic.topic_id, index, change))
        for leader, requests in asked.items():
            epoch = image.brokers[leader].epoch
            chunks = sorted({_chunk(each) for each in requests})
            for first in range(0, len(chunks), MAX_CHUNKS_PER_REQUEST):
                some = set(chunks[first : first + MAX_CHUNKS_PER_REQUEST])
                self._do(partial(self._alter, leader, epoch, [each for each in requests if _chunk(each) in some]))

    def _alter(self, leader: int, epoch: int, requests: list[InSyncRequest]) -> Plan:
        outcomes, plan = self.controller.alter_partitions(leader, epoch, requests)
        assert all(outcome.error is None for outcome in outcomes), outcomes
        return plan

    def _do(self, command: Callable[[], Plan]) -> None:
        began = time.process_time()
        plan = command()
        self.work.controller_s += time.process_time() - began
        self._commit(plan)

    def _commit(self, plan: Plan) -> None:
        if not plan.operations:
            return
        self._store.commit(plan.operations)
        self.work.commits += 1
        self.work.written += sum(len(each.value) for each in plan.operations if isinstance(each, Put))
        self._seen.clear()
        began = time.process_time()
        self.controller.committed(plan)
        self.work.controller_s += time.process_time() - began

    def follow(self) -> None:
        """The other broker reads all changes that it was notified of together, like a broker that reads slower than changes
        come."""
        paths, self._told = self._told, set()
        if not paths:
            return
        began = time.process_time()
        found = observe(self._sessions[FOLLOWER], self.follower.image, paths)
        self.follower.observe(found)
        self.work.follower_s += time.process_time() - began
        self.work.read += sum(len(entry.value) for entry in found.entries.values() if entry is not None)

    def take_over(self) -> tuple[Controller, float]:
        """Another broker reads the whole store, like a new controller or a starting broker; returns this controller, and the
        seconds."""
        fresh = self._core(FOLLOWER)
        began = time.process_time()
        fresh.observe(observe(self._store, fresh.image, {ROOT}))
        return fresh, time.process_time() - began

    def measured(self, action: Callable[[], None]) -> Work:
        """The cost of `action` for the controller and a follower."""
        self.follow()
        self.work = Work()
        action()
        self.follow()
        return self.work

    def idle_look(self) -> float:
        """The seconds in which the controller finds that no partition needs a change."""
        self.controller.settle_all()
        before = self.work = Work()
        self.settle()
        assert not before.commits
        return self.work.controller_s

    def metadata_answer_bytes(self) -> int:
        """The size in bytes of a Metadata response with all topics."""
        image = self.controller.image
        topics = [
            MetadataResponseTopic(
                name=topic.name, topic_id=topic.topic_id, partitions=[_told(i, s) for i, s in enumerate(topic.partitions)]
            )
            for topic in image.topics.values()
        ]
        brokers = [
            MetadataResponseBroker(node_id=b.broker_id, host=b.endpoints[0].host, port=b.endpoints[0].port, rack=b.rack)
            for b in image.brokers.values()
        ]
        return len(encode(MetadataResponse(brokers=brokers, topics=topics, controller_id=image.controller_id), METADATA_VERSION))

    def stored(self) -> dict[str, tuple[int, int]]:
        """The number of entries and bytes in the store by kind, including the bytes of the paths."""
        found: dict[str, tuple[int, int]] = {}
        for path, entry in self.tree.entries.items():
            kind = path.split("/")[1]
            entries, size = found.get(kind, (0, 0))
            found[kind] = entries + 1, size + len(path) + len(entry.value)
        return found


def _chunk(request: InSyncRequest) -> tuple[int, int]:
    return request.topic_id.int, request.partition // store_entries.CHUNK


def registration(number: int) -> BrokerRegistration:
    endpoint = Endpoint("PLAINTEXT", f"broker-{number}.example", 9092, "PLAINTEXT")
    return BrokerRegistration(number, (endpoint,), f"rack-{number % 3}", incarnation=str(number), log_dirs=(f"disk-{number}",))


def _told(index: int, state: PartitionState) -> MetadataResponsePartition:
    return MetadataResponsePartition(
        partition_index=index,
        leader_id=state.leader,
        leader_epoch=state.leader_epoch,
        replica_nodes=state.replicas,
        isr_nodes=state.isr,
    )
