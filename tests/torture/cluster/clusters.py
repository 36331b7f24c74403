"""The clusters that are tormented: three brokers and three servers of what they agree by, each a process in a place of its own.

`BarnabasCluster` has ZooKeeper for the latter, `KafkaCluster` controllers of KRaft. Both get Kafka's defaults, but for copies of the
topics that a cluster makes for itself, and no wait before the first rebalance.
"""

from __future__ import annotations

import sys
from abc import ABC, abstractmethod
from collections.abc import Sequence
from pathlib import Path

from tools.kafka import CLUSTER_ID, java, run_tool

from barnabas.testing.children import Guard
from barnabas.testing.zookeeper import JAR, JVM, LOGGER, MAIN, PROPERTIES
from barnabas.testing.zookeeper import java as java_of_zookeeper
from tests.torture.cluster import wire
from tests.torture.cluster.network import Network
from tests.torture.cluster.processes import Node
from tests.waiting import wait_while

SOURCE = Path(__file__).resolve().parents[3] / "src"
START_TIMEOUT_S = 120.0
POLL_S = 0.1
BROKER_PORT, QUORUM_PORT, PEER_PORT, VOTE_PORT = 9092, 2181, 2888, 3888
COUNT = 3
SETTINGS = {
    "offsets.topic.num.partitions": "6",
    "offsets.topic.replication.factor": "3",
    "transaction.state.log.replication.factor": "3",
    "transaction.state.log.min.isr": "2",
    "min.insync.replicas": "2",
    "default.replication.factor": "3",
    "group.initial.rebalance.delay.ms": "0",
    "auto.create.topics.enable": "false",
}
# ZooKeeper's defaults, except a tick of 500 ms: its waits are multiples of it, and servers give each other up after 2 s.
ZOOKEEPER = {"tickTime": "500", "initLimit": "20", "syncLimit": "4", "maxClientCnxns": "0"}
BROKERS = [f"broker-{number}" for number in range(1, COUNT + 1)]
QUORUM = [f"quorum-{number}" for number in range(1, COUNT + 1)]


class Cluster(ABC):
    """Brokers and quorum by name, started by `start`; the names are those of nodes in the network."""

    name: str
    brokers: Sequence[str] = BROKERS
    quorum: Sequence[str] = QUORUM

    def __init__(self, folder: Path, network: Network, guard: Guard) -> None:
        self._folder, self._network, self._guard = folder, network, guard
        folder.mkdir(parents=True, exist_ok=True)
        self.nodes: dict[str, Node] = {}
        self.groups: Sequence[str] = ()  # consumer groups, as soon as there are some

    @property
    def bootstrap(self) -> str:
        return ",".join(f"{host}:{port}" for host, port in self.addresses)

    @property
    def addresses(self) -> list[wire.Address]:
        return [(self._network.address(name), BROKER_PORT) for name in self.brokers]

    def address(self, broker: str) -> wire.Address:
        return self._network.address(broker), BROKER_PORT

    def start(self) -> None:
        for name in self.quorum:
            self.nodes[name] = self._node(name, self._quorum_command(name))
            self.nodes[name].start()
        for name in self.brokers:
            self.nodes[name] = self._node(name, self._broker_command(name))
            self.nodes[name].start()
        self.wait_whole()

    def _node(self, name: str, command: Sequence[str]) -> Node:
        log = self._folder / f"{name}.log"
        return Node(name, [*self._network.inside(name), *command], log, self._guard, {"PYTHONPATH": str(SOURCE)})

    @abstractmethod
    def _quorum_command(self, name: str) -> list[str]: ...

    @abstractmethod
    def _broker_command(self, name: str) -> list[str]: ...

    @abstractmethod
    def controller(self) -> str:
        """The node that decides who leads."""

    def wait_whole(self) -> None:
        """Until all that runs is known to every broker and all replicas are in sync; AssertionError with what was missing."""

        def missing() -> str:
            found = self._missing()
            dead = [node.name for node in self.nodes.values() if found and not node.is_running]
            assert not dead, f"{dead} ended: {self.nodes[dead[0]].log[-3000:]}"
            return found

        wait_while(missing, f"{self.name} is not whole", within_s=START_TIMEOUT_S, look_again_s=POLL_S)

    def _missing(self) -> str:
        for name in self.brokers:
            try:
                seen = wire.metadata(self.address(name))
            except OSError as error:
                return f"{name} does not answer: {error}"
            if len(seen.brokers) < len(self.brokers):
                return f"{name} knows {sorted(seen.brokers)}"
            behind = [f"{p.topic}-{p.index} {p.isr}" for p in seen.partitions if len(p.isr) < len(p.replicas) or p.leader < 0]
            if behind:
                return f"by {name} {behind}"
        return ""

    def leader_of_most(self, topic: str) -> str:
        """The broker that leads most partitions of a topic, and of several the one that is not the controller."""
        leaders = [p.leader for p in wire.metadata_of_any(self.addresses).partitions if p.topic == topic and p.leader >= 0]
        assert leaders, f"nobody leads {topic}"
        controller = self.controller()
        return self.brokers[
            max(sorted(set(leaders)), key=lambda each: (leaders.count(each), self.brokers[each - 1] != controller)) - 1
        ]

    def stop(self) -> None:
        for node in self.nodes.values():
            node.kill()


class BarnabasCluster(Cluster):
    name = "barnabas"

    def _quorum_command(self, name: str) -> list[str]:
        data = self._folder / name
        data.mkdir(exist_ok=True)
        (data / "myid").write_text(str(self.quorum.index(name) + 1))
        servers = {
            f"server.{n}": f"{self._network.address(each)}:{PEER_PORT}:{VOTE_PORT}" for n, each in enumerate(self.quorum, start=1)
        }
        own = {"dataDir": str(data), "clientPort": str(QUORUM_PORT), "clientPortAddress": self._network.address(name)}
        file = self._folder / f"{name}.cfg"
        file.write_text("".join(f"{key}={value}\n" for key, value in {**ZOOKEEPER, **servers, **own}.items()))
        properties = [f"-D{key}={value}" for key, value in PROPERTIES.items()]
        return [java_of_zookeeper(), *JVM, *properties, "-cp", f"{JAR}:{LOGGER}", MAIN, str(file)]

    def _broker_command(self, name: str) -> list[str]:
        quorum = ",".join(f"{self._network.address(each)}:{QUORUM_PORT}" for each in self.quorum)
        command = [sys.executable, "-m", "barnabas.cli", "broker", "start", "--broker-id", str(self.brokers.index(name) + 1)]
        command += ["--metadata", f"zookeeper://{quorum}/barnabas", "--data-dir", str(self._folder / name)]
        command += ["--listeners", f"PLAINTEXT://{self._network.address(name)}:{BROKER_PORT}"]
        return command + [f"--config={key}={value}" for key, value in SETTINGS.items()]

    def controller(self) -> str:
        return self.brokers[wire.metadata_of_any(self.addresses, with_controller=True).controller_id - 1]


class KafkaCluster(Cluster):
    """Apache Kafka's."""

    name = "Apache Kafka"
    HEAP = "512m"

    def _quorum_command(self, name: str) -> list[str]:
        listener = f"CONTROLLER://{self._network.address(name)}:{QUORUM_PORT}"
        roles = {"process.roles": "controller", "node.id": str(100 + self.quorum.index(name)), "listeners": listener}
        return self._command(name, roles)

    def _broker_command(self, name: str) -> list[str]:
        listener = f"PLAINTEXT://{self._network.address(name)}:{BROKER_PORT}"
        roles = {"process.roles": "broker", "node.id": str(self.brokers.index(name) + 1), "listeners": listener,
                 "advertised.listeners": listener}  # fmt: skip
        return self._command(name, roles)

    def _command(self, name: str, properties: dict[str, str]) -> list[str]:
        voters = ",".join(f"{100 + n}@{self._network.address(each)}:{QUORUM_PORT}" for n, each in enumerate(self.quorum))
        common = {
            "controller.quorum.voters": voters,
            "controller.listener.names": "CONTROLLER",
            "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
            "log.dirs": str(self._folder / name),
        }
        file = self._folder / f"{name}.properties"
        file.write_text("".join(f"{key}={value}\n" for key, value in {**SETTINGS, **common, **properties}.items()))
        run_tool("kafka-storage", "format", "-t", CLUSTER_ID, "-c", str(file), "--ignore-formatted")
        return java("kafka.Kafka", str(file), jvm=(f"-Xmx{self.HEAP}", "-XX:+UseG1GC", "-XX:MaxGCPauseMillis=20"))

    def controller(self) -> str:
        for name in self.quorum:
            try:
                return self.quorum[wire.active_controller((self._network.address(name), QUORUM_PORT)) - 100]
            except OSError:
                continue
        raise AssertionError("no controller says who is active")
