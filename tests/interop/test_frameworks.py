"""Apache Kafka's frameworks on top of its clients: Kafka Streams, exactly once with its state in changelogs, and MirrorMaker on
Connect."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient, NewTopic
from tools.kafka import java

from tests.interop.conftest import Server, running

pytestmark = [pytest.mark.interop, pytest.mark.timeout(600)]
WORD_COUNT = Path(__file__).parent / "java" / "WordCount.java"
JVM = ("-Xmx384m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
WAIT_S = 180.0
INTERNAL = ["checkpoints.topic", "heartbeats.topic", "offset-syncs.topic", "offset.storage", "status.storage", "config.storage"]
LINES = [f"all tens{index % 10} hundreds{index % 100}" for index in range(2000)]
Unique = Callable[[str], str]


def create(server: Server, *topics: str) -> None:
    admin = AdminClient({"bootstrap.servers": server.bootstrap})
    for each in admin.create_topics([NewTopic(topic, 4, 1) for topic in topics]).values():
        each.result(WAIT_S)


def produce(server: Server, topic: str, lines: list[str]) -> None:
    producer = Producer({"bootstrap.servers": server.bootstrap, "enable.idempotence": True})
    for line in lines:
        producer.produce(topic, value=line)
    assert producer.flush(WAIT_S) == 0


@contextmanager
def process(command: list[str], folder: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A child with what it says in a file; it is gone at the end."""
    with (folder / "output").open("ab") as output:
        child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=output, stderr=output)
    with child:
        try:
            yield child
        finally:
            child.kill()


class Reader:
    """Committed records of a topic."""

    def __init__(self, server: Server, topic: str) -> None:
        settings = {"bootstrap.servers": server.bootstrap, "group.id": f"{topic}-reader", "auto.offset.reset": "earliest"}
        self._consumer = Consumer({**settings, "isolation.level": "read_committed", "topic.metadata.refresh.interval.ms": 500})
        self._consumer.subscribe([topic])
        self.records: list[tuple[bytes | None, bytes]] = []

    def read_until(self, is_enough: Callable[[], bool]) -> None:
        while not is_enough():
            message = self._consumer.poll(WAIT_S)
            assert message is not None, f"nothing more came after {len(self.records)} records"
            if message.error() is None:
                key, value = message.key(), message.value()
                assert isinstance(value, bytes)
                self.records.append((key if key is None else bytes(key), value))

    def close(self) -> None:
        self._consumer.close()


def expected(times: int) -> dict[bytes | None, bytes]:
    counts: dict[bytes | None, int] = {}
    for line in LINES * times:
        for word in line.split():
            counts[word.encode()] = counts.get(word.encode(), 0) + 1
    return {word: b"%d" % count for word, count in counts.items()}


def test_streams_count_exactly_once_though_they_are_killed(server: Server, unique: Unique, tmp_path: Path) -> None:
    lines, counts = unique("lines"), unique("counts")
    create(server, lines, counts)
    settings = tmp_path / "settings"
    settings.write_text(
        f"bootstrap.servers={server.bootstrap}\napplication.id={unique('application')}\nprocessing.guarantee=exactly_once_v2\n"
        f"state.dir={tmp_path / 'state'}\ncommit.interval.ms=100\nauto.offset.reset=earliest\nsession.timeout.ms=6000\n"
    )
    command = java(str(WORD_COUNT), str(settings), lines, counts, jvm=JVM, jars="frameworks")
    reader = Reader(server, counts)
    produce(server, lines, LINES)
    with process(command, tmp_path):
        reader.read_until(lambda: len(reader.records) >= 10)  # then the test kills it during its work
    with process(command, tmp_path):
        produce(server, lines, LINES)
        reader.read_until(lambda: dict(reader.records).items() >= expected(2).items())
    reader.close()
    words = [word for word, _ in reader.records]
    assert set(words) == set(expected(1))
    of_each = {word: [int(count) for each, count in reader.records if each == word] for word in set(words)}
    assert all(counted == sorted(set(counted)) for counted in of_each.values()), "a count that was taken back or told twice"


def test_mirror_maker_copies_a_topic_exactly_once(server: Server, unique: Unique, tmp_path: Path) -> None:
    topic = unique("topic")
    create(server, topic)
    produce(server, topic, LINES)
    with running(server.kind) as other:
        one = "".join(f"{name}.replication.factor=1\n" for name in INTERNAL)
        settings = tmp_path / "settings"
        settings.write_text(
            f"clusters=here,there\nhere.bootstrap.servers={server.bootstrap}\nthere.bootstrap.servers={other.bootstrap}\n"
            f"here->there.enabled=true\nhere->there.topics={topic}\nthere->here.enabled=false\nreplication.factor=1\n{one}"
            "there.exactly.once.source.support=enabled\ndedicated.mode.enable.internal.rest=true\nlisteners=http://127.0.0.1:0\n"
        )
        command = java("org.apache.kafka.connect.mirror.MirrorMaker", str(settings), jvm=JVM, jars="frameworks")
        reader = Reader(other, f"here.{topic}")
        with process(command, tmp_path):
            reader.read_until(lambda: len(reader.records) >= len(LINES))
        reader.close()
    assert sorted(value for _, value in reader.records) == sorted(line.encode() for line in LINES)
