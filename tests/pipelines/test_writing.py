"""A writing task over a topic that changes, without Spark."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pyarrow as pa
import pytest

from barnabas.client.blocking import BlockingClient
from barnabas.client.results import LATEST, NewTopic
from barnabas.pipelines.sink_options import WriteTask
from barnabas.pipelines.writing import WriteFailed, open_idempotent, write_batches
from tests.waiting import wait_until

MakeTopic = Callable[..., str]


def rows(first: int, count: int) -> pa.RecordBatch:
    keys = pa.array([b"%d" % number for number in range(first, first + count)], pa.binary())
    return pa.RecordBatch.from_pydict({"key": keys, "value": keys})


def write(client: BlockingClient, topic: str, batches: Iterator[pa.RecordBatch]) -> None:
    task = WriteTask(topic, client=client.config)
    write_batches(task, batches, open_idempotent(task))


def remake(client: BlockingClient, topic: str, partitions: int) -> None:
    client.delete_topics([topic])
    wait_until(lambda: not client.topics_by_name([topic]))
    client.create_topics([NewTopic(topic, partitions, 1)])
    wait_until(lambda: client.topics_by_name([topic]))


def lengths(client: BlockingClient, topic: str) -> list[int]:
    partitions = client.topics_by_name([topic])[topic].partitions
    return [listed.offset for listed in client.list_offsets({(topic, p): LATEST for p in partitions}).values()]


@pytest.mark.parametrize("partitions", [1, 3, 9])
def test_a_task_places_rows_by_the_partitions_that_there_are(partitions: int, client: BlockingClient, topic: MakeTopic) -> None:
    """Its worker keeps a client that remembers the topic of before."""
    name = topic(5)
    write(client, name, iter([rows(0, 100)]))
    remake(client, name, partitions)
    write(client, name, iter([rows(0, 100)]))
    found = lengths(client, name)
    assert (len(found), sum(found), min(found) > 0) == (partitions, 100, True)


def test_partitions_that_are_added_get_rows(client: BlockingClient, topic: MakeTopic) -> None:
    name = topic(1)
    write(client, name, iter([rows(0, 100)]))
    client.create_partitions(name, 4)
    wait_until(lambda: len(client.topics_by_name([name])[name].partitions) == 4)
    write(client, name, iter([rows(0, 100)]))
    assert min(lengths(client, name)) > 0


@pytest.mark.parametrize("partitions", [1, 5])
def test_a_topic_that_is_made_again_under_a_task_fails_it(partitions: int, client: BlockingClient, topic: MakeTopic) -> None:
    name = topic(5)

    def batches() -> Iterator[pa.RecordBatch]:
        yield rows(0, 100)
        remake(client, name, partitions)
        yield rows(100, 100)

    with pytest.raises(
        WriteFailed, match=f"could not write to {name}: UNKNOWN_TOPIC_ID: the topic was deleted and created again"
    ):
        write(client, name, batches())
    assert sum(lengths(client, name)) == 0, "rows that were placed for the topic of before are in the next"
