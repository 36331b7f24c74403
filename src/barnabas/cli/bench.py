"""`barnabas bench`: how fast a cluster writes and reads records, measured with librdkafka.

The client is librdkafka, called from Python with batches of records. On a fast broker the client is the limit. So use the
figures to compare clusters and settings, not as a broker's maximum. Records of the warm-up do not count.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import click
from msgspec import Struct, field

from barnabas.cli.connection import Connection, connection_options, fail, is_error, reason_of
from barnabas.cli.errors import BadInput, Failure
from barnabas.cli.output import Output, output_option
from barnabas.cli.produce import acks_option, compression_option
from barnabas.cli.sizes import CLIENT_LIMIT, MOST_CLIENT_BYTES, explain
from barnabas.cli.types import COUNT, PARTITIONS
from barnabas.error_codes import ErrorCode
from barnabas.signals import interrupted_by_sigterm

COLUMNS = {"test": "TEST", "records": "RECORDS", "seconds": "SECONDS", "records_per_s": "RECORDS/S", "mb_per_s": "MB/S",
           "p50_ms": "P50 MS", "p99_ms": "P99 MS", "max_ms": "MAX MS"}  # fmt: skip
LATENCY_RATE = 1_000  # records per second: so few that no record waits in a queue
LATENCY_SECONDS = 3
PROGRESS_EVERY = 8_192
Advance = Callable[[int], object]


class Result(Struct):
    """The result of one test: the number and size of the records, the time, and the latencies of single records."""

    test: str
    records: int
    record_bytes: int
    seconds: float
    latencies_ms: list[float] = field(default_factory=list)

    def row(self) -> dict[str, Any]:
        rate = self.records / self.seconds if self.seconds else 0.0
        row: dict[str, Any] = {"test": self.test, "records": self.records, "record_bytes": self.record_bytes,
                               "seconds": round(self.seconds, 3), "records_per_s": round(rate),
                               "mb_per_s": round(rate * self.record_bytes / 1e6, 2)}  # fmt: skip
        ordered = sorted(self.latencies_ms)
        for name, share in (("p50_ms", 0.50), ("p99_ms", 0.99), ("max_ms", 1.0)):
            row[name] = round(ordered[min(int(len(ordered) * share), len(ordered) - 1)], 3) if ordered else None
        return row


@click.command()
@click.option("-n", "--records", type=COUNT, default=500_000, show_default=True, help="How many records.")
@click.option(
    "--record-bytes",
    type=click.IntRange(min=1, max=MOST_CLIENT_BYTES),
    default=100,
    show_default=True,
    help="The size of each value.",
)
@click.option(
    "-p", "--partitions", type=PARTITIONS, default=1, show_default=True, help="Partitions of the topic that the command creates."
)
@compression_option
@acks_option
@click.option("--topic", help="Use this topic and keep it.  [default: a topic that is created and deleted again]")
@click.option("--skip-latency", is_flag=True, help="Skip the test of single records.")
@connection_options
@output_option
def bench(
    connection: Connection,
    output: Output,
    records: int,
    record_bytes: int,
    partitions: int,
    compression: str,
    acks: str,
    topic: str | None,
    skip_latency: bool,
) -> None:
    """Measure how fast a cluster writes and reads records.

    Writes records to a topic, reads them back, then sends single records at a low rate and measures the latency of
    each.
    """
    settings: dict[str, Any] = {
        "compression.type": compression,
        "acks": acks,
        "linger.ms": 5,
        "queue.buffering.max.messages": 500_000,
        CLIENT_LIMIT: MOST_CLIENT_BYTES,
    }
    payload = os.urandom(record_bytes)
    with interrupted_by_sigterm(), _topic(connection, topic, partitions) as name:
        results = [_measure_produce(connection, settings, name, payload, records)]
        results.append(_measure_consume(connection, name, record_bytes, records))
        if not skip_latency:
            results.append(
                _measure_latency(connection, {"acks": acks, "linger.ms": 0, CLIENT_LIMIT: MOST_CLIENT_BYTES}, name, payload)
            )
    output.table([result.row() for result in results], COLUMNS)


@contextmanager
def _topic(connection: Connection, given: str | None, partitions: int) -> Iterator[str]:
    """The name of the topic to use; a topic that this run created is deleted at its end."""
    from confluent_kafka import KafkaException
    from confluent_kafka.cimpl import NewTopic

    admin = connection.admin()
    name = given or f"barnabas-bench-{os.getpid()}-{time.time_ns() // 1_000_000}"
    try:
        admin.create_topics([NewTopic(name, num_partitions=partitions)])[name].result(connection.timeout_s + 1)
    except KafkaException as error:
        if not (given and is_error(error, ErrorCode.TOPIC_ALREADY_EXISTS)):
            fail(f"topic {name}", error)
    try:
        yield name
    finally:
        if not given:
            try:
                admin.delete_topics([name])[name].result(connection.timeout_s + 1)
            except (KafkaException, TimeoutError) as error:
                click.echo(f"barnabas: topic {name} is still there: {reason_of(error) or 'no answer'}", err=True)


@contextmanager
def _progress(what: str, total: int) -> Iterator[Advance]:
    """A progress bar on standard error if that is a terminal."""
    if not sys.stderr.isatty():
        yield lambda count: None
        return
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task(what, total=total)
        yield lambda count: progress.advance(task, count)


def _measure_produce(connection: Connection, settings: dict[str, Any], topic: str, payload: bytes, records: int) -> Result:
    from confluent_kafka import KafkaException

    errors: list[str] = []

    def receive_report(error: Any, message: Any) -> None:
        errors.append(reason_of(error) if errors else explain(connection, topic, error, len(payload), is_ours=False))

    producer = connection.producer({**settings, "delivery.report.only.error": True, "on_delivery": receive_report})
    producer.list_topics(topic, timeout=connection.timeout_s)  # connect and read metadata before the measurement starts
    with _progress("producing", records) as advance:
        began = time.perf_counter()
        for index in range(records):
            while True:
                try:
                    producer.produce(topic, payload)
                except BufferError:
                    producer.poll(0.05)
                except KafkaException as error:
                    raise BadInput(explain(connection, topic, error.args[0], len(payload), is_ours=True)) from error
                else:
                    break
            if not index % PROGRESS_EVERY:
                advance(PROGRESS_EVERY)
                producer.poll(0)
        left = producer.flush(max(60.0, connection.timeout_s))
        seconds = time.perf_counter() - began
    if errors or left:
        raise Failure(f"{len(errors) + left} of {records} records were not written: {errors[0] if errors else 'no answer'}")
    return Result("produce", records, len(payload), seconds)


def _measure_consume(connection: Connection, topic: str, record_bytes: int, records: int) -> Result:
    from confluent_kafka import OFFSET_BEGINNING, TopicPartition

    settings = {"group.id": "barnabas-bench", "enable.auto.commit": False, "queued.min.messages": 1_000_000}
    consumer = connection.consumer(settings)
    try:
        metadata = consumer.list_topics(topic, timeout=connection.timeout_s)
        with _progress("consuming", records) as advance:
            began = time.perf_counter()
            consumer.assign([TopicPartition(topic, p, OFFSET_BEGINNING) for p in metadata.topics[topic].partitions])
            seen = 0
            while seen < records:
                batch = consumer.consume(min(10_000, records - seen), connection.timeout_s)
                if not batch:
                    raise Failure(f"read {seen} of {records} records, then none for {connection.timeout_s:g} s")
                seen += len(batch)
                advance(len(batch))
            seconds = time.perf_counter() - began
    finally:
        consumer.close()
    return Result("consume", records, record_bytes, seconds)


def _measure_latency(connection: Connection, settings: dict[str, Any], topic: str, payload: bytes) -> Result:
    """The time from the planned send of each record to its confirmation, at a rate so low that no record waits in a queue. So a
    stall counts for every record that it delays."""
    latencies: list[float] = []
    errors: list[str] = []
    producer = connection.producer(settings)
    producer.list_topics(topic, timeout=connection.timeout_s)
    records = LATENCY_RATE * LATENCY_SECONDS
    with _progress("timing single records", records) as advance:
        began = time.perf_counter()
        for index in range(records):
            due = began + index / LATENCY_RATE
            while (wait := due - time.perf_counter()) > 0:
                producer.poll(wait)
            producer.produce(topic, payload, on_delivery=_timer(due, latencies, errors))
            producer.poll(0)
            advance(1)
        producer.flush(connection.timeout_s)
        seconds = time.perf_counter() - began
    if errors or len(latencies) < records:
        raise Failure(f"{records - len(latencies)} of {records} records were not written: {errors[0] if errors else 'no answer'}")
    return Result(f"latency at {LATENCY_RATE}/s", records, len(payload), seconds, latencies)


def _timer(began: float, latencies: list[float], errors: list[str]) -> Callable[[Any, Any], None]:
    def receive_report(error: Any, message: Any) -> None:
        if error is not None:
            errors.append(reason_of(error))
        else:
            latencies.append((time.perf_counter() - began) * 1000)

    return receive_report
