"""Our data source beside Spark's own connector: the same topic, Spark version and machine, taking turns; rows a second and the ratio.

    python bench/spark/compare.py                              # on a broker of ours, then on Apache Kafka
    python bench/spark/compare.py --server kafka --rounds 5
    python bench/spark/compare.py --bootstrap 127.0.0.1:9092   # on a server that runs
    python bench/spark/compare.py --rounds 5 --write           # into docs/spark.md, too

Fills a topic if it is not there (5 million records of 100 B in 2 partitions), fetches the connector's jars with Maven and the PySpark they
belong to with pip, both into `.cache/` of the checkout. Both sources run in that PySpark; what ours needs besides, it finds in the
environment that runs this.

The connector is the newest on Maven Central, 4.2.0. Its token provider is not there, nor is that of any version after 4.0.0; the one of
4.0.0 serves, since nothing asks it for a token.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "src"))

from bench.spark.page import measured, table, write_block

from barnabas.client.blocking import BlockingClient
from barnabas.client.results import LATEST, NewTopic
from barnabas.pipelines.interpreter import write_command

ROOT = Path(__file__).resolve().parents[2]
CACHE = ROOT / ".cache" / "spark-connector"
CONNECTOR = "4.2.0"
PARTS = {
    "org.apache.spark:spark-sql-kafka-0-10_2.13": CONNECTOR,
    "org.apache.spark:spark-token-provider-kafka-0-10_2.13": "4.0.0",
    "org.apache.kafka:kafka-clients": "3.9.2",
    "org.apache.commons:commons-pool2": "2.13.1",
}
SERVERS = {"barnabas": "from a broker of ours", "kafka": "from Apache Kafka 4.3", "given": "from the server"}
WAYS = ("batch, aggregated", "batch, noop", "stream, one batch", "stream, limited", "stream, small triggers")
TARGETS = {"batch, aggregated": 3.0, "stream, one batch": 1.5, "stream, small triggers": 1.0}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bootstrap", help="host:port of a running server")
    parser.add_argument("--server", choices=["barnabas", "kafka", "both"], default="both", help="what to start where none runs")
    parser.add_argument("--records", type=int, default=5_000_000)
    parser.add_argument("--size", type=int, default=100)
    parser.add_argument("--partitions", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", choices=["barnabas", "kafka"])
    parser.add_argument("--way", action="append", choices=WAYS, help="measure this only; repeatable")
    parser.add_argument("--write", action="store_true", help="the result into docs/spark.md")
    arguments = parser.parse_args()
    kinds = ["given"] if arguments.bootstrap else ["barnabas", "kafka"] if arguments.server == "both" else [arguments.server]
    told = [measured(arguments.rounds)]
    for kind in kinds:
        told += ["", *compare(kind, arguments)]
    print("\n".join(told))
    if arguments.write:
        write_block("bench/spark/compare.py", told)


def compare(kind: str, arguments: argparse.Namespace) -> list[str]:
    with server(kind, arguments.bootstrap) as bootstrap:
        topic = f"spark-bench-{arguments.records}-{arguments.size}-{arguments.partitions}"
        fill(bootstrap, topic, arguments)
        common = [
            "--bootstrap",
            bootstrap,
            "--topic",
            topic,
            "--rows",
            str(arguments.records),
            "--partitions",
            str(arguments.partitions),
        ]
        with ExitStack() as stack:
            names = [name for name in ("barnabas", "kafka") if arguments.only in (None, name)]
            sources = {name: stack.enter_context(source(name, common)) for name in names}
            times, costs = take_turns(sources, arguments.rounds, arguments.way or WAYS)
    return report(SERVERS[kind], times, costs)


@contextmanager
def server(kind: str, bootstrap: str) -> Iterator[str]:
    if kind == "given":
        yield bootstrap
        return
    from bench.servers import Barnabas, Kafka

    with Barnabas() if kind == "barnabas" else Kafka() as started:
        host, port = started.address
        yield f"{host}:{port}"


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
    jars = ["--jars", str(connector_jars())] if name == "kafka" else []
    with spark_session(name, "measure.py", ["--format", name, *common, *jars]) as process:
        yield process


@contextmanager
def spark_session(name: str, script: str, arguments: Sequence[str]) -> Iterator[subprocess.Popen[str]]:
    """A script of this folder in the connector's PySpark, which is ready; it ends when its input does."""
    command = [str(connector_python()), str(Path(__file__).with_name(script)), *arguments]
    environment = dict(os.environ, PYTHONPATH=os.pathsep.join(import_path()))
    print(f"starting {name} ...", file=sys.stderr, flush=True)
    with (
        barnabas_python(connector_python()) as python,
        subprocess.Popen(
            command,
            env={**environment, "PYSPARK_PYTHON": python},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,
        ) as process,
    ):
        ask(process, None)
        yield process
        assert process.stdin is not None
        process.stdin.close()


@contextmanager
def barnabas_python(python: Path | str) -> Iterator[str]:
    """The command `barnabas-python`, which an installation has."""
    with tempfile.TemporaryDirectory() as folder:
        yield write_command(Path(folder), str(python))


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


Rates = dict[str, dict[str, list[float]]]  # by source and way


def take_turns(sources: dict[str, subprocess.Popen[str]], rounds: int, ways: Sequence[str]) -> tuple[Rates, Rates]:
    """Rows a second, and rows for a second of CPU, which a machine with other work on it tells better."""
    times: Rates = {name: {way: [] for way in ways} for name in sources}
    costs: Rates = {name: {way: [] for way in ways} for name in sources}
    for number in range(rounds):
        for way in ways:
            for name, process in sources.items():
                before = session_cpu_seconds(process.pid)
                rate, rows = (float(word) for word in ask(process, way).split())
                spent = session_cpu_seconds(process.pid) - before
                times[name][way].append(rate)
                costs[name][way].append(rows / spent)
                told = f"{rate / 1e6:6.2f} M/s {rows / spent / 1e6:6.2f} M/CPU s"
                print(f"round {number + 1}: {name:<10}{way:<24}{told}", file=sys.stderr, flush=True)
    return times, costs


def session_cpu_seconds(leader: int) -> float:
    """Of all processes that `leader` started, those that have ended too, as far as somebody waited for them."""
    ticks = 0
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):  # it ended just now
            fields = stat.read_text().rpartition(")")[2].split()
            if int(fields[3]) == leader:
                ticks += sum(int(field) for field in fields[11:15])  # user and system, its own and of its ended children
    return ticks / os.sysconf("SC_CLK_TCK")


def import_path() -> list[str]:
    """Our source, and where the connector's PySpark does not have it, what this environment has."""
    own = str(next((CACHE / CONNECTOR / "python" / "lib").glob("python3*/site-packages")))
    return [str(ROOT / "src"), own, sysconfig.get_path("purelib")]


def connector_python() -> Path:
    folder = CACHE / CONNECTOR / "python"
    python = folder / "bin" / "python"
    if not (folder / "complete").exists():
        subprocess.run([sys.executable, "-m", "venv", "--clear", str(folder)], check=True)
        subprocess.run([str(python), "-m", "pip", "install", "--quiet", f"pyspark=={CONNECTOR}"], check=True)
        (folder / "complete").touch()
    return python


def connector_jars() -> Path:
    """The connector's own jars; what else they need, Spark has."""
    jars = CACHE / CONNECTOR / "jars"
    if len(list(jars.glob("*.jar"))) == len(PARTS):
        return jars
    jars.mkdir(parents=True, exist_ok=True)
    exclude = "<exclusions><exclusion><groupId>*</groupId><artifactId>*</artifactId></exclusion></exclusions>"
    parts = ""
    for part, version in PARTS.items():
        group, artifact = part.split(":")
        name = f"<groupId>{group}</groupId><artifactId>{artifact}</artifactId><version>{version}</version>"
        parts += f"<dependency>{name}{exclude}</dependency>"
    pom = CACHE / CONNECTOR / "pom.xml"
    pom.write_text(
        '<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion><groupId>bench</groupId>'
        f"<artifactId>connector</artifactId><version>1</version><dependencies>{parts}</dependencies></project>"
    )
    subprocess.run(["mvn", "-q", "-B", "-f", str(pom), "dependency:copy-dependencies", f"-DoutputDirectory={jars}"], check=True)
    return jars


def report(title: str, times: Rates, costs: Rates) -> list[str]:
    """Medians, and best of the rounds behind them; how many times better ours is, by the clock and by CPU."""
    head = [
        f"{title}: million rows/s, median (best)",
        "`barnabas`",
        "Spark's connector",
        "ratio",
        "to reach",
        "ratio of CPU time",
    ]
    rows = []
    for way in next(iter(times.values())):
        cells = [_cell(times[name][way]) if name in times else "" for name in ("barnabas", "kafka")]
        target = f"{TARGETS[way]:g}" if way in TARGETS else ""
        rows.append([way, *cells, _ratio(times, way), target, _ratio(costs, way)])
    return table(head, rows)


def _cell(rates: list[float]) -> str:
    median, best = (f"{rate / 1e6:.{4 if rate < 1e5 else 2}f}" for rate in (statistics.median(rates), max(rates)))
    return median if len(rates) == 1 else f"{median} ({best})"


def _ratio(rates: Rates, way: str) -> str:
    if len(rates) < 2:
        return ""
    return f"{statistics.median(rates['barnabas'][way]) / statistics.median(rates['kafka'][way]):.2f}"


if __name__ == "__main__":
    main()
