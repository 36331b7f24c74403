"""Holds the cluster to what it told the clients.

Reads the topic from where it read last, and compares: with what producers were told, and with what consumers got. Named as Jepsen names it:
lost write, duplicate, inconsistent offsets, nonmonotonic poll, poll skip.
"""

from __future__ import annotations

import time
from typing import Any

from confluent_kafka import Consumer, ConsumerGroupTopicPartitions, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient

from tests.torture.check import Broken
from tests.torture.cluster.load import PARTITIONS, TOPIC, Book

ANSWER_S = 60.0
QUIET: dict[str, Any] = {"log_level": 2, "socket.timeout.ms": 6_000, "reconnect.backoff.max.ms": 500}


class Checker:
    """See the module. `log` is what the topic holds, by partition and offset, as far as it was read."""

    def __init__(self, bootstrap: str, book: Book) -> None:
        self._book = book
        self._bootstrap = bootstrap
        self.log: dict[int, list[str]] = {index: [] for index in range(PARTITIONS)}
        self._offsets: dict[tuple[str, int], list[int]] = {key: [] for key in book.lanes}  # offsets by sequence
        self._covered: dict[tuple[str, int], set[int]] = {
            (group, i): set() for group in book.languages for i in range(PARTITIONS)
        }

    def check(self) -> None:
        """Raises Broken."""
        with self._book.lock:
            told = {key: dict(lane.acknowledged) for key, lane in self._book.lanes.items()}
            failed = {key: list(lane.failed) for key, lane in self._book.lanes.items() if lane.failed}
            got = [
                (name, reading.group, index, records.copy())
                for name, reading in self._book.readings.items()
                for index, records in reading.records.items()
            ]
            skips = [f"{name}: {skip}" for name, reading in self._book.readings.items() for skip in reading.skips]
            for reading in self._book.readings.values():
                reading.records.clear()
        _demand(not failed, f"given up by a producer: {failed}")
        _demand(not skips, f"poll skip or nonmonotonic poll: {skips[:3]}")
        self._read()
        for key, acknowledged in told.items():
            self._check_lane(key, acknowledged)
        for name, group, index, records in got:
            for offset, value in records:
                found = self.log[index][offset] if offset < len(self.log[index]) else None
                _demand(found == value, f"{name} got {value!r} at {TOPIC}-{index} {offset}, where {found!r} is")
                self._covered[group, index].add(offset)

    def _read(self) -> None:
        consumer = Consumer({"bootstrap.servers": self._bootstrap, "group.id": "checker", "enable.auto.commit": False, **QUIET})
        try:
            for index, log in self.log.items():
                end = self._end(consumer, index)
                _demand(end >= len(log), f"{TOPIC}-{index} ends at {end}, and had {len(log)} records")
                consumer.assign([TopicPartition(TOPIC, index, len(log))])
                deadline = time.monotonic() + ANSWER_S
                while len(log) < end:
                    _demand(time.monotonic() < deadline, f"{TOPIC}-{index} cannot be read beyond {len(log)}, it ends at {end}")
                    for message in consumer.consume(2_000, 0.5):
                        if message.error() is None:
                            _demand(message.offset() == len(log), f"{TOPIC}-{index}: {message.offset()} follows {len(log) - 1}")
                            self._take(index, (message.value() or b"").decode())
        finally:
            consumer.close()

    def _end(self, consumer: Consumer, index: int) -> int:
        deadline = time.monotonic() + ANSWER_S
        while True:
            try:
                return consumer.get_watermark_offsets(TopicPartition(TOPIC, index), 5.0)[1]
            except KafkaException as error:
                _demand(time.monotonic() < deadline, f"the end of {TOPIC}-{index} cannot be had: {error}")

    def _take(self, index: int, value: str) -> None:
        log = self.log[index]
        name, lane, sequence = value.split(" ")
        _demand(int(lane) == index, f"{TOPIC}-{index} {len(log)} is of partition {lane}")
        offsets = self._offsets[name, index]
        _demand(int(sequence) >= len(offsets), f"duplicate or out of order: {value!r} at {TOPIC}-{index} {len(log)}")
        _demand(int(sequence) == len(offsets), f"lost write: {value!r} at {TOPIC}-{index} {len(log)} follows {len(offsets) - 1}")
        offsets.append(len(log))
        log.append(value)

    def _check_lane(self, key: tuple[str, int], acknowledged: dict[int, int]) -> None:
        name, index = key
        offsets = self._offsets[key]
        for sequence, offset in acknowledged.items():
            _demand(sequence < len(offsets), f"lost write: {name} {sequence} of {TOPIC}-{index} was acknowledged at {offset}")
            right = offset in (-1, offsets[sequence])
            _demand(right, f"inconsistent offsets: {name} {sequence} is at {offsets[sequence]}, {offset} was acknowledged")

    def check_end(self) -> None:
        """With all that was sent acknowledged: it is there, once, and nothing else is. Raises Broken."""
        self.check()
        for (name, index), lane in self._book.lanes.items():
            found = len(self._offsets[name, index])
            _demand(found == lane.sent, f"{TOPIC}-{index} has {found} records of {name}, {lane.sent} were sent")

    def unread(self) -> str:
        """The present records that a group has not read yet; "" if it has read all."""
        for (group, index), covered in self._covered.items():
            if len(covered) < len(self.log[index]):
                return f"group {group} read {len(covered)} of {len(self.log[index])} in {TOPIC}-{index}"
        return ""

    def check_commits(self) -> None:
        """Acknowledged commits of groups are not lost. Raises Broken."""
        admin = AdminClient({"bootstrap.servers": self._bootstrap, **QUIET})
        for group in self._book.languages:
            asked = [ConsumerGroupTopicPartitions(group, [TopicPartition(TOPIC, index) for index in range(PARTITIONS)])]
            found = admin.list_consumer_group_offsets(asked, request_timeout=ANSWER_S)[group].result()
            offsets = {each.partition: each.offset for each in found.topic_partitions}
            with self._book.lock:
                told = [reading.committed for reading in self._book.readings.values() if reading.group == group]
            for index in range(PARTITIONS):
                # A partition moves between members: the lowest of their last commits is the bound.
                least = min((each[index] for each in told if index in each), default=-1)
                _demand(offsets[index] >= least, f"group {group} is at {offsets[index]} in {TOPIC}-{index}, {least} was told")


def _demand(condition: bool, otherwise: str) -> None:
    if not condition:
        raise Broken(otherwise)
