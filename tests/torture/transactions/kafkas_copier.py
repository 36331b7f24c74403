"""Kafka's own TransactionalMessageCopier with random aborts: `python -m tests.torture.transactions.kafkas_copier`.

Its input is written in transactions too. The copy, read by a reader of committed records, must be the input, record by record.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence

from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic
from tools.kafka import run_tool

from barnabas.testing import Broker

SOURCE, COPY, NAME = "source", "copy", "copier"
WITHIN_S = 1800.0
CREATION_S = 30.0
POLL_S = 0.5


def copy(messages: int, transaction_size: int) -> float:
    """Seconds that the copier took; raises AssertionError where the copy is another than the input."""
    with Broker() as broker:
        admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers})
        for made in admin.create_topics([NewTopic(name, 1, 1) for name in (SOURCE, COPY)]).values():
            made.result(CREATION_S)
        writing = ["--topic", SOURCE, "--num-records", str(messages), "--record-size", "20", "--throughput", "-1"]
        writing += ["--transactional-id", "writer", "--transaction-duration-ms", "50"]
        run_tool("kafka-producer-perf-test", "--bootstrap-server", broker.bootstrap_servers, *writing, timeout_s=WITHIN_S)
        copying = ["--input-topic", SOURCE, "--input-partition", "0", "--output-topic", COPY, "--consumer-group", NAME]
        copying += ["--max-messages", str(messages), "--transaction-size", str(transaction_size), "--enable-random-aborts"]
        began = time.monotonic()
        run_tool(
            "kafka-transactional-message-copier", "--broker-list", broker.bootstrap_servers, "--transactional-id", NAME, *copying,
            timeout_s=WITHIN_S,
        )  # fmt: skip
        took = time.monotonic() - began
        there, copied = (read(broker.bootstrap_servers, topic) for topic in (SOURCE, COPY))
        assert len(there) == messages, f"{len(there)} records are in the input"
        assert copied == there, f"{len(copied)} records are in the copy, or they are others"
        return took


def read(bootstrap: str, topic: str) -> list[bytes]:
    """The values that a reader of committed records gets."""
    consumer = Consumer(
        {"bootstrap.servers": bootstrap, "group.id": f"check-{topic}", "enable.partition.eof": True, "enable.auto.commit": False}
    )
    consumer.assign([TopicPartition(topic, 0, 0)])
    values: list[bytes] = []
    while True:
        for message in consumer.consume(1_000, POLL_S):
            if message.error():
                consumer.close()
                return values
            values.append(message.value() or b"")


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.torture.transactions.kafkas_copier", description=__doc__)
    parser.add_argument("--messages", type=int, default=100_000)
    parser.add_argument("--transaction-size", type=int, default=750)
    options = parser.parse_args(arguments)
    took = copy(options.messages, options.transaction_size)
    size = options.transaction_size
    print(f"{options.messages:,} messages copied in {took:.0f} s, {size} a transaction, with random aborts: all there, once")
    return 0


if __name__ == "__main__":
    sys.exit(main())
