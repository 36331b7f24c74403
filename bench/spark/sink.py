"""The barnabas sink, exactly once and at least once, and Spark's own connector (at least once), in turns on the same broker.

    python bench/spark/sink.py                        # to a barnabas broker
    python bench/spark/sink.py --broker kafka         # to Apache Kafka 4.3, fetched with Maven
    python bench/spark/sink.py --bootstrap HOST:PORT  # to a running broker
    python bench/spark/sink.py --keep                 # writes bench/results and docs/spark.md

Two tasks write rows with a key and a value of 100 B to two partitions. Each run writes to a topic of its own. Its records are counted, and
the topic is deleted afterwards. A further sink in Python drops the rows: its rate is the maximum in Spark for such a sink. Two
warm-up rounds come before the counted ones.
"""

from __future__ import annotations

import argparse
import shlex
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "src"))
sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from bench.spark import page
from bench.spark.compare import WARM_UP, ask, connector_jars, figures, line_of, spark_session
from bench.spark.measure_sink import SMALL_BATCHES, SMALL_ROWS
from bench.spark.page import CONNECTOR, NOTHING
from bench.spark.session import OtherWork, Watched

from barnabas.client.blocking import BlockingClient
from barnabas.client.results import LATEST, NewTopic

ROOT = Path(__file__).resolve().parents[2]
EXACTLY, AT_LEAST = "`barnabas`, exactly once", "`barnabas`, at least once"
SINKS = {
    EXACTLY: ["--format", "barnabas"],
    AT_LEAST: ["--format", "barnabas", "--at-least-once"],
    CONNECTOR: ["--format", "kafka"],
    NOTHING: ["--format", "nothing"],
}
WAYS = ("batch", "stream, one batch", "stream, small triggers")
PARTITIONS, TARGET = 2, 1.5
BROKERS = {"barnabas": "to a broker of ours", "kafka": "to Apache Kafka 4.3"}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bootstrap", help="host:port of a running server")
    parser.add_argument("--broker", choices=["barnabas", "kafka"], default="barnabas")
    parser.add_argument("--rows", type=int, default=4_000_000, help="of a batch and of a stream in one batch")
    parser.add_argument("--size", type=int, default=100)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--without-at-least-once", action="store_true", help="leave our sink with exactlyOnce=false out")
    parser.add_argument("--keep", action="store_true", help="the result, and put it into docs/spark.md")
    arguments = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))  # runs the cleanup of everything that was started
    with ExitStack() as stack:
        bootstrap, pid = (arguments.bootstrap, None) if arguments.bootstrap else stack.enter_context(server(arguments.broker))
        with BlockingClient.to(bootstrap) as client:
            sessions = {}
            wanted = [sink for sink in SINKS if not (sink == AT_LEAST and arguments.without_at_least_once)]
            for number, sink in enumerate(wanted):
                client.create_topics([NewTopic(f"warm-up-{number}", PARTITIONS, 1)])
                common = ["--bootstrap", bootstrap, "--rows", str(arguments.rows), "--size", str(arguments.size)]
                sessions[sink] = stack.enter_context(session(sink, [*common, "--warm-up", f"warm-up-{number}"]))
            others = OtherWork([process.pid for process in sessions.values()], pid)
            ways = take_turns(client, sessions, arguments.rounds, arguments.rows)
            share = others.share()
    found = page.Table("to the server" if arguments.bootstrap else BROKERS[arguments.broker], ways)
    print(page.rendered(found))
    if arguments.keep:
        page.keep(page.SINK, shlex.join(["python", page.SINK, *sys.argv[1:]]), arguments.rounds, share, [found])
        page.write_blocks()


@contextmanager
def server(kind: str) -> Iterator[tuple[str, int | None]]:
    """The address of a server, and its process id."""
    if kind == "kafka":
        from tools.kafka import KafkaNode

        with KafkaNode() as node:
            yield node.bootstrap, node.pid
        return
    from barnabas.testing import Broker

    with Broker({"transaction.two.phase.commit.enable": True}) as broker:
        yield broker.bootstrap_servers, broker.pid


@contextmanager
def session(sink: str, arguments: list[str]) -> Iterator[subprocess.Popen[str]]:
    """A session that writes in the ways that it gets on standard input."""
    jars = ["--jars", str(connector_jars())] if sink == CONNECTOR else []
    with spark_session(sink, "measure_sink.py", [*SINKS[sink], *arguments, *jars]) as process:
        yield process


def take_turns(client: BlockingClient, sessions: dict[str, subprocess.Popen[str]], rounds: int, rows: int) -> list[page.Way]:
    """Measure the sinks in turns; the first one is compared with Spark's connector. Rounds up to number 0 are warm-ups."""
    found = {way: page.Way(way, TARGET, {sink: [] for sink in sessions}) for way in WAYS}
    for number in range(1 - WARM_UP, rounds + 1):
        for way in WAYS:
            count = SMALL_BATCHES * SMALL_ROWS if way == "stream, small triggers" else rows
            for which, (sink, process) in enumerate(sessions.items() if number % 2 == 0 else reversed(sessions.items())):
                topic = f"sink-{number}-{WAYS.index(way)}-{which}"
                client.create_topics([NewTopic(topic, PARTITIONS, 1)])
                with Watched(process.pid) as watched:
                    rate = float(ask(process, f"{way}\t{topic}"))
                ends = client.list_offsets({(topic, partition): LATEST for partition in range(PARTITIONS)})
                arrived = sum(end.offset for end in ends.values())
                assert arrived >= count or sink == NOTHING, (topic, arrived)
                client.delete_topics([topic])
                told = figures(rate, count, watched)
                if number > 0:
                    found[way].runs[sink].append(told)
                print(f"round {number}: {sink:<28}{way:<24}{line_of(told)}", file=sys.stderr, flush=True)
    return list(found.values())


if __name__ == "__main__":
    main()
