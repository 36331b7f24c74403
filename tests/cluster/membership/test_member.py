"""Members of a cluster: joining, following each other, commanding and leaving."""

from __future__ import annotations

import asyncio
import gc

import pytest

from barnabas.cluster.controller.registration import BrokerIdInUse
from barnabas.cluster.membership.commands import NotController
from barnabas.cluster.metadata import store_entries
from barnabas.cluster.metadata.image import BrokerRegistration, BrokerState
from barnabas.cluster.metadata.store_entries import ControllerEntry
from barnabas.cluster.planning.configs import AlterOperation, ResourceChange
from barnabas.cluster.planning.instructions import UpdateBrokerConfig, UpdateTopicConfig
from barnabas.cluster.planning.topics import NewTopic
from barnabas.cluster.store.interface import ABSENT, Put, Remove
from barnabas.cluster.store.memory import MemoryStore
from barnabas.config.listeners import Endpoint
from barnabas.errors import ErrorCode, KafkaError
from barnabas.protocol.values import NO_LEADER, ResourceType
from tests.cluster.members import Members, created
from tests.waiting import until


async def test_all_see_the_same(cluster: Members) -> None:
    await created(cluster)
    assert {node.image.controller_id for node in cluster.live} == {cluster.controller.broker_id}
    assert {node.image.cluster_id for node in cluster.live} == {"cluster"}
    topic = cluster.controller.image.topics["t"]
    assert {state.leader for state in topic.partitions} == {1, 2, 3}
    for node in cluster.live:
        assert node.logs == {(topic.topic_id, number) for number in range(3)}


async def test_only_the_controller_commands(cluster: Members) -> None:
    other = next(node for node in cluster.live if not node.member.is_controller)
    for validate_only in (False, True):
        with pytest.raises(NotController):
            await other.member.create_topics([NewTopic("t", 1, 1)], validate_only=validate_only)
    assert "/topics/t" not in cluster.tree.entries


async def test_leaders_are_balanced_the_next_time_where_the_store_does_not_answer(cluster: Members) -> None:
    await created(cluster)
    controller = cluster.controller
    controller.store.suspend()
    await controller.member.balance()
    controller.store.resume()
    await cluster.until(cluster.is_settled)
    await controller.member.balance()
    assert {state.leader for state in controller.image.topics["t"].partitions} == {1, 2, 3}


async def test_a_command_fails_in_silence_when_whoever_asked_is_gone(cluster: Members) -> None:
    controller, told = cluster.controller, []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: told.append(context))
    controller.store.lose_next_reply(done=False)
    async with controller.member._turn:
        asking = asyncio.ensure_future(controller.member.create_topics([NewTopic("t", 1)]))
        await asyncio.sleep(0)
        assert controller.member._running
        asking.cancel()
        await asyncio.gather(asking, return_exceptions=True)
        await asyncio.sleep(0)
    await cluster.until(lambda: not controller.member._running)
    gc.collect()
    controller.store.resume()
    await cluster.until(cluster.is_settled)
    assert told == []


async def test_producer_ids_are_given_by_every_broker(cluster: Members) -> None:
    blocks = await asyncio.gather(*(node.member.take_producer_ids() for node in cluster.live for _ in range(3)))
    assert sorted(block.start for block in blocks) == [1000 * n for n in range(9)]


@pytest.mark.parametrize("victim", ["controller", "other"])
async def test_a_dead_brokers_partitions_are_led_by_others(cluster: Members, victim: str) -> None:
    await created(cluster)
    dead = next(node for node in cluster.live if node.member.is_controller == (victim == "controller"))
    dead.crash()
    await cluster.until(cluster.is_settled)
    for number in range(3):
        state = cluster.state("t", number)
        assert state.leader != dead.broker_id
        assert dead.broker_id not in state.isr
    again = await cluster.start(dead.broker_id)
    await cluster.until(cluster.is_settled)
    assert again.member.broker_epoch > dead.member.broker_epoch


async def test_an_id_in_use_is_refused(cluster: Members) -> None:
    other = cluster.nodes[2]
    node = cluster.add(2)
    await node.member.open("cluster")
    endpoint = Endpoint("PLAINTEXT", "127.0.0.1", 9999, "PLAINTEXT")
    with pytest.raises(BrokerIdInUse):
        await node.member.join(BrokerRegistration(2, (endpoint,), log_dirs=("another",)), node.apply, timeout_ms=50)
    assert not node.roles
    node.crash()
    cluster.nodes[2] = other
    await cluster.until(cluster.is_settled)


async def test_a_deposed_controller_writes_nothing_more(cluster: Members) -> None:
    old = cluster.controller
    old.store.hold_watches()
    entry = cluster.tree.entries[store_entries.CONTROLLER_EPOCH]
    thief = MemoryStore(cluster.tree)
    thief.commit(
        [
            Remove(store_entries.CONTROLLER),
            Put(store_entries.CONTROLLER_EPOCH, store_entries.encode(9), entry.version),
            Put(
                store_entries.CONTROLLER, store_entries.encode_controller(ControllerEntry(7, 9, "thief")), ABSENT, ephemeral=True
            ),
        ]
    )
    with pytest.raises(NotController):
        await old.member.create_topics([NewTopic("late", 1, 1)])
    assert "/topics/late" not in cluster.tree.entries
    old.store.release_watches()
    thief.close()
    await cluster.until(cluster.is_settled)
    await created(cluster)


async def test_settings_reach_who_they_are_for(cluster: Members) -> None:
    await created(cluster)
    changes = [
        ResourceChange(ResourceType.TOPIC, "t", [("retention.ms", AlterOperation.SET, "5")]),
        ResourceChange(ResourceType.BROKER, "2", [("log.cleaner.threads", AlterOperation.SET, "2")]),
    ]
    assert await cluster.controller.member.alter_configs(changes) == [None, None]
    await cluster.until(cluster.is_settled)
    for node in cluster.live:
        assert node.member.topic_config("t").retention_ms == 5
        assert any(isinstance(each, UpdateTopicConfig) and each.topic == "t" for each in node.heard)
        told = [each.config.log_cleaner_threads for each in node.heard if isinstance(each, UpdateBrokerConfig)]
        assert told[-1] == (2 if node.broker_id == 2 else 1)


async def test_who_leaves_leads_nothing_when_it_goes(cluster: Members) -> None:
    await created(cluster)
    for leaving in (cluster.controller, cluster.nodes[2]):
        if leaving.is_dead:
            continue
        await leaving.member.leave(5_000)
        assert all(state.leader != leaving.broker_id for state in leaving.image.topics["t"].partitions)
        assert leaving.image.brokers[leaving.broker_id].state is BrokerState.SHUTTING_DOWN
        await leaving.member.close()
        leaving.is_dead = True
        await cluster.until(cluster.is_settled)
        if len(cluster.live) == 1:
            break
    assert all(state.leader != NO_LEADER for state in cluster.controller.image.topics["t"].partitions)


async def test_who_loses_its_registration_when_about_to_leave_leaves(cluster: Members) -> None:
    await created(cluster)
    leaving = next(node for node in cluster.live if not node.member.is_controller)
    path = store_entries.broker_path(leaving.broker_id)
    async with leaving.member._turn:
        going = asyncio.ensure_future(leaving.member.leave(5_000))
        await until(lambda: leaving.member._running)
        cluster.controller.store.commit([Remove(path, cluster.tree.entries[path].version)])
    await going
    assert not leaving.member._leads_what_others_could(leaving.image)


async def test_a_store_that_is_away_is_named(cluster: Members) -> None:
    controller = cluster.controller
    controller.store.lose_next_reply(done=True)
    with pytest.raises(KafkaError) as caught:
        await controller.member.create_topics([NewTopic("t", 1, 3)])
    assert caught.value.code is ErrorCode.REQUEST_TIMED_OUT
    controller.store.resume()
    await cluster.until(lambda: cluster.is_settled() and "t" in cluster.controller.image.topics)  # the store had committed it
