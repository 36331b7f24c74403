"""Our data source beside Spark's own connector: the same topic on the same machine, taking turns; rows a second and the ratio.

    python bench/spark/compare.py --bootstrap 127.0.0.1:9092

Fills a topic if it is not there (5 million records of 100 B in 2 partitions), fetches the connector's jars with Maven and the PySpark they
belong to with pip, both into `.cache/` of the checkout. Without `--bootstrap` a broker of our own is started.

The connector is the newest whose parts are all on Maven Central: of 4.0.1 to 4.3.0 the token provider is not there.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "src"))

from barnabas.client.blocking import BlockingClient  # noqa: E402
from barnabas.client.results import LATEST, NewTopic  # noqa: E402

CACHE = ROOT / ".cache" / "spark-connector"
CONNECTOR = "4.0.0"
PARTS = {
    "org.apache.spark:spark-sql-kafka-0-10_2.13": CONNECTOR,
    "org.apache.spark:spark-token-provider-kafka-0-10_2.13": CONNECTOR,
    "org.apache.kafka:kafka-clients": "3.9.0",
    "org.apache.commons:commons-pool2": "2.12.0",
}
WAYS = ("batch, aggregated", "batch, noop", "stream, one batch", "stream, limited")
TARGETS = {"batch, aggregated": 2.5, "stream, one batch": 1.3}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bootstrap", help="host:port of a running server")
    parser.add_argument("--records", type=int, default=5_000_000)
    parser.add_argument("--size", type=int, default=100)
    parser.add_argument("--partitions", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", choices=["barnabas", "kafka"])
    arguments = parser.parse_args()
    with server(arguments.bootstrap) as bootstrap:
        topic = f"spark-bench-{arguments.records}-{arguments.size}-{arguments.partitions}"
        fill(bootstrap, topic, arguments)
        common = ["--bootstrap", bootstrap, "--topic", topic, "--rows", str(arguments.records)]
        with ExitStack() as stack:
            names = [name for name in ("barnabas", "kafka") if arguments.only in (None, name)]
            sources = {name: stack.enter_context(source(name, common)) for name in names}
            report(take_turns(sources, arguments.rounds))


@contextmanager
def server(bootstrap: str | None) -> Iterator[str]:
    if bootstrap:
        yield bootstrap
        return
    from barnabas.testing import Broker

    with Broker() as broker:
        yield broker.bootstrap_servers


def fill(bootstrap: str, topic: str, arguments: argparse.Namespace) -> None:
    from confluent_kafka import Producer

    with BlockingClient.to(bootstrap) as client:
        if topic in client.topics_by_name([topic]):
            ends = client.list_offsets({(topic, p): LATEST for p in range(arguments.partitions)})
            if sum(end.offset for end in ends.values()) == arguments.records:
                return
            client.delete_topics([topic])
        client.create_topics([NewTopic(topic, arguments.partitions, 1)])
    print(f"filling {topic} ...", file=sys.stderr, flush=True)
    settings = {
        "bootstrap.servers": bootstrap,
        "linger.ms": 50,
        "batch.size": 1_000_000,
        "queue.buffering.max.messages": 2_000_000,
    }
    producer = Producer({**settings, "delivery.report.only.error": True})
    for i in range(arguments.records):
        value = b"%0*d" % (arguments.size, i)
        while True:
            try:
                producer.produce(topic, value, partition=i % arguments.partitions)
                break
            except BufferError:
                producer.poll(0.1)
    producer.flush()


@contextmanager
def source(name: str, common: list[str]) -> Iterator[subprocess.Popen[str]]:
    """A session that measures what it is told to."""
    command = [sys.executable if name == "barnabas" else str(connector_python()), str(Path(__file__).with_name("measure.py"))]
    command += ["--format", name, *common, *(["--jars", str(connector_jars())] if name == "kafka" else [])]
    environment = dict(os.environ, PYTHONPATH=str(ROOT / "src") if name == "barnabas" else "")
    print(f"starting {name} ...", file=sys.stderr, flush=True)
    with subprocess.Popen(command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        ask(process, None)
        yield process
        assert process.stdin is not None
        process.stdin.close()


def ask(process: subprocess.Popen[str], way: str | None) -> str:
    assert process.stdin is not None
    assert process.stdout is not None
    if way is not None:
        process.stdin.write(way + "\n")
        process.stdin.flush()
    answer = process.stdout.readline().strip()
    if not answer:
        raise SystemExit("a session ended before it answered; its errors are above")
    return answer


def take_turns(sources: dict[str, subprocess.Popen[str]], rounds: int) -> dict[str, dict[str, list[float]]]:
    results: dict[str, dict[str, list[float]]] = {name: {} for name in sources}
    for number in range(rounds):
        for way in WAYS:
            for name, process in sources.items():
                results[name].setdefault(way, []).append(float(ask(process, way)))
                print(f"round {number + 1}: {name:<10}{way:<20}{results[name][way][-1] / 1e6:6.2f}", file=sys.stderr, flush=True)
    return results


def connector_python() -> Path:
    folder = CACHE / "python"
    python = folder / "bin" / "python"
    if not (folder / "complete").exists():
        subprocess.run([sys.executable, "-m", "venv", "--clear", str(folder)], check=True)
        subprocess.run([str(python), "-m", "pip", "install", "--quiet", f"pyspark=={CONNECTOR}"], check=True)
        (folder / "complete").touch()
    return python


def connector_jars() -> Path:
    """The connector's own jars; what else they need, Spark has."""
    jars = CACHE / "jars"
    if len(list(jars.glob("*.jar"))) == len(PARTS):
        return jars
    jars.mkdir(parents=True, exist_ok=True)
    exclude = "<exclusions><exclusion><groupId>*</groupId><artifactId>*</artifactId></exclusion></exclusions>"
    parts = ""
    for part, version in PARTS.items():
        group, artifact = part.split(":")
        name = f"<groupId>{group}</groupId><artifactId>{artifact}</artifactId><version>{version}</version>"
        parts += f"<dependency>{name}{exclude}</dependency>"
    pom = CACHE / "pom.xml"
    pom.write_text(
        '<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion><groupId>bench</groupId>'
        f"<artifactId>connector</artifactId><version>1</version><dependencies>{parts}</dependencies></project>"
    )
    subprocess.run(["mvn", "-q", "-B", "-f", str(pom), "dependency:copy-dependencies", f"-DoutputDirectory={jars}"], check=True)
    return jars


def report(results: dict[str, dict[str, list[float]]]) -> None:
    """Medians, and best of the rounds behind them."""
    print(f"{'million rows/s, median (best)':<32}{'barnabas':>16}{'kafka connector':>18}{'ratio':>8}{'target':>8}")
    for way in next(iter(results.values())):
        cells, medians = [], []
        for name in ("barnabas", "kafka"):
            rates = results.get(name, {}).get(way)
            medians.append(statistics.median(rates) if rates else 0)
            cells.append(f"{medians[-1] / 1e6:.2f} ({max(rates) / 1e6:.2f})" if rates else "-")
        ratio = f"{medians[0] / medians[1]:.2f}" if all(medians) else "-"
        print(f"{way:<32}{cells[0]:>16}{cells[1]:>18}{ratio:>8}{TARGETS.get(way, ''):>8}")


if __name__ == "__main__":
    main()
