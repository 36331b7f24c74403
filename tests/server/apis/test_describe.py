"""DescribeCluster, DescribeTopicPartitions, DescribeLogDirs, and the image they read."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.cluster.metadata.image import MetadataDelta, MetadataImage, PartitionState, Topic
from barnabas.cluster.planning.topics import NewTopic
from barnabas.protocol.messages.describe_cluster import DescribeClusterRequest
from barnabas.protocol.messages.describe_log_dirs import DescribableLogDirTopic, DescribeLogDirsRequest
from barnabas.protocol.messages.describe_topic_partitions import (
    DescribeTopicPartitionsRequest,
    RequestCursor,
    TopicRequest,
)
from barnabas.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from barnabas.protocol.values import ResourceType
from tests.cluster.harness import FakeBroker, FakeLog


@pytest.mark.parametrize("version", range(3))
async def test_the_cluster(version: int) -> None:
    async with FakeBroker(brokers=(1, 2)) as broker:
        answer = await broker.ask(DescribeClusterRequest(include_cluster_authorized_operations=True), version)
        assert (answer.error_code, answer.cluster_id, answer.controller_id) == (0, "test-cluster", 1)
        assert [(b.broker_id, b.host, b.port) for b in answer.brokers] == [(1, "127.0.0.1", 29092), (2, "127.0.0.1", 29093)]
        assert answer.cluster_authorized_operations == 8096


@pytest.mark.parametrize(("endpoint_type", "code"), [(2, 114), (7, 115)])
async def test_no_controller_endpoint(endpoint_type: int, code: int) -> None:
    async with FakeBroker() as broker:
        answer = await broker.ask(DescribeClusterRequest(endpoint_type=endpoint_type), 1)
        assert (answer.error_code, answer.cluster_id, list(answer.brokers)) == (code, "", [])


async def page(broker: FakeBroker, names: list[str], limit: int = 2000, cursor: tuple[str, int] | None = None) -> tuple[Any, Any]:
    request = DescribeTopicPartitionsRequest(
        topics=[TopicRequest(name=name) for name in names],
        response_partition_limit=limit,
        cursor=None if cursor is None else RequestCursor(topic_name=cursor[0], partition_index=cursor[1]),
    )
    answer = await broker.ask(request, 0)
    found = [(t.name, t.error_code, [p.partition_index for p in t.partitions]) for t in answer.topics]
    following = answer.next_cursor
    return found, None if following is None else (following.topic_name, following.partition_index)


async def test_topics_come_in_pages() -> None:
    async with FakeBroker() as broker:
        await broker.controller.create_topics([NewTopic("a", 3, 1), NewTopic("b", 2, 1)])
        assert await page(broker, ["b", "a", "a"]) == ([("a", 0, [0, 1, 2]), ("b", 0, [0, 1])], None)
        assert await page(broker, ["a", "b"], 2) == ([("a", 0, [0, 1])], ("a", 2))
        assert await page(broker, ["a", "b"], 3) == ([("a", 0, [0, 1, 2])], ("b", 0))
        assert await page(broker, ["a", "b"], 2, ("a", 2)) == ([("a", 0, [2]), ("b", 0, [0])], ("b", 1))
        assert await page(broker, [], 2, ("aa", 0)) == ([("b", 0, [0, 1])], None)
        assert await page(broker, [], 4) == ([("a", 0, [0, 1, 2]), ("b", 0, [0])], ("b", 1))
        assert await page(broker, [], 4, ("z", 0)) == ([], None)
        assert await page(broker, ["a", "b"], 2, ("aa", 0)) == ([("a", 42, []), ("b", 42, [])], None)
        assert await page(broker, ["a"], 0) == ([("a", 0, [0])], ("a", 1))
        assert await page(broker, ["a"], 2, ("a", 7)) == ([("a", 0, [])], None)
        assert await page(broker, ["a", "no", "b d"]) == ([("a", 0, [0, 1, 2]), ("b d", 17, []), ("no", 3, [])], None)
        for cursor in (("a", -1), ("z", 0)):
            assert await page(broker, ["a"], 2, cursor) == ([("a", 42, [])], None)


# The values of Kafka 4.3, with one exception: if in-sync replicas die at one moment, Kafka keeps the last leader.
@pytest.mark.parametrize(
    ("state", "in_sync", "eligible", "last_known"),
    [
        (PartitionState(2, 1, (2, 3), (2, 3)), [2, 3], [], []),
        (PartitionState(-1, 1, (3,), (3,)), [], [3], [3]),
        (PartitionState(-1, 1, (2, 3), (3,)), [], [3], [3]),
        (PartitionState(-1, 1, (2, 3), (3,), eligible=(2,)), [], [2, 3], [3]),
        (PartitionState(-1, 1, (2, 3), (2, 3)), [], [2, 3], []),
        (PartitionState(-1, 1, (2, 3, 4), (3,), last_known=(2,)), [], [3], [2]),
        (PartitionState(-1, 1, (2, 3), (3,), is_lost=True, last_known=(2, 3)), [], [], [2, 3]),
    ],
)
async def test_where_nobody_leads_nobody_is_in_sync(
    state: PartitionState, in_sync: list[int], eligible: list[int], last_known: list[int]
) -> None:
    async with FakeBroker(brokers=(1, 2)) as broker:
        delta = MetadataDelta(topics=(Topic("t", UUID(int=1), (state,)),))
        broker.controller._core.image = broker.metadata.apply(delta)
        described = await broker.ask(DescribeTopicPartitionsRequest(topics=[TopicRequest(name="t")]), 0)
        (told,) = described.topics[0].partitions
        assert (told.isr_nodes, told.eligible_leader_replicas, told.last_known_elr) == (in_sync, eligible, last_known)
        answer = await broker.ask(MetadataRequest(topics=[MetadataRequestTopic(name="t")]), 12)
        assert answer.topics[0].partitions[0].isr_nodes == in_sync


@pytest.mark.parametrize("version", range(1, 6))
async def test_log_directories(tmp_path: Path, version: int) -> None:
    async with FakeBroker(directory=tmp_path) as broker:
        await broker.controller.create_topics([NewTopic("a", 2, 1), NewTopic("b", 1, 1)])
        broker.logs.logs["a", 1] = FakeLog(tmp_path / "a-1", 77)
        every = await broker.ask(DescribeLogDirsRequest(topics=None), version)
        assert [(d.error_code, d.log_dir) for d in every.results] == [(0, str(tmp_path))]
        sizes = {(t.name, p.partition_index): p.partition_size for d in every.results for t in d.topics for p in t.partitions}
        assert sizes == {("a", 0): 0, ("a", 1): 77, ("b", 0): 0}
        wanted = [DescribableLogDirTopic(topic="a", partitions=[1, 5]), DescribableLogDirTopic(topic="no", partitions=[0])]
        some = await broker.ask(DescribeLogDirsRequest(topics=wanted), version)
        assert [(t.name, [p.partition_index for p in t.partitions]) for t in some.results[0].topics] == [("a", [1])]
        assert (some.results[0].total_bytes > 0) == (version >= 4)


async def test_a_lost_log_directory_says_so(tmp_path: Path) -> None:
    async with FakeBroker(directory=tmp_path / "gone") as broker:
        answer = await broker.ask(DescribeLogDirsRequest(topics=None), 4)
        assert [d.error_code for d in answer.results] == [56]


def topic(name: str, number: int, partitions: int = 1) -> Topic:
    state = PartitionState(leader=1, leader_epoch=0, replicas=(1,), isr=(1,))
    return Topic(name, UUID(int=number), (state,) * partitions)


def test_looking_things_up() -> None:
    image = MetadataImage("c").apply(MetadataDelta(topics=(topic("a", 1, 2),)))
    assert (image.topic_id("a"), image.topic_name(UUID(int=1)), image.partition_count("a")) == (UUID(int=1), "a", 2)
    assert image.partition("a", 1) is not None
    for lookup in (image.partition("a", 2), image.partition("a", -1), image.partition("b", 0), image.topic("b")):
        assert lookup is None
    assert (image.topic_id("b"), image.topic_name(UUID(int=9)), image.partition_count("b")) == (None, None, 0)


NAMES = st.sampled_from(["a.b", "a_b", "c", "d.e_f"])


@given(st.lists(st.tuples(st.booleans(), NAMES), max_size=12))
def test_deltas_against_a_model(steps: list[tuple[bool, str]]) -> None:
    image, model = MetadataImage("c"), dict[str, int]()
    for number, (make, name) in enumerate(steps):
        before = image
        if make:
            delta = MetadataDelta(deleted_topics=(name,), topics=(topic(name, number),))
            model[name] = number
        else:
            delta = MetadataDelta(deleted_topics=(name,), configs={(ResourceType.TOPIC, name): {}})
            model.pop(name, None)
        kept = dict(before.topics)
        image = before.apply(delta)
        image.validate()
        assert dict(before.topics) == kept
        assert {t.name: t.topic_id.int for t in image.topics.values()} == model
        assert sorted(n for names in image.collisions.values() for n in names) == sorted(n for n in model if n != "c")
