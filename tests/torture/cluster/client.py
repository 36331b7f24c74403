"""`python -m tests.torture.cluster.client produce|consume`: a client of confluent-kafka in a process of its own.

It says on standard output what it did, in the same words as its sister in Java (`java/Client.java`), and ends when its standard input does:

    A <partition> <sequence> <offset>    a record was acknowledged
    F <partition> <sequence> <error>     a record was given up
    E <partition> <count>                the producer ends; so many were sent to the partition
    + <partition>                        the consumer was given a partition
    R <partition> <offset> <value>       it got a record
    C <partition> <offset>               a commit was acknowledged
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Sequence
from functools import partial
from typing import Any

from confluent_kafka import Consumer, KafkaError, Message, Producer, TopicPartition

from tests.spans import keep_rate

TURN_S = 0.05
COMMIT_EACH_S = 0.5
# Kafka's defaults, except: the producer retries without end, and short time-outs keep a round short.
COMMON: dict[str, Any] = {"log_level": 2, "socket.timeout.ms": 6_000, "reconnect.backoff.max.ms": 500}
PRODUCER = {"acks": "all", "enable.idempotence": True, "message.timeout.ms": 0, "retries": 2**31 - 1, "linger.ms": 5}
CONSUMER = {"auto.offset.reset": "earliest", "enable.auto.commit": False, "session.timeout.ms": 6_000, "fetch.wait.max.ms": 100}


def say(*words: object) -> None:
    sys.stdout.write(" ".join(map(str, words)) + "\n")


def produce(ended: threading.Event, bootstrap: str, topic: str, partitions: int, name: str, rate: int) -> None:
    producer = Producer({"bootstrap.servers": bootstrap, **COMMON, **PRODUCER})
    sent = [0] * partitions

    def told(index: int, sequence: int, error: KafkaError | None, message: Message) -> None:
        offset = message.offset()  # None if the broker had a duplicate and did not give its offset
        say("A", index, sequence, -1 if offset is None else offset) if error is None else say("F", index, sequence, error.name())

    while not ended.is_set():
        for _ in range(max(1, round(rate * TURN_S))):
            index = sum(sent) % partitions
            value = f"{name} {index} {sent[index]}".encode()
            producer.produce(topic, value, partition=index, on_delivery=partial(told, index, sent[index]))
            sent[index] += 1
        producer.poll(0)
        sys.stdout.flush()
        keep_rate(TURN_S)
    producer.flush()
    for index, count in enumerate(sent):
        say("E", index, count)


def consume(ended: threading.Event, bootstrap: str, topic: str, group: str) -> None:
    def committed(error: KafkaError | None, partitions: list[TopicPartition]) -> None:
        for each in partitions:
            if error is None and each.error is None and each.offset >= 0:
                say("C", each.partition, each.offset)

    def assigned(_: Consumer, partitions: list[TopicPartition]) -> None:
        for each in partitions:
            say("+", each.partition)

    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": group, "on_commit": committed, **COMMON, **CONSUMER})
    consumer.subscribe([topic], on_assign=assigned)
    due = time.monotonic() + COMMIT_EACH_S
    positions: dict[int, int] = {}
    while not ended.is_set():
        for message in consumer.consume(500, TURN_S):
            error = message.error()
            if error is None:
                say("R", message.partition(), message.offset(), (message.value() or b"").decode())
                positions[message.partition() or 0] = (message.offset() or 0) + 1
        if positions and time.monotonic() > due:
            due = time.monotonic() + COMMIT_EACH_S
            consumer.commit(offsets=[TopicPartition(topic, index, offset) for index, offset in positions.items()])
            positions.clear()
        sys.stdout.flush()
    consumer.close()


def main(arguments: Sequence[str]) -> None:
    ended = threading.Event()

    def watch_input() -> None:
        sys.stdin.read()
        ended.set()

    threading.Thread(target=watch_input, daemon=True).start()
    match arguments:
        case ["produce", bootstrap, topic, partitions, name, rate]:
            produce(ended, bootstrap, topic, int(partitions), name, int(rate))
        case ["consume", bootstrap, topic, group]:
            consume(ended, bootstrap, topic, group)
        case _:
            raise SystemExit(__doc__)
    sys.stdout.flush()


if __name__ == "__main__":
    main(sys.argv[1:])
