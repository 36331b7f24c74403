"""`python -m bench.transactions`: transactions a second, and what reading committed records costs, beside Apache Kafka.

One node of each, the same clients, in turns; writes bench/results/transactions.json, which `docs/performance.md` shows.
"""

from __future__ import annotations

import argparse
import datetime
import itertools
import json
import os
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from threading import Thread
from typing import Any

from confluent_kafka import Consumer, Producer, TopicPartition

from bench.report import by_command, command_of, describe_machine
from bench.servers import Barnabas, Kafka, Server, busy_seconds, cpu_seconds, create_topic, delete_topic, end_offsets
from bench.storage.result import Result, judged, lines_of, spread
from bench.transacting import Transactor, transact
from bench.wire import record_batch

RESULTS = Path(__file__).resolve().parent / "results" / "transactions.json"
VALUE = b"v" * 100
CALL_S = 60.0
PARTITIONS = 4
TARGET = 2.0  # times Apache Kafka's transactions a second
WRITERS = ((1, 1), (10, 1), (1_000, 1), (10, 8))  # records a transaction, producers at once
READ_RECORDS, READ_TRANSACTION, ABORTED_EVERY = 400_000, 1_000, 10
READ_WAIT_S = 0.01  # for a full handful; also what the end may take too long
COMMITTED, UNCOMMITTED = "read_committed", "read_uncommitted"
TITLE = "\n## Transactions\n"
NOTES = """
Measured by `python -m bench.transactions`: each producer begins a transaction, writes records of 100 bytes to four partitions in turn,
and commits; the next one begins when the commit is answered. A *plain producer* is a socket: one Produce request with all records and
EndTxn, as the newest clients have it (transactions version 2), all driven by one thread. A *client* is confluent-kafka, which sends
AddPartitionsToTxn and a request for each partition as well; its own threads take most of the time of a transaction, and with eight of
them most of the two cores. With plain producers Kafka's rate is that of a wait inside its broker: while the markers of a producer's last
transaction are not written, the broker tries the first Produce request of the next one again after
`add.partitions.to.txn.retry.backoff.ms`, 20 ms by default (with 1 ms it commits some eight times as many); the client asks for itself, and
sooner. *CPU* is that of the server for one transaction. What is read was written in transactions of 1,000 records,
every tenth of which is aborted; a second is one in which a reader of committed records, or one of all records, gets past so many stored
ones.
"""
Figures = dict[str, list[float]]
_numbers = itertools.count()


class Writer(Thread):
    """One producer that commits transactions until its time is over."""

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


def write(server: Server, records: int, producers: int, seconds: float) -> tuple[float, float]:
    """Transactions a second, and milliseconds of the server's CPU for each."""
    topic = f"transactions-{next(_numbers)}"
    create_topic(server, topic, PARTITIONS)
    writers = [Writer(server, topic, records, seconds) for _ in range(producers)]
    before, began = cpu_seconds(server.pid), time.perf_counter()
    for each in writers:
        each.start()
    for each in writers:
        each.join()
    took, spent = time.perf_counter() - began, cpu_seconds(server.pid) - before
    delete_topic(server, topic)
    count = sum(each.count for each in writers)
    return count / took, spent / count * 1e3


def write_plainly(server: Server, records: int, producers: int, seconds: float) -> tuple[float, float]:
    """As `write`, by producers that are plain sockets."""
    topic = f"transactions-{next(_numbers)}"
    create_topic(server, topic, PARTITIONS)
    partitions = min(records, PARTITIONS)
    batches = [record_batch(len(range(index, records, partitions)), len(VALUE)) for index in range(partitions)]
    transactors = [Transactor(server.address, f"{topic}-{number}", topic, batches) for number in range(producers)]
    try:
        before = cpu_seconds(server.pid)
        took = transact(transactors, seconds)
        spent = cpu_seconds(server.pid) - before
    finally:
        for each in transactors:
            each.socket.close()
    _check_stored(server, topic, records, sum(each.count for each in transactors))
    delete_topic(server, topic)
    count = sum(each.count for each in transactors)
    return count / took, spent / count * 1e3


def _check_stored(server: Server, topic: str, records: int, transactions: int) -> None:
    """Each transaction has left its records, and leaves a marker in each of its partitions (Kafka answers EndTxn before)."""
    expected, deadline = transactions * (records + min(records, PARTITIONS)), time.perf_counter() + CALL_S
    while (stored := end_offsets(server, topic, PARTITIONS)) != expected:
        if stored > expected or time.perf_counter() > deadline:
            raise RuntimeError(f"{server.name}: {stored} records and markers are stored, not {expected}")
        time.sleep(READ_WAIT_S)


def fill(server: Server, topic: str) -> None:
    create_topic(server, topic, PARTITIONS)
    writer = Writer(server, topic, READ_TRANSACTION, 0.0)
    for number in range(READ_RECORDS // READ_TRANSACTION - 1):
        writer.transact(commit=number % ABORTED_EVERY != 0)


def read(server: Server, topic: str, isolation: str) -> tuple[float, float]:
    """Stored records a second that a reader of this isolation gets past, and microseconds of the server's CPU for each."""
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
    consumer.assign([TopicPartition(topic, index, 0) for index in range(PARTITIONS)])
    ended: set[int] = set()
    before, count, began = cpu_seconds(server.pid), 0, time.perf_counter()
    while len(ended) < PARTITIONS:
        if time.perf_counter() - began > CALL_S:
            raise RuntimeError(f"{server.name}: {count} records read, and not to the end")
        for message in consumer.consume(500, READ_WAIT_S):
            if message.error():
                ended.add(message.partition() or 0)
            else:
                count += 1
    took, spent = time.perf_counter() - began, cpu_seconds(server.pid) - before
    consumer.close()
    aborted = len(range(0, READ_RECORDS // READ_TRANSACTION - 1, ABORTED_EVERY)) * READ_TRANSACTION
    expected = READ_RECORDS - (aborted if isolation == COMMITTED else 0)
    if count != expected:
        raise RuntimeError(f"{server.name}: {count} records read, not {expected}")
    return READ_RECORDS / took, spent / READ_RECORDS * 1e6


WAYS = (("socket", "plain producer", write_plainly), ("client", "client", write))


def measure(servers: Sequence[Server], repeat: int, seconds: float) -> list[Result]:
    results = []
    for (records, producers), (name, how, writes) in itertools.product(WRITERS, WAYS):
        rates, costs = _in_turns(servers, repeat, partial(writes, records=records, producers=producers, seconds=seconds))
        who = f"{producers} {how}{'s' * (producers > 1)}"
        title = f"transactions of {records:,} record{'s' * (records > 1)}, {who}"
        results.append(_compared(f"{name}-{records}-{producers}", title, "transactions/s", rates, higher=True, target=TARGET))
        results.append(_compared(f"{name}-cpu-{records}-{producers}", f"CPU of {title}", "ms each", costs, higher=False))
    topic = "transactions-read"
    for server in servers:
        fill(server, topic)
    for isolation in (COMMITTED, UNCOMMITTED):
        rates, costs = _in_turns(servers, repeat, partial(read, topic=topic, isolation=isolation))
        results.append(_compared(isolation, f"reading with {isolation}", "stored records/s", rates, higher=True))
        results.append(_compared(f"cpu-{isolation}", f"CPU of reading with {isolation}", "us a record", costs, higher=False))
    return results


def _in_turns(servers: Sequence[Server], repeat: int, once: Callable[[Server], tuple[float, float]]) -> tuple[Figures, Figures]:
    first: Figures = {server.name: [] for server in servers}
    second: Figures = {server.name: [] for server in servers}
    for repetition in range(repeat):
        for server in servers if repetition % 2 == 0 else reversed(servers):
            one, other = once(server)
            first[server.name].append(one)
            second[server.name].append(other)
    return first, second


def _compared(case: str, title: str, unit: str, figures: Figures, *, higher: bool, target: float | None = None) -> Result:
    ours, theirs = figures.values()
    pairs = zip(ours, theirs, strict=True) if higher else zip(theirs, ours, strict=True)
    result = Result(case, title, unit, figures, ratio=statistics.median(one / other for one, other in pairs))
    if target is not None:
        result.target, result.met = f">= {target:g}x", (result.ratio or 0) >= target
    print("\n".join(lines_of(result)), flush=True)
    return result


def render(page: dict[str, Any]) -> str:
    """The part of `docs/performance.md`."""
    results = [Result(**each) for each in page["results"]]
    ours, theirs = results[0].figures
    text = f"{TITLE}\nMeasured on {page['date']}, {page['repetitions']} repetitions.{by_command(page)} "
    text += f"Other work took {page['others_cpu']:.0%} of the machine's CPU meanwhile.\n\n"
    text += f"|  | {ours} | {theirs} | ratio | target |\n| --- | ---: | ---: | ---: | --- |\n"
    for each in results:
        cells = " | ".join(spread(values) for values in each.figures.values())
        text += f"| {each.title} ({each.unit}) | {cells} | {each.ratio:.2f}x | {judged(each, '**')} |\n"
    return text + NOTES


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.transactions", description=__doc__)
    parser.add_argument("--repeat", type=int, default=3, help="repetitions of each case and server (default 3)")
    parser.add_argument("--seconds", type=float, default=5.0, help="of each measurement of writing (default 5)")
    parser.add_argument("--json", metavar="FILE", default=str(RESULTS), help="write the results here (default: the page's)")
    options = parser.parse_args(arguments)
    with Barnabas() as ours, Kafka() as theirs:
        servers: tuple[Server, Server] = (ours, theirs)
        for server in servers:
            write(server, 10, 2, options.seconds)  # to warm up
            write_plainly(server, 10, 2, options.seconds)
        pids = [os.getpid(), *(server.pid for server in servers)]
        began, busy, own = time.monotonic(), busy_seconds(), sum(map(cpu_seconds, pids))
        results = measure(servers, options.repeat, options.seconds)
        others = busy_seconds() - busy - (sum(map(cpu_seconds, pids)) - own)
        share = max(0.0, others / ((time.monotonic() - began) * (os.cpu_count() or 1)))
    page = {
        "command": command_of("bench.transactions", arguments),
        "others_cpu": share,
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "repetitions": options.repeat,
        "machine": describe_machine(),
        "results": [each.as_json() for each in results],
    }
    Path(options.json).write_text(json.dumps(page, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
