"""Writing frames and streams to topics."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from barnabas.client.blocking import BlockingClient
from barnabas.client.results import LATEST

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.spark
MakeTopic = Callable[..., str]
Load = Callable[..., "DataFrame"]
# key -> one of four partitions: toPositive(murmur2(key)) % 4, computed with the classes of Kafka 4.3
JAVA_PLACES = {
    "a": 0,
    "k1": 1,
    "foobar": 2,
    "k6": 1,
}


def write(frame: DataFrame, server: str, **options: str) -> None:
    frame.write.format("barnabas").mode("append").option("kafka.bootstrap.servers", server).options(**options).save()


def test_every_column_goes_where_it_belongs(spark: SparkSession, kafka_server: str, topic: MakeTopic, load: Load) -> None:
    one, other = topic(2), topic(2)
    frame = spark.createDataFrame(
        [(one, "k", b"v", 1, [("h", b"x"), ("n", None)]), (other, None, None, 0, None)],
        "topic string, key string, value binary, partition int, headers array<struct<key: string, value: binary>>",
    )
    write(frame, kafka_server)
    rows = load(subscribe=f"{one},{other}", includeHeaders="true").orderBy("key").collect()
    found = [(r.topic, r.partition, r.key, r.value, r.headers and [tuple(h) for h in r.headers]) for r in rows]
    assert found == [(other, 0, None, None, None), (one, 1, b"k", b"v", [("h", b"x"), ("n", None)])]


def test_keys_lie_where_a_java_producer_puts_them(spark: SparkSession, kafka_server: str, topic: MakeTopic, load: Load) -> None:
    name = topic(4)
    frame = spark.createDataFrame([(key, key) for key in JAVA_PLACES], "key string, value string")
    write(frame, kafka_server, topic=name)
    placed = {bytes(r.key): r.partition for r in load(subscribe=name).collect()}
    assert placed == {key.encode(): partition for key, partition in JAVA_PLACES.items()}


def test_the_option_topic_comes_before_the_column(spark: SparkSession, kafka_server: str, topic: MakeTopic, load: Load) -> None:
    name = topic()
    write(spark.createDataFrame([("elsewhere", "v")], "topic string, value string"), kafka_server, topic=name)
    assert [bytes(r.value) for r in load(subscribe=name).collect()] == [b"v"]


@pytest.mark.parametrize(
    ("columns", "row", "options", "message"),
    [
        ("value string", ("v",), {}, "topic option required when no 'topic' attribute is present"),
        ("key string", ("k",), {"topic": "t"}, "Required attribute 'value' not found"),
        ("value int", (1,), {"topic": "t"}, r"value attribute unsupported type int. value must be a\(n\) string or binary"),
        ("topic string, value string", (None, "v"), {}, "null topic present in the data"),
        ("value string", ("v",), {"topic": "t", "kafka.key.serializer": "x"}, "Kafka option 'key.serializer' is not supported"),
        ("value string", ("v",), {"topic": "t", "kafka.acks": "0"}, "kafka.acks must be all or 1"),
        ("value string", ("v",), {"topic": "t", "kafka.compression.type": "rar"}, "kafka.compression.type must be one of"),
        ("value string, partition int", ("v", -2), {"topic": "t"}, "Invalid partition: -2"),
    ],
)
def test_mistakes_are_named(
    spark: SparkSession, kafka_server: str, columns: str, row: tuple[object, ...], options: dict[str, str], message: str
) -> None:
    with pytest.raises(Exception, match=message):
        write(spark.createDataFrame([row], columns), kafka_server, **options)


def test_overwriting_is_refused(spark: SparkSession, kafka_server: str) -> None:
    frame = spark.createDataFrame([("v",)], "value string").write.format("barnabas").mode("overwrite")
    with pytest.raises(Exception, match="Save mode Overwrite not allowed"):
        frame.option("kafka.bootstrap.servers", kafka_server).option("topic", "t").save()


def test_a_record_that_is_too_large_fails_the_query(spark: SparkSession, kafka_server: str, topic: MakeTopic) -> None:
    name = topic(max_message_bytes="2000")
    frame = spark.createDataFrame([("x" * 5000,)], "value string")
    with pytest.raises(Exception, match=f"could not write to {name}.*too large"):
        write(frame, kafka_server, topic=name)


@dataclass
class Copy:
    """A stream from topic to topic that upper-cases values; run again, it goes on from its checkpoint."""

    spark: SparkSession
    server: str
    stream: Load
    source: str
    target: str
    checkpoint: Path

    def run(self, **options: str) -> None:
        query = (
            self.stream(subscribe=self.source, startingOffsets="earliest", maxOffsetsPerTrigger="60")
            .selectExpr("key", "upper(cast(value as string)) as value", f"'{self.target}' as topic")
            .repartition(3)
            .writeStream.format("barnabas")
            .option("kafka.bootstrap.servers", self.server)
            .option("checkpointLocation", str(self.checkpoint))
            .options(**options)
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination()

    def forget_last_commit(self) -> None:
        """As if the driver had been killed when the sink had committed and Spark had not noted it."""
        last = max(
            (path for path in (self.checkpoint / "commits").iterdir() if path.name.isdigit()), key=lambda path: int(path.name)
        )
        last.unlink()
        last.with_name(f".{last.name}.crc").unlink(missing_ok=True)


@pytest.fixture
def copy(spark: SparkSession, kafka_server: str, topic: MakeTopic, stream: Load, tmp_path: Path) -> Copy:
    copy = Copy(spark, kafka_server, stream, topic(2), topic(2), tmp_path)
    frame = spark.range(100).selectExpr("cast(id as string) as key", "cast(id * id as string) as value")
    write(frame, kafka_server, topic=copy.source)
    return copy


def committed(load: Load, topic: str) -> list[tuple[int, int]]:
    rows = load(subscribe=topic, kafka__isolation__level="read_committed").collect()
    return sorted((int(r.key), int(r.value)) for r in rows)


def test_a_repeated_batch_is_in_the_topic_once(copy: Copy, load: Load) -> None:
    everything = [(i, i * i) for i in range(100)]
    copy.run()
    assert committed(load, copy.target) == everything
    copy.forget_last_commit()
    copy.run()
    assert committed(load, copy.target) == everything


def test_a_stateful_query_repeats_a_batch_that_is_in_the_topic(copy: Copy, spark: SparkSession, load: Load) -> None:
    """Its state is saved when the rows of the batch were taken, though none is written; they are more than sockets hold."""
    keys, width = 60_000, 1
    write(spark.range(100, keys).selectExpr("cast(id as string) as key", "'' as value"), copy.server, topic=copy.source)

    def write_first(frame: DataFrame, batch: int) -> None:
        rows = frame.selectExpr("key", f"rpad(cast(key as string), {width}, ' ') as value")
        write(rows, copy.server, topic=copy.target, sinkName=f"first-in-{copy.target}", sinkBatchId=str(batch))

    def run() -> None:
        first = copy.stream(subscribe=copy.source, startingOffsets="earliest").dropDuplicates(["key"])
        query = first.writeStream.foreachBatch(write_first).option("checkpointLocation", str(copy.checkpoint))
        query.trigger(availableNow=True).start().awaitTermination()

    run()
    copy.forget_last_commit()
    width = 500
    run()
    assert len(committed(load, copy.target)) == keys


def test_at_least_once_is_had_by_an_option(copy: Copy, load: Load) -> None:
    copy.run(exactlyOnce="false")
    assert committed(load, copy.target) == [(i, i * i) for i in range(100)]
    copy.forget_last_commit()
    copy.run(exactlyOnce="false")
    assert len(committed(load, copy.target)) > 100


def test_a_failed_task_leaves_nothing(copy: Copy, spark: SparkSession, client: BlockingClient, load: Load) -> None:
    query = (
        copy.stream(subscribe=copy.source, startingOffsets="earliest")
        .selectExpr("key", "if(cast(key as string) = '99', raise_error('broken'), value) as value")
        .writeStream.format("barnabas")
        .option("kafka.bootstrap.servers", copy.server)
        .option("topic", copy.target)
        .option("checkpointLocation", str(copy.checkpoint))
        .trigger(availableNow=True)
        .start()
    )
    with pytest.raises(Exception, match="broken"):
        query.awaitTermination()
    assert committed(load, copy.target) == []
    end = client.list_offsets({(copy.target, p): LATEST for p in range(2)})
    with BlockingClient(replace(client.config, read_committed=True)) as reader:
        stable = reader.list_offsets({(copy.target, p): LATEST for p in range(2)})
    assert stable == end  # no open transaction holds up readers


def test_a_named_batch_is_written_once(spark: SparkSession, kafka_server: str, topic: MakeTopic, load: Load) -> None:
    name = topic(2)

    def write_number(number: int) -> None:
        frame = spark.createDataFrame([(str(number), str(number))], "key string, value string")
        write(frame, kafka_server, topic=name, sinkName=f"batches-of-{name}", sinkBatchId=str(number))

    for number in (0, 0, 1, 1):
        write_number(number)
    with pytest.raises(Exception, match="batch 0 cannot be written"):
        write_number(0)
    assert committed(load, name) == [(0, 0), (1, 1)]
