"""Apache Kafka 3.9, the last release with every version of the protocol, as the oracle for versions that Kafka 4 dropped.

A node has its metadata itself (KRaft), or in a ZooKeeper that starts and stops with it. OffsetCommit and OffsetFetch 0 work
only with ZooKeeper, because they store offsets there.

    with Kafka3Node(heap="512m") as node: ...
    with Kafka3OnZooKeeper(heap="512m") as node: ...
"""

from __future__ import annotations

import subprocess
from pathlib import Path

from barnabas.testing.children import Child
from tools.kafka import LAST_WITH_ALL, KafkaNode, java


class Kafka3Node(KafkaNode):
    """Like `KafkaNode`, with Kafka 3.9."""

    jars = LAST_WITH_ALL

    def _properties(self, port: int, controller_port: int) -> dict[str, str]:
        given = super()._properties(port, controller_port)
        return {key: value for key, value in given.items() if not key.startswith("share.coordinator.")}


class Kafka3OnZooKeeper(Kafka3Node):
    """A broker of Kafka 3.9 with its own ZooKeeper."""

    _zookeeper: Child[bytes] | None = None

    def _format(self, properties: Path) -> None:
        """Brokers on ZooKeeper format their folders themselves."""

    def _properties(self, port: int, controller_port: int) -> dict[str, str]:
        self._start_zookeeper(controller_port)
        listener = f"PLAINTEXT://127.0.0.1:{port}"
        given = super()._properties(port, controller_port)
        kept = {key: value for key, value in given.items() if key not in ("process.roles", "node.id") and "controller" not in key}
        return kept | {
            "broker.id": str(self.node_id),
            "zookeeper.connect": f"127.0.0.1:{controller_port}",
            "zookeeper.connection.timeout.ms": "60000",
            "listeners": listener,
            "advertised.listeners": listener,
            "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT",
        }

    def _start_zookeeper(self, port: int) -> None:
        assert self._scratch is not None
        self._end_zookeeper()
        folder = Path(self._scratch.name)
        config = folder / "zoo.cfg"
        config.write_text(
            f"dataDir={folder / 'zookeeper'}\nclientPort={port}\nclientPortAddress=127.0.0.1\nadmin.enableServer=false\ntickTime=2000\n"
        )
        command = java("org.apache.zookeeper.server.ZooKeeperServerMain", str(config), jvm=("-Xmx128m",), jars=self.jars)
        with (folder / "zookeeper.log").open("ab") as log:
            self._zookeeper = Child(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)

    def _end_process(self) -> None:
        super()._end_process()
        self._end_zookeeper()

    def _end_zookeeper(self) -> None:
        process, self._zookeeper = self._zookeeper, None
        if process is not None:
            process.terminate()
            process.wait()
