"""Members that lose their connection to the store, their session, or its watches in time."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from barnabas.cluster.planning.instructions import ForgetTopics, StandDown
from barnabas.cluster.planning.topics import NewTopic
from barnabas.cluster.store.interface import StoreUnavailable
from barnabas.errors import Closed, KafkaError
from barnabas.protocol.base_message import ZERO_UUID
from tests.cluster.members import Members, created
from tests.waiting import until


async def test_a_short_loss_of_the_connection_is_not_felt(cluster: Members) -> None:
    await created(cluster)
    node = cluster.nodes[2]
    node.store.suspend()
    node.store.resume()
    await cluster.until(cluster.is_settled)
    assert StandDown() not in node.heard


async def test_a_longer_loss_makes_a_broker_stand_down(cluster: Members) -> None:
    await created(cluster)
    node = cluster.nodes[2]
    node.store.suspend()
    await cluster.until(lambda: StandDown() in node.heard)
    assert node.roles == {}
    node.store.resume()  # the session is still alive: there was no election
    await cluster.until(cluster.is_settled)
    assert node.member.broker_epoch == node.image.brokers[2].epoch


@pytest.mark.parametrize("gone", ["before it watches", "while it reads"])
async def test_a_start_waits_for_a_lost_connection(cluster: Members, monkeypatch: pytest.MonkeyPatch, gone: str) -> None:
    monkeypatch.setattr("barnabas.cluster.membership.member.OPEN_AGAIN_MS", 10)
    node = cluster.add(4)
    lost = "watch" if gone == "before it watches" else "list"
    ask, failed = getattr(node.store, lost), asyncio.Event()

    def ask_once_in_vain(argument: Any) -> Any:
        if not failed.is_set():
            failed.set()
            node.store.suspend()
        return ask(argument)

    monkeypatch.setattr(node.store, lost, ask_once_in_vain)
    joining = asyncio.ensure_future(node.join())
    await failed.wait()
    node.store.resume()
    await joining
    await cluster.until(cluster.is_settled)
    assert len(node.store._watchers) == 1


async def test_a_start_without_a_connection_is_given_up(cluster: Members, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("barnabas.cluster.membership.member.OPEN_AGAIN_MS", 10)
    node = cluster.add(4)
    node.store.suspend()
    with pytest.raises(StoreUnavailable):
        await node.member.open("cluster", timeout_ms=30)
    node.store.close()
    del cluster.nodes[4]


@pytest.mark.parametrize("broker_id", [1, 2])
async def test_an_expired_session_is_followed_by_another(cluster: Members, broker_id: int) -> None:
    await created(cluster)
    node = cluster.nodes[broker_id]
    epoch = node.member.broker_epoch
    node.store.expire()
    await cluster.until(lambda: StandDown() in node.heard and cluster.is_settled())
    assert node.member.broker_epoch > epoch
    assert sum(each.member.is_controller for each in cluster.live) == 1


async def test_what_was_missed_without_connection_is_made_up_for(cluster: Members) -> None:
    await created(cluster, "old")
    node = next(node for node in cluster.live if not node.member.is_controller)
    node.store.suspend()
    await cluster.controller.member.delete_topics([("old", ZERO_UUID)])
    await cluster.controller.member.create_topics([NewTopic("old", 1, 3), NewTopic("new", 2, 3)])
    node.store.resume()
    await cluster.until(cluster.is_settled)
    assert set(node.image.topics) == {"old", "new"}
    assert ForgetTopics(("old",)) in node.heard


async def test_late_watches_do_no_harm(cluster: Members) -> None:
    node = next(node for node in cluster.live if not node.member.is_controller)
    node.store.hold_watches()
    for n in range(5):
        await cluster.controller.member.create_topics([NewTopic("t", n + 1, 3)])
        await cluster.controller.member.delete_topics([("t", ZERO_UUID)])
    await cluster.controller.member.create_topics([NewTopic("t", 2, 3)])
    node.store.release_watches()
    await cluster.until(lambda: cluster.is_settled() and not cluster.controller.image.deletions)
    assert len(node.image.topics["t"].partitions) == 2
    assert node.image.topics["t"].topic_id == cluster.controller.image.topics["t"].topic_id


async def test_commands_that_wait_when_a_broker_stops_ask_the_store_no_more() -> None:
    async with Members() as cluster:
        controller = cluster.controller
        controller.store.suspend()
        async with controller.member._turn:
            asked = [asyncio.ensure_future(controller.member.create_topics([NewTopic(name, 1)])) for name in "abc"]
            await until(lambda: len(controller.member._running) == 3)
            before = controller.store.commits
            stopping = asyncio.ensure_future(controller.close())
            await until(lambda: controller.member._closed)
        assert [type(told) for told in await asyncio.gather(*asked, return_exceptions=True)] == [Closed] * 3
        await stopping
        assert controller.store.commits == before
        controller.is_dead = True


async def test_a_broker_that_stood_down_asks_a_store_it_cannot_reach_for_nothing(cluster: Members) -> None:
    controller = cluster.controller
    controller.store.suspend()
    before = controller.store.commits
    for tried in range(2):
        with pytest.raises(KafkaError, match="REQUEST_TIMED_OUT"):
            await controller.member.create_topics([NewTopic("t", 1)])
        assert controller.store.commits == before + 1, f"tried {tried} times in vain before"
        await cluster.until(lambda: controller.member.is_down)
    controller.store.resume()
    await cluster.until(cluster.is_settled)
    await created(cluster)
