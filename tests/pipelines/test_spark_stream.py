"""Streaming queries over topics: checkpoints, limits, new partitions, lost records."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from confluent_kafka.admin import AdminClient

from barnabas.cli.group import describe_group
from barnabas.client.blocking import BlockingClient
from barnabas.client.results import NewTopic

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

pytestmark = pytest.mark.spark
Produce = Callable[..., None]
MakeTopic = Callable[..., str]
Load = Callable[..., "DataFrame"]


class Run:
    """A query that notes (batch id, partition, offset) of every row in a folder; run again, it goes on from its checkpoint."""

    def __init__(self, spark: SparkSession, folder: Path) -> None:
        self.spark, self.folder = spark, folder

    def start(self, frame: DataFrame, **trigger: Any) -> StreamingQuery:
        out = str(self.folder / "out")

        def note(batch: DataFrame, batch_id: int) -> None:
            path = f"{out}/{batch_id:04d}"
            batch.selectExpr(f"{batch_id} as batch", "partition", "offset").write.mode("overwrite").json(path)

        writer = frame.writeStream.foreachBatch(note).option("checkpointLocation", str(self.folder / "checkpoint"))
        return writer.trigger(**trigger or {"availableNow": True}).start()

    def to_end(self, frame: DataFrame) -> StreamingQuery:
        query = self.start(frame)
        query.awaitTermination()
        return query

    def rows(self) -> list[tuple[int, int]]:
        return sorted((partition, offset) for _, partition, offset in self.noted())

    def noted(self) -> list[tuple[int, int, int]]:
        lines = [line for file in sorted(self.folder.glob("out/*/part-*.json")) for line in file.read_text().splitlines()]
        return [(r["batch"], r["partition"], r["offset"]) for r in map(json.loads, lines)]


@pytest.fixture
def run(spark: SparkSession, tmp_path: Path) -> Run:
    return Run(spark, tmp_path)


def records(count: int, partitions: int = 1) -> list[tuple[int, None, bytes]]:
    return [(i % partitions, None, b"%d" % i) for i in range(count)]


def test_a_restart_neither_loses_nor_repeats(run: Run, stream: Load, topic: MakeTopic, produce: Produce) -> None:
    name = topic(2)
    source = stream(subscribe=name, startingOffsets="earliest")
    produce(name, records(40, 2))
    run.to_end(source)
    assert run.rows() == [(p, i) for p in range(2) for i in range(20)]
    produce(name, records(20, 2))
    run.to_end(source)
    run.to_end(source)
    assert run.rows() == [(p, i) for p in range(2) for i in range(30)]


def test_a_batch_that_was_not_finished_is_read_again(run: Run, stream: Load, topic: MakeTopic, produce: Produce) -> None:
    name = topic()
    source = stream(subscribe=name, startingOffsets="earliest")
    produce(name, records(10))
    run.to_end(source)
    for file in (run.folder / "checkpoint" / "commits").iterdir():
        file.unlink()  # as after a crash between the end of the batch and its commit
    produce(name, records(5))
    run.to_end(source)
    assert run.rows() == [(0, i) for i in range(15)]


def test_a_query_from_the_latest_offset_keeps_what_came_while_it_was_down(
    run: Run, stream: Load, topic: MakeTopic, produce: Produce
) -> None:
    name = topic()
    produce(name, records(10))
    source = stream(subscribe=name)
    run.to_end(source)
    assert run.rows() == []
    for file in (run.folder / "checkpoint" / "commits").iterdir():
        file.unlink()  # not even the first batch was finished
    produce(name, records(5))
    run.to_end(source)
    assert run.rows() == [(0, i) for i in range(10, 15)]


def test_batches_are_limited_and_available_now_ends(run: Run, stream: Load, topic: MakeTopic, produce: Produce) -> None:
    name = topic(2)
    produce(name, records(100, 2))
    run.to_end(stream(subscribe=name, startingOffsets="earliest", maxOffsetsPerTrigger="40"))
    sizes: dict[int, int] = {}
    for batch, _, _ in run.noted():
        sizes[batch] = sizes.get(batch, 0) + 1
    assert list(sizes.values()) == [40, 40, 20]
    assert run.rows() == [(p, i) for p in range(2) for i in range(50)]


def test_new_partitions_are_read_from_their_beginning(
    run: Run, stream: Load, topic: MakeTopic, produce: Produce, client: BlockingClient
) -> None:
    name = topic()
    source = stream(subscribe=name)
    produce(name, records(5))
    run.to_end(source)
    client.create_partitions(name, 3)
    produce(name, records(9, 3))
    run.to_end(source)
    assert run.rows() == [(0, 5), (0, 6), (0, 7), *((p, i) for p in (1, 2) for i in range(3))]


def test_a_running_query_sees_new_records_and_tells_its_group(
    run: Run, stream: Load, topic: MakeTopic, produce: Produce, client: BlockingClient, kafka_server: str
) -> None:
    name = topic()
    produce(name, records(3))
    query = run.start(
        stream(subscribe=name, startingOffsets="earliest", kafka__group__id=f"group-of-{name}"), processingTime="0 seconds"
    )
    try:
        query.processAllAvailable()
        produce(name, records(4))
        query.processAllAvailable()
        assert run.rows() == [(0, i) for i in range(7)]
        progress = query.recentProgress[-1]["sources"][0]
        assert json.loads(progress["endOffset"])[name] == {"0": 7}
    finally:
        query.stop()
    assert client.committed_offsets(f"group-of-{name}", [(name, 0)])[name, 0].offset == 7
    produce(name, records(2))
    described = describe_group(AdminClient({"bootstrap.servers": kafka_server}), f"group-of-{name}", 10)
    assert [(row["topic"], row["committed"], row["end"], row["lag"]) for row in described["partitions"]] == [(name, 7, 9, 2)]


def test_records_deleted_before_they_were_read(
    run: Run, stream: Load, topic: MakeTopic, produce: Produce, client: BlockingClient
) -> None:
    name = topic()
    strict = stream(subscribe=name, startingOffsets="earliest")
    lenient = stream(subscribe=name, startingOffsets="earliest", failOnDataLoss="false")
    produce(name, records(10))
    run.to_end(strict)
    produce(name, records(10))
    client.delete_records({(name, 0): 15})
    with pytest.raises(Exception, match="Some data may have been lost"):
        run.to_end(strict)
    run.to_end(lenient)
    assert run.rows() == [(0, i) for i in (*range(10), *range(15, 20))]


def test_a_topic_made_anew(run: Run, stream: Load, topic: MakeTopic, produce: Produce, client: BlockingClient) -> None:
    name = topic()
    produce(name, records(10))
    run.to_end(stream(subscribe=name, startingOffsets="earliest"))
    client.delete_topics([name])
    while client.topics_by_name([name]):
        pass
    client.create_topics([NewTopic(name, 1, 1)])
    produce(name, records(4))
    with pytest.raises(Exception, match="was deleted and created again: its id was"):
        run.to_end(stream(subscribe=name, startingOffsets="earliest"))
    run.to_end(stream(subscribe=name, startingOffsets="earliest", failOnDataLoss="false"))
    produce(name, records(3))
    run.to_end(stream(subscribe=name, startingOffsets="earliest"))
    assert run.rows() == sorted((0, i) for i in (*range(10), *range(7)))


def test_a_checkpoint_of_sparks_own_source_is_gone_on_from(run: Run, stream: Load, topic: MakeTopic, produce: Produce) -> None:
    name = topic()
    produce(name, records(10))
    run.to_end(stream(subscribe=name, startingOffsets="earliest"))
    for file in (run.folder / "checkpoint" / "offsets").glob("[0-9]*"):
        *head, _ = file.read_text().splitlines()
        file.write_text("\n".join([*head, json.dumps({name: {"0": 10}}, separators=(",", ":"))]))
    for file in run.folder.glob("checkpoint/offsets/.*.crc"):
        file.unlink()
    produce(name, records(5))
    run.to_end(stream(subscribe=name, startingOffsets="earliest"))
    assert run.rows() == [(0, i) for i in range(15)]


def test_batches_are_limited_by_bytes(run: Run, stream: Load, topic: MakeTopic, produce: Produce) -> None:
    name = topic()
    for _ in range(10):
        produce(name, [(0, None, bytes(1000))] * 10)
    run.to_end(stream(subscribe=name, startingOffsets="earliest", maxBytesPerTrigger="30000"))
    sizes: dict[int, int] = {}
    for batch, _, _ in run.noted():
        sizes[batch] = sizes.get(batch, 0) + 1
    assert [20 <= size <= 40 for size in sizes.values()][:-1] == [True] * (len(sizes) - 1)
    assert len(sizes) > 2
    assert run.rows() == [(0, i) for i in range(100)]


def test_an_ending_makes_no_sense_for_a_stream(run: Run, stream: Load) -> None:
    with pytest.raises(Exception, match="ending offset not valid in streaming queries"):
        run.to_end(stream(subscribe="a", endingOffsets="latest"))
