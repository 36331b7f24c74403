"""kafka-python 1.3 or 1.4 against a broker: old_kafka.py HOST:PORT PREFIX. Prints "ok NAME" for every scenario, up to one that fails.

`api_version` has it speak as it does with a broker of that age; without it asks which that is.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from functools import partial
from typing import Any

from kafka import KafkaConsumer, KafkaProducer, SimpleClient, SimpleConsumer, SimpleProducer, TopicPartition, __version__
from kafka.structs import OffsetAndMetadata

WAIT_S = 60.0
COUNT = 30
VERSIONS = ((0, 8, 1), (0, 8, 2), (0, 9), (0, 10), (0, 10, 1), *([] if __version__.startswith("1.3.") else [(0, 11)]), None)
WITH_GROUPS = ((0, 9), (0, 10), (0, 10, 1), None)
CODECS = (None, "gzip")  # the other codecs need extra packages
Version = tuple[int, ...] | None


def until(what: str, condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + WAIT_S
    while not condition():
        assert time.monotonic() < deadline, f"never: {what}"
        time.sleep(0.02)


def sent(number: int) -> tuple[bytes | None, bytes | None]:
    return (None if number % 5 == 0 else b"key %d" % number, None if number % 5 == 3 else b"value %d" % number)


def produce(bootstrap: str, topic: str, version: Version, codec: str | None = None, begin: int = 0) -> None:
    with closing(KafkaProducer(bootstrap_servers=bootstrap, api_version=version, compression_type=codec, retries=5)) as producer:
        waiting = []
        for number in range(begin, begin + COUNT):
            key, value = sent(number)
            waiting.append(producer.send(topic, value, key, partition=0))
        offsets = [each.get(WAIT_S).offset for each in waiting]
    assert offsets == list(range(begin, begin + COUNT)), offsets


def consuming(bootstrap: str, group: str | None, version: Version) -> Any:
    settings: dict[str, Any] = {"auto_offset_reset": "earliest", "enable_auto_commit": False, "heartbeat_interval_ms": 300}
    return KafkaConsumer(bootstrap_servers=bootstrap, group_id=group, api_version=version, **settings)


def read(consumer: Any, count: int) -> list[Any]:
    found: list[Any] = []

    def poll() -> bool:
        for records in consumer.poll(200).values():
            found.extend(records)
        return len(found) >= count

    until(f"{count} records", poll)
    return found


def round_trip(bootstrap: str, topic: str, version: Version, codec: str | None) -> None:
    produce(bootstrap, topic, version, codec)
    place = TopicPartition(topic, 0)
    with closing(consuming(bootstrap, None, version)) as consumer:
        consumer.assign([place])
        found = read(consumer, COUNT)
    assert [(each.key, each.value) for each in found] == [sent(number) for number in range(COUNT)]
    assert [each.offset for each in found] == list(range(COUNT))


def commits(bootstrap: str, topic: str, version: Version) -> None:
    """Offsets of a group: those of 0.8.1 are asked of any broker, later ones of the coordinator."""
    produce(bootstrap, topic, version)
    place = TopicPartition(topic, 0)
    with closing(consuming(bootstrap, topic, version)) as consumer:
        consumer.assign([place])
        assert consumer.committed(place) is None
        consumer.commit({place: OffsetAndMetadata(7, "note")})
    with closing(consuming(bootstrap, topic, version)) as consumer:
        consumer.assign([place])
        assert consumer.committed(place) == 7
        assert read(consumer, 1)[0].offset == 7


class Member(threading.Thread):
    """A consumer in a thread of its own, for it joins a group while it polls."""

    def __init__(self, bootstrap: str, topic: str, version: Version) -> None:
        super().__init__(daemon=True)
        self.share = -1
        self.ending = False
        self._consumer = consuming(bootstrap, topic, version)
        self._consumer.subscribe([topic])
        self.start()

    def run(self) -> None:
        while not self.ending:
            self._consumer.poll(100)
            self.share = len(self._consumer.assignment())
        self._consumer.close()

    def end(self) -> None:
        self.ending = True
        self.join(WAIT_S)
        assert not self.is_alive()


def two_members(bootstrap: str, topic: str, version: Version) -> None:
    first = Member(bootstrap, topic, version)
    until("the first has all", lambda: first.share == 4)
    second = Member(bootstrap, topic, version)
    until("both have half", lambda: first.share == second.share == 2)
    second.end()
    until("the first has all again", lambda: first.share == 4)
    first.end()


def simple(bootstrap: str, topic: str) -> None:
    """The clients from before there were groups: all in version 0, their offsets where Kafka kept them in ZooKeeper."""
    client = SimpleClient(bootstrap)
    for begin in (0, COUNT):
        answers = SimpleProducer(client).send_messages(topic, *[b"value %d" % number for number in range(begin, begin + COUNT)])
        assert [each.offset for each in answers] == [begin]
        consumer = SimpleConsumer(client, topic, topic, auto_commit=False, iter_timeout=10)
        found = consumer.get_messages(count=COUNT, block=True, timeout=30)
        assert [each.message.value for each in found] == [b"value %d" % number for number in range(begin, begin + COUNT)]
        assert consumer.commit()
        consumer.stop()
    client.close()


def scenarios() -> Iterator[tuple[str, Callable[[str, str], None]]]:
    for version in VERSIONS:
        name = "asked" if version is None else ".".join(map(str, version))
        for codec in CODECS:
            yield f"{name}-{codec}", partial(round_trip, version=version, codec=codec)
        yield f"{name}-commits", partial(commits, version=version)
    for version in WITH_GROUPS:
        name = "asked" if version is None else ".".join(map(str, version))
        yield f"{name}-members", partial(two_members, version=version)
    yield "simple", simple


def create(bootstrap: str, topic: str) -> None:
    """As clients made topics before there was a request for it: by asking for them."""
    with closing(SimpleClient(bootstrap)) as client:
        client.ensure_topic_exists(topic, timeout=WAIT_S)


def main() -> None:
    bootstrap, prefix = sys.argv[1:]
    for name, run in scenarios():
        topic = f"{prefix}-{name}"
        if not name.endswith("members"):  # the test creates these topics, with several partitions
            create(bootstrap, topic)
        run(bootstrap, topic)
        print("ok", name, flush=True)


main()
