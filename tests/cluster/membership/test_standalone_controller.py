"""The shell: races, lost writes, other writers, restarts, producer ids."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from barnabas.cluster.controller.broker_planner import PRODUCER_ID_BLOCK
from barnabas.cluster.metadata import store_entries
from barnabas.cluster.planning.configs import AlterOperation, ResourceChange
from barnabas.cluster.planning.placement import Ring
from barnabas.cluster.planning.topics import NewTopic
from barnabas.cluster.store.embedded import EmbeddedStore
from barnabas.cluster.store.interface import Operation, Put, StoreUnavailable
from barnabas.cluster.store.memory import MemoryStore, MemoryTree
from barnabas.errors import Closed, ErrorCode, KafkaError
from barnabas.protocol.messages.init_producer_id import InitProducerIdRequest
from barnabas.protocol.values import ResourceType
from tests.cluster.harness import FakeBroker


class FailingStore(MemoryStore):
    """Fails the commits it is told to, before or after they are done."""

    def __init__(self) -> None:
        super().__init__()
        self.fail: str | None = None

    def commit(self, operations: Sequence[Operation]) -> int:
        fail, self.fail = self.fail, None
        if fail != "before":
            revision = super().commit(operations)
        if fail is not None:
            raise StoreUnavailable("the disk is gone")
        return revision


async def test_racing_auto_creations_all_succeed() -> None:
    async with FakeBroker() as broker:
        told = await asyncio.gather(*(broker.controller.auto_create(["a", f"b{n % 3}"]) for n in range(20)))
        assert all(error is None for names in told for error in names.values())
        assert set(broker.metadata.topics) == {"a", "b0", "b1", "b2"}
        assert len(broker.instructions) == 4


async def test_auto_creation_tells_what_cannot_be() -> None:
    async with FakeBroker() as broker:
        told = await broker.controller.auto_create(["good", "bad name"])
        assert told["good"] is None
        refused = told["bad name"]
        assert refused is not None
        assert refused.code is ErrorCode.INVALID_TOPIC_EXCEPTION
        assert set(broker.metadata.topics) == {"good"}


async def test_internal_topics_are_made_as_their_keys_say() -> None:
    async with FakeBroker({"offsets.topic.num.partitions": "7", "offsets.topic.segment.bytes": "2000000"}) as broker:
        names = ["__consumer_offsets", "__transaction_state"]
        assert await broker.controller.auto_create(names) == dict.fromkeys(names)
        topic = broker.metadata.topics["__consumer_offsets"]
        assert topic.is_internal
        assert [state.replicas for state in topic.partitions] == [(1,)] * 7
        config = broker.controller.topic_config("__consumer_offsets")
        assert (config.cleanup_policy, config.segment_bytes) == (frozenset({"compact"}), 2_000_000)
        assert broker.controller.topic_config("__transaction_state").min_insync_replicas == 1


async def test_the_topic_of_share_groups_is_made_as_any_other() -> None:
    async with FakeBroker({"num.partitions": "2", "share.coordinator.state.topic.num.partitions": "3"}) as broker:
        await broker.controller.auto_create(["__share_group_state"])
        topic = broker.metadata.topics["__share_group_state"]
        assert topic.is_internal
        assert len(topic.partitions) == 2


async def test_a_command_is_finished_when_its_caller_goes_away() -> None:
    async with FakeBroker() as broker:
        task = asyncio.ensure_future(broker.controller.create_topics([NewTopic("a", 1, 1)]))
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await broker.controller.create_topics([NewTopic("b", 1, 1)])
        assert set(broker.metadata.topics) == {"a", "b"}
        assert len(broker.instructions) == 2


@pytest.mark.parametrize(("fail", "code"), [("before", None), ("after", ErrorCode.TOPIC_ALREADY_EXISTS)])
async def test_after_a_lost_write_the_store_is_asked_what_holds(fail: str, code: ErrorCode | None) -> None:
    store = FailingStore()
    async with FakeBroker(store=store) as broker:
        store.fail = fail
        with pytest.raises(KafkaError) as caught:
            await broker.controller.create_topics([NewTopic("a", 1, 1)])
        assert caught.value.code is ErrorCode.UNKNOWN_SERVER_ERROR
        assert "a" not in broker.metadata.topics
        (outcome,) = await broker.controller.create_topics([NewTopic("a", 1, 1)])
        assert (outcome.error and outcome.error.code) == code
        assert "a" in broker.metadata.topics


async def test_a_plan_that_another_writer_overtook_is_made_anew() -> None:
    tree = MemoryTree()
    async with FakeBroker(store=MemoryStore(tree)) as broker:
        await broker.controller.create_topics([NewTopic("a", 1, 1)])
        with MemoryStore(tree) as other:
            path = store_entries.config_path((ResourceType.TOPIC, "a"))
            other.commit([Put(path, store_entries.encode({"retention.ms": "5"}))])
        change = ResourceChange(ResourceType.TOPIC, "a", [("segment.ms", AlterOperation.SET, "7")])
        assert await broker.controller.alter_configs([change]) == [None]
        config = broker.controller.topic_config("a")
        assert (config.retention_ms, config.segment_ms) == (5, 7)


async def test_nothing_is_taken_after_close() -> None:
    broker = FakeBroker()
    await broker.controller.close()
    with pytest.raises(Closed):
        await broker.controller.auto_create(["a"])


async def test_producer_ids_are_dense_and_never_given_twice(tmp_path: Path) -> None:
    async with FakeBroker(store=EmbeddedStore(tmp_path)) as broker:
        ids = await asyncio.gather(*(broker.controller.next_producer_id() for _ in range(PRODUCER_ID_BLOCK + 5)))
        assert sorted(ids) == list(range(PRODUCER_ID_BLOCK + 5))
    async with FakeBroker(store=EmbeddedStore(tmp_path)) as broker:
        assert await broker.controller.next_producer_id() == 2 * PRODUCER_ID_BLOCK


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({}, 0),
        ({"producer_id": 5, "producer_epoch": 3}, 0),
        ({"producer_id": 5}, 42),
        ({"producer_epoch": 5}, 42),
        ({"transactional_id": ""}, 42),
    ],
)
async def test_init_producer_id(fields: dict[str, Any], code: int) -> None:
    request = {"transactional_id": None, "producer_id": -1, "producer_epoch": -1, **fields}
    async with FakeBroker() as broker:
        answer = await broker.ask(InitProducerIdRequest(transaction_timeout_ms=1000, **request), 4)
        assert answer.error_code == code
        assert (answer.producer_id, answer.producer_epoch) == ((0, 0) if code == 0 else (-1, -1))


async def test_leader_epochs_rise_after_an_unclean_stop(tmp_path: Path) -> None:
    async with FakeBroker(store=EmbeddedStore(tmp_path)) as broker:
        await broker.controller.create_topics([NewTopic("a", 2, 1)])
    broker = FakeBroker(store=EmbeddedStore(tmp_path))
    async with broker:
        registration = broker.metadata.brokers[1]
        broker.controller.start(registration, broker._apply, bump_leader_epochs=True)
        assert [state.leader_epoch for state in broker.metadata.topics["a"].partitions] == [1, 1]
    async with FakeBroker(store=EmbeddedStore(tmp_path)) as again:
        assert [state.leader_epoch for state in again.metadata.topics["a"].partitions] == [1, 1]


def test_names_of_any_kind_become_paths_and_come_back() -> None:
    for name in ("plain", "a/b", "%41", "", "gruppe-ö", "..", "a b"):
        path = store_entries.config_path((ResourceType.GROUP, name))
        assert path.count("/") == 3
        assert store_entries.unescape(store_entries.escape(name)) == name


async def test_placement_needs_enough_brokers() -> None:
    async with FakeBroker(brokers=(1, 2)) as broker:
        with pytest.raises(KafkaError) as caught:
            Ring(broker.metadata.brokers).place(partitions=1, replication_factor=3, start=0)
        assert caught.value.code is ErrorCode.INVALID_REPLICATION_FACTOR


async def test_the_minimum_in_sync_is_that_of_the_first_start(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """As in Kafka, with eligible leader replicas: it is one of all brokers from then on, and who changes the file is told."""
    for in_file, warns in (("2", False), ("2", False), ("1", True)):
        caplog.clear()
        async with FakeBroker({"min.insync.replicas": in_file}, store=EmbeddedStore(tmp_path)) as broker:
            broker.controller.warn_of_minimum()
            assert broker.metadata.config(ResourceType.BROKER, "") == {"min.insync.replicas": "2"}
            assert broker.controller.config.min_insync_replicas == 2
            assert ("event=setting-without-effect key=min.insync.replicas in_file='1' counts='2'" in caplog.text) is warns
