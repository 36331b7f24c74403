"""Our sink, exactly once and at least once, beside Spark's own connector (at least once), writing to the same broker in turns.

    python bench/spark/sink.py                        # to a broker of ours
    python bench/spark/sink.py --broker kafka         # to Apache Kafka 4.3, fetched with Maven
    python bench/spark/sink.py --bootstrap HOST:PORT  # to one that runs already
    python bench/spark/sink.py --write                # into docs/spark.md, too

Rows with a key and a value of 100 B from two tasks to two partitions. Each run writes to a topic of its own, which is deleted afterwards;
what arrived is counted.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "src"))
sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from bench.spark.compare import (
    ask,
    connector_jars,
    session_cpu_seconds,
    spark_session,
)
from bench.spark.page import measured, table, write_block

from barnabas.client.blocking import BlockingClient
from barnabas.client.results import LATEST, NewTopic

ROOT = Path(__file__).resolve().parents[2]
EXACTLY, AT_LEAST, CONNECTOR = "barnabas, exactly once", "barnabas, at least once", "Spark's connector"
SINKS = {
    EXACTLY: ["--format", "barnabas"],
    AT_LEAST: ["--format", "barnabas", "--at-least-once"],
    CONNECTOR: ["--format", "kafka"],
}
WAYS = ("batch", "stream, one batch", "stream, small triggers")
PARTITIONS = 2
BROKERS = {"barnabas": "a broker of ours", "kafka": "Apache Kafka 4.3"}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bootstrap", help="host:port of a running server")
    parser.add_argument("--broker", choices=["barnabas", "kafka"], default="barnabas")
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--size", type=int, default=100)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--without-at-least-once", action="store_true", help="leave our sink with exactlyOnce=false out")
    parser.add_argument("--write", action="store_true", help="the result into docs/spark.md")
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
            times, costs = take_turns(client, sessions, arguments.rounds, arguments.rows)
    broker = "the server" if arguments.bootstrap else BROKERS[arguments.broker]
    told = [measured(arguments.rounds), "", *report(broker, times, costs)]
    print("\n".join(told))
    if arguments.write:
        write_block("bench/spark/sink.py", told)


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
    jars = ["--jars", str(connector_jars())] if sink == CONNECTOR else []
    with spark_session(sink, "measure_sink.py", [*SINKS[sink], *arguments, *jars]) as process:
        yield process


Rates = dict[str, dict[str, list[float]]]  # by sink and way


def take_turns(client: BlockingClient, sessions: dict[str, subprocess.Popen[str]], rounds: int, rows: int) -> tuple[Rates, Rates]:
    """Rows a second, and rows for a second of CPU."""
    times: Rates = {sink: {way: [] for way in WAYS} for sink in sessions}
    costs: Rates = {sink: {way: [] for way in WAYS} for sink in sessions}
    for number in range(rounds):
        for way in WAYS:
            for which, (sink, process) in enumerate(sessions.items()):
                topic = f"sink-{number}-{WAYS.index(way)}-{which}"
                client.create_topics([NewTopic(topic, PARTITIONS, 1)])
                before = session_cpu_seconds(process.pid)
                rate = float(ask(process, f"{way}\t{topic}"))
                cost = rows / (session_cpu_seconds(process.pid) - before)
                ends = client.list_offsets({(topic, partition): LATEST for partition in range(PARTITIONS)})
                arrived = sum(end.offset for end in ends.values())
                assert arrived >= rows, (topic, arrived)
                client.delete_topics([topic])
                times[sink][way].append(rate)
                costs[sink][way].append(cost)
                told = f"{rate / 1e6:6.2f} M/s {cost / 1e6:6.2f} M/CPU s"
                print(f"round {number + 1}: {sink:<26}{way:<24}{told}", file=sys.stderr, flush=True)
    return times, costs


def report(broker: str, times: Rates, costs: Rates) -> list[str]:
    """Medians, and best of the rounds behind them; the ratios are those of exactly once to Spark's connector."""
    head = [f"to {broker}: million rows/s, median (best)", *times, "ratio", "ratio of CPU time"]
    rows = []
    for way in WAYS:
        cells = [f"{statistics.median(rates[way]) / 1e6:.2f} ({max(rates[way]) / 1e6:.2f})" for rates in times.values()]
        ratios = [statistics.median(rates[EXACTLY][way]) / statistics.median(rates[CONNECTOR][way]) for rates in (times, costs)]
        rows.append([way, *cells, *(f"{ratio:.2f}" for ratio in ratios)])
    return table(head, rows)


if __name__ == "__main__":
    main()
