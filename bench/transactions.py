"""`python -m bench.transactions`: transactions a second, and the cost of reading committed records, compared with Apache Kafka.

One node of each, with the same clients, in turns. Writes bench/results/transactions.json for `docs/performance.md`.
"""

from __future__ import annotations

import argparse
import datetime
import itertools
import json
import statistics
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from threading import Thread
from typing import Any

from confluent_kafka import Consumer, Producer, TopicPartition

from bench.learnt import Learnt
from bench.meter import Figures, Meter
from bench.report import (
    OURS,
    PEAKS,
    THEIRS,
    Result,
    by_command,
    command_of,
    describe_case,
    describe_machine,
    line_of,
    peaks,
    spread,
    table,
    titled,
    verdict,
)
from bench.servers import Barnabas, Kafka, Server, create_topic, delete_topic, end_offsets
from bench.standstill import alone
from bench.transacting import Transactor, transact
from bench.wire import record_batch

RESULTS = Path(__file__).resolve().parent / "results" / "transactions.json"
VALUE = b"v" * 100
CALL_S = 60.0
PARTITIONS = 4
TARGET = 2.0  # target: this many times Apache Kafka's transactions per second
WRITERS = ((1, 1), (10, 1), (1_000, 1), (10, 8))  # records per transaction, concurrent producers
READ_TOPIC = "transactions-read"
READ_RECORDS, READ_TRANSACTION, ABORTED_EVERY = 400_000, 1_000, 10
READ_WAIT_S = 0.01  # for a full poll; also the longest delay at the end
COMMITTED, UNCOMMITTED = "read_committed", "read_uncommitted"
TITLE = "\n## Transactions\n"
NOTES = """
`python -m bench.transactions` measures:

- **writing**: each producer begins a transaction, writes records of 100 bytes to four partitions in turn, and commits. It begins the next
  one when the commit is answered.
- *plain producer*: a socket that sends one Produce request with all records, and EndTxn, as in transactions version 2. One thread drives
  all of them.
- *client*: confluent-kafka. It also sends AddPartitionsToTxn, and one request for each partition.
- *answers alone*: a loop that repeats to the clients what a broker answered before, and does nothing else (`bench/learnt.py`). It shows
  the clients' own time.
- **reading**: transactions of 1,000 records. Every tenth is aborted. A rate counts the stored records that a reader of committed records,
  or of all records, passes in a second.
- *peak MB*: the highest memory of a server in RAM.

With plain producers, a wait inside Kafka's broker decides its rate: while the markers of a producer's last transaction are not written,
the broker retries the first Produce request of the next one after `add.partitions.to.txn.retry.backoff.ms`, 20 ms by default. With 1 ms
it commits about eight times as many. The client asks for itself, and sooner.
"""
_numbers = itertools.count()


class Writer(Thread):
    """One producer that commits transactions for a given time."""

    def __init__(self, server: Server, topic: str, records: int, seconds: float) -> None:
        super().__init__()
        self.count = 0
        self._topic, self._records, self._seconds = topic, records, seconds
        self._producer = Producer(
            {
                "bootstrap.servers": "{}:{}".format(*server.address),
                "transactional.id": f"{topic}-{next(_numbers)}",
                "linger.ms": 0,
                "queue.buffering.max.messages": 200_000,
            }
        )
        self._producer.init_transactions(CALL_S)
        self.transact()

    def transact(self, *, commit: bool = True) -> None:
        self._producer.begin_transaction()
        for number in range(self._records):
            self._producer.produce(self._topic, VALUE, partition=number % PARTITIONS)
        if commit:
            self._producer.commit_transaction(CALL_S)
        else:
            self._producer.flush(CALL_S)
            self._producer.abort_transaction(CALL_S)

    def run(self) -> None:
        deadline = time.perf_counter() + self._seconds
        while time.perf_counter() < deadline:
            self.transact()
            self.count += 1


def write(server: Server, records: int, producers: int, seconds: float) -> Figures:
    """The transactions a second, and the milliseconds of the server's CPU for each."""
    topic = f"transactions-{next(_numbers)}"
    create_topic(server, topic, PARTITIONS)
    writers = [Writer(server, topic, records, seconds) for _ in range(producers)]
    with Meter([server.pid]) as meter:
        began = time.perf_counter()
        for each in writers:
            each.start()
        for each in writers:
            each.join()
        took = time.perf_counter() - began
    delete_topic(server, topic)
    return _figures(sum(each.count for each in writers), took, meter, 1e3)


def _figures(count: int, seconds: float, meter: Meter, unit: float) -> Figures:
    """Args: unit: the number of CPU units in a second."""
    return {"per_s": count / seconds, "cpu_each": meter.figures["cpu_s"] / count * unit, **meter.figures}


def write_plainly(server: Server, records: int, producers: int, seconds: float) -> Figures:
    """As `write`, with producers on plain sockets."""
    topic = f"transactions-{next(_numbers)}"
    create_topic(server, topic, PARTITIONS)
    partitions = min(records, PARTITIONS)
    batches = [record_batch(len(range(index, records, partitions)), len(VALUE)) for index in range(partitions)]
    transactors = [Transactor(server.address, f"{topic}-{number}", topic, batches) for number in range(producers)]
    try:
        with Meter([server.pid]) as meter:
            took = transact(transactors, seconds)
    finally:
        for each in transactors:
            each.socket.close()
    _check_stored(server, topic, records, sum(each.count for each in transactors))
    delete_topic(server, topic)
    return _figures(sum(each.count for each in transactors), took, meter, 1e3)


def _check_stored(server: Server, topic: str, records: int, transactions: int) -> None:
    """Wait until each transaction has its records, and a marker in each of its partitions (Kafka answers EndTxn before it
    writes them)."""
    expected, deadline = transactions * (records + min(records, PARTITIONS)), time.perf_counter() + CALL_S
    while (stored := end_offsets(server, topic, PARTITIONS)) != expected:
        if stored > expected or time.perf_counter() > deadline:
            raise RuntimeError(f"{server.name}: {stored} records and markers are stored, not {expected}")
        time.sleep(READ_WAIT_S)


def fill(server: Server) -> None:
    create_topic(server, READ_TOPIC, PARTITIONS)
    writer = Writer(server, READ_TOPIC, READ_TRANSACTION, 0.0)
    for number in range(READ_RECORDS // READ_TRANSACTION - 1):
        writer.transact(commit=number % ABORTED_EVERY != 0)


def read(server: Server, isolation: str) -> Figures:
    """The stored records a second that a reader with this isolation level passes, and the microseconds of the server's CPU for
    each."""
    consumer = Consumer(
        {
            "bootstrap.servers": "{}:{}".format(*server.address),
            "group.id": "reader",
            "isolation.level": isolation,
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "queued.min.messages": 1_000_000,
        }
    )
    consumer.assign([TopicPartition(READ_TOPIC, index, 0) for index in range(PARTITIONS)])
    ended: set[int] = set()
    with Meter([server.pid]) as meter:
        count, began = 0, time.perf_counter()
        while len(ended) < PARTITIONS:
            if time.perf_counter() - began > CALL_S:
                raise RuntimeError(f"{server.name}: {count} records read, and not to the end")
            for message in consumer.consume(500, READ_WAIT_S):
                if message.error():
                    ended.add(message.partition() or 0)
                else:
                    count += 1
        took = time.perf_counter() - began
    consumer.close()
    aborted = len(range(0, READ_RECORDS // READ_TRANSACTION - 1, ABORTED_EVERY)) * READ_TRANSACTION
    expected = READ_RECORDS - (aborted if isolation == COMMITTED else 0)
    if count != expected:
        raise RuntimeError(f"{server.name}: {count} records read, not {expected}")
    return _figures(READ_RECORDS, took, meter, 1e6)


@dataclass(frozen=True, slots=True)
class Measure:
    """Like `bench.cases.Case`: the compared figures of `once`, and the target of their ratio."""

    name: str
    title: str
    unit: str
    once: Callable[[Server], Figures]
    target: float | None = None
    figure: str = "per_s"
    higher_is_better: bool = True
    limit: float | None = None
    is_of_clients: bool = False


WAYS = (("socket", "plain producer", write_plainly), ("client", "client", write))


def writing(seconds: float) -> Iterator[Measure]:
    for (records, producers), (name, how, writes) in itertools.product(WRITERS, WAYS):
        who = f"{producers} {how}{'s' * (producers > 1)}"
        title = f"transactions of {records:,} record{'s' * (records > 1)}, {who}"
        once = partial(writes, records=records, producers=producers, seconds=seconds)
        yield Measure(f"{name}-{records}-{producers}", title, "transactions/s", once, TARGET, is_of_clients=writes is write)


def reading() -> Iterator[Measure]:
    for isolation in (COMMITTED, UNCOMMITTED):
        yield Measure(isolation, f"reading with {isolation}", "stored records/s", partial(read, isolation=isolation))


def take_turns(measure: Measure, servers: Sequence[Server], repeat: int) -> Result:
    runs: dict[str, list[Figures]] = {server.name: [] for server in servers}
    for repetition in range(repeat):
        for server in servers if repetition % 2 == 0 else reversed(servers):
            with alone(server, servers):
                runs[server.name].append(measure.once(server))
    found = describe_case(measure, runs)
    print(line_of(found), flush=True)
    return found


def beside(measure: Measure, servers: Sequence[Server], alone: Server) -> Sequence[Server]:
    """The measured systems; with clients, also the loop that only answers."""
    return (*servers, alone) if measure.is_of_clients else servers


def render(page: dict[str, Any]) -> str:
    """The part of `docs/performance.md`."""
    cases: list[Result] = page["cases"]
    shares = [run["others_cpu"] for case in cases for runs in case["runs"].values() for run in runs]
    text = f"{TITLE}\nMeasured on {page['date']} on {page['machine']['processor']}, {page['repetitions']} repetitions.{by_command(page)} "
    text += f"Other work took {statistics.median(shares):.0%} of the machine's CPU meanwhile (median).\n\n"
    rates = [
        [titled(case), *_both(case, case["figure"]), f"{case['ratio']:.2f}x", verdict(case), _alone(case, case["figure"])]
        for case in cases
    ]
    text += table(["", OURS, THEIRS, "ratio", "target", Learnt.name], rates)
    text += "\nCPU of the server (milliseconds for a transaction, microseconds for a record that is read), and its memory:\n\n"
    costs = [[case["title"], *_both(case, "cpu_each"), f"{_cpu_ratio(case):.2f}x", *peaks(case), ""] for case in cases]
    return text + table(["", OURS, THEIRS, "ratio", *PEAKS, ""], costs) + NOTES


def _both(case: Result, figure: str) -> list[str]:
    return [spread(case, server, figure) for server in (OURS, THEIRS)]


def _alone(case: Result, figure: str) -> str:
    return spread(case, Learnt.name, figure) if Learnt.name in case["runs"] else ""


def _cpu_ratio(case: Result) -> float:
    pairs = zip(case["runs"][OURS], case["runs"][THEIRS], strict=True)
    return float(statistics.median(theirs["cpu_each"] / ours["cpu_each"] for ours, theirs in pairs))


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.transactions", description=__doc__)
    parser.add_argument("--repeat", type=int, default=5, help="repetitions of each case and server (default 5)")
    parser.add_argument("--seconds", type=float, default=5.0, help="of each measurement of writing (default 5)")
    parser.add_argument("--json", metavar="FILE", default=str(RESULTS), help="write the results here (default: the page's)")
    options = parser.parse_args(arguments)
    with Barnabas() as ours, Kafka() as theirs, Learnt() as repeating:
        servers: tuple[Server, Server] = (ours, theirs)
        for server in servers:
            write(server, 10, 2, options.seconds)  # warm-up
            write_plainly(server, 10, 2, options.seconds)
        cases = [take_turns(measure, beside(measure, servers, repeating), options.repeat) for measure in writing(options.seconds)]
        for server in servers:
            fill(server)
            read(server, COMMITTED)  # warm-up
        cases += [take_turns(measure, servers, options.repeat) for measure in reading()]
    page = {
        "command": command_of("bench.transactions", arguments),
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "repetitions": options.repeat,
        "machine": describe_machine(),
        "cases": cases,
    }
    Path(options.json).write_text(json.dumps(page, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
