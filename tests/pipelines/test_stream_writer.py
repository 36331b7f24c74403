"""Streams in every output mode, written by `write_stream`."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from barnabas.client.blocking import BlockingClient
from barnabas.pipelines import write_stream
from barnabas.pipelines.stream_writer import MOST_REASON, STOPPED, MicroBatchFailed
from tests.waiting import wait_until

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

pytestmark = pytest.mark.spark
Load = Callable[..., "DataFrame"]


@dataclass
class Counting:
    """A running count by key; run again, it goes on from its checkpoint."""

    server: str
    stream: Load
    produce: Callable[..., None]
    source: str
    target: str
    checkpoint: Path

    def put(self, keys: str) -> None:
        self.produce(self.source, [(0, key.encode(), b"") for key in keys])

    def start(
        self, mode: str = "update", *, failing: str = "", options: Mapping[str, str] | None = None, rows: int = 1000
    ) -> StreamingQuery:
        source = self.stream(subscribe=self.source, startingOffsets="earliest", maxOffsetsPerTrigger=str(rows))
        counts = source.groupBy("key").count()
        value = f"if(cast(key as string) = '{failing}', raise_error('broken'), cast(`count` as string)) as value"
        writer = write_stream(counts.selectExpr("key", value)).outputMode(mode).option("topic", self.target)
        writer = writer.option("kafka.bootstrap.servers", self.server).option("checkpointLocation", str(self.checkpoint))
        return writer.options(**(options or {})).trigger(availableNow=True).start()

    def run(self, mode: str = "update") -> None:
        self.start(mode).awaitTermination()

    def forget_last_commit(self) -> None:
        """As if the driver had been killed when the sink had committed and Spark had not noted it."""
        commits = self.checkpoint / "commits"
        last = max((path for path in commits.iterdir() if path.name.isdigit()), key=lambda path: int(path.name))
        last.unlink()
        last.with_name(f".{last.name}.crc").unlink(missing_ok=True)


@pytest.fixture
def counting(
    kafka_server: str, stream: Load, produce: Callable[..., None], topic: Callable[..., str], tmp_path: Path
) -> Counting:
    return Counting(kafka_server, stream, produce, topic(), topic(1, cleanup_policy="compact"), tmp_path / "cp")


def written(load: Load, topic: str) -> list[tuple[str, int]]:
    rows = load(subscribe=topic, kafka__isolation__level="read_committed").orderBy("offset").collect()
    return [(bytes(row.key).decode(), int(row.value)) for row in rows]


def test_updates_are_in_the_topic_once(counting: Counting, load: Load) -> None:
    counting.put("aab")
    counting.run()
    assert sorted(written(load, counting.target)) == [("a", 2), ("b", 1)]
    counting.put("bc")
    counting.run()
    everything = [("a", 2), ("b", 1), ("b", 2), ("c", 1)]
    assert sorted(written(load, counting.target)) == everything
    counting.forget_last_commit()
    counting.run()
    assert sorted(written(load, counting.target)) == everything


def test_the_sink_is_prepared_once_and_not_for_each_micro_batch(counting: Counting, client: BlockingClient) -> None:
    """Each decision and each preparation moves the ownership of the sink by one epoch."""
    from barnabas.client import transactions
    from barnabas.pipelines.exactly_once.state import sink_id

    def epoch() -> int:
        found = client.run(transactions.describe_transactions(client.config, client.cluster, [sink_id("prepared-once")]))
        return found[sink_id("prepared-once")].owner.epoch

    counting.put("abcd")
    query = counting.start(options={"sinkName": "prepared-once"}, rows=1)
    query.awaitTermination()
    assert len(query.recentProgress) == 4
    assert epoch() == 4 * 2  # two epochs a batch: decision and settlement; the first preparation creates the id


def test_complete_writes_every_row_anew(counting: Counting, load: Load) -> None:
    for keys in ("aab", "c"):
        counting.put(keys)
        counting.run("complete")
    assert sorted(written(load, counting.target)) == [("a", 2), ("a", 2), ("b", 1), ("b", 1), ("c", 1)]


def test_a_query_may_change_from_the_stream_sink_and_back(
    counting: Counting, kafka_server: str, stream: Load, load: Load
) -> None:
    """Both give the sink the same name and know its batches by the same numbers."""

    def copy(by_format: bool) -> None:
        rows = stream(subscribe=counting.source, startingOffsets="earliest").selectExpr("key", "'1' as value")
        writer = rows.writeStream.format("barnabas") if by_format else write_stream(rows).format("barnabas")
        writer = writer.options(**{"kafka.bootstrap.servers": kafka_server, "topic": counting.target})
        writer.option("checkpointLocation", str(counting.checkpoint)).trigger(availableNow=True).start().awaitTermination()

    for by_format, keys in ((True, "a"), (False, "b"), (True, "c")):
        counting.put(keys)
        copy(by_format)
        counting.forget_last_commit()
        copy(not by_format)
    assert written(load, counting.target) == [("a", 1), ("b", 1), ("c", 1)]


# 1000: the first micro-batch fails; 1: a later one, whose sink the previous commit prepared
@pytest.mark.parametrize("rows", [1000, 1])
def test_a_failed_micro_batch_leaves_nothing_and_says_why(
    counting: Counting, load: Load, client: BlockingClient, rows: int
) -> None:
    from barnabas.client import transactions

    counting.put("ax")
    with pytest.raises(Exception, match="broken"):
        counting.start(failing="x", rows=rows).awaitTermination()
    assert written(load, counting.target) == ([("a", 1)] if rows == 1 else [])
    assert client.run(transactions.list_transactions(client.config, client.cluster, ["Ongoing"])) == {}
    counting.run()
    assert sorted(written(load, counting.target)) == [("a", 1), ("x", 1)]


def test_a_query_that_is_stopped_while_it_writes_ends_without_an_error(
    counting: Counting, spark: SparkSession, topic: Callable[..., str], stream: Load, load: Load
) -> None:
    counting.put("ab")
    began = counting.checkpoint.parent / "began"

    def slow(batches: Any) -> Any:
        import time

        began.touch()
        time.sleep(600)
        yield from batches

    rows = stream(subscribe=counting.source, startingOffsets="earliest").selectExpr("key", "value")
    writer = write_stream(rows.mapInArrow(slow, "key binary, value binary")).option("topic", counting.target)
    query = writer.options(**{"kafka.bootstrap.servers": counting.server, "checkpointLocation": str(counting.checkpoint)}).start()
    wait_until(began.exists)
    query.stop()
    assert query.exception() is None
    assert not query.isActive


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"topic": "no/name"}, "no/name"),
        ({"kafka.acks": "0"}, "kafka.acks must be all or 1"),
        ({"checkpointLocation": ""}, "checkpointLocation or sinkName"),
        ({"kafka.transactional.id": "x"}, "transactional.id"),
    ],
)
def test_mistakes_are_found_before_the_start(counting: Counting, options: dict[str, str], message: str) -> None:
    with pytest.raises(Exception, match=message):
        counting.start(options=options)
    assert not counting.checkpoint.exists()


def test_what_is_no_stream_or_another_format_is_refused(spark: SparkSession, stream: Load) -> None:
    with pytest.raises(Exception, match="streaming DataFrame"):
        write_stream(spark.range(1))
    with pytest.raises(Exception, match="format 'console'"):
        write_stream(spark.readStream.format("rate").load()).start(format="console")


def test_reasons_are_short_enough_for_spark() -> None:
    assert str(MicroBatchFailed("short")) == "short"
    assert len(str(MicroBatchFailed("x" * 100_000))) < MOST_REASON + 10
    assert str(MicroBatchFailed(json.dumps({"error": "[SPARK_JOB_CANCELLED] Job 1 cancelled"}))) == STOPPED
