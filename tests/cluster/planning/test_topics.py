"""CreateTopics, DeleteTopics and CreatePartitions, each item answered by itself, as Kafka 4.3 answers."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from barnabas.cluster.metadata.image import MetadataImage
from barnabas.cluster.planning.instructions import CreateLog, DeleteLog
from barnabas.cluster.store.embedded import EmbeddedStore
from barnabas.errors import ErrorCode
from barnabas.protocol.base_message import ZERO_UUID
from barnabas.protocol.messages.create_partitions import (
    CreatePartitionsAssignment,
    CreatePartitionsRequest,
    CreatePartitionsTopic,
)
from barnabas.protocol.messages.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from barnabas.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from tests.cluster.harness import FakeBroker

Told = tuple[int, str | None]


def new(name: str, partitions: int = 1, replicas: int = 1, **rest: Any) -> CreatableTopic:
    return CreatableTopic(name=name, num_partitions=partitions, replication_factor=replicas, **rest)


def assigned(name: str, *replicas: tuple[int, Sequence[int]]) -> CreatableTopic:
    assignments = [CreatableReplicaAssignment(partition_index=index, broker_ids=brokers) for index, brokers in replicas]
    return new(name, -1, -1, assignments=assignments)


def with_config(name: str, **settings: str | None) -> CreatableTopic:
    configs = [CreatableTopicConfig(name=key.replace("_", "."), value=value) for key, value in settings.items()]
    return new(name, configs=configs)


async def create(broker: FakeBroker, *topics: CreatableTopic, version: int = 7, **rest: Any) -> dict[str, Told]:
    answer = await broker.ask(CreateTopicsRequest(topics=topics, timeout_ms=1000, **rest), version)
    assert len(answer.topics) == len({topic.name for topic in topics})
    return {topic.name: (topic.error_code, topic.error_message) for topic in answer.topics}


async def delete(broker: FakeBroker, *topics: tuple[str | None, UUID]) -> list[tuple[str | None, UUID, int, str | None]]:
    states = [DeleteTopicState(name=name, topic_id=topic_id) for name, topic_id in topics]
    answer = await broker.ask(DeleteTopicsRequest(topics=states), 6)
    return [(r.name, r.topic_id, r.error_code, r.error_message) for r in answer.responses]


async def add(broker: FakeBroker, *topics: tuple[str, int, list[list[int]] | None], **rest: Any) -> dict[str, Told]:
    wanted = [
        CreatePartitionsTopic(
            name=name,
            count=count,
            assignments=None if brokers is None else [CreatePartitionsAssignment(broker_ids=b) for b in brokers],
        )
        for name, count, brokers in topics
    ]
    answer = await broker.ask(CreatePartitionsRequest(topics=wanted, **rest), 3)
    return {result.name: (result.error_code, result.error_message) for result in answer.results}


MANUAL = "The manual partition assignment includes"


@pytest.mark.parametrize(
    ("topic", "code", "message"),
    [
        (new(""), 17, "Topic name is invalid: the empty string is not allowed"),
        (new("."), 17, "Topic name is invalid: '.' is not allowed"),
        (new(".."), 17, "Topic name is invalid: '..' is not allowed"),
        (new("x" * 250), 17, f"Topic name is invalid: the length of '{'x' * 250}' is longer than the max allowed length 249"),
        (
            new("a b"),
            17,
            "Topic name is invalid: 'a b' contains one or more characters other than ASCII alphanumerics, '.', '_' and '-'",
        ),
        (new("taken"), 36, "Topic 'taken' already exists."),
        (new("do_tted"), 17, "Topic 'do_tted' collides with existing topic: do.tted"),
        (new("__cluster_metadata"), 42, "Creation of internal topic __cluster_metadata is prohibited."),
        (new("n", 0), 37, "Number of partitions was set to an invalid non-positive value."),
        (new("n", -2), 37, "Number of partitions was set to an invalid non-positive value."),
        (new("n", 10_001), 44, "Excessively large number of partitions per request."),
        (new("n", 1, 0), 38, "Replication factor must be larger than 0, or -1 to use the default value."),
        (assigned("n", (0, [1]), (2, [1])), 39, "partitions should be a consecutive 0-based integer sequence"),
        (assigned("n", (0, [1]), (0, [1])), 39, "Found multiple manual partition assignments for partition 0"),
        (assigned("n", (0, [])), 39, f"{MANUAL} an empty replica list."),
        (assigned("n", (0, [1, 1])), 39, f"{MANUAL} the broker 1 more than once."),
        (assigned("n", (0, [5])), 39, f"{MANUAL} broker 5, but no such broker is registered."),
        (with_config("n", nope="1"), 40, "Unknown topic config name: nope"),
        (with_config("n", retention_ms="x"), 40, "Invalid value x for configuration retention.ms: Not a number of type LONG"),
        (with_config("n", retention_ms=None), 40, "Null value not supported for topic configs: retention.ms"),
        (
            with_config("n", cleanup_policy="foo"),
            40,
            "Invalid value foo for configuration cleanup.policy: String must be one of: compact, delete",
        ),
        (
            with_config("n", min_compaction_lag_ms="100", max_compaction_lag_ms="10"),
            40,
            "conflict topic config setting min.compaction.lag.ms (100) > max.compaction.lag.ms (10)",
        ),
        (
            with_config("n", remote_storage_enable="true"),
            40,
            "Tiered Storage functionality is disabled in the broker. Topic cannot be configured with remote log storage.",
        ),
    ],
    ids=lambda value: value.name[:20] if isinstance(value, CreatableTopic) else None,
)
async def test_a_topic_is_refused_with_kafkas_words(topic: CreatableTopic, code: int, message: str) -> None:
    async with FakeBroker() as broker:
        await create(broker, new("taken"), new("do.tted"))
        assert await create(broker, topic) == {topic.name: (code, message)}
        assert set(broker.metadata.topics) == {"taken", "do.tted"}


async def test_counts_contradicting_an_assignment_are_refused() -> None:
    one = [CreatableReplicaAssignment(partition_index=0, broker_ids=[1])]
    async with FakeBroker() as broker:
        kind = "A manual partition assignment was specified, but"
        assert await create(broker, new("a", -1, 1, assignments=one), new("b", 1, -1, assignments=one)) == {
            "a": (42, f"{kind} replication factor was not set to -1."),
            "b": (42, f"{kind} numPartitions was not set to -1."),
        }


async def test_valid_and_invalid_topics_of_one_request_part_ways() -> None:
    async with FakeBroker() as broker:
        told = await create(broker, new("good"), new("bad name"), new("twice"), new("twice", 2), new("two", replicas=2))
        assert {name: code for name, (code, _) in told.items()} == {"good": 0, "bad name": 17, "twice": 42, "two": 38}
        assert told["twice"][1] == "Duplicate topic name."
        assert set(broker.metadata.topics) == {"good"}
        assert broker.instructions == [
            CreateLog("good", 0, broker.metadata.topics["good"].topic_id, broker.controller.topic_config("good"))
        ]


async def test_the_answer_describes_the_topic() -> None:
    async with FakeBroker({"num.partitions": "3"}) as broker:
        topic = with_config("t", retention_ms="5000")
        topic.num_partitions = topic.replication_factor = -1
        answer = await broker.ask(CreateTopicsRequest(topics=[topic]), 7)
        (made,) = answer.topics
        assert (made.num_partitions, made.replication_factor, made.topic_config_error_code) == (3, 1, 0)
        assert made.topic_id == broker.metadata.topic_id("t")
        shown = {config.name: (config.value, config.config_source) for config in made.configs}
        assert len(shown) == 33
        assert shown["retention.ms"] == ("5000", 1)
        assert shown["segment.bytes"] == ("1073741824", 5)


async def test_validate_only_changes_nothing() -> None:
    async with FakeBroker() as broker:
        assert await create(broker, new("t", 4), new("bad name"), validate_only=True) == {
            "t": (0, None),
            "bad name": (17, broker_refusal("bad name")),
        }
        assert broker.metadata.topics == {}
        assert broker.instructions == []


def broker_refusal(name: str) -> str:
    return f"Topic name is invalid: '{name}' contains one or more characters other than ASCII alphanumerics, '.', '_' and '-'"


@pytest.mark.parametrize("version", range(2, 8))
async def test_every_version_of_create_topics(version: int) -> None:
    async with FakeBroker() as broker:
        assert await create(broker, new("t"), version=version) == {"t": (0, None)}


async def test_partitions_spread_over_brokers() -> None:
    async with FakeBroker(brokers=(1, 2, 3)) as broker:
        await create(broker, new("t", 6, 2))
        states = broker.metadata.topics["t"].partitions
        assert sorted(state.leader for state in states) == [1, 1, 2, 2, 3, 3]
        assert all(len(set(state.replicas)) == 2 and state.isr == state.replicas for state in states)
        mine = [i for i in broker.instructions if isinstance(i, CreateLog)]
        assert {log.partition for log in mine} == {n for n, state in enumerate(states) if 1 in state.replicas}
        assert all(log.is_leader == (states[log.partition].leader == 1) for log in mine)


async def test_topics_of_one_request_spread_over_brokers() -> None:
    async with FakeBroker(brokers=(1, 2, 3)) as broker:
        await create(broker, *(new(f"t{number}", 1, 2) for number in range(6)))
        leaders = [broker.metadata.topics[f"t{number}"].partitions[0].leader for number in range(6)]
        assert sorted(leaders) == [1, 1, 2, 2, 3, 3]


async def test_topics_are_deleted_by_name_and_by_id() -> None:
    async with FakeBroker() as broker:
        await create(broker, new("a"), new("b", 2), new("c"))
        a, b = broker.metadata.topic_id("a"), broker.metadata.topic_id("b")
        assert a is not None
        assert b is not None
        broker.instructions.clear()
        assert await delete(broker, ("a", ZERO_UUID), (None, b)) == [("a", a, 0, None), ("b", b, 0, None)]
        assert set(broker.metadata.topics) == {"c"}
        assert broker.metadata.topic_by_id(a) is None
        assert broker.instructions == [DeleteLog("a", 0, a), DeleteLog("b", 0, b), DeleteLog("b", 1, b)]


async def test_deletions_are_refused_one_by_one() -> None:
    unknown = UUID(int=99)
    async with FakeBroker() as broker:
        await create(broker, new("a"), new("b"), new("c"))
        a, b = broker.metadata.topic_id("a"), broker.metadata.topic_id("b")
        assert b is not None
        told = await delete(
            broker, ("nono", ZERO_UUID), (None, unknown), (None, ZERO_UUID), ("c", unknown), ("a", ZERO_UUID), ("a", ZERO_UUID),
            (None, b), ("b", ZERO_UUID),
        )  # fmt: skip
        assert told == [
            ("nono", ZERO_UUID, 3, "This server does not host this topic-partition."),
            (None, unknown, 100, "This server does not host this topic ID."),
            (None, ZERO_UUID, 42, "Neither topic name nor id were specified."),
            ("c", unknown, 42, "You may not specify both topic name and topic id."),
            ("a", ZERO_UUID, 42, "Duplicate topic name."),
            ("b", b, 42, "The provided topic name maps to an ID that was already supplied."),
        ]
        assert set(broker.metadata.topics) == {"a", "b", "c"}
        assert a is not None


@pytest.mark.parametrize(("version", "code"), [(1, 42), (2, 42), (3, 73), (5, 73)])
async def test_deletion_can_be_forbidden(version: int, code: int) -> None:
    async with FakeBroker({"delete.topic.enable": "false"}) as broker:
        await create(broker, new("a"))
        answer = await broker.ask(DeleteTopicsRequest(topic_names=["a"]), version)
        assert [(r.name, r.error_code) for r in answer.responses] == [("a", code)]
        assert "a" in broker.metadata.topics


async def test_settings_die_with_their_topic() -> None:
    async with FakeBroker() as broker:
        await create(broker, with_config("a", retention_ms="5"))
        await delete(broker, ("a", ZERO_UUID))
        await create(broker, new("a"))
        assert broker.metadata.topic_config("a") == {}


async def test_a_name_is_free_for_collision_again_when_it_is_gone() -> None:
    async with FakeBroker() as broker:
        await create(broker, new("a.b"))
        await delete(broker, ("a.b", ZERO_UUID))
        assert await create(broker, new("a_b")) == {"a_b": (0, None)}


async def test_partitions_are_added() -> None:
    async with FakeBroker() as broker:
        await create(broker, new("a", 2))
        before = broker.metadata.topics["a"]
        assert await add(broker, ("a", 4, None)) == {"a": (0, None)}
        after = broker.metadata.topics["a"]
        assert after.partitions[:2] == before.partitions
        assert (len(after.partitions), after.topic_id) == (4, before.topic_id)
        assert [log.partition for log in broker.instructions if isinstance(log, CreateLog)] == [0, 1, 2, 3]
        assert await add(broker) == {}


async def test_who_assigns_to_registered_brokers_has_no_partitions_gone_over(monkeypatch: pytest.MonkeyPatch) -> None:
    looked: list[MetadataImage] = []

    def holders(image: MetadataImage) -> set[int]:
        looked.append(image)
        return set()

    async with FakeBroker() as broker:
        monkeypatch.setattr(MetadataImage, "holders", holders)
        assert await create(broker, assigned("a", (0, [1]), (1, [1]))) == {"a": (0, None)}
        assert await add(broker, ("a", 3, [[1]])) == {"a": (0, None)}
        assert not looked
        assert (await add(broker, ("a", 4, [[7]])))["a"][0] == ErrorCode.INVALID_REPLICA_ASSIGNMENT
        assert len(looked) == 1


@pytest.mark.parametrize(
    ("wanted", "code", "message"),
    [
        (("nono", 2, None), 3, None),
        (("a", 2, None), 37, "Topic already has 2 partition(s)."),
        (("a", 1, None), 37, "The topic a currently has 2 partition(s); 1 would not be an increase."),
        (("a", -1, None), 37, "The topic a currently has 2 partition(s); -1 would not be an increase."),
        (("a", 20_000, None), 44, "Excessively large number of partitions per request."),
        (
            ("a", 4, [[1]]),
            39,
            "Attempted to add 2 additional partition(s), but only 1 assignment(s) were specified.",
        ),
        (("a", 3, [[7]]), 39, f"{MANUAL} broker 7, but no such broker is registered."),
        (("a", 3, [[]]), 39, f"{MANUAL} an empty replica list."),
    ],
)
async def test_partitions_are_refused(wanted: tuple[str, int, list[list[int]] | None], code: int, message: str | None) -> None:
    async with FakeBroker() as broker:
        await create(broker, new("a", 2))
        assert await add(broker, wanted) == {wanted[0]: (code, message)}
        assert len(broker.metadata.topics["a"].partitions) == 2


async def test_partitions_of_a_topic_named_twice_are_not_added() -> None:
    async with FakeBroker() as broker:
        await create(broker, new("a"), new("b"))
        told = await add(broker, ("a", 5, None), ("b", 2, None), ("a", 6, None))
        assert told == {"a": (42, "Duplicate topic name."), "b": (0, None)}


async def test_everything_is_there_after_a_restart(tmp_path: Path) -> None:
    async with FakeBroker(store=EmbeddedStore(tmp_path)) as broker:
        await create(broker, new("many", 600), with_config("set", retention_ms="5"), new("gone"))
        await add(broker, ("many", 700, None))
        await delete(broker, ("gone", ZERO_UUID))
        before = broker.metadata
    async with FakeBroker(store=EmbeddedStore(tmp_path)) as broker:
        after = broker.metadata
        after.validate()
        assert (after.topics, after.configs, after.cluster_id) == (before.topics, before.configs, before.cluster_id)
        assert broker.controller.topic_config("set").retention_ms == 5
        assert await create(broker, new("gone"), new("many")) == {
            "gone": (0, None),
            "many": (ErrorCode.TOPIC_ALREADY_EXISTS, "Topic 'many' already exists."),
        }
