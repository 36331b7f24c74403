"""Topics that grow, shrink or go away under queries, with workers that remember what was: nothing is skipped, nothing is there twice."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from barnabas.client.blocking import BlockingClient
from barnabas.client.results import NewTopic
from tests.waiting import wait_until

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

pytestmark = pytest.mark.spark
MakeTopic = Callable[..., str]
Produce = Callable[..., None]
Load = Callable[..., "DataFrame"]


def copy(server: str, source: DataFrame, target: str, checkpoint: Path, **options: str) -> None:
    """From topic to topic, what is there now."""
    query = (
        source.selectExpr("key", "value")
        .writeStream.format("barnabas")
        .options(**{"kafka.bootstrap.servers": server, "topic": target, "checkpointLocation": str(checkpoint), **options})
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()


def remade(client: BlockingClient, name: str, partitions: int) -> None:
    client.delete_topics([name])
    wait_until(lambda: name not in client.topics_by_name([name]))
    client.create_topics([NewTopic(name, partitions, 1, {"retention.ms": "-1"})])
    wait_until(lambda: name in client.topics_by_name([name]))


def values(load: Load, topic: str) -> list[int]:
    return sorted(int(row.value) for row in load(subscribe=topic).collect())


def numbers(first: int, count: int, partitions: int) -> list[tuple[Any, ...]]:
    return [(i % partitions, b"k%d" % i, b"%d" % i) for i in range(first, first + count)]


@pytest.mark.parametrize("fails", ["true", "false"])
def test_partitions_that_are_added_are_read_by_workers_that_knew_fewer(
    fails: str,
    kafka_server: str,
    client: BlockingClient,
    topic: MakeTopic,
    produce: Produce,
    stream: Load,
    load: Load,
    tmp_path: Path,
) -> None:
    source, target = topic(1), topic(1)
    frame = stream(subscribe=source, startingOffsets="earliest", failOnDataLoss=fails)
    produce(source, numbers(0, 10, 1))
    copy(kafka_server, frame, target, tmp_path)
    for count in (3, 6):
        client.create_partitions(source, count)
        wait_until(lambda count=count: len(client.topics_by_name([source])[source].partitions) == count)  # type: ignore[misc]  # mypy does not infer the default
        produce(source, numbers(10 * count, 30, count))
        copy(kafka_server, frame, target, tmp_path)
    assert values(load, target) == [*range(10), *range(30, 60), *range(60, 90)]


def test_a_sinks_topic_may_be_made_again_with_fewer_partitions(
    kafka_server: str, client: BlockingClient, topic: MakeTopic, produce: Produce, stream: Load, load: Load, tmp_path: Path
) -> None:
    source, target = topic(2), topic(4)
    frame = stream(subscribe=source, startingOffsets="earliest")
    produce(source, numbers(0, 40, 2))
    copy(kafka_server, frame, target, tmp_path)
    for first, partitions in ((100, 2), (200, 1), (300, 3)):
        remade(client, target, partitions)
        produce(source, numbers(first, 40, 2))
        copy(kafka_server, frame, target, tmp_path)
        assert values(load, target) == list(range(first, first + 40))
        assert load(subscribe=target).select("partition").distinct().count() == partitions


def test_the_sinks_own_topic_may_go_away(
    kafka_server: str, client: BlockingClient, topic: MakeTopic, produce: Produce, stream: Load, load: Load, tmp_path: Path
) -> None:
    source, target = topic(1), topic(1)
    frame = stream(subscribe=source, startingOffsets="earliest")
    produce(source, numbers(0, 10, 1))
    copy(kafka_server, frame, target, tmp_path)
    client.delete_topics(["_barnabas_sinks"])
    wait_until(lambda: not client.topics_by_name(["_barnabas_sinks"]))
    produce(source, numbers(10, 10, 1))
    copy(kafka_server, frame, target, tmp_path)
    assert values(load, target) == list(range(20))
