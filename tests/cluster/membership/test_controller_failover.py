"""The controller dies at every commit of every command."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from barnabas.cluster.metadata import records
from barnabas.cluster.planning.alter_partition import InSyncChange
from barnabas.cluster.planning.configs import AlterOperation, ResourceChange
from barnabas.cluster.planning.partitions import ElectionType, InSyncRequest, MoveRequest
from barnabas.cluster.planning.topics import MorePartitions, NewTopic
from barnabas.cluster.store.interface import StoreUnavailable
from barnabas.errors import KafkaError
from barnabas.protocol.message import ZERO_UUID
from barnabas.protocol.values import ResourceType
from tests.cluster.members import Members, created, stop_silently


async def create(cluster: Members) -> None:
    await cluster.controller.member.create_topics([NewTopic("new", 2, 3)])


async def delete(cluster: Members) -> None:
    await cluster.controller.member.delete_topics([("t", ZERO_UUID)])


async def add(cluster: Members) -> None:
    await cluster.controller.member.create_partitions([MorePartitions("t", 5)])


async def move(cluster: Members) -> None:
    await cluster.controller.member.reassign([MoveRequest("t", 0, (2, 3))])


async def elect(cluster: Members) -> None:
    await cluster.controller.member.reassign([MoveRequest("t", 0, cluster.state("t").replicas[::-1])])
    await cluster.controller.member.elect_leaders(ElectionType.PREFERRED, None)


async def configure(cluster: Members) -> None:
    change = ResourceChange(ResourceType.TOPIC, "t", [("min.insync.replicas", AlterOperation.SET, "2")])
    await cluster.controller.member.alter_configs([change])


async def lose_another(cluster: Members) -> None:
    victim = next(node for node in cluster.live if not node.member.is_controller)
    victim.crash()
    await cluster.until(lambda: not cluster.live or victim.broker_id not in cluster.live[-1].image.brokers)


async def bury_another(cluster: Members) -> None:
    victim = next(node for node in cluster.live if not node.member.is_controller)
    stop_silently(victim)
    for node in cluster.live:
        node.member.tell_dead(victim.broker_id, victim.member.broker_epoch)
    await cluster.until(lambda: not cluster.live or victim.broker_id not in cluster.live[-1].image.brokers)


async def let_another_leave(cluster: Members) -> None:
    leaving = next(node for node in cluster.live if not node.member.is_controller)
    await leaving.member.leave(5_000)
    assert all(leaving.broker_id != state.leader for topic in leaving.image.topics.values() for state in topic.partitions)
    await leaving.member.close()
    leaving.is_dead = True


async def take_one_back(cluster: Members) -> None:
    await lose_another(cluster)
    await cluster.start(next(broker_id for broker_id, node in cluster.nodes.items() if node.is_dead))


async def delete_without_another(cluster: Members) -> None:
    await lose_another(cluster)
    await delete(cluster)


async def unregister(cluster: Members) -> None:
    await lose_another(cluster)
    (dead,) = (broker_id for broker_id, node in cluster.nodes.items() if node.is_dead)
    await cluster.controller.member.unregister(dead)


async def balance(cluster: Members) -> None:
    await cluster.controller.member.reassign([MoveRequest("t", 0, cluster.state("t").replicas[::-1])])
    await cluster.controller.member.balance()


async def shrink(cluster: Members) -> None:
    topic = cluster.controller.image.topics["t"]
    mine = cluster.controller.broker_id
    number, state = next((n, state) for n, state in enumerate(topic.partitions) if state.leader != mine)
    epochs = {node.broker_id: node.member.broker_epoch for node in cluster.live}
    change = InSyncChange(state.leader_epoch, state.partition_epoch, tuple((i, epochs[i]) for i in (state.leader, mine)))
    request = InSyncRequest(topic.topic_id, number, change)
    await cluster.controller.member.alter_partitions(state.leader, epochs[state.leader], [request])


STEPS = [create, delete, add, move, elect, configure, shrink, balance, unregister, lose_another, bury_another, take_one_back,
         let_another_leave, delete_without_another]  # fmt: skip


@pytest.mark.parametrize("done", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("step", STEPS)
async def test_the_controller_may_die_at_any_commit(step: Callable[[Members], Awaitable[None]], done: bool) -> None:
    for crash_at in range(10):
        async with Members() as cluster:
            await created(cluster)
            controller = cluster.controller
            controller.store.crash_at, controller.store.crash_done = controller.store.commits + crash_at, done
            try:
                async with asyncio.timeout(5):
                    await step(cluster)
                    await cluster.until(cluster.is_settled)
            except (StoreUnavailable, KafkaError, ValueError):
                pass
            died = controller.is_dead
            controller.store.crash_at = None
            await cluster.until(cluster.is_settled)
            check_whole(cluster)
            if not died:
                assert crash_at > 0, "there was nothing to die at"
                return
    pytest.fail("the step takes more commits than expected")


def check_whole(cluster: Members) -> None:
    image = cluster.controller.image
    image.validate()
    alive = {node.broker_id for node in cluster.live}
    for topic in image.topics.values():
        stored = cluster.tree.entries[records.topic_path(topic.name)]
        assert records.decode_head(stored.value) == (topic.topic_id, len(topic.partitions))
        assert all(state.leader in alive for state in topic.partitions)
    names = {path.removeprefix(records.TOPICS) for path in cluster.tree.entries if path.startswith(records.TOPICS)}
    chunks = {records.topic_of_path(path) for path in cluster.tree.entries if path.startswith(records.PARTITIONS)}
    assert names == chunks == set(image.topics)
