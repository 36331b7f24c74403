"""confluent-kafka (librdkafka)."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import cast

import pytest
from confluent_kafka import Consumer, ConsumerGroupTopicPartitions, KafkaException, Message, Producer, TopicPartition
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewPartitions,
    NewTopic,
    OffsetSpec,
    ResourceType,
)

from tests.interop.conftest import Server
from tests.interop.messages import BASE_TIME_MS, CODECS, MEGABYTE, STEP_MS, Sent, messages
from tests.interop.test_kcat import codecs_stored
from tests.waiting import wait_until

Unique = Callable[[str], str]
WAIT_S = 30.0


@pytest.fixture
def admin(server: Server) -> AdminClient:
    return AdminClient({"bootstrap.servers": server.bootstrap})


def create(admin: AdminClient, name: str, partitions: int = 1, **config: str) -> str:
    settings = {key.replace("_", "."): value for key, value in config.items()}
    admin.create_topics([NewTopic(name, partitions, 1, config=settings)])[name].result(WAIT_S)
    return name


def produce(server: Server, topic: str, sent: list[Sent], **config: str | int | bool) -> None:
    producer = Producer(
        {"bootstrap.servers": server.bootstrap, "linger.ms": 20, **{k.replace("_", "."): v for k, v in config.items()}}
    )
    failed: list[object] = []
    for each in sent:
        producer.produce(
            topic, each.value, each.key, partition=0, timestamp=each.timestamp_ms, headers=list(each.headers),
            on_delivery=lambda error, message: failed.append(error) if error else None,
        )  # fmt: skip
    assert producer.flush(WAIT_S) == 0
    assert failed == []


@contextmanager
def consuming(server: Server, group: str, **config: object) -> Iterator[Consumer]:
    consumer = Consumer(
        {
            "bootstrap.servers": server.bootstrap,
            "group.id": group,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "session.timeout.ms": 10_000,
            "heartbeat.interval.ms": 200,
            **{key.replace("_", "."): value for key, value in config.items()},
        }
    )
    try:
        yield consumer
    finally:
        consumer.close()


def read(consumer: Consumer, count: int) -> list[Message]:
    found: list[Message] = []
    deadline = time.monotonic() + WAIT_S
    while len(found) < count:
        assert time.monotonic() < deadline, f"{len(found)} messages of {count}"
        message = consumer.poll(0.2)
        if message is not None:
            assert message.error() is None, message.error()
            found.append(message)
    return found


def _has_two_partitions(consumer: Consumer) -> bool:
    return len(consumer.assignment()) == 2


def as_sent(message: Message) -> Sent:
    headers = cast("list[tuple[str, bytes | None]]", message.headers() or [])  # only the producer accepts a dictionary
    return Sent(message.key(), message.value(), tuple(headers), message.timestamp()[1])


@pytest.mark.parametrize("codec", CODECS)
def test_every_codec_with_headers_and_tombstones(codec: str, server: Server, admin: AdminClient, unique: Unique) -> None:
    topic = create(admin, unique("topic"))
    produce(server, topic, messages(), compression_type=codec)
    with consuming(server, unique("group")) as consumer:
        consumer.subscribe([topic])
        assert [as_sent(each) for each in read(consumer, len(messages()))] == messages()
    assert codec in codecs_stored(server, topic)  # a batch that does not shrink stays uncompressed


def test_the_broker_packs_anew_for_the_topic(server: Server, admin: AdminClient, unique: Unique) -> None:
    topic = create(admin, unique("topic"), compression_type="zstd")
    produce(server, topic, messages(), compression_type="gzip")
    with consuming(server, unique("group")) as consumer:
        consumer.subscribe([topic])
        assert [as_sent(each) for each in read(consumer, len(messages()))] == messages()


def test_messages_of_one_megabyte(server: Server, admin: AdminClient, unique: Unique) -> None:
    topic = create(admin, unique("topic"))
    sent = [Sent(str(index).encode(), MEGABYTE) for index in range(5)]
    produce(server, topic, sent, message_max_bytes=2_000_000)
    with consuming(server, unique("group"), fetch_message_max_bytes=100_000) as consumer:
        consumer.subscribe([topic])
        assert [as_sent(each) for each in read(consumer, 5)] == sent


def test_a_message_that_is_too_large_is_refused(server: Server, admin: AdminClient, unique: Unique) -> None:
    topic = create(admin, unique("topic"), max_message_bytes="1000")
    producer = Producer({"bootstrap.servers": server.bootstrap})
    errors: list[str] = []
    producer.produce(topic, b"x" * 2000, on_delivery=lambda error, message: errors.append(error.name() if error else "none"))
    producer.flush(WAIT_S)
    assert errors == ["MSG_SIZE_TOO_LARGE"]


def test_idempotent_producer(server: Server, admin: AdminClient, unique: Unique) -> None:
    topic = create(admin, unique("topic"))
    sent = [Sent(b"k", str(index).encode()) for index in range(2000)]
    produce(server, topic, sent, enable_idempotence=True, batch_num_messages=10)
    with consuming(server, unique("group")) as consumer:
        consumer.subscribe([topic])
        found = read(consumer, 2000)
    assert [each.value() for each in found] == [each.value for each in sent]
    assert [each.offset() for each in found] == list(range(2000))


def test_seek_by_time(server: Server, admin: AdminClient, unique: Unique) -> None:
    topic = create(admin, unique("topic"))
    produce(server, topic, messages())
    with consuming(server, unique("group")) as consumer:
        places = [TopicPartition(topic, 0, BASE_TIME_MS + 7 * STEP_MS - 1)]
        (place,) = consumer.offsets_for_times(places, WAIT_S)
        assert place.offset == 7
        consumer.assign([place])
        assert as_sent(read(consumer, 1)[0]) == messages()[7]
        assert consumer.get_watermark_offsets(TopicPartition(topic, 0), WAIT_S) == (0, len(messages()))
        (late,) = consumer.offsets_for_times([TopicPartition(topic, 0, BASE_TIME_MS * 2)], WAIT_S)
        assert late.offset in (-1, len(messages()))


@pytest.mark.parametrize("strategy", ["range", "roundrobin", "cooperative-sticky"])
def test_two_consumers_share_and_take_over(strategy: str, server: Server, admin: AdminClient, unique: Unique) -> None:
    topic, group = create(admin, unique("topic"), 4), unique("group")
    with consuming(server, group, partition_assignment_strategy=strategy) as first:
        first.subscribe([topic])
        _until(lambda: len(first.assignment()) == 4, first)
        with consuming(server, group, partition_assignment_strategy=strategy) as second:
            second.subscribe([topic])
            _until(lambda: len(first.assignment()) == len(second.assignment()) == 2, first, second)
            owned = {place.partition for place in first.assignment() + second.assignment()}
            assert owned == {0, 1, 2, 3}
        _until(lambda: len(first.assignment()) == 4, first)


def test_static_membership(server: Server, admin: AdminClient, unique: Unique) -> None:
    topic, group = create(admin, unique("topic"), 2), unique("group")
    for _ in range(2):
        with consuming(server, group, group_instance_id="one") as consumer:
            consumer.subscribe([topic])
            _until(partial(_has_two_partitions, consumer), consumer)
    described = admin.describe_consumer_groups([group])[group].result(WAIT_S)
    assert [member.group_instance_id for member in described.members] == ["one"]


def _until(condition: Callable[[], bool], *consumers: Consumer) -> None:
    deadline = time.monotonic() + WAIT_S
    while not condition():
        assert time.monotonic() < deadline, "the group did not come to rest"
        for consumer in consumers:
            consumer.poll(0.05)


def test_commits_with_metadata(server: Server, admin: AdminClient, unique: Unique) -> None:
    topic, group = create(admin, unique("topic"), 2), unique("group")
    with consuming(server, group) as consumer:
        consumer.commit(offsets=[TopicPartition(topic, 0, 5, "note"), TopicPartition(topic, 1, 6)], asynchronous=False)
        found = consumer.committed([TopicPartition(topic, 0), TopicPartition(topic, 1)], WAIT_S)
    assert [(each.offset, each.metadata) for each in found] == [(5, "note"), (6, None)]
    listed = admin.list_consumer_group_offsets([ConsumerGroupTopicPartitions(group)])[group].result(WAIT_S)
    assert {each.partition: each.offset for each in listed.topic_partitions} == {0: 5, 1: 6}
    groups = admin.list_consumer_groups().result(WAIT_S)
    assert group in {each.group_id for each in groups.valid}
    admin.alter_consumer_group_offsets([ConsumerGroupTopicPartitions(group, [TopicPartition(topic, 0, 2)])])[group].result(WAIT_S)
    admin.delete_consumer_groups([group])[group].result(WAIT_S)


def test_admin_of_topics(server: Server, admin: AdminClient, unique: Unique) -> None:
    topic = create(admin, unique("topic"), 2, retention_ms="1234567")
    with pytest.raises(KafkaException, match="already exists"):
        create(admin, topic)
    admin.create_partitions([NewPartitions(topic, 3)])[topic].result(WAIT_S)
    wait_until(lambda: len(admin.list_topics(topic, WAIT_S).topics[topic].partitions) == 3)
    resource = ConfigResource(ResourceType.TOPIC, topic)
    found = admin.describe_configs([resource])[resource].result(WAIT_S)
    assert found["retention.ms"].value == "1234567"
    assert not found["retention.ms"].is_default
    assert found["segment.bytes"].is_default
    change = [
        ConfigEntry("cleanup.policy", "compact", incremental_operation=AlterConfigOpType.APPEND),
        ConfigEntry("retention.ms", None, incremental_operation=AlterConfigOpType.DELETE),
    ]
    changed = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=change)
    admin.incremental_alter_configs([changed])[changed].result(WAIT_S)
    wait_until(lambda: admin.describe_configs([resource])[resource].result(WAIT_S)["cleanup.policy"].value == "delete,compact")
    bad = ConfigResource(
        ResourceType.TOPIC,
        topic,
        incremental_configs=[ConfigEntry("retention.ms", "soon", incremental_operation=AlterConfigOpType.SET)],
    )
    with pytest.raises(KafkaException):
        admin.incremental_alter_configs([bad])[bad].result(WAIT_S)
    admin.delete_topics([topic])[topic].result(WAIT_S)
    wait_until(lambda: topic not in admin.list_topics(timeout=WAIT_S).topics)


def test_admin_of_records(server: Server, admin: AdminClient, unique: Unique) -> None:
    topic = create(admin, unique("topic"))
    produce(server, topic, messages())
    place = TopicPartition(topic, 0)
    admin.delete_records([TopicPartition(topic, 0, 5)])[place].result(WAIT_S)
    assert admin.list_offsets({place: OffsetSpec.earliest()})[place].result(WAIT_S).offset == 5
    assert admin.list_offsets({place: OffsetSpec.latest()})[place].result(WAIT_S).offset == len(messages())
    assert admin.list_offsets({place: OffsetSpec.max_timestamp()})[place].result(WAIT_S).offset == len(messages()) - 1


def test_admin_of_the_cluster(server: Server, admin: AdminClient) -> None:
    cluster = admin.describe_cluster().result(WAIT_S)
    assert len(cluster.nodes) == 1
    assert cluster.cluster_id
    resource = ConfigResource(ResourceType.BROKER, str(cluster.nodes[0].id))
    found = admin.describe_configs([resource])[resource].result(WAIT_S)
    assert found["message.max.bytes"].value == "2000000"
