"""Streams over topics that grow, move and are made again, on brokers that learn of it late: nothing is skipped, nothing comes twice."""

from __future__ import annotations

import itertools
import json
from collections import Counter
from contextlib import suppress
from random import Random
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from barnabas.client.cluster import UnknownTopic
from barnabas.client.errors import TimedOut
from barnabas.pipelines.offsets import OffsetRange, from_stream_offset, stream_offset
from barnabas.pipelines.options import read_options
from barnabas.pipelines.planner import Planner
from barnabas.pipelines.read_task import ReadTask
from barnabas.pipelines.reading import read_with
from tests.pipelines.lagging import BROKERS, LaggingClient, LaggingCluster

SERVERS = {"kafka.bootstrap.servers": "broker:1", "commitOffsets": "false", "fetchOffset.retryIntervalMs": "1"}
MOST_PARTITIONS = 5
LAG_MS = 3_000


class Stream:
    """A query as Spark runs it: what is planned goes through the checkpoint, and workers keep their clients."""

    def __init__(self, cluster: LaggingCluster, random: Random, **given: str) -> None:
        self.options = read_options({**SERVERS, "startingOffsets": "earliest", **given}, streaming=True)
        self._cluster, self._random = cluster, random
        self.workers = [self._client() for _ in range(2)]
        self.checkpoint: str | None = None
        self.taken: list[bytes] = []
        self.start_again()

    def _client(self) -> LaggingClient:
        return LaggingClient(self._cluster, self.options.client, lambda: self._random.choice(BROKERS))

    def start_again(self) -> None:
        """As after a restart of the driver."""
        self.planner = Planner(self.options, self._client())

    def batch(self) -> None:
        if self.checkpoint is None:
            self.checkpoint = json.dumps(stream_offset(self.planner.initial(), self.planner.topic_ids))
        start, ids = from_stream_offset(json.loads(self.checkpoint))
        end = self.planner.latest(start, everything=True, now_ms=0, start_ids=ids)
        if end == start and not self.planner.replaced(ids):
            return
        checkpoint = json.dumps(stream_offset(end, self.planner.topic_ids))
        last, last_ids = from_stream_offset(json.loads(checkpoint))
        rows: list[bytes] = []
        for each in self.planner.stream_ranges(start, last, ids, last_ids):
            rows += self.read(each, last_ids.get(each.topic, ""))
        self.taken += rows
        self.checkpoint = checkpoint

    def read(self, wanted: OffsetRange, topic_id: str) -> list[bytes]:
        fails = self.options.fail_on_data_loss
        task = ReadTask(wanted, self.options.client, False, fails, 20_000, topic_id=topic_id)
        batches = read_with(self._random.choice(self.workers), task)
        values: list[Any] = [value for batch in batches for value in batch.column("value").to_pylist()]
        return values


def one_client(lags: list[float]) -> tuple[LaggingCluster, Stream]:
    """A topic of one partition whose leader is broker 1; changes come to the brokers with `lags`, which may be set anew."""
    turns = itertools.count()
    cluster = LaggingCluster(lambda: lags[next(turns) % len(BROKERS)])
    cluster.create("t", 1)
    for number in range(5):
        cluster.append("t", 0, b"%d" % number)
    return cluster, Stream(cluster, Random(0), subscribe="t")


def test_what_a_leader_does_not_have_that_is_one_no_more_is_not_gone() -> None:
    lags = [0.0, 0.0, 0.0]
    cluster, stream = one_client(lags)
    stream.workers = stream.workers[:1]
    assert len(stream.read(OffsetRange("t", 0, 0, 5), "")) == 5
    lags[0] = 10_000.0
    cluster.move("t", 0, 2)
    for number in range(5, 10):
        cluster.append("t", 0, b"%d" % number)
    assert stream.read(OffsetRange("t", 0, 8, 10), "") == [b"8", b"9"], "broker 1, which is remembered, has five"


@pytest.mark.parametrize("slow", range(3))
def test_one_broker_that_knows_is_enough_for_a_topic_to_be_there(slow: int) -> None:
    lags = [3_000.0, 3_000.0, 3_000.0]
    lags[slow] = 0.0
    cluster, stream = one_client(lags)
    for any_broker in BROKERS:
        client = LaggingClient(cluster, stream.options.client, itertools.repeat(any_broker).__next__)
        assert list(client.topics_by_name(["t"])["t"].partitions) == [0]


def test_offsets_of_a_topic_that_was_deleted_are_not_those_of_the_next() -> None:
    lags = [0.0, 0.0, 0.0]
    cluster, stream = one_client(lags)
    lags[0] = 2_000.0
    cluster.delete("t")
    cluster.create("t", 1)
    cluster.append("t", 0, b"new")
    client = LaggingClient(cluster, stream.options.client, lambda: 2)
    assert client.topics_by_name(["t"])["t"].topic_id == cluster.truth["t"].topic_id
    assert client.list_offsets({("t", 0): -1})["t", 0].offset == 1, "the leader, broker 1, still has the five of before"


def test_brokers_that_never_agree_show_nothing_to_be_gone() -> None:
    lags = [0.0, 0.0, 0.0]
    cluster, stream = one_client(lags)
    lags[0] = 1e9
    cluster.grow("t", 2)
    with pytest.raises(TimedOut, match="no agreement of the brokers on t"):
        stream.read(OffsetRange("t", 7, 0, 1), "")


class World:
    """Changes a cluster, and knows what was written to which topic id."""

    def __init__(self, seed: int, lag_ms: int = LAG_MS) -> None:
        self.random = Random(seed)
        self.cluster = LaggingCluster(lambda: self.random.choice([0.0, self.random.uniform(0, lag_ms)]))
        self._numbers = itertools.count()

    def write(self, topic: str, count: int) -> None:
        for _ in range(count):
            partition = self.random.randrange(len(self.cluster.truth[topic].leaders))
            self.cluster.append(topic, partition, b"%s %d" % (topic.encode(), next(self._numbers)))

    def step(self, what: str) -> None:
        cluster, random = self.cluster, self.random
        topic = random.choice(["t-1", "t-2"])
        if topic not in cluster.truth:
            if what == "make":
                cluster.create(topic, random.randint(1, 3))
                self.write(topic, random.randint(0, 9))
            return
        partitions = len(cluster.truth[topic].leaders)
        match what:
            case "delete":
                cluster.delete(topic)
            case "remake":
                cluster.delete(topic)
                cluster.create(topic, random.randint(1, 3))
                self.write(topic, random.randint(0, 9))
            case "grow":
                cluster.grow(topic, min(MOST_PARTITIONS, partitions + random.randint(1, 2)))
            case "move":
                cluster.move(topic, random.randrange(partitions), random.choice(BROKERS))
            case "wait":
                cluster.now_ms += random.uniform(0, LAG_MS / 2)
        if topic in cluster.truth:
            self.write(topic, random.randint(0, 5))

    def living(self) -> list[bytes]:
        ids = {it.topic_id for it in self.cluster.truth.values()}
        return [value for (topic_id, _), log in self.cluster.logs.items() if topic_id in ids for value in log.values]


def run(seed: int, steps: list[str], **given: str) -> tuple[World, Stream]:
    world = World(seed)
    for topic in ("t-1", "t-2"):
        world.cluster.create(topic, 2)
        world.write(topic, 5)
    world.cluster.settle()
    stream = Stream(world.cluster, world.random, **given)
    for step in steps:
        if step == "batch":
            with suppress(UnknownTopic):  # the query fails, and the next batch restarts it
                stream.batch()
        elif step == "restart":
            stream.start_again()
        else:
            world.step(step)
    for topic in {"t-1", "t-2"} - world.cluster.truth.keys():
        world.cluster.create(topic, 1)
        world.write(topic, 3)
    world.cluster.settle()
    for _ in range(3):
        stream.batch()
    return world, stream


STRATEGIES: list[dict[str, str]] = [{"subscribe": "t-1,t-2"}, {"subscribePattern": "t-.*"}]
GROWING = ["batch", "batch", "grow", "move", "wait", "restart"]


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 2**32), st.lists(st.sampled_from(GROWING), min_size=10, max_size=40), st.sampled_from(STRATEGIES))
@example(0, ["batch", "grow", "batch", "batch"] * 5, STRATEGIES[0])
def test_topics_that_only_grow_and_move_lose_nothing(seed: int, steps: list[str], given: dict[str, str]) -> None:
    """With failOnDataLoss=true, so that a loss that is only thought to be one fails as well."""
    world, stream = run(seed, steps, **given)
    assert sorted(stream.taken) == sorted(world.living())


@settings(max_examples=50, deadline=None)
@given(
    st.integers(0, 2**32),
    st.lists(st.sampled_from([*GROWING, "remake", "delete", "make", "batch"]), min_size=10, max_size=40),
    st.sampled_from(STRATEGIES),
)
def test_topics_that_are_made_again_come_once(seed: int, steps: list[str], given: dict[str, str]) -> None:
    world, stream = run(seed, steps, **given, failOnDataLoss="false")
    counts = Counter(stream.taken)
    assert [value for value, count in counts.items() if count > 1] == [], "twice"
    assert [value for value in world.living() if value not in counts] == [], "skipped"
