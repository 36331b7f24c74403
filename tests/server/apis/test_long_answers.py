"""Answers about thousands of things are made in several turns of the loop, and say what they would say in one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from barnabas.cluster.metadata.image import Topic
from barnabas.cluster.planning.topics import NewTopic
from barnabas.protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResponse,
)
from barnabas.protocol.messages.describe_log_dirs import DescribeLogDirsRequest
from barnabas.protocol.messages.metadata import MetadataRequest, MetadataResponseTopic
from barnabas.protocol.values import ResourceType
from barnabas.server.apis import configs, log_dirs, metadata
from tests.cluster.harness import FakeBroker
from tests.server.in_process import running
from tests.turns import turns_of


def describing(*names: str) -> DescribeConfigsRequest:
    resources = [DescribeConfigsResource(resource_type=ResourceType.TOPIC, resource_name=name) for name in names]
    for resource in resources:
        resource.configuration_keys = None
    return DescribeConfigsRequest(resources=resources, include_synonyms=True)


async def test_settings_of_many_topics(monkeypatch: pytest.MonkeyPatch) -> None:
    names = [f"t{number}" for number in range(9)]
    async with FakeBroker() as broker:
        await broker.controller.create_topics([NewTopic(name, 1, 1, configs=[("retention.ms", name[1:])]) for name in names])
        at_once, turns = await turns_of(broker.ask(describing("none", *names), 4))
        assert not turns
        monkeypatch.setattr(configs, "RESOURCES_PER_TURN", 2)
        in_turns, turns = await turns_of(broker.ask(describing("none", *names), 4))
        assert turns >= len(names) // 2
    assert repr(in_turns) == repr(at_once)
    assert [{entry.name: entry.value for entry in result.configs}.get("retention.ms") for result in in_turns.results] == [
        None,
        *(name[1:] for name in names),
    ]


async def test_sizes_of_many_partitions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_dirs, "PARTITIONS_PER_TURN", 2)
    async with FakeBroker(directory=tmp_path) as broker:
        await broker.controller.create_topics([NewTopic(f"t{number}", 3, 1) for number in range(3)])
        for number, key in enumerate(broker.logs.logs):
            broker.logs.logs[key] = broker.logs.logs[key]._replace(size_bytes=number)
        answer, turns = await turns_of(broker.ask(DescribeLogDirsRequest(topics=None), 4))
        assert turns >= 3
        (result,) = answer.results
        assert result.log_dir == str(tmp_path)
        sizes = {(t.name, p.partition_index): p.partition_size for t in result.topics for p in t.partitions}
        assert sizes == {key: log.size_bytes for key, log in broker.logs.logs.items()}


async def test_a_long_answer_is_written_down_aside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with running([tmp_path]) as client:
        await client.create()
        at_once = await client.ask((32, 4), describing(*["t"] * 5), DescribeConfigsResponse)
        monkeypatch.setattr(configs, "RESOURCES_PER_TURN", 2)
        in_turns = await client.ask((32, 4), describing(*["t"] * 5), DescribeConfigsResponse)
        assert repr(in_turns) == repr(at_once)


async def test_all_topics_are_described_once_for_an_image(monkeypatch: pytest.MonkeyPatch) -> None:
    described: list[str] = []
    describe = metadata._describe

    def noted(broker: Any, topic: Topic, request: MetadataRequest) -> MetadataResponseTopic:
        described.append(topic.name)
        return describe(broker, topic, request)

    async def named(*, operations: bool = False, version: int = 8) -> dict[str, int]:
        """How many partitions each topic has."""
        request = MetadataRequest(topics=None, include_topic_authorized_operations=operations)
        answer = await broker.ask(request, version)
        return {topic.name: len(topic.partitions) for topic in answer.topics}

    monkeypatch.setattr(metadata, "_describe", noted)
    async with FakeBroker() as broker:
        await broker.controller.create_topics([NewTopic("a", 2, 1), NewTopic("b", 1, 1)])
        assert [await named(), await named(), await named(version=5)] == [{"a": 2, "b": 1}] * 3
        assert described == ["a", "b"]
        await broker.controller.create_topics([NewTopic("c", 3, 1)])
        assert [await named(), await named()] == [{"a": 2, "b": 1, "c": 3}] * 2
        assert described[2:] == ["a", "b", "c"]
        assert await named(operations=True) == {"a": 2, "b": 1, "c": 3}
        assert described[5:] == ["a", "b", "c"], "their answer differs"
        monkeypatch.setattr(metadata, "may_lead", lambda *_: False)
        await named()
        assert described[8:] == ["a", "b", "c"], "it has stood down meanwhile"
        monkeypatch.setattr(broker.partitions, "offline_count", 1)
        await named()
        assert described[11:] == ["a", "b", "c"], "which of them is offline changes by itself"
