"""Record the answers of Kafka Connect: `python -m tests.differential.connect.record` (`make differential`).

A worker of Kafka Connect runs on a broker of ours, on ports that were free.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from tools.kafka import VERSION, free_ports, java

from barnabas.client.blocking import BlockingClient
from barnabas.client.config import ClientConfig
from barnabas.client.results import NewTopic
from barnabas.testing import Broker
from tests.differential.connect.script import TOPIC, run
from tests.differential.connect.talk import Talk
from tests.differential.connect.transforms import cases
from tests.waiting import wait_until

GOLDEN = Path(__file__).with_name("golden.json")
TRANSFORMED = Path(__file__).with_name("transformed.jsonl")
JVM = ("-Xmx384m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
START_S = 120.0


def make_topic(bootstrap: str) -> None:
    """The topic of the sink."""
    with BlockingClient(ClientConfig.from_options({"bootstrap.servers": bootstrap})) as client:
        client.create_topics([NewTopic(TOPIC, 1)])


@contextmanager
def kafka_connect(bootstrap: str, folder: Path, jars: str = "frameworks") -> Iterator[str]:
    """A worker of Kafka Connect; its URL.

    Args:
        jars: key of `tools.kafka.SETS`.
    """
    (port,) = free_ports(1)
    topics = "".join(
        f"{name}.storage.topic=oracle-{name}\n{name}.storage.replication.factor=1\n" for name in ("config", "offset", "status")
    )
    converter = "org.apache.kafka.connect.json.JsonConverter"
    settings = folder / "worker.properties"
    settings.write_text(
        f"bootstrap.servers={bootstrap}\ngroup.id=oracle\nkey.converter={converter}\nvalue.converter={converter}\n{topics}"
        f"listeners=http://127.0.0.1:{port}\nexactly.once.source.support=enabled\nplugin.discovery=service_load\n"
        "scheduled.rebalance.max.delay.ms=1000\nsession.timeout.ms=6000\nheartbeat.interval.ms=1000\n"
        "offset.storage.partitions=3\nstatus.storage.partitions=2\n"
    )
    command = java("org.apache.kafka.connect.cli.ConnectDistributed", str(settings), jvm=JVM, jars=jars)
    with (folder / "connect.log").open("wb") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log)
    url = f"http://127.0.0.1:{port}"

    def answers() -> bool:
        assert process.poll() is None, (folder / "connect.log").read_text()
        with suppress(OSError), urllib.request.urlopen(f"{url}/connectors", timeout=START_S) as answer:
            return bool(answer.status == 200)
        return False

    try:
        wait_until(answers, "Kafka Connect does not answer", within_s=START_S)
        yield url
    finally:
        process.kill()
        process.wait()


def record_transforms() -> None:
    """Write what Kafka Connect's transforms make of each case."""
    program = str(Path(__file__).with_name("Transforms.java"))
    lines = "\n".join(json.dumps(each) for each in cases())
    done = subprocess.run(java(program, jars="frameworks"), input=lines, capture_output=True, text=True, check=True)
    found = [json.loads(line) for line in done.stdout.splitlines()]
    TRANSFORMED.write_text("\n".join(json.dumps(each, ensure_ascii=False) for each in found) + "\n")
    print(f"connect: {len(found)} records transformed")


def main() -> int:
    """Write the golden files; say what changed."""
    record_transforms()
    before = json.loads(GOLDEN.read_text()) if GOLDEN.exists() else {}
    with tempfile.TemporaryDirectory() as folder, Broker() as broker:
        make_topic(broker.bootstrap_servers)
        with kafka_connect(broker.bootstrap_servers, Path(folder)) as url:
            talk = Talk(url, VERSION)
            run(talk)
    for step in sorted(before.keys() | talk.answers.keys()):
        if before.get(step) != talk.answers.get(step):
            print(f"connect: {step}: was {before.get(step)}, is {talk.answers.get(step)}"[:300])
    GOLDEN.write_text(json.dumps(talk.answers, indent=1, sort_keys=True, ensure_ascii=False) + "\n")
    print(f"connect: {len(talk.answers)} steps")
    return 0


if __name__ == "__main__":
    sys.exit(main())
