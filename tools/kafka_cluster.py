"""Several KRaft nodes of Apache Kafka, each broker and controller in one process, as one cluster.

Owns the nodes and their ports. The ports must be known before the first node starts, because each node's settings contain all
of them.

Ugly: like a node, the cluster picks free ports first. If another process takes one before, the node is started again on the
same ports, and fails in the end.

    with KafkaCluster(3, heap="1g") as cluster:
        run_tool("kafka-topics", "--bootstrap-server", cluster.bootstrap, "--list")
"""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from types import TracebackType
from typing import Self

from tools.kafka import KafkaNode, fetch, free_ports


class ClusterNode(KafkaNode):
    """One node of several: its ports are known to the others, and it starts again on the same ports and data after `kill`."""

    start_timeout_s = 600.0  # several JVMs start at once, and none is ready before most of them are

    def __init__(self, node_id: int, ports: tuple[int, int], *, heap: str, config: Mapping[str, str]) -> None:
        super().__init__(heap=heap, config=config)
        self.node_id = node_id
        self._ports = ports

    def _pick_ports(self) -> tuple[int, int]:
        return self._ports

    @property
    def is_running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def kill(self) -> None:
        """End the node with SIGKILL; the data stays."""
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.wait()

    def shut_down(self) -> None:
        """End the node with SIGTERM; it moves its leaderships to other nodes, and the data stays."""
        self._end_process()

    def start_again(self) -> None:
        """Start again after `kill` or `shut_down`, with the same data."""
        self._start_on_free_ports()


class KafkaCluster:
    """`count` nodes with the ids 1 to `count`; internal topics have as many replicas as possible, up to 3."""

    def __init__(self, count: int = 3, *, heap: str = "1g", config: Mapping[str, str] | None = None) -> None:
        ports = free_ports(2 * count)
        voters = ",".join(f"{i + 1}@127.0.0.1:{ports[count + i]}" for i in range(count))
        replicas = str(min(count, 3))
        common = {
            "controller.quorum.voters": voters,
            "offsets.topic.replication.factor": replicas,
            "default.replication.factor": replicas,
            "transaction.state.log.replication.factor": replicas,
            "transaction.state.log.min.isr": str(min(count, 2)),
            "share.coordinator.state.topic.replication.factor": replicas,
            **(config or {}),
        }
        self.nodes = [ClusterNode(i + 1, (ports[i], ports[count + i]), heap=heap, config=common) for i in range(count)]

    @property
    def bootstrap(self) -> str:
        return ",".join(node.bootstrap for node in self.nodes)

    def start(self) -> None:
        """Start all nodes at the same time, because no node is ready before most of them run."""
        fetch()
        try:
            with ThreadPoolExecutor(len(self.nodes)) as threads:
                list(threads.map(ClusterNode.start, self.nodes))
        except BaseException:
            self.stop()
            raise

    def stop(self) -> None:
        """End the processes and remove temporary files."""
        with ThreadPoolExecutor(len(self.nodes)) as threads:
            list(threads.map(ClusterNode.stop, self.nodes))

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.stop()
