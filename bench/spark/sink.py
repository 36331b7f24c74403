"""Our sink, exactly once and at least once, beside Spark's own connector (at least once), writing to the same broker in turns.

    python bench/spark/sink.py                        # to a broker of ours
    python bench/spark/sink.py --broker kafka         # to Apache Kafka 4.3, fetched with Maven
    python bench/spark/sink.py --bootstrap HOST:PORT  # to one that runs already

Rows with a key and a value of 100 B from two tasks to two partitions. Each run writes to a topic of its own, which is deleted afterwards;
what arrived is counted.
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
sys.path[:0] = [str(ROOT), str(ROOT / "src")]

from bench.spark.compare import ask, barnabas_python, connector_jars, connector_python  # noqa: E402

from barnabas.client.blocking import BlockingClient  # noqa: E402
from barnabas.client.results import LATEST, NewTopic  # noqa: E402

EXACTLY, AT_LEAST, CONNECTOR = "barnabas, exactly once", "barnabas, at least once", "Spark's connector"
SINKS = {
    EXACTLY: ["--format", "barnabas"],
    AT_LEAST: ["--format", "barnabas", "--at-least-once"],
    CONNECTOR: ["--format", "kafka"],
}
WAYS = ("batch", "stream, one batch", "stream, small triggers")
PARTITIONS = 2


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bootstrap", help="host:port of a running server")
    parser.add_argument("--broker", choices=["barnabas", "kafka"], default="barnabas")
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--size", type=int, default=100)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--without-at-least-once", action="store_true", help="leave our sink with exactlyOnce=false out")
    arguments = parser.parse_args()
    with ExitStack() as stack:
        bootstrap = arguments.bootstrap or stack.enter_context(server(arguments.broker))
        with BlockingClient.to(bootstrap) as client:
            sessions = {}
            wanted = [sink for sink in SINKS if not (sink == AT_LEAST and arguments.without_at_least_once)]
            for number, sink in enumerate(wanted):
                client.create_topics([NewTopic(f"warm-up-{number}", PARTITIONS, 1)])
                common = ["--bootstrap", bootstrap, "--rows", str(arguments.rows), "--size", str(arguments.size)]
                sessions[sink] = stack.enter_context(session(sink, [*common, "--warm-up", f"warm-up-{number}"]))
            report(take_turns(client, sessions, arguments.rounds, arguments.rows))


@contextmanager
def server(kind: str) -> Iterator[str]:
    if kind == "kafka":
        from tools.kafka import KafkaNode

        with KafkaNode() as node:
            yield node.bootstrap
        return
    from barnabas.testing import Broker

    with Broker({"transaction.two.phase.commit.enable": True}) as broker:
        yield broker.bootstrap_servers


@contextmanager
def session(sink: str, arguments: list[str]) -> Iterator[subprocess.Popen[str]]:
    """A session that writes what it is told to."""
    ours = sink != CONNECTOR
    command = [sys.executable if ours else str(connector_python()), str(Path(__file__).with_name("measure_sink.py"))]
    command += [*SINKS[sink], *arguments, *([] if ours else ["--jars", str(connector_jars())])]
    environment = dict(os.environ, PYTHONPATH=str(ROOT / "src") if ours else "")
    print(f"starting {sink} ...", file=sys.stderr, flush=True)
    with ExitStack() as stack:
        if ours:
            environment["PYSPARK_PYTHON"] = stack.enter_context(barnabas_python(sys.executable))
        process = stack.enter_context(
            subprocess.Popen(command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        )
        ask(process, None)
        yield process
        assert process.stdin is not None
        process.stdin.close()


def take_turns(
    client: BlockingClient, sessions: dict[str, subprocess.Popen[str]], rounds: int, rows: int
) -> dict[str, dict[str, list[float]]]:
    results: dict[str, dict[str, list[float]]] = {sink: {} for sink in sessions}
    for number in range(rounds):
        for way in WAYS:
            for which, (sink, process) in enumerate(sessions.items()):
                topic = f"sink-{number}-{WAYS.index(way)}-{which}"
                client.create_topics([NewTopic(topic, PARTITIONS, 1)])
                rate = float(ask(process, f"{way}\t{topic}"))
                ends = client.list_offsets({(topic, partition): LATEST for partition in range(PARTITIONS)})
                arrived = sum(end.offset for end in ends.values())
                assert arrived >= rows, (topic, arrived)
                client.delete_topics([topic])
                results[sink].setdefault(way, []).append(rate)
                print(f"round {number + 1}: {sink:<26}{way:<24}{rate / 1e6:6.2f}", file=sys.stderr, flush=True)
    return results


def report(results: dict[str, dict[str, list[float]]]) -> None:
    """Medians, and best of the rounds behind them; the ratio is that of exactly once to Spark's connector."""
    print(f"{'million rows/s, median (best)':<32}" + "".join(f"{sink:>26}" for sink in results) + f"{'ratio':>8}")
    for way in WAYS:
        rates = {sink: results[sink][way] for sink in results}
        cells = [f"{statistics.median(r) / 1e6:.2f} ({max(r) / 1e6:.2f})" for r in rates.values()]
        ratio = statistics.median(rates[EXACTLY]) / statistics.median(rates[CONNECTOR])
        print(f"{way:<32}" + "".join(f"{cell:>26}" for cell in cells) + f"{ratio:>8.2f}")


if __name__ == "__main__":
    main()
