"""Policies decide what Apache Kafka's decide, asked about the same.

The expected questions and answers are those of Kafka 4.3 with policies in Java that do the same as `samples.py`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from barnabas.error_codes import ErrorCode
from barnabas.plugins import AlterConfigMetadata, CreateTopicMetadata
from barnabas.protocol.messages import incremental_alter_configs as incremental
from barnabas.protocol.messages.alter_configs import AlterableConfig as Replacement
from barnabas.protocol.messages.alter_configs import AlterConfigsRequest, AlterConfigsResource, AlterConfigsResponse
from barnabas.protocol.messages.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopic,
)
from barnabas.protocol.messages.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from barnabas.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse
from barnabas.protocol.values import ResourceType
from tests.plugins.samples import ASKED, GATE, HERE
from tests.server.cluster.in_process import running as cluster_running
from tests.server.in_process import Client, running

POLICIES = {"create.topic.policy.class.name": f"{HERE}Topics", "alter.config.policy.class.name": f"{HERE}Settings"}
SET, DELETE, APPEND = 0, 1, 2
TOPIC, BROKER = int(ResourceType.TOPIC), int(ResourceType.BROKER)


@pytest.fixture(autouse=True)
def nothing_asked() -> None:
    ASKED.clear()
    GATE.clear()


def topic(name: str, partitions: int = 1, factor: int = 1, **configs: str) -> CreatableTopic:
    settings = [CreatableTopicConfig(name=key.replace("_", "."), value=value) for key, value in configs.items()]
    return CreatableTopic(name=name, num_partitions=partitions, replication_factor=factor, configs=settings)


async def create(client: Client, *topics: CreatableTopic, validate_only: bool = False) -> list[tuple[int, str | None]]:
    request = CreateTopicsRequest(topics=list(topics), timeout_ms=10_000, validate_only=validate_only)
    answer = await client.ask((19, 7), request, CreateTopicsResponse)
    return [(each.error_code, each.error_message) for each in answer.topics]


async def alter(
    client: Client, value: str | None, *, name: str = "good", kind: int = TOPIC, operation: int = SET, key: str = "retention.ms"
) -> tuple[int, str | None]:
    change = incremental.AlterableConfig(name=key, config_operation=operation, value=value)
    resource = incremental.AlterConfigsResource(resource_type=kind, resource_name=name, configs=[change])
    request = incremental.IncrementalAlterConfigsRequest(resources=[resource])
    answer = await client.ask((44, 1), request, incremental.IncrementalAlterConfigsResponse)
    return answer.responses[0].error_code, answer.responses[0].error_message


def settings_asked() -> list[dict[str, str | None]]:
    found = [dict(asked.configs) for asked in ASKED if isinstance(asked, AlterConfigMetadata)]
    ASKED.clear()
    return found


async def test_a_policy_is_asked_what_kafka_asks(tmp_path: Path) -> None:
    async with running([tmp_path], num_partitions="2", my_own_key="7", **POLICIES) as client:
        assert ASKED == [("configured", "7")]
        ASKED.clear()
        assigned = CreatableTopic(
            name="assigned",
            num_partitions=-1,
            replication_factor=-1,
            assignments=[CreatableReplicaAssignment(partition_index=index, broker_ids=[1]) for index in range(2)],
        )
        rich = topic("rich", -1, -1, retention_ms="500", cleanup_policy="compact")
        outcomes = await create(client, topic("good", 3), rich, assigned, topic("many", factor=3))
        assert [code for code, _ in outcomes] == [0, 0, 0, ErrorCode.INVALID_REPLICATION_FACTOR]
        settings = {"retention.ms": "500", "cleanup.policy": "compact"}
        assert [
            CreateTopicMetadata("good", 3, 1, None, {}),
            AlterConfigMetadata("TOPIC", "rich", settings),
            CreateTopicMetadata("rich", 2, 1, None, settings),
            CreateTopicMetadata("assigned", None, None, {0: [1], 1: [1]}, {}),
        ] == ASKED
    assert ASKED[-1] == "closed"


async def test_what_a_policy_raises_refuses_its_topic_and_no_other(tmp_path: Path) -> None:
    async with running([tmp_path], **POLICIES) as client:
        names = ("no-1", "bad-1", "api-1", "good")
        outcomes = await create(client, *(topic(name) for name in names), topic("set", retention_ms="1"))
        assert outcomes == [
            (ErrorCode.POLICY_VIOLATION, "not no-1"),
            (ErrorCode.UNKNOWN_SERVER_ERROR, None),
            (ErrorCode.INVALID_REQUEST, "apiboom api-1"),
            (0, None),
            (ErrorCode.POLICY_VIOLATION, "no 1"),
        ]
        assert list(client.broker.metadata.topics) == ["good"]
        assert await create(client, topic("no-2"), validate_only=True) == [(ErrorCode.POLICY_VIOLATION, "not no-2")]
        ASKED.clear()
        more = CreatePartitionsRequest(topics=[CreatePartitionsTopic(name="good", count=5, assignments=None)], timeout_ms=10_000)
        answer = await client.ask((37, 3), more, CreatePartitionsResponse)
        assert (answer.results[0].error_code, ASKED) == (0, []), "as in Kafka, more partitions are nobody's business"


async def test_topics_that_are_made_by_asking_for_them_are_asked_about(tmp_path: Path) -> None:
    async with running([tmp_path], **POLICIES) as client:
        wanted = [MetadataRequestTopic(name=name) for name in ("no-auto", "bad-auto", "auto")]
        answer = await client.ask((3, 9), MetadataRequest(topics=wanted), MetadataResponse)
        codes = {each.name: each.error_code for each in answer.topics}
        unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        assert codes == {"no-auto": unknown, "bad-auto": unknown, "auto": 0}
        assert {asked.topic for asked in ASKED if isinstance(asked, CreateTopicMetadata)} == {"no-auto", "bad-auto", "auto"}


async def test_changes_of_settings_are_asked_about_as_kafka_asks(tmp_path: Path) -> None:
    async with running([tmp_path], **POLICIES) as client:
        await client.create(name="good")
        ASKED.clear()
        table: Sequence[tuple[dict[str, Any], tuple[int, str | None], list[dict[str, str | None]]]] = [
            ({"value": "1"}, (ErrorCode.POLICY_VIOLATION, "no 1"), [{"retention.ms": "1"}]),
            ({"value": "2"}, (ErrorCode.UNKNOWN_SERVER_ERROR, None), [{"retention.ms": "2"}]),
            ({"value": "3"}, (ErrorCode.INVALID_REQUEST, "apiboom 3"), [{"retention.ms": "3"}]),
            ({"value": "4"}, (0, None), [{"retention.ms": "4"}]),
            ({"value": "4"}, (0, None), [{}]),
            ({"value": None, "operation": DELETE}, (0, None), [{"retention.ms": None}]),
            ({"value": None, "operation": DELETE}, (0, None), [{}]),
            ({"value": "xx"}, (ErrorCode.INVALID_CONFIG, "Invalid value xx for configuration retention.ms: Not a number of type LONG"), []),
            ({"value": "7", "name": "missing"}, (3, "The topic 'missing' does not exist."), []),
            ({"value": "compact", "operation": APPEND, "key": "cleanup.policy"}, (0, None), [{"cleanup.policy": "delete,compact"}]),
            ({"value": "7", "kind": BROKER, "name": "1", "key": "background.threads"}, (0, None), [{"background.threads": "7"}]),
            ({"value": "7", "kind": BROKER, "name": "1", "key": "background.threads"}, (0, None), [{"background.threads": "7"}]),
        ]  # fmt: skip
        for given, outcome, asked in table:
            assert (await alter(client, **given), settings_asked()) == (outcome, asked), given
        both = {"retention.ms": "9", "segment.ms": "777"}
        for settings, altered in (({"retention.ms": "9"}, {"retention.ms": "9"}), (both, {"segment.ms": "777"})):
            configs = [Replacement(name=key, value=value) for key, value in settings.items()]
            resource = AlterConfigsResource(resource_type=TOPIC, resource_name="good", configs=configs)
            await client.ask((33, 2), AlterConfigsRequest(resources=[resource]), AlterConfigsResponse)
            assert settings_asked() == [altered]


async def test_a_slow_policy_holds_up_topics_and_nothing_else(tmp_path: Path) -> None:
    async with running([tmp_path], **POLICIES) as client:
        await client.create(name="t")
        other = Client(client.broker)
        slow = asyncio.ensure_future(create(other, topic("slow-1")))
        try:
            assert await client.produce(b"hello") == 0
            assert await client.fetch() == (0, [b"hello"])
            assert not slow.done()
            GATE.set()
            assert await slow == [(0, None)]
        finally:
            GATE.set()
            await asyncio.wait([slow])
            other.close()


async def test_in_a_cluster_the_controller_asks(tmp_path: Path) -> None:
    async with cluster_running(tmp_path, count=2, **POLICIES) as cluster:
        follower = next(i for i, broker in cluster.brokers.items() if broker.member and not broker.member.is_controller)
        client = cluster.clients[follower]
        assert await create(client, topic("no-1"), topic("good")) == [(ErrorCode.POLICY_VIOLATION, "not no-1"), (0, None)]
        assert await alter(client, "1") == (ErrorCode.POLICY_VIOLATION, "no 1")
        wanted = MetadataRequest(topics=[MetadataRequestTopic(name="no-auto")])
        answer = await client.ask((3, 9), wanted, MetadataResponse)
        assert answer.topics[0].error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
