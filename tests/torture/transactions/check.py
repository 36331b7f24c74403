"""The output against the input: each record once, in the order of its partition, as a reader of committed records sees it."""

from __future__ import annotations

import time
from collections import Counter

from confluent_kafka import Consumer, TopicPartition

from tests.torture.check import Broken
from tests.torture.transactions.plan import PARTITIONS, output_of, value_of

POLL_S = 0.5
WITHIN_S = 180.0  # after the last record: an open transaction lasts up to 10 s, a session 6 s


class Reader:
    """Reads the copies and holds each record against the one that must come next."""

    def __init__(self, bootstrap: str) -> None:
        self.seen: Counter[tuple[str, int]] = Counter()
        self._consumer = Consumer(
            {
                "bootstrap.servers": bootstrap,
                "group.id": "check",
                "isolation.level": "read_committed",
                "enable.auto.commit": False,
                "reconnect.backoff.max.ms": 200,
                "log_level": 2,
            }
        )
        places = [TopicPartition(output_of(topic), index, 0) for topic, count in PARTITIONS.items() for index in range(count)]
        self._consumer.assign(places)
        self._input_of = {output_of(topic): topic for topic in PARTITIONS}

    def close(self) -> None:
        self._consumer.close()

    def read(self, seconds: float) -> None:
        """Take what is there, for a while; raises Broken at the first record that is not the next one."""
        deadline = time.monotonic() + seconds
        while (left := deadline - time.monotonic()) > 0:
            for message in self._consumer.consume(1_000, min(left, POLL_S)):
                if message.error() is None:
                    self.receive(message.topic() or "", message.partition() or 0, message.value() or b"")

    def receive(self, topic: str, partition: int, value: bytes) -> None:
        place = self._input_of[topic], partition
        expected = value_of(partition, self.seen[place])
        if value != expected:
            raise Broken(f"{topic}-{partition}: {value!r} where {expected!r} should be")
        self.seen[place] += 1

    def demand(self, sent: Counter[tuple[str, int]]) -> None:
        """Wait until everything that was sent has been copied.

        Raises:
            Broken: a record is missing after a long wait, is there twice, or out of order.
        """
        deadline = time.monotonic() + WITHIN_S
        while self.seen != sent:
            self.read(POLL_S)
            if time.monotonic() > deadline:
                missing = {f"{topic}-{index}": f"{self.seen[topic, index]} of {count}" for (topic, index), count in sent.items()}
                raise Broken(f"not all was copied within {WITHIN_S:g} s: {missing}")
        self.read(2 * POLL_S)
        if self.seen != sent:
            raise Broken("more was copied than there is")
