"""Controller cores of several brokers on one fake store, driven by hand."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from uuid import UUID

from barnabas.cluster.controller.core import Controller
from barnabas.cluster.membership.candidate import Candidate
from barnabas.cluster.metadata.image import BrokerRegistration, BrokerState, Kept, PartitionState
from barnabas.cluster.metadata.observation import observe_all
from barnabas.cluster.planning.alter_partition import InSyncChange
from barnabas.cluster.planning.partitions import InSyncRequest, MoveRequest, PartitionOutcome
from barnabas.cluster.planning.plan import Plan
from barnabas.cluster.planning.topics import NewTopic
from barnabas.cluster.store.memory import MemoryStore, MemoryTree
from barnabas.config.broker import BrokerConfig
from barnabas.errors import ErrorCode

RACKS = {1: "a", 2: "b", 3: "c"}


class Node:
    """A broker with a session and a controller core, driven by hand."""

    def __init__(self, tree: MemoryTree, broker_id: int, new_id: Callable[[], UUID], kept: Kept = Kept.ALL) -> None:
        config, _ = BrokerConfig.from_properties({"node.id": str(broker_id)})
        self.store = MemoryStore(tree)
        self.broker_id = broker_id
        incarnation = f"process-{self.store.session.session_id}"
        self.core = Controller(config, self.store.list("/"), new_id=new_id, alone=False, incarnation=incarnation)
        self.candidate = Candidate(self.store, self.core.election, lambda _: self.reload())
        broker = BrokerRegistration(broker_id, (), RACKS.get(broker_id), incarnation=incarnation, kept=kept)
        self.commit(self.core.register(broker))

    def reload(self) -> None:
        self.core.load(self.store.list("/"))

    def commit(self, plan: Plan) -> None:
        if plan.operations:
            self.store.commit(plan.operations)
            self.core.committed(plan)

    def settle(self) -> int:
        """Read who is there and do what follows; returns the number of commits."""
        self.core.observe(observe_all(self.core.image, self.store.list("/")))
        commits = 0
        while self.core.is_unsettled:
            plan = self.core.settle()
            self.commit(plan)
            commits += bool(plan.operations)
        return commits

    def state(self, topic: str = "t", partition: int = 0) -> PartitionState:
        found = self.core.image.partition(topic, partition)
        assert found is not None
        return found


class Cluster:
    """Brokers 1 to 3; broker 1 is controller."""

    def __init__(self) -> None:
        self.tree = MemoryTree()
        self.ids = count(1)
        self.nodes: dict[int, Node] = {}
        for broker_id in (1, 2, 3):
            self.restart(broker_id)

    def start(self, broker_id: int, kept: Kept = Kept.ALL) -> Node:
        """Registered and fenced."""
        self.nodes[broker_id] = Node(self.tree, broker_id, lambda: UUID(int=next(self.ids)), kept)
        return self.nodes[broker_id]

    @property
    def controller(self) -> Node:
        (node,) = [node for node in self.nodes.values() if node.core.election.is_leading]
        return node

    def create(self, *topics: NewTopic) -> None:
        outcomes, plan = self.controller.core.create_topics(topics)
        assert [outcome.error for outcome in outcomes] == [None] * len(topics)
        self.controller.commit(plan)

    def kill(self, broker_id: int) -> None:
        self.nodes.pop(broker_id).store.close()
        for node in self.nodes.values():
            node.candidate.settle()
        self.controller.settle()

    def restart(self, broker_id: int, kept: Kept = Kept.ALL) -> None:
        node = self.start(broker_id, kept)
        self.controller.settle()
        node.reload()
        assert not node.core.has_old_duties
        node.commit(node.core.change_own_state(BrokerState.ACTIVE))
        self.controller.settle()

    def check(self) -> None:
        """The store contains what the controller believes."""
        core = self.controller.core
        core.image.validate()
        fresh = Controller(core.static, self.nodes[core.broker_id].store.list("/"), new_id=UUID, alone=False)
        assert fresh.image.topics == core.image.topics
        assert fresh.image.brokers == core.image.brokers
        assert fresh.image.deletions == core.image.deletions
        assert fresh.image.configs == core.image.configs


def in_sync_request(node: Node, *in_sync: int, topic: str = "t", partition: int = 0) -> InSyncRequest:
    state, brokers = node.state(topic, partition), node.core.image.brokers
    epochs = tuple((n, brokers[n].epoch) for n in in_sync)
    change = InSyncChange(state.leader_epoch, state.partition_epoch, epochs)
    return InSyncRequest(node.core.image.topics[topic].topic_id, partition, change)


def alter(cluster: Cluster, *in_sync: int, topic: str = "t", partition: int = 0) -> PartitionOutcome:
    node = cluster.controller
    leader = node.state(topic, partition).leader
    request = in_sync_request(node, *in_sync, topic=topic, partition=partition)
    (outcome,), plan = node.core.alter_partitions(leader, node.core.image.brokers[leader].epoch, [request])
    node.commit(plan)
    return outcome


def move(cluster: Cluster, *requests: MoveRequest) -> list[PartitionOutcome]:
    outcomes, plan = cluster.controller.core.reassign(requests)
    cluster.controller.commit(plan)
    return outcomes


def code(outcome: PartitionOutcome) -> ErrorCode | None:
    return None if outcome.error is None else outcome.error.code
