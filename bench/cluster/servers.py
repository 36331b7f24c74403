"""The two clusters that are compared: three brokers each, in processes of their own, with fresh data folders.

Both have Kafka's defaults, except for the delay of removing files (as in `bench.servers`). ZooKeeper counts as a part of the
barnabas cluster: its CPU and memory are in the sums. Kafka's controllers are in the sums of its nodes too.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Protocol, Self

from tools.kafka import VERSION
from tools.kafka_cluster import KafkaCluster

from barnabas.protocol.messages.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from barnabas.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicsResponse
from barnabas.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)
from barnabas.protocol.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
    MetadataResponsePartition,
)
from barnabas.testing import Broker
from barnabas.testing.zookeeper import ZooKeeper
from bench import wire
from bench.servers import CONFIG, LATEST, TOPIC_TIMEOUT_S, cpu_seconds, resident_mb

OURS, THEIRS = "barnabas", f"Apache Kafka {VERSION}"
BROKERS = (1, 2, 3)
ZOOKEEPER_TICK_MS = 2_000  # ZooKeeper's default
POLL_S = 0.05
COMMITTED_TIMEOUT_S = 60.0  # with acks=1, followers may be behind while they are in sync, and longer

Address = tuple[str, int]


class Cluster(Protocol):
    """A running cluster; the keys of brokers are their ids."""

    @property
    def name(self) -> str: ...

    @property
    def brokers(self) -> dict[int, Address]:
        """The addresses of the running brokers."""
        ...

    @property
    def pids(self) -> list[int]:
        """The ids of all running processes of the cluster."""
        ...

    def kill(self, broker_id: int) -> None: ...

    def shut_down(self, broker_id: int) -> None: ...

    def start_again(self, broker_id: int) -> None: ...

    def __enter__(self) -> Self: ...

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None: ...


class Ours:
    """Three brokers and one ZooKeeper; `config` overrides the settings here."""

    name = OURS

    def __init__(self, config: Mapping[str, str] | None = None) -> None:
        self._config = dict(config or {})
        self._zookeeper: ZooKeeper | None = None
        self._processes: dict[int, Broker] = {}

    @property
    def brokers(self) -> dict[int, Address]:
        return {number: ("127.0.0.1", broker.port) for number, broker in self._processes.items() if broker.is_running()}

    @property
    def pids(self) -> list[int]:
        found = [broker.pid for broker in self._processes.values() if broker.pid is not None]
        return found + ([] if self._zookeeper is None else self._zookeeper.pids)

    def folder_of(self, broker_id: int) -> Path:
        return self._processes[broker_id].data_dir

    def kill(self, broker_id: int) -> None:
        self._processes[broker_id].kill()

    def shut_down(self, broker_id: int) -> None:
        self._processes[broker_id].stop()

    def start_again(self, broker_id: int) -> None:
        self._processes[broker_id].start()

    def __enter__(self) -> Self:
        try:
            self._zookeeper = ZooKeeper(tick_ms=ZOOKEEPER_TICK_MS)
            for number in BROKERS:
                config = {
                    **CONFIG,
                    "node.id": str(number),
                    "zookeeper.connect": f"{self._zookeeper.hosts}/bench",
                    "group.initial.rebalance.delay.ms": "3000",
                    "offsets.topic.num.partitions": "50",
                    "offsets.topic.replication.factor": "3",
                    **self._config,
                }
                self._processes[number] = Broker(config, log_level="warning")
                self._processes[number].start()
        except BaseException:
            self.__exit__(None, None, None)
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        for broker in self._processes.values():
            broker.close()
        if self._zookeeper is not None:
            self._zookeeper.close()
            self._zookeeper = None


class Theirs(KafkaCluster):
    """Three KRaft nodes, each broker and controller."""

    name = THEIRS

    def __init__(self) -> None:
        super().__init__(len(BROKERS), heap="1g", config=CONFIG)

    @property
    def brokers(self) -> dict[int, Address]:
        return {node.node_id: _address(node.bootstrap) for node in self.nodes if node.is_running}

    @property
    def pids(self) -> list[int]:
        return [node.pid for node in self.nodes if node.is_running]

    def kill(self, broker_id: int) -> None:
        self.nodes[broker_id - 1].kill()

    def shut_down(self, broker_id: int) -> None:
        self.nodes[broker_id - 1].shut_down()

    def start_again(self, broker_id: int) -> None:
        self.nodes[broker_id - 1].start_again()


def _address(bootstrap: str) -> Address:
    host, _, port = bootstrap.rpartition(":")
    return host, int(port)


def spread_topic(name: str, partitions: int) -> CreatableTopic:
    """A topic with 3 replicas of each partition, with the leaders spread over the brokers."""
    around = [[BROKERS[(p + i) % len(BROKERS)] for i in range(len(BROKERS))] for p in range(partitions)]
    assignments = [CreatableReplicaAssignment(partition_index=p, broker_ids=ids) for p, ids in enumerate(around)]
    return CreatableTopic(name=name, num_partitions=-1, replication_factor=-1, assignments=assignments)


def create_topic(cluster: Cluster, name: str, partitions: int) -> list[Address]:
    """Create a topic and wait until its leaders lead with all replicas in sync; returns the address of each partition's
    leader."""
    request = CreateTopicsRequest(topics=[spread_topic(name, partitions)], timeout_ms=60_000)
    answer = wire.call(_any(cluster), wire.CREATE_TOPICS, 5, request, CreateTopicsResponse)
    if answer.topics[0].error_code:
        raise wire.BadAnswer(f"{cluster.name} did not create {name}: error code {answer.topics[0].error_code}")
    return led(cluster, name, partitions)


def led(cluster: Cluster, name: str, partitions: int) -> list[Address]:
    """Wait until the leaders of a topic know that they lead, with all replicas in sync; returns the address of each partition's
    leader."""
    deadline = time.monotonic() + TOPIC_TIMEOUT_S
    while True:
        leaders = leaders_of(cluster, name)
        if len(leaders) == partitions and None not in leaders:
            found = [cluster.brokers[leader] for leader in leaders if leader is not None]
            try:
                end_offsets(name, found)
                return found
            except wire.BadAnswer:
                pass  # not every broker knows the topic yet
        if time.monotonic() > deadline:
            raise wire.BadAnswer(f"{cluster.name}: {name} did not come up")
        time.sleep(POLL_S)


def leaders_of(cluster: Cluster, topic: str, *, asked: Address | None = None, in_sync: bool = True) -> list[int | None]:
    """The leader of each partition. None if there is none, or, with `in_sync`, if a replica is out of sync.

    Args:
        asked: the broker whose metadata is used; None means any broker.
    """
    partitions = _partitions(asked or _any(cluster), topic)
    return [
        None if each.leader_id < 0 or (in_sync and len(each.isr_nodes) < len(each.replica_nodes)) else each.leader_id
        for each in partitions
    ]


def replicas_of(cluster: Cluster, topic: str) -> int:
    """The number of replicas of all partitions of a topic."""
    return sum(len(each.replica_nodes) for each in _partitions(_any(cluster), topic))


def _partitions(address: Address, topic: str) -> list[MetadataResponsePartition]:
    request = MetadataRequest(topics=[MetadataRequestTopic(name=topic)], allow_auto_topic_creation=False)
    answer = wire.call(address, wire.METADATA, 9, request, MetadataResponse)
    return sorted(answer.topics[0].partitions, key=lambda each: each.partition_index)


def end_offsets(topic: str, leaders: Sequence[Address]) -> int:
    """The sum of the end offsets of all partitions, from their leaders."""
    total = 0
    for address in dict.fromkeys(leaders):
        wanted = [ListOffsetsPartition(partition_index=p, timestamp=LATEST) for p, at in enumerate(leaders) if at == address]
        request = ListOffsetsRequest(replica_id=-1, topics=[ListOffsetsTopic(name=topic, partitions=wanted)])
        answer = wire.call(address, wire.LIST_OFFSETS, 6, request, ListOffsetsResponse)
        for partition in answer.topics[0].partitions:
            if partition.error_code:
                raise wire.BadAnswer(f"end offset of {topic}-{partition.partition_index}: error code {partition.error_code}")
            total += partition.offset
    return total


def wait_committed(cluster: Cluster, topic: str, leaders: Sequence[Address], records: int) -> None:
    """Wait until all acknowledged records are below the high watermarks; raises BadAnswer if that takes too long."""
    deadline = time.monotonic() + COMMITTED_TIMEOUT_S
    while (stored := end_offsets(topic, leaders)) != records:
        if stored > records or time.monotonic() > deadline:
            raise wire.BadAnswer(f"{cluster.name} acknowledged {records} records and has {stored}")
        time.sleep(POLL_S)


def delete_topic(cluster: Cluster, name: str) -> None:
    request = DeleteTopicsRequest(topic_names=[name], timeout_ms=30_000)
    answer = wire.call(_any(cluster), wire.DELETE_TOPICS, 4, request, DeleteTopicsResponse)
    if answer.responses[0].error_code:
        raise wire.BadAnswer(f"{cluster.name} did not delete {name}: error code {answer.responses[0].error_code}")


def _any(cluster: Cluster) -> Address:
    return next(iter(cluster.brokers.values()))


def cpu_of(cluster: Cluster) -> float:
    """CPU seconds of all processes of a cluster so far."""
    return sum(cpu_seconds(pid) for pid in cluster.pids)


def memory_of(cluster: Cluster) -> float:
    """Resident memory of all processes of a cluster, in units of 1,000,000 bytes."""
    return sum(resident_mb(pid) for pid in cluster.pids)
