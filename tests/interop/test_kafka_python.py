"""kafka-python."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import closing

import pytest
from kafka import KafkaConsumer, KafkaProducer, TopicPartition
from kafka.admin import KafkaAdminClient, NewTopic
from kafka.structs import OffsetAndMetadata

from tests.interop.conftest import Server
from tests.interop.messages import BASE_TIME_MS, MEGABYTE, STEP_MS, Sent, messages

Unique = Callable[[str], str]
WAIT_S = 30.0


@pytest.fixture
def admin(server: Server) -> Iterator[KafkaAdminClient]:
    with closing(KafkaAdminClient(bootstrap_servers=server.bootstrap)) as client:
        yield client


def create(admin: KafkaAdminClient, name: str, partitions: int = 1) -> str:
    admin.create_topics([NewTopic(name, partitions, 1)])
    return name


def test_what_coordinates_the_cluster(admin: KafkaAdminClient) -> None:
    (topic,) = admin.describe_metadata_quorum()["topics"]
    (partition,) = topic["partitions"]
    ends = {voter["replica_id"]: voter["log_end_offset"] for voter in partition["current_voters"]}
    assert 0 < partition["high_watermark"] <= ends[partition["leader_id"]]


def produce(server: Server, topic: str, sent: list[Sent], **config: object) -> None:
    with closing(KafkaProducer(bootstrap_servers=server.bootstrap, acks="all", **config)) as producer:
        futures = [
            producer.send(
                topic, each.value, each.key, headers=list(each.headers), partition=0, timestamp_ms=each.timestamp_ms
            )
            for each in sent
        ]  # fmt: skip
        for future in futures:
            future.get(WAIT_S)


def consuming(server: Server, group: str | None, *topics: str, **config: object) -> closing[KafkaConsumer]:
    settings = {"auto_offset_reset": "earliest", "enable_auto_commit": False, "heartbeat_interval_ms": 200, **config}
    settings.setdefault(
        "metadata_max_age_ms", 2_000
    )  # it may lead a group before it knows the topic, and assign nothing until then
    return closing(KafkaConsumer(*topics, bootstrap_servers=server.bootstrap, group_id=group, **settings))


def read(consumer: KafkaConsumer, count: int) -> list[Sent]:
    found: list[Sent] = []
    deadline = time.monotonic() + WAIT_S
    while len(found) < count:
        assert time.monotonic() < deadline, f"{len(found)} messages of {count}"
        for records in consumer.poll(200).values():
            found += [Sent(each.key, each.value, tuple(each.headers), each.timestamp) for each in records]
    return found


@pytest.mark.parametrize("codec", ["none", "gzip"])  # the other codecs need extra packages
def test_codecs_with_headers_and_tombstones(codec: str, server: Server, admin: KafkaAdminClient, unique: Unique) -> None:
    topic = create(admin, unique("topic"))
    produce(server, topic, messages(), compression_type=None if codec == "none" else codec)
    with consuming(server, unique("group"), topic) as consumer:
        assert read(consumer, len(messages())) == messages()


def test_messages_of_one_megabyte(server: Server, admin: KafkaAdminClient, unique: Unique) -> None:
    topic = create(admin, unique("topic"))
    sent = [Sent(b"k", MEGABYTE)] * 3
    produce(server, topic, sent, max_request_size=2_000_000)
    with consuming(server, None, topic) as consumer:
        assert read(consumer, 3) == sent


def test_idempotent_producer(server: Server, admin: KafkaAdminClient, unique: Unique) -> None:
    topic = create(admin, unique("topic"))
    sent = [Sent(b"k", str(index).encode()) for index in range(500)]
    produce(server, topic, sent, enable_idempotence=True)
    with consuming(server, None, topic) as consumer:
        assert read(consumer, 500) == sent


def test_seek_by_time(server: Server, admin: KafkaAdminClient, unique: Unique) -> None:
    topic = create(admin, unique("topic"))
    produce(server, topic, messages())
    place = TopicPartition(topic, 0)
    with consuming(server, None) as consumer:
        consumer.assign([place])
        found = consumer.offsets_for_times({place: BASE_TIME_MS + 7 * STEP_MS - 1})[place]
        assert (found.offset, found.timestamp) == (7, BASE_TIME_MS + 7 * STEP_MS)
        consumer.seek(place, found.offset)
        assert read(consumer, 1)[0] == messages()[7]
        assert consumer.beginning_offsets([place])[place] == 0
        assert consumer.end_offsets([place])[place] == len(messages())


def test_two_consumers_share_and_take_over(server: Server, admin: KafkaAdminClient, unique: Unique) -> None:
    topic, group = create(admin, unique("topic"), 4), unique("group")
    with consuming(server, group, topic) as first:
        assert _shares([4], first) == [4]
        with consuming(server, group, topic) as second:
            assert _shares([2, 2], first, second) == [2, 2]
        assert _shares([4], first) == [4]


def _shares(wanted: list[int], *consumers: KafkaConsumer) -> list[int]:
    """How many partitions each consumer has, once these are as wanted, or the time is over."""
    deadline = time.monotonic() + WAIT_S
    while True:
        found = [len(consumer.assignment()) for consumer in consumers]
        if found == wanted or time.monotonic() > deadline:
            return found
        for consumer in consumers:
            consumer.poll(50)


def test_commits_with_metadata(server: Server, admin: KafkaAdminClient, unique: Unique) -> None:
    topic, group = create(admin, unique("topic")), unique("group")
    place = TopicPartition(topic, 0)
    with consuming(server, group) as consumer:
        consumer.assign([place])
        consumer.commit({place: OffsetAndMetadata(5, "note", -1)})
        assert consumer.committed(place, metadata=True).metadata == "note"
        assert consumer.committed(place) == 5


def test_topics_come_and_go(server: Server, admin: KafkaAdminClient, unique: Unique) -> None:
    topic = create(admin, unique("topic"), 2)
    assert topic in admin.list_topics()
    admin.delete_topics([topic])
    deadline = time.monotonic() + WAIT_S
    while topic in admin.list_topics():
        assert time.monotonic() < deadline
