"""The records of the producers in the topics."""

from __future__ import annotations

import json
import threading

import pytest
from confluent_kafka import Consumer, KafkaError, TopicPartition

from demo import data, topics
from demo.data import MARKER_CODE, DemoError, Slice, milliseconds
from demo.publish import Pace, publish_flights, publish_reference, publish_weather

PART = Slice(1)


def ignore(_records: int, _words: str) -> None:
    """A report that nobody reads."""


def read_all(bootstrap: str, topic: str) -> list[list[tuple[bytes, int, dict[str, object]]]]:
    """Key, timestamp and value of every record, by partition."""
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "test", "enable.partition.eof": True})
    partitions = topics.end_offsets(bootstrap, topic)
    consumer.assign([TopicPartition(topic, partition, 0) for partition in partitions])
    records: list[list[tuple[bytes, int, dict[str, object]]]] = [[] for _ in partitions]
    ended = 0
    while ended < len(partitions):
        message = consumer.poll(10)
        assert message is not None, "nothing came"
        error = message.error()
        if error is not None:
            assert error.code() == KafkaError._PARTITION_EOF, error
            ended += 1
            continue
        key, value, partition = message.key(), message.value(), message.partition()
        assert isinstance(key, bytes)
        assert value is not None
        assert partition is not None
        records[partition].append((key, message.timestamp()[1], json.loads(value)))
    consumer.close()
    return records


@pytest.mark.parametrize(
    ("topic", "publish", "rows"),
    [
        (topics.FLIGHTS, publish_flights, len(data.flights(PART))),
        (topics.WEATHER, publish_weather, len(data.weather(PART))),
    ],
)
def test_a_stream_is_in_order_and_ends_with_its_marker(bootstrap: str, topic: str, publish: object, rows: int) -> None:
    assert callable(publish)
    topics.create_topics(bootstrap)
    assert publish(bootstrap, PART, Pace(0), ignore) == rows
    partitions = read_all(bootstrap, topic)
    for records in partitions:
        times = [time_ms for _, time_ms, _ in records]
        assert times == sorted(times)
    records = [record for partition in partitions for record in partition]
    assert len(records) == rows + 1
    markers = [(time_ms, value["origin"]) for key, time_ms, value in records if key == MARKER_CODE.encode()]
    assert markers == [(milliseconds(PART.closing), MARKER_CODE)]


def test_what_is_missing_is_null_and_numbers_are_whole(bootstrap: str) -> None:
    topics.create_topics(bootstrap)
    publish_flights(bootstrap, PART, Pace(0), ignore)
    values = [value for partition in read_all(bootstrap, topics.FLIGHTS) for _, _, value in partition]
    delays = [value["dep_delay"] for value in values if value["carrier"] != MARKER_CODE]
    expected = data.flights(PART)["dep_delay"]
    assert sum(delay is None for delay in delays) == expected.isna().sum() > 0
    assert all(isinstance(delay, int) for delay in delays if delay is not None)
    assert sum(delay for delay in delays if isinstance(delay, int)) == expected.sum()


def test_reference_tables_are_keyed(bootstrap: str) -> None:
    topics.create_topics(bootstrap)
    published = publish_reference(bootstrap, ignore)
    assert published == sum(len(data.table(name)) for name in topics.REFERENCE)
    [airlines] = read_all(bootstrap, "airlines")
    assert {key.decode(): value["name"] for key, _, value in airlines} == dict(data.table("airlines").itertuples(index=False))


def test_a_stopped_producer_stops(bootstrap: str) -> None:
    topics.create_topics(bootstrap)
    stop = threading.Event()
    stop.set()
    assert publish_flights(bootstrap, PART, Pace(0.001, stop), ignore) == 0


def test_topics_of_an_earlier_run_are_not_overwritten_unasked(bootstrap: str) -> None:
    topics.create_topics(bootstrap)
    publish_reference(bootstrap, ignore)
    with pytest.raises(DemoError, match="--again"):
        topics.create_topics(bootstrap)
    topics.create_topics(bootstrap, again=True)
    assert topics.end_offsets(bootstrap, "airlines") == {0: (0, 0)}


def test_a_missing_topic_is_named(bootstrap: str) -> None:
    with pytest.raises(DemoError, match="carrier-delays"):
        topics.end_offsets(bootstrap, topics.RESULTS)
