"""One pipeline on this process' cores and on a Spark standalone cluster of a master and two workers: the same rows."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pyspark
import pytest
from confluent_kafka import Producer

from barnabas.client.blocking import BlockingClient
from barnabas.client.results import NewTopic
from barnabas.pipelines.decode import RecordDecoder
from barnabas.testing import Broker

pytestmark = [pytest.mark.interop, pytest.mark.timeout(1200)]
ROOT = Path(__file__).resolve().parents[2]
SPARK_CLASS = Path(pyspark.__file__).parent / "bin" / "spark-class"
MINUTES = 40
SETTINGS = ("spark.ui.enabled=false", "spark.driver.host=127.0.0.1", "spark.sql.session.timeZone=UTC")
PATIENCE_S = 300  # three JVMs start, on a machine that may do other things


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class Cluster:
    """A master and two workers of one core each, on loopback."""

    def __init__(self, folder: Path, stack: ExitStack) -> None:
        self.folder = folder
        port, self._web = free_port(), free_port()
        self.url = f"spark://127.0.0.1:{port}"
        self._start(stack, "master", "org.apache.spark.deploy.master.Master", "--port", str(port), "--webui-port", str(self._web))
        for name in ("worker-1", "worker-2"):
            limits = ["--cores", "1", "--memory", "1g", "--work-dir", str(folder / name)]
            self._start(stack, name, "org.apache.spark.deploy.worker.Worker", "--webui-port", "0", *limits, self.url)
        deadline = time.monotonic() + PATIENCE_S
        while self._alive_workers() < 2:
            assert time.monotonic() < deadline, (folder / "worker-1.log").read_text()

    def _start(self, stack: ExitStack, name: str, *command: str) -> None:
        log = stack.enter_context((self.folder / f"{name}.log").open("w"))
        environment = {
            **os.environ,
            "SPARK_DAEMON_MEMORY": "256m",
            "SPARK_DAEMON_JAVA_OPTS": "-XX:+UseSerialGC -XX:TieredStopAtLevel=1",
            "SPARK_LOCAL_IP": "127.0.0.1",
            "PYTHONPATH": f"{ROOT / 'src'}:{ROOT}",
        }
        process = subprocess.Popen(
            [str(SPARK_CLASS), command[0], "--host", "127.0.0.1", *command[1:]], env=environment, stdout=log, stderr=log
        )
        stack.callback(process.wait)
        stack.callback(process.terminate)

    def _alive_workers(self) -> int:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self._web}/json/", timeout=5) as answer:
                return int(json.load(answer)["aliveworkers"])
        except OSError:
            return 0

    def workers_with_tasks(self) -> list[str]:
        """The workers whose executors say that they ran some."""
        logs = {log.relative_to(self.folder).parts[0]: log.read_text() for log in self.folder.glob("worker-*/app-*/*/stderr")}
        return sorted(worker for worker, text in logs.items() if "Running task" in text)


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    with ExitStack() as stack:
        yield Cluster(tmp_path, stack)


def fill(bootstrap: str, topic: str) -> None:
    producer = Producer({"bootstrap.servers": bootstrap})
    for minute in range(MINUTES):
        for sensor in "abcd":
            at = f"2024-05-01T12:{minute:02}:00Z"
            producer.produce(topic, json.dumps({"sensor": sensor, "at": at, "celsius": minute}), sensor)
    assert producer.flush(30) == 0


def rows(client: BlockingClient, topic: str) -> list[Any]:
    batches = RecordDecoder(topic, 0).decode(client.fetch(topic, 0, 0).records)
    return sorted(
        (json.loads(row["value"]) for batch in batches for row in batch.to_pylist()),
        key=lambda row: (row["sensor"], row["start"]),
    )


def run(bootstrap: str, state: Path, master: str, to: str, *conf: str) -> None:
    command = [sys.executable, "-m", "barnabas.cli", "pipeline", "run", "--master", master, "--name", to]
    command += [*(f"--conf={pair}" for pair in (*SETTINGS, *conf))]
    command += [
        str(ROOT / "examples" / "spark" / "late_windows.py"),
        "--",
        "--bootstrap-server",
        bootstrap,
        "--readings",
        "readings",
    ]
    command += ["--to", to, "--checkpoint", str(state / f"checkpoint-{to}")]
    environment = {**os.environ, "PYTHONPATH": f"{ROOT / 'src'}:{ROOT}", "BARNABAS_STATE_DIR": str(state)}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr + (state / "pipelines" / to / "log").read_text()


def test_the_same_pipeline_on_a_cluster(cluster: Cluster, tmp_path: Path) -> None:
    with Broker() as broker, BlockingClient.to(broker.bootstrap_servers) as client:
        client.create_topics([NewTopic("readings", 4, 1), NewTopic("here", 1, 1), NewTopic("there", 1, 1)])
        fill(broker.bootstrap_servers, "readings")
        run(broker.bootstrap_servers, tmp_path, "local[2]", "here")
        wait_for_both = ["spark.scheduler.minRegisteredResourcesRatio=1.0", "spark.cores.max=2", "spark.executor.memory=512m"]
        run(broker.bootstrap_servers, tmp_path, cluster.url, "there", *wait_for_both, "spark.log.level=INFO")
        five_minutes = range(0, MINUTES - 15, 5)  # those that the watermark, ten minutes behind, has passed
        assert [(row["sensor"], row["start"], row["readings"], row["mean"]) for row in rows(client, "here")] == [
            (sensor, f"2024-05-01T12:{minute:02}:00.000Z", 5, minute + 2.0) for sensor in "abcd" for minute in five_minutes
        ]
        assert rows(client, "there") == rows(client, "here")
    assert cluster.workers_with_tasks() == ["worker-1", "worker-2"]
