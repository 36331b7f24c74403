"""What a writing task does: rows of Arrow batches to a producer, at least once. Knows no Spark.

Rules
  1. A task that returns has every row acknowledged; the first row that was refused fails the task.
  2. Records with a key go where a Java producer would put them (murmur2), so that changing the connector moves no key.
  3. Rows are sent in order, and the producer is idempotent: its own retries neither double nor reorder them. A task that Spark repeats
     sends its rows again.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import repeat
from typing import Any

import pyarrow as pa
from confluent_kafka import KafkaError, KafkaException, Producer

from barnabas.errors import BarnabasError
from barnabas.pipelines.offsets import OptionError

logger = logging.getLogger(__name__)

NO_PARTITION = -1  # librdkafka's word for "you choose"
ROWS_BETWEEN_POLLS = 1_000
QUEUE_KILOBYTES = 128 << 10  # what waits to be sent in one task
# Settings of the Java producer under the name that librdkafka has for them, or None for those without a meaning here.
JAVA_NAMES = {"max.request.size": "message.max.bytes", "buffer.memory": None, "max.block.ms": None, "metric.reporters": None}
DEFAULTS: dict[str, Any] = {
    "partitioner": "murmur2_random",
    "enable.idempotence": True,
    "linger.ms": 5,
    "queue.buffering.max.messages": 1_000_000,
    "queue.buffering.max.kbytes": QUEUE_KILOBYTES,
    "delivery.report.only.error": True,
    "log_level": 3,  # errors; the task reports what matters
}


class WriteFailed(BarnabasError):
    """A record that the cluster did not take."""

    def __init__(self, topic: str, partition: int | None, reason: str) -> None:
        super().__init__(topic, partition, reason)
        self.topic = topic
        self.partition = partition
        self.reason = reason

    def __str__(self) -> str:
        where = self.topic if self.partition is None else f"{self.topic}-{self.partition}"
        return f"could not write to {where}: {self.reason}"


@dataclass(frozen=True, slots=True)
class WriteTask:
    """What the rows are written with: producer settings by Kafka's names, and the topic where no column has it."""

    topic: str | None
    kafka: dict[str, str] = field(repr=False)


def write_task(options: Mapping[str, str], columns: Mapping[str, str]) -> WriteTask:
    """Check the options and the columns (name to Spark's name of the type).

    Raises:
        OptionError: with the words of Spark's `kafka` sink.
    """
    given = {key.lower(): value for key, value in options.items()}
    kafka = {key.removeprefix("kafka."): value for key, value in given.items() if key.startswith("kafka.")}
    topic = given["topic"].strip() if "topic" in given else None
    for name, what in (("key.serializer", "keys are"), ("value.serializer", "value are")):
        if name in kafka:
            raise OptionError(f"Kafka option '{name}' is not supported as {what} serialized with ByteArraySerializer.")
    if "bootstrap.servers" not in kafka:
        raise OptionError("Option 'kafka.bootstrap.servers' must be specified for configuring Kafka producer")
    if topic is None and "topic" not in columns:
        raise OptionError("topic option required when no 'topic' attribute is present. Use the topic option for setting a topic.")
    if "value" not in columns:
        raise OptionError("Required attribute 'value' not found")
    text = ("string", "binary")
    headers = ("array<struct<key:string,value:binary>>",)
    checks = (("topic", text[:1]), ("key", text), ("value", text), ("headers", headers), ("partition", ("int",)))
    for name, allowed in checks:
        if name == "topic" and topic is not None:
            continue
        if name in columns and columns[name] not in allowed:
            raise OptionError(f"{name} attribute unsupported type {columns[name]}. {name} must be a(n) {' or '.join(allowed)}")
    return WriteTask(topic, kafka)


def producer_settings(kafka: Mapping[str, str]) -> dict[str, Any]:
    """librdkafka's settings out of Kafka's."""
    settings = dict(DEFAULTS)
    if kafka.get("acks", "all") not in {"all", "-1"}:
        settings["enable.idempotence"] = False
    for key, value in kafka.items():
        name = JAVA_NAMES.get(key, key)
        if name is None:
            logger.warning("Kafka option '%s' has no meaning here and is left out", key)
        else:
            settings[name] = value
    return settings


def write_batches(task: WriteTask, batches: Iterable[pa.RecordBatch]) -> int:
    """Write all rows and wait until they are acknowledged; returns how many.

    Raises:
        WriteFailed: with the first refusal.
    """
    failures: list[WriteFailed] = []

    def on_delivery(error: KafkaError | None, message: Any) -> None:
        if error is not None and not failures:
            failures.append(WriteFailed(message.topic(), message.partition(), error.str()))

    settings = producer_settings(task.kafka)
    try:
        producer = Producer({**settings, "on_delivery": on_delivery})
    except KafkaException as error:
        raise OptionError(f"the options are refused by the producer: {error.args[0].str()}") from error
    rows = 0
    try:
        for batch in batches:
            rows += _produce(task, producer, batch, failures)
        producer.flush()
        _raise_first(failures)
    except BaseException:
        producer.purge()
        raise
    return rows


def _produce(task: WriteTask, producer: Producer, batch: pa.RecordBatch, failures: Sequence[WriteFailed]) -> int:
    names = batch.schema.names
    values = batch.column("value").cast(pa.binary()).to_pylist()
    keys = batch.column("key").cast(pa.binary()).to_pylist() if "key" in names else repeat(None)
    topics = repeat(task.topic) if task.topic is not None else batch.column("topic").to_pylist()
    partitions = batch.column("partition").to_pylist() if "partition" in names else repeat(None)
    headers = batch.column("headers").to_pylist() if "headers" in names else repeat(None)
    for row, (topic, value, key, partition, pairs) in enumerate(zip(topics, values, keys, partitions, headers, strict=False)):
        if topic is None:
            raise OptionError("null topic present in the data. Use the topic option for setting a default topic.")
        if partition is None:
            partition = NO_PARTITION
        elif partition < 0:
            raise OptionError(f"Invalid partition: {partition}. Partition number should always be non-negative or null.")
        extra = {"headers": [(pair["key"], pair["value"]) for pair in pairs]} if pairs else {}
        _send(producer, topic, value, key, partition, extra)
        if row % ROWS_BETWEEN_POLLS == 0:
            producer.poll(0)
            _raise_first(failures)
    return len(values)


def _send(producer: Producer, topic: str, value: bytes | None, key: bytes | None, partition: int, extra: dict[str, Any]) -> None:
    while True:
        try:
            producer.produce(topic, value, key, partition, **extra)
            return
        except BufferError:
            producer.poll(0.1)  # full: wait for deliveries
        except KafkaException as error:
            known = None if partition == NO_PARTITION else partition
            raise WriteFailed(topic, known, error.args[0].str()) from error


def _raise_first(failures: Sequence[WriteFailed]) -> None:
    if failures:
        raise failures[0]
