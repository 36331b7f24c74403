"""A task against a real server, without Spark."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from barnabas.client.blocking import BlockingClient
from barnabas.client.results import NewTopic
from barnabas.pipelines.data_loss import DataLoss
from barnabas.pipelines.offsets import EARLIEST, LATEST, OffsetRange, id_text
from barnabas.pipelines.read_task import ReadTask
from barnabas.pipelines.reading import read_range

MakeTopic = Callable[..., str]
Produce = Callable[..., None]


def task(client: BlockingClient, topic: str, start: int, end: int, **changes: Any) -> ReadTask:
    first = ReadTask(OffsetRange(topic, 0, start, end), client.config, False, True, 10_000)
    return replace(first, **changes)


def offsets(it: ReadTask) -> list[Any]:
    return [offset for batch in read_range(it) for offset in batch.column("offset").to_pylist()]


def test_a_range_is_read_whole_and_the_ends_are_looked_up_where_none_are_given(
    client: BlockingClient, topic: MakeTopic, produce: Produce
) -> None:
    name = topic()
    assert offsets(task(client, name, EARLIEST, LATEST)) == []
    produce(name, [(0, None, b"x")] * 10)
    assert offsets(task(client, name, 3, 7)) == [3, 4, 5, 6]
    client.delete_records({(name, 0): 4})
    assert offsets(task(client, name, EARLIEST, LATEST)) == list(range(4, 10))


def test_records_of_a_topic_that_took_the_place_of_another_are_not_taken_for_its(
    client: BlockingClient, topic: MakeTopic, produce: Produce
) -> None:
    name = topic()
    before = id_text(client.topics_by_name([name])[name].topic_id)
    produce(name, [(0, None, b"old")] * 5)
    assert offsets(task(client, name, 0, 5, topic_id=before)) == list(range(5))
    client.delete_topics([name])
    while client.topics_by_name([name]):
        pass
    client.create_topics([NewTopic(name, 1, 1)])
    produce(name, [(0, None, b"new")] * 5)
    with pytest.raises(DataLoss, match=f"topic {name} was deleted and created again"):
        offsets(task(client, name, 0, 5, topic_id=before))
    assert offsets(task(client, name, 0, 5, topic_id=before, fail_on_data_loss=False)) == []
    assert offsets(task(client, name, 0, 5)) == list(range(5)), "where the id is not known, offsets are all there is"
