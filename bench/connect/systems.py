"""Workers that are measured: ours with its engine, and one of Kafka Connect, each on a broker of ours."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import urllib.request
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Self

from tools.kafka import DEBEZIUM_JDBC_VERSION, DEBEZIUM_VERSION, ICEBERG_VERSION, free_ports, java

from bench.peers.process import OwnProcess, Process, program
from bench.registry.systems import HOST, SOURCE

STRINGS = "org.apache.kafka.connect.storage.StringConverter"
JVM = ("-Xmx2g", "-Xms256m")  # as Kafka's own script has it
MASTER = "local[2]"
JAVA = Path(__file__).parent / "java"


class Worker(OwnProcess):
    """One worker with its REST interface."""

    name = ""

    def __init__(self, bootstrap: str) -> None:
        super().__init__()
        self.bootstrap, (self.port,) = bootstrap, free_ports(1)

    def command(self) -> list[str]:
        """Of the process, in `self.process.folder`."""
        raise NotImplementedError

    def __enter__(self) -> Self:
        self._running = Process(self.name.replace(" ", "-"))
        self.ready_after_s = self._running.start(self.command(), self._answers, {"PYTHONPATH": str(SOURCE)})
        return self

    def _answers(self) -> bool:
        with suppress(OSError):
            return isinstance(self.call("GET", "/connectors"), list)
        return False

    def call(self, method: str, path: str, body: Mapping[str, Any] | None = None) -> Any:
        """A request to the REST interface. Raises OSError."""
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(
            f"http://{HOST}:{self.port}{path}", data, {"Content-Type": "application/json"}, method=method
        )  # fmt: skip
        with urllib.request.urlopen(request, timeout=60) as answer:
            text = answer.read()
        return json.loads(text) if text else None

    def connect(self, name: str, config: Mapping[str, str]) -> None:
        """Create a connector."""
        self.call("PUT", f"/connectors/{name}/config", config)


class Ours(Worker):
    """`barnabas services start` with Connect and the engine."""

    name = "barnabas"

    def command(self) -> list[str]:
        return [
            sys.executable, "-m", "barnabas.cli", "services", "start", "--bootstrap-server", self.bootstrap, "--services",
            "connect,engine", "--connect-listener", f"http://{HOST}:{self.port}", "--engine-listener", f"http://{HOST}:0",
            "-X", f"engine.data.dir={self.process.folder / 'engine'}", "-X", f"engine.spark.master={MASTER}",
            "-X", f"key.converter={STRINGS}", "-X", f"value.converter={STRINGS}",
        ]  # fmt: skip


class KafkaConnect(Worker):
    """`connect-distributed` of Apache Kafka."""

    name = "Kafka Connect"
    jars = "frameworks"  # key of `tools.kafka.SETS`
    settings = "exactly.once.source.support=enabled\n"

    def command(self) -> list[str]:
        topics = "".join(
            f"{name}.storage.topic=kafka-{name}\n{name}.storage.replication.factor=1\n" for name in ("config", "offset", "status")
        )
        settings = self.process.folder / "worker.properties"
        settings.write_text(
            f"bootstrap.servers={self.bootstrap}\ngroup.id=kafka-workers\nkey.converter={STRINGS}\nvalue.converter={STRINGS}\n{topics}"
            f"listeners=http://{HOST}:{self.port}\nplugin.discovery=service_load\n{self.settings}"
        )
        return java("org.apache.kafka.connect.cli.ConnectDistributed", str(settings), jvm=JVM, jars=self.jars)


class Debezium(KafkaConnect):
    """The same with the connectors of Debezium, whose settings may be those of a producer too."""

    name = "Debezium"
    jars = f"debezium-{DEBEZIUM_VERSION}"
    settings = f"{KafkaConnect.settings}connector.client.config.override.policy=All\n"


class DebeziumJdbc(KafkaConnect):
    """Kafka Connect with Debezium's sink of JDBC. It commits offsets often, because the bench waits for them."""

    name = "Debezium's sink"
    jars = f"debezium-jdbc-{DEBEZIUM_JDBC_VERSION}"
    settings = "connector.client.config.override.policy=All\noffset.flush.interval.ms=250\n"

    def command(self) -> list[str]:
        java_, *options, names, main, settings = super().command()
        compiler = program("javac", "openjdk-17-jdk-headless")
        classes = self.process.folder / "classes"
        subprocess.run([compiler, "-d", str(classes), *map(str, JAVA.glob("*.java"))], check=True)
        return [java_, *options, f"{names}{os.pathsep}{classes}", main, settings]


class ApacheIceberg(DebeziumJdbc):
    """Kafka Connect with the sink of Apache Iceberg."""

    name = "Iceberg's sink"
    jars = f"iceberg-{ICEBERG_VERSION}"


WORKERS: tuple[type[Worker], ...] = (Ours, KafkaConnect)
