"""Batch queries over topics, through a real Spark session and a real server."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pytest
from confluent_kafka import Producer

from barnabas.client.blocking import BlockingClient
from barnabas.client.errors import UnsupportedRequest
from barnabas.client.plans import ANY_BROKER
from barnabas.protocol.messages.add_partitions_to_txn import AddPartitionsToTxnRequest

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.spark
Produce = Callable[..., None]
MakeTopic = Callable[..., str]


def test_the_columns_are_those_of_sparks_kafka_source(load: Callable[..., DataFrame], topic: MakeTopic, produce: Produce) -> None:
    name = topic(2)
    produce(name, [(0, b"k", b"v", {"timestamp": 1_700_000_000_123}), (1, None, None, {"timestamp": 1_700_000_000_456})])
    frame = load(subscribe=name)
    assert frame.dtypes == [
        ("key", "binary"), ("value", "binary"), ("topic", "string"), ("partition", "int"), ("offset", "bigint"),
        ("timestamp", "timestamp"), ("timestampType", "int"),
    ]  # fmt: skip
    rows = [tuple(row) for row in frame.withColumn("timestamp", frame["timestamp"].cast("double")).orderBy("partition").collect()]
    assert rows == [(b"k", b"v", name, 0, 0, 1_700_000_000.123, 0), (None, None, name, 1, 0, 1_700_000_000.456, 0)]


def test_headers_come_on_request_and_are_null_where_there_are_none(
    load: Callable[..., DataFrame], topic: MakeTopic, produce: Produce
) -> None:
    name = topic()
    produce(name, [(0, b"a", b"1", {"headers": [("h", b"x"), ("n", None), ("h", b"")]}), (0, b"b", b"2")])
    rows = load(subscribe=name, includeHeaders="true").orderBy("offset").collect()
    assert [row.headers and [tuple(h) for h in row.headers] for row in rows] == [[("h", b"x"), ("n", None), ("h", b"")], None]


@pytest.mark.parametrize("codec", ["gzip", "snappy", "lz4", "zstd"])
def test_compressed_batches(load: Callable[..., DataFrame], topic: MakeTopic, produce: Produce, codec: str) -> None:
    name = topic()
    produce(name, [(0, b"%d" % i, b"value " * (i % 7)) for i in range(500)], **{"compression.type": codec})
    rows = load(subscribe=name).select("key", "value", "offset").orderBy("offset").collect()
    assert [tuple(row) for row in rows] == [(b"%d" % i, b"value " * (i % 7), i) for i in range(500)]


def test_offsets_given_by_hand(load: Callable[..., DataFrame], topic: MakeTopic, produce: Produce) -> None:
    name = topic(2)
    produce(name, [(i % 2, None, b"%d" % i) for i in range(20)])
    frame = load(
        subscribe=name,
        startingOffsets=json.dumps({name: {"0": 3, "1": -2}}),
        endingOffsets=json.dumps({name: {"0": 7, "1": -1}}),
    )
    assert sorted((row.partition, row.offset) for row in frame.collect()) == [(0, i) for i in range(3, 7)] + [
        (1, i) for i in range(10)
    ]


def test_positions_by_timestamp(load: Callable[..., DataFrame], topic: MakeTopic, produce: Produce) -> None:
    name = topic(2)
    produce(name, [(p, None, b"x", {"timestamp": 1_000_000 + i * 1_000}) for i in range(10) for p in range(2)])
    everywhere = load(subscribe=name, startingTimestamp="1003000", endingTimestamp="1006000")
    assert sorted((r.partition, r.offset) for r in everywhere.collect()) == [(p, i) for p in range(2) for i in (3, 4, 5)]
    by_partition = load(
        subscribe=name,
        startingOffsetsByTimestamp=json.dumps({name: {"0": 1_008_000, "1": 1_009_000}}),
        endingOffsetsByTimestamp=json.dumps({name: {"0": 9_999_000, "1": 9_999_000}}),
    )
    assert sorted((r.partition, r.offset) for r in by_partition.collect()) == [(0, 8), (0, 9), (1, 9)]
    with pytest.raises(Exception, match=r"No offset matched from request of topic-partition .* and timestamp 9999000"):
        load(subscribe=name, startingTimestamp="9999000").collect()
    assert load(subscribe=name, startingTimestamp="9999000", startingOffsetsByTimestampStrategy="latest").collect() == []


def test_pattern_and_assignment(load: Callable[..., DataFrame], topic: MakeTopic, produce: Produce) -> None:
    one, other = topic(2), topic(2)
    produce(one, [(0, None, b"a"), (1, None, b"b")])
    produce(other, [(0, None, b"c"), (1, None, b"d")])
    assert {bytes(r.value) for r in load(subscribePattern=f"{one}|{other}").collect()} == {b"a", b"b", b"c", b"d"}
    assert {bytes(r.value) for r in load(subscribe=f"{one}, {other}").collect()} == {b"a", b"b", b"c", b"d"}
    assert {bytes(r.value) for r in load(assign=json.dumps({one: [1], other: [0]})).collect()} == {b"b", b"c"}


def test_more_tasks_than_partitions(load: Callable[..., DataFrame], topic: MakeTopic, produce: Produce) -> None:
    name = topic()
    produce(name, [(0, None, b"%d" % i) for i in range(1000)])
    frame = load(subscribe=name, minPartitions="4")
    assert frame.rdd.getNumPartitions() == 4
    assert sorted(row.offset for row in frame.collect()) == list(range(1000))


def test_an_empty_topic_gives_no_rows(load: Callable[..., DataFrame], topic: MakeTopic) -> None:
    assert load(subscribe=topic(2)).collect() == []


def test_records_that_are_gone(
    load: Callable[..., DataFrame], topic: MakeTopic, produce: Produce, client: BlockingClient
) -> None:
    name = topic()
    produce(name, [(0, None, b"%d" % i) for i in range(20)])
    client.delete_records({(name, 0): 12})
    assert [r.offset for r in load(subscribe=name).collect()] == list(range(12, 20))
    by_hand = {"subscribe": name, "startingOffsets": json.dumps({name: {"0": 5}})}
    with pytest.raises(Exception, match=r"Could not read records in offset \[5, 20\).*the log begins at offset 12"):
        load(**by_hand).collect()
    assert [r.offset for r in load(**by_hand, failOnDataLoss="false").collect()] == list(range(12, 20))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "One of the following options must be specified for Kafka source"),
        ({"subscribe": "a", "assign": "{}"}, "Only one of the following options can be specified"),
        ({"subscribe": "a", "startingOffsets": "latest"}, "starting offset can't be latest for batch queries on Kafka"),
        ({"subscribe": "there-is-no-such-topic"}, "there-is-no-such-topic: UNKNOWN_TOPIC_OR_PARTITION"),
        ({"subscribe": "a", "kafka__auto.offset.reset": "latest"}, "Kafka option 'auto.offset.reset' is not supported"),
    ],
)
def test_mistakes_are_named(load: Callable[..., DataFrame], options: dict[str, str], message: str) -> None:
    with pytest.raises(Exception, match=message):
        load(**options).collect()


def test_a_custom_schema_is_refused(spark: SparkSession, kafka_server: str) -> None:
    reader = spark.read.format("barnabas").option("kafka.bootstrap.servers", kafka_server).option("subscribe", "a")
    with pytest.raises(Exception, match="Kafka source has a fixed schema"):
        reader.schema("a int").load().collect()


def test_rows_and_windows_in_sql(spark: SparkSession, load: Callable[..., DataFrame], topic: MakeTopic, produce: Produce) -> None:
    name = topic()
    at = int(datetime(2024, 1, 1, tzinfo=UTC).timestamp() * 1000)
    produce(name, [(0, None, b"%d" % i, {"timestamp": at + i * 60_000}) for i in range(120)])
    load(subscribe=name).createOrReplaceTempView("records")
    rows = spark.sql(
        "select window(timestamp, '1 hour').start as hour, count(*) as n, sum(cast(cast(value as string) as int)) as total "
        "from records group by 1 order by 1"
    ).collect()
    assert [(row.n, row.total) for row in rows] == [(60, sum(range(60))), (60, sum(range(60, 120)))]


def test_transactions(load: Callable[..., DataFrame], topic: MakeTopic, kafka_server: str, client: BlockingClient) -> None:
    client.topics()
    try:
        client.connection_to(ANY_BROKER).wire.version_of(AddPartitionsToTxnRequest)
    except UnsupportedRequest:
        pytest.skip("the server has no transactions")
    name = topic()
    producer = Producer({"bootstrap.servers": kafka_server, "transactional.id": name})
    producer.init_transactions()
    for i, end in enumerate([producer.commit_transaction, producer.abort_transaction, producer.commit_transaction]):
        producer.begin_transaction()
        for _ in range(3):
            producer.produce(name, b"%d" % i)
        producer.flush()
        end()
    committed = load(subscribe=name).orderBy("offset").collect()
    assert [(row.offset, row.value) for row in committed] == [(i, b"0") for i in range(3)] + [(i, b"2") for i in range(8, 11)]
    assert len(load(subscribe=name, kafka__isolation__level="read_uncommitted").collect()) == 9


def test_a_frame_reads_the_offsets_of_its_first_use_unless_tasks_resolve_them(
    load: Callable[..., DataFrame], topic: MakeTopic, produce: Produce
) -> None:
    name = topic(2)
    planned, followed = load(subscribe=name), load(subscribe=name, resolveOffsets="task")
    assert (planned.count(), followed.count()) == (0, 0)
    produce(name, [(p, None, b"x") for p in range(2)])
    assert (planned.count(), followed.count()) == (0, 2)
    assert load(subscribe=name).count() == 2


@pytest.fixture
def pushdown(spark: SparkSession) -> Iterator[None]:
    spark.conf.set("spark.sql.python.filterPushdown.enabled", "true")
    yield
    spark.conf.unset("spark.sql.python.filterPushdown.enabled")


@pytest.mark.usefixtures("pushdown")
def test_filters_are_pushed_where_spark_offers_them(load: Callable[..., DataFrame], topic: MakeTopic, produce: Produce) -> None:
    name = topic(3)
    produce(name, [(p, None, b"x", {"timestamp": 1_000_000 + i * 1_000}) for i in range(10) for p in range(3)])
    some = load(subscribe=name).where("partition in (0, 2) and offset >= 4 and offset < 7")
    assert some.rdd.getNumPartitions() == 2
    assert sorted((r.partition, r.offset) for r in some.collect()) == [(p, i) for p in (0, 2) for i in (4, 5, 6)]
    late = load(subscribe=name).where("timestamp >= timestamp_millis(1007000) and partition = 1")
    assert [r.offset for r in late.orderBy("offset").collect()] == [7, 8, 9]
    assert load(subscribe=name).where("topic = 'another'").collect() == []
    assert len(load(subscribe=name).where("value = cast('x' as binary)").collect()) == 30
    assert len(load(subscribe=name).collect()) == 30
