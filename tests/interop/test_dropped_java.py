"""Java clients whose versions of the protocol Kafka 4 dropped: those of 0.8 and 0.9 do not ask which versions are served."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient, NewTopic
from tools.kafka import DROPPED_CLIENTS, java

from tests.interop.conftest import Server

pytestmark = [pytest.mark.interop, pytest.mark.timeout(300)]
PROGRAMS = Path(__file__).parent / "java"
JVM = ("-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
WITH_GROUPS = DROPPED_CLIENTS[1:]
# 0.11 and 1.x have transactions too, but not these methods of the admin client and the consumer
WITH_TRANSACTIONS = DROPPED_CLIENTS[-1:]
RECORDS = 60
WAIT_S = 60.0
Unique = Callable[[str], str]


def create(server: Server, topic: str, partitions: int) -> str:
    admin = AdminClient({"bootstrap.servers": server.bootstrap})
    admin.create_topics([NewTopic(topic, partitions, 1)])[topic].result(WAIT_S)
    return topic


def run(version: str, program: str, *arguments: str) -> list[str]:
    command = java(str(PROGRAMS / program), *arguments, jvm=JVM, jars=f"clients-{version}")
    done = subprocess.run(command, capture_output=True, text=True, timeout=200, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def written(number: int) -> tuple[bytes | None, bytes | None]:
    """The records that OldProducer.java writes."""
    return (None if number % 5 == 0 else b"key %d" % number, None if number % 7 == 3 else b"value %d" % number)


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4"])
@pytest.mark.parametrize("version", DROPPED_CLIENTS)
def test_what_a_producer_writes_is_read_by_a_client_of_today(version: str, codec: str, server: Server, unique: Unique) -> None:
    topic = create(server, unique("written"), 1)
    acks = "1" if codec == "gzip" else "all"
    offsets = run(version, "OldProducer.java", server.bootstrap, topic, str(RECORDS), codec, acks)
    assert offsets == [str(number) for number in range(RECORDS)]
    consumer = Consumer({"bootstrap.servers": server.bootstrap, "group.id": topic, "auto.offset.reset": "earliest"})
    consumer.subscribe([topic])
    found = consumer.consume(RECORDS, WAIT_S)
    consumer.close()
    assert [(each.key(), each.value()) for each in found] == [written(number) for number in range(RECORDS)]


@pytest.mark.parametrize("version", WITH_GROUPS)
def test_two_members_of_a_group_share_commit_and_take_over(version: str, server: Server, unique: Unique) -> None:
    topic = create(server, unique("group"), 4)
    producer = Producer({"bootstrap.servers": server.bootstrap, "compression.type": "gzip", "linger.ms": 20})
    for number in range(RECORDS):
        producer.produce(topic, f"value {number}", f"key {number}", partition=number % 4, headers={"h": b"dropped"})
    assert producer.flush(WAIT_S) == 0
    *found, committed = run(version, "OldGroup.java", server.bootstrap, topic, str(RECORDS))
    assert sorted(found) == sorted(f"key {number}: value {number}" for number in range(RECORDS))
    assert committed == f"committed {RECORDS}"


@pytest.mark.parametrize("version", WITH_GROUPS[:2])
def test_a_reader_from_before_transactions_gets_all_records_and_no_markers(version: str, server: Server, unique: Unique) -> None:
    topic = create(server, unique("transactions"), 4)
    producer = Producer({"bootstrap.servers": server.bootstrap, "transactional.id": topic})
    producer.init_transactions(WAIT_S)
    for count, end in ((10, producer.commit_transaction), (5, producer.abort_transaction)):
        producer.begin_transaction()
        for number in range(count * 4):
            producer.produce(topic, f"{count} {number}", "k", partition=number % 4, headers={"h": b"dropped"})
        producer.flush(WAIT_S)
        end(WAIT_S)
    *found, committed = run(version, "OldGroup.java", server.bootstrap, topic, "60")
    assert sorted(found) == sorted(f"k: {count} {number}" for count in (10, 5) for number in range(count * 4))
    assert committed == "committed 64"  # four partitions, each at 16: ten records, a marker, five aborted records


@pytest.mark.parametrize("version", WITH_TRANSACTIONS)
def test_transactions_and_the_admin_client(version: str, server: Server, unique: Unique) -> None:
    *found, groups = run(version, "RoundTrip.java", server.bootstrap, unique("older"), "20")
    assert sorted(found) == sorted(f"key {number}: value {number}" for number in range(20))
    assert int(groups.removeprefix("groups ")) >= 1
