"""The project that `barnabas pipeline init` makes, run twice: the second run reads only what is new."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer

from barnabas.client.blocking import BlockingClient
from barnabas.client.results import NewTopic
from barnabas.columnar.decode import RecordDecoder
from barnabas.testing import Broker

pytestmark = [pytest.mark.interop, pytest.mark.timeout(1200)]
ROOT = Path(__file__).resolve().parents[2]


class Shop:
    """A project in a folder, and its broker."""

    def __init__(self, broker: Broker, folder: Path) -> None:
        self.servers, self._folder = broker.bootstrap_servers, folder
        self._environment = {
            **os.environ,
            "PYTHONPATH": str(ROOT / "src"),
            "BARNABAS_STATE_DIR": str(folder / "state"),
            "BARNABAS_BOOTSTRAP": self.servers,
        }

    def barnabas(self, *arguments: str, code: int = 0) -> str:
        line = [sys.executable, "-m", "barnabas.cli", "pipeline", *arguments]
        done = subprocess.run(line, cwd=self._folder, env=self._environment, capture_output=True, text=True, check=False)
        assert done.returncode == code, done.stdout + done.stderr
        return done.stdout + done.stderr

    def run(self, *options: str, code: int = 0) -> str:
        return self.barnabas("run", "shop", "--master", "local[2]", "--conf", "spark.ui.enabled=false", *options, code=code)

    def add(self, text: str) -> None:
        """More in the file of the project, where the sink is known: Spark takes files in any order."""
        with (self._folder / "shop" / "transformations" / "orders.py").open("a") as file:
            file.write(text)

    def order(self, *orders: tuple[str, float]) -> None:
        producer = Producer({"bootstrap.servers": self.servers})
        for customer, amount in orders:
            producer.produce("orders", json.dumps({"customer": customer, "amount": amount}))
        assert producer.flush(30) == 0


ANOTHER_FLOW = """

@dp.append_flow(target="large_orders")
def small() -> DataFrame:
    rows = spark.readStream.table("orders").where("amount < 100")
    return rows.selectExpr("customer as key", "to_json(struct(customer, amount)) as value")
"""
STREAM = """
from pyspark.sql import SparkSession
spark = SparkSession.builder.getOrCreate()
rows = spark.readStream.format("rate").load().writeStream.format("noop").option("checkpointLocation", {checkpoint!r}).start()
print("streams", flush=True)
rows.awaitTermination()
"""


def test_a_script_that_streams_is_stopped(tmp_path: Path) -> None:
    script = tmp_path / "job.py"
    script.write_text(STREAM.format(checkpoint=str(tmp_path / "checkpoint")))
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src"), "BARNABAS_STATE_DIR": str(tmp_path)}
    barnabas = [sys.executable, "-m", "barnabas.cli", "pipeline"]
    log = tmp_path / "pipelines" / "job" / "log"
    with subprocess.Popen([*barnabas, "run", "--conf", "spark.ui.enabled=false", str(script)], env=environment) as process:
        while not log.exists() or "streams" not in log.read_text():
            assert process.poll() is None
        subprocess.run([*barnabas, "stop", "job"], env=environment, check=True)
        assert process.wait(60) == 0
    listed = subprocess.run([*barnabas, "list", "--json"], env=environment, check=True, capture_output=True)
    assert [row["state"] for row in json.loads(listed.stdout)] == ["stopped"]
    assert "Traceback" not in log.read_text()


def values(client: BlockingClient, topic: str) -> list[Any]:
    batches: Sequence[Any] = list(RecordDecoder(topic, 0).decode(client.fetch(topic, 0, 0).records))
    return [json.loads(row["value"]) for batch in batches for row in batch.to_pylist()]


def test_a_second_run_reads_only_what_is_new(tmp_path: Path) -> None:
    with Broker() as broker, BlockingClient.to(broker.bootstrap_servers) as client:
        client.create_topics([NewTopic("orders", 2, 1), NewTopic("large-orders", 1, 1)])
        shop = Shop(broker, tmp_path)
        shop.barnabas("init", "shop")
        shop.order(("k", 150.0), ("m", 20.0))
        told = shop.run()
        assert "Run is COMPLETED." in told
        assert values(client, "large-orders") == [{"customer": "k", "amount": 150.0}]
        shop.order(("m", 500.0))
        shop.add(ANOTHER_FLOW)
        told = shop.run()
        assert "pipeline shop completed" in told
        assert sorted(row["amount"] for row in values(client, "large-orders")) == [20.0, 150.0, 500.0], "two flows share the sink"
        (listed,) = json.loads(shop.barnabas("list", "--json"))
        assert (listed["name"], listed["state"], listed["rows"], listed["lag"], listed["error"]) == (
            "shop",
            "completed",
            1,
            0,
            None,
        )
        group = listed["sources"][0]["group"]
        committed = client.committed_offsets(group, [("orders", 0), ("orders", 1)])
        assert sum(item.offset for item in committed.values()) == 3
        client.delete_topics(["orders"])
        told = shop.run(code=1)
        assert "pipeline shop failed: " in told
        (listed,) = json.loads(shop.barnabas("list", "--json"))
        assert listed["state"] == "failed"
        assert "orders" in listed["error"]
