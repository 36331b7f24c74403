"""A Spark standalone cluster of a master and two workers: the rows of this process' cores, and speculative attempts that write once."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyspark
import pytest
from confluent_kafka import Producer

from barnabas.client import operations, transactions
from barnabas.client.batches import next_offset
from barnabas.client.blocking import BlockingClient
from barnabas.client.results import LATEST, NewTopic
from barnabas.columnar.decode import RecordDecoder
from barnabas.engine.driver.small_batches import MOST_RECORDS
from barnabas.pipelines import interpreter
from barnabas.testing import Broker
from tests.torture.views.rounds import Torture

pytestmark = [pytest.mark.interop, pytest.mark.timeout(1200)]
ROOT = Path(__file__).resolve().parents[2]
SPARK_CLASS = Path(pyspark.__file__).parent / "bin" / "spark-class"
MINUTES = 40
PATIENCE_S = 300  # three JVMs start slowly on a busy machine
SETTINGS = (
    "spark.ui.enabled=false",
    "spark.driver.host=127.0.0.1",
    "spark.sql.session.timeZone=UTC",
    f"spark.network.timeout={PATIENCE_S}s",
)
BOTH_WORKERS = ("spark.scheduler.minRegisteredResourcesRatio=1.0", "spark.cores.max=2", "spark.executor.memory=512m")


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class Output:
    """The output of a process. A thread reads it line by line, and wakes those that wait for lines."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.lines: list[str] = []
        self._process = process
        self._came = threading.Condition()
        self._thread = threading.Thread(target=self._take)
        self._thread.start()

    def _take(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            with self._came:
                self.lines.append(line)
                self._came.notify_all()

    def wait_for(self, text: str, count: int) -> bool:
        """Whether `count` lines with `text` came in time."""
        with self._came:
            return self._came.wait_for(lambda: sum(text in line for line in self.lines) >= count, PATIENCE_S)

    def close(self) -> None:
        """After the end of the process."""
        self._thread.join()
        self._process.wait()
        assert self._process.stdout is not None
        self._process.stdout.close()


class Cluster:
    """A master and two workers of one core each, on two addresses of loopback: Spark makes no second attempt on the first one's host."""

    def __init__(self, folder: Path, stack: ExitStack) -> None:
        self.folder = folder
        port = free_port()
        self.url = f"spark://127.0.0.1:{port}"
        ports = ["--port", str(port), "--webui-port", "0"]
        master = self._start(stack, "master", "127.0.0.1", "org.apache.spark.deploy.master.Master", *ports)
        for name, host in (("worker-1", "127.0.0.1"), ("worker-2", "127.0.0.2")):
            limits = ["--cores", "1", "--memory", "1g", "--work-dir", str(folder / name)]
            self._start(stack, name, host, "org.apache.spark.deploy.worker.Worker", "--webui-port", "0", *limits, self.url)
        assert master.wait_for("Registering worker", 2), "".join(master.lines)

    def _start(self, stack: ExitStack, name: str, host: str, *command: str) -> Output:
        environment = {
            **os.environ,
            "SPARK_DAEMON_MEMORY": "256m",
            "SPARK_DAEMON_JAVA_OPTS": f"-XX:+UseSerialGC -XX:TieredStopAtLevel=1 -Dspark.worker.timeout={PATIENCE_S}",
            "SPARK_LOCAL_IP": host,
            "PYTHONPATH": f"{ROOT / 'src'}:{ROOT}",
        }
        line = [str(SPARK_CLASS), command[0], "--host", host, *command[1:]]
        process = subprocess.Popen(line, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        output = Output(process)
        stack.callback(output.close)
        stack.callback(process.terminate)
        return output

    def applications(self) -> set[str]:
        """The names of those that ran here."""
        return {folder.name for folder in self.folder.glob("worker-*/app-*")}

    def workers_with_tasks(self, application: str) -> list[str]:
        """The workers whose executors say that they ran some."""
        logs = {
            log.relative_to(self.folder).parts[0]: log.read_text() for log in self.folder.glob(f"worker-*/{application}/*/stderr")
        }
        return sorted(worker for worker, text in logs.items() if "Running task" in text)


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with ExitStack() as stack:
        yield Cluster(tmp_path_factory.mktemp("cluster"), stack)


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


def run(state: Path, master: str, name: str, conf: Sequence[str], script: Path, *arguments: str) -> None:
    command = [sys.executable, "-m", "barnabas.cli", "pipeline", "run", "--master", master, "--name", name]
    command += [*(f"--conf={pair}" for pair in (*SETTINGS, *conf)), str(script), "--", *arguments]
    environment = {**os.environ, "PYTHONPATH": f"{ROOT / 'src'}:{ROOT}", "BARNABAS_STATE_DIR": str(state)}
    environment["PYSPARK_PYTHON"] = interpreter.write_command(state)
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr + (state / "pipelines" / name / "log").read_text()


def make_windows(bootstrap: str, state: Path, master: str, to: str, *conf: str) -> None:
    topics = ["--bootstrap-server", bootstrap, "--readings", "readings", "--to", to]
    script = ROOT / "examples" / "spark" / "late_windows.py"
    run(state, master, to, conf, script, *topics, "--checkpoint", str(state / f"checkpoint-{to}"))


def test_the_same_pipeline_on_a_cluster(cluster: Cluster, tmp_path: Path) -> None:
    with Broker() as broker, BlockingClient.to(broker.bootstrap_servers) as client:
        client.create_topics([NewTopic("readings", 4, 1), NewTopic("here", 1, 1), NewTopic("there", 1, 1)])
        fill(broker.bootstrap_servers, "readings")
        before = cluster.applications()
        make_windows(broker.bootstrap_servers, tmp_path, "local[2]", "here")
        make_windows(broker.bootstrap_servers, tmp_path, cluster.url, "there", *BOTH_WORKERS, "spark.log.level=INFO")
        five_minutes = range(0, MINUTES - 15, 5)  # the watermark has passed these windows; it is ten minutes behind
        assert [(row["sensor"], row["start"], row["readings"], row["mean"]) for row in rows(client, "here")] == [
            (sensor, f"2024-05-01T12:{minute:02}:00.000Z", 5, minute + 2.0) for sensor in "abcd" for minute in five_minutes
        ]
        assert rows(client, "there") == rows(client, "here")
    (application,) = cluster.applications() - before
    assert cluster.workers_with_tasks(application) == ["worker-1", "worker-2"]


STUCK = """
import signal, sys
from pathlib import Path
import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import SparkSession

bootstrap, seen, checkpoint = sys.argv[1:]
spark = SparkSession.builder.getOrCreate()

def expand(batches):
    from barnabas.client.blocking import BlockingClient
    attempt = TaskContext.get().attemptNumber()
    for row in (row for batch in batches for row in batch.to_pylist()):
        number = int(row["value"])
        is_slow = number == 3  # of the first micro-batch
        Path(seen, f"{number}-{attempt}").touch()
        if is_slow and attempt > 0:  # the other one has written something by now
            with BlockingClient.to(bootstrap) as client:
                while not client.fetch("slow", 0, 0).records:
                    pass  # an answer without records comes after half a second
        for first in range(0, 9_000 if is_slow else 1_000, 1_000):
            values = [f"{number} {i}".ljust(1_000) for i in range(first, first + 1_000)]
            topics = ["slow" if is_slow else "out"] * len(values)
            yield pa.RecordBatch.from_arrays([pa.array(values), pa.array(topics)], ["value", "topic"])
            if is_slow and attempt == 0 and first == 7_000:
                signal.pause()  # until Spark kills it

records = (
    spark.readStream.format("barnabas").option("kafka.bootstrap.servers", bootstrap).option("subscribe", "in")
    .option("startingOffsets", "earliest").option("maxOffsetsPerTrigger", 4).load()
)
writer = (
    records.selectExpr("cast(value as string) as value").mapInArrow(expand, "value string, topic string")
    .writeStream.format("barnabas").option("kafka.bootstrap.servers", bootstrap).option("checkpointLocation", checkpoint)
    .option("sinkName", "speculative")
)
writer.trigger(availableNow=True).start().awaitTermination()
"""
SPECULATION = (
    "spark.speculation=true",
    "spark.speculation.interval=100ms",
    "spark.speculation.minTaskRuntime=100ms",
    "spark.speculation.quantile=0.5",
    "spark.locality.wait=0s",
    "spark.sql.execution.arrow.maxRecordsPerBatch=500",  # the slow attempt sends its first rows before it stops
)


def numbers(client: BlockingClient, topic: str, *, committed: bool) -> list[str]:
    """The values that a reader of the topic's only partition finds."""
    found, offset, decoder = [], 0, RecordDecoder(topic, 0)
    config = replace(client.config, read_committed=committed)
    end = client.list_offsets({(topic, 0): LATEST})[topic, 0].offset
    while offset < end:
        answer = client.run(operations.fetch(config, client.cluster, topic, 0, offset))
        batches = decoder.decode(answer.records, offset, end, answer.aborted)
        found += [(value or b"").decode().rstrip() for batch in batches for value in batch.column("value").to_pylist()]
        offset = next_offset(answer.records, offset)
    return found


def test_speculative_attempts_write_exactly_once(cluster: Cluster, tmp_path: Path) -> None:
    script, seen = tmp_path / "stuck.py", tmp_path / "seen"
    script.write_text(STUCK)
    seen.mkdir()
    with Broker({"transaction.two.phase.commit.enable": True}) as broker, BlockingClient.to(broker.bootstrap_servers) as client:
        client.create_topics([NewTopic("in", 4, 1), NewTopic("out", 1, 1), NewTopic("slow", 1, 1)])
        producer = Producer({"bootstrap.servers": broker.bootstrap_servers})
        for number in range(8):
            producer.produce("in", str(number), partition=number % 4)
        assert producer.flush(30) == 0
        where = broker.bootstrap_servers, str(seen), str(tmp_path / "checkpoint")
        run(tmp_path, cluster.url, "stuck", (*BOTH_WORKERS, *SPECULATION), script, *where)
        assert {"3-0", "3-1"} < {path.name for path in seen.iterdir()}
        rows = {number: [f"{number} {i}" for i in range(9_000 if number == 3 else 1_000)] for number in range(8)}
        others = sorted(row for number in rows if number != 3 for row in rows[number])
        assert sorted(numbers(client, "out", committed=True)) == others
        assert sorted(numbers(client, "slow", committed=True)) == sorted(rows[3])
        assert len(numbers(client, "slow", committed=False)) > len(rows[3])  # the sink aborted the rows of the slow attempt
        assert client.run(transactions.list_transactions(client.config, client.cluster, ["Ongoing"])) == {}


def test_views_run_on_a_cluster(cluster: Cluster, tmp_path: Path) -> None:
    before = cluster.applications()
    with Torture(tmp_path, seed=5, master=cluster.url, conf=[*SETTINGS, *BOTH_WORKERS]) as torture:
        torture.take_backlog(3 * MOST_RECORDS)  # fewer are read by the driver itself
        for number, kind in enumerate(("nothing", "driver")):
            torture.round(number, kind)
    ran = cluster.applications() - before
    assert len(ran) == 2, "the driver was killed once"
    assert {worker for each in ran for worker in cluster.workers_with_tasks(each)} == {"worker-1", "worker-2"}
