"""The barnabas data source and Spark's own connector, in turns on the same topic, Spark version and machine; rows a second and
the ratio.

    python bench/spark/compare.py                              # on a barnabas broker, then on Apache Kafka
    python bench/spark/compare.py --server kafka --rounds 5
    python bench/spark/compare.py --bootstrap 127.0.0.1:9092   # on a running server
    python bench/spark/compare.py --keep                       # writes bench/results and docs/spark.md

If the topic is missing, it is filled with 5 million records of 100 B in 2 partitions. Maven fetches the connector's jars, and pip fetches
the PySpark that they belong to, both into `.cache/` of the checkout. All sources run in that PySpark. The barnabas source finds
its libraries in the environment that runs this program. A third source in Python reads nothing: its rate is the maximum in
Spark for a source in Python. Two warm-up rounds come before the counted ones.

The connector is the newest on Maven Central, 4.2.0. Its token provider is missing there, and so is that of every version after 4.0.0. The
provider of 4.0.0 is enough, because no code asks it for a token.
"""

from __future__ import annotations

import argparse
import os
import shlex
import signal
import statistics
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "src"))

from bench.spark import page
from bench.spark.page import CONNECTOR, NOTHING
from bench.spark.session import OtherWork, Watched

from barnabas.client.blocking import BlockingClient
from barnabas.client.results import LATEST, NewTopic
from barnabas.pipelines.interpreter import write_command
from barnabas.testing.children import Child

ROOT = Path(__file__).resolve().parents[2]
CACHE = ROOT / ".cache" / "spark-connector"
VERSION = "4.2.0"  # of Spark's Kafka connector
PARTS = {
    "org.apache.spark:spark-sql-kafka-0-10_2.13": VERSION,
    "org.apache.spark:spark-token-provider-kafka-0-10_2.13": "4.0.0",
    "org.apache.kafka:kafka-clients": "3.9.2",
    "org.apache.commons:commons-pool2": "2.13.1",
}
SERVERS = {"barnabas": "from a broker of ours", "kafka": "from Apache Kafka 4.3", "given": "from the server"}
WAYS = ("batch, aggregated", "batch, noop", "stream, one batch", "stream, limited", "stream, small triggers")
WARM_UP = 2  # rounds that do not count, because the JVM still compiles
TARGET, TARGETS = 1.5, {"batch, aggregated": 3.0}
NAMES = {"barnabas": "`barnabas`", "kafka": CONNECTOR, "nothing": NOTHING}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bootstrap", help="host:port of a running server")
    parser.add_argument("--server", choices=["barnabas", "kafka", "both"], default="both", help="what to start where none runs")
    parser.add_argument("--records", type=int, default=5_000_000)
    parser.add_argument("--size", type=int, default=100)
    parser.add_argument("--partitions", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--only", choices=list(NAMES))
    parser.add_argument("--way", action="append", choices=WAYS, help="measure this only; repeatable")
    parser.add_argument("--keep", action="store_true", help="the result, and put it into docs/spark.md")
    arguments = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))  # runs the cleanup of everything that was started
    kinds = ["given"] if arguments.bootstrap else ["barnabas", "kafka"] if arguments.server == "both" else [arguments.server]
    compared = [compare(kind, arguments) for kind in kinds]
    print("\n".join(page.rendered(table) for table, _ in compared))
    if arguments.keep:
        tables, shares = zip(*compared, strict=True)
        command = shlex.join(["python", page.SOURCE, *sys.argv[1:]])
        page.keep(page.SOURCE, command, arguments.rounds, statistics.median(shares), tables)
        page.write_blocks()


def compare(kind: str, arguments: argparse.Namespace) -> tuple[page.Table, float]:
    """The table of a server, and the share of the machine's CPU that other processes used."""
    with server(kind, arguments.bootstrap) as (bootstrap, pid):
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
            "--size",
            str(arguments.size),
        ]
        with ExitStack() as stack:
            names = [name for name in NAMES if arguments.only in (None, name)]
            sources = {name: stack.enter_context(source(name, common)) for name in names}
            others = OtherWork([process.pid for process in sources.values()], pid)
            ways = take_turns(sources, arguments.rounds, arguments.way or WAYS)
            return page.Table(SERVERS[kind], ways), others.share()


@contextmanager
def server(kind: str, bootstrap: str) -> Iterator[tuple[str, int | None]]:
    """The address of a server, and its process id if this program started it."""
    if kind == "given":
        yield bootstrap, None
        return
    from bench.servers import Barnabas, Kafka

    with Barnabas() if kind == "barnabas" else Kafka() as started:
        host, port = started.address
        yield f"{host}:{port}", started.pid


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
    """A session that measures the ways that it gets on standard input."""
    jars = ["--jars", str(connector_jars())] if name == "kafka" else []
    with spark_session(name, "measure.py", ["--format", name, *common, *jars]) as process:
        yield process


@contextmanager
def spark_session(name: str, script: str, arguments: Sequence[str]) -> Iterator[subprocess.Popen[str]]:
    """A script of this folder in the connector's PySpark, after it is ready; it ends at the end of its standard input."""
    command = [str(connector_python()), str(Path(__file__).with_name(script)), *arguments]
    environment = dict(os.environ, PYTHONPATH=os.pathsep.join(import_path()))
    print(f"starting {name} ...", file=sys.stderr, flush=True)
    with (
        barnabas_python(connector_python()) as python,
        Child[str](
            command,
            env={**environment, "PYSPARK_PYTHON": python},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        ) as process,
    ):
        ask(process, None)
        yield process
        assert process.stdin is not None
        process.stdin.close()


@contextmanager
def barnabas_python(python: Path | str) -> Iterator[str]:
    """The command `barnabas-python`, as in an installation."""
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


def take_turns(sources: dict[str, subprocess.Popen[str]], rounds: int, ways: Sequence[str]) -> list[page.Way]:
    """Measure the sources in turns. The result also has CPU time, because it is more exact on a machine with other work. Rounds
    up to number 0 are warm-ups."""
    found = {way: page.Way(way, TARGETS.get(way, TARGET), {NAMES[name]: [] for name in sources}) for way in ways}
    for number in range(1 - WARM_UP, rounds + 1):
        for way in ways:
            for name, process in sources.items() if number % 2 == 0 else reversed(sources.items()):
                with Watched(process.pid) as watched:
                    rate, rows = (float(word) for word in ask(process, way).split())
                told = figures(rate, rows, watched)
                if number > 0:
                    found[way].runs[NAMES[name]].append(told)
                print(f"round {number}: {name:<10}{way:<24}{line_of(told)}", file=sys.stderr, flush=True)
    return list(found.values())


def figures(rows_per_s: float, rows: float, watched: Watched) -> page.Figures:
    return {"rows_per_s": rows_per_s, "cpu_s_per_million": watched.cpu_s / rows * 1e6, "peak_mb": watched.peak_mb}


def line_of(told: page.Figures) -> str:
    return f"{told['rows_per_s'] / 1e6:6.2f} M/s {told['cpu_s_per_million']:6.2f} CPU s/M {told['peak_mb']:6.0f} MB"


def import_path() -> list[str]:
    """The import path for the barnabas source, and for libraries that only this environment has."""
    own = str(next((CACHE / VERSION / "python" / "lib").glob("python3*/site-packages")))
    return [str(ROOT / "src"), str(ROOT), own, sysconfig.get_path("purelib")]


def connector_python() -> Path:
    folder = CACHE / VERSION / "python"
    python = folder / "bin" / "python"
    if not (folder / "complete").exists():
        subprocess.run([sys.executable, "-m", "venv", "--clear", str(folder)], check=True)
        subprocess.run([str(python), "-m", "pip", "install", "--quiet", f"pyspark=={VERSION}"], check=True)
        (folder / "complete").touch()
    return python


def connector_jars() -> Path:
    """The connector's own jars. Spark has the others that they need."""
    jars = CACHE / VERSION / "jars"
    if len(list(jars.glob("*.jar"))) == len(PARTS):
        return jars
    jars.mkdir(parents=True, exist_ok=True)
    exclude = "<exclusions><exclusion><groupId>*</groupId><artifactId>*</artifactId></exclusion></exclusions>"
    parts = ""
    for part, version in PARTS.items():
        group, artifact = part.split(":")
        name = f"<groupId>{group}</groupId><artifactId>{artifact}</artifactId><version>{version}</version>"
        parts += f"<dependency>{name}{exclude}</dependency>"
    pom = CACHE / VERSION / "pom.xml"
    pom.write_text(
        '<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion><groupId>bench</groupId>'
        f"<artifactId>connector</artifactId><version>1</version><dependencies>{parts}</dependencies></project>"
    )
    subprocess.run(["mvn", "-q", "-B", "-f", str(pom), "dependency:copy-dependencies", f"-DoutputDirectory={jars}"], check=True)
    return jars


if __name__ == "__main__":
    main()
