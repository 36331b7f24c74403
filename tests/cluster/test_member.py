"""Members of a cluster: joining, following each other, losing connections, sessions, offices and lives."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest

from barnabas.cluster import records
from barnabas.cluster.alter_partition import InSyncChange
from barnabas.cluster.commands import NotController
from barnabas.cluster.configs import AlterOperation, ResourceChange
from barnabas.cluster.instructions import ForgetTopics, StandDown, UpdateBrokerConfig, UpdateTopicConfig
from barnabas.cluster.memory_store import MemoryStore
from barnabas.cluster.metadata import NO_LEADER, BrokerRegistration, BrokerState, Kept, ResourceType
from barnabas.cluster.partition_planner import ElectionType, InSyncRequest, MoveRequest
from barnabas.cluster.records import ControllerOffice
from barnabas.cluster.registration import BrokerIdInUse
from barnabas.cluster.store import ABSENT, Put, Remove, SessionState, StoreUnavailable
from barnabas.cluster.topics import MorePartitions, NewTopic
from barnabas.config.listeners import Endpoint
from barnabas.errors import ErrorCode, KafkaError
from barnabas.protocol.message import ZERO_UUID
from tests.cluster.members import Members, Node


@pytest.fixture
async def cluster() -> AsyncIterator[Members]:
    async with Members() as members:
        yield members


async def created(cluster: Members, name: str = "t", partitions: int = 3) -> None:
    outcomes = await cluster.controller.member.create_topics([NewTopic(name, partitions, 3)])
    assert [outcome.error for outcome in outcomes] == [None]
    await cluster.until(cluster.is_settled)


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


def stop_silently(node: Node) -> None:
    """Its process is gone, and its session lives on."""
    node.store._watchers.clear()
    node.store._session_watchers.clear()
    node.is_dead = True
    if node.member._looking is not None:
        node.member._looking.cancel()


@pytest.mark.parametrize("victim", ["controller", "another"])
async def test_who_was_found_dead_is_not_waited_for(cluster: Members, victim: str) -> None:
    await created(cluster)
    dead = next(node for node in cluster.live if node.member.is_controller == (victim == "controller"))
    stop_silently(dead)
    for node in cluster.live:
        node.member.tell_dead(dead.broker_id, dead.member.broker_epoch)
    await cluster.until(cluster.is_settled)
    for number in range(3):
        assert cluster.state("t", number).leader != dead.broker_id
        assert dead.broker_id not in cluster.state("t", number).isr


async def test_all_others_may_be_found_dead(cluster: Members) -> None:
    """The last one becomes controller by burying the one before, and then buries the rest."""
    await created(cluster)
    alive = next(node for node in cluster.live if not node.member.is_controller)
    others = [node for node in cluster.live if node is not alive]
    for dead in others:
        stop_silently(dead)
    for dead in others:
        alive.member.tell_dead(dead.broker_id, dead.member.broker_epoch)
    await cluster.until(cluster.is_settled)
    assert alive.member.is_controller


@pytest.mark.parametrize("victim", ["controller", "another"])
async def test_who_lives_and_was_found_dead_begins_anew(cluster: Members, victim: str) -> None:
    await created(cluster)
    living = next(node for node in cluster.live if node.member.is_controller == (victim == "controller"))
    before, epoch = cluster.controller.image.topics["t"].partitions, living.member.broker_epoch
    for node in cluster.live:
        if node is not living:
            node.member.tell_dead(living.broker_id, epoch)
    await cluster.until(lambda: living.member.broker_epoch > epoch and cluster.is_settled())
    assert StandDown() in living.heard
    for number, state in enumerate(before):
        if state.leader == living.broker_id:
            assert cluster.state("t", number).leader_epoch > state.leader_epoch


async def test_what_was_said_of_an_earlier_registration_means_nothing(cluster: Members) -> None:
    await created(cluster)
    node = cluster.nodes[2]
    epoch = node.member.broker_epoch
    node.store.expire()
    await cluster.until(lambda: node.member.broker_epoch > epoch and cluster.is_settled())
    again = node.member.broker_epoch
    cluster.controller.member.tell_dead(2, epoch)
    await created(cluster, "after")  # the controller has looked since
    assert node.member.broker_epoch == again


async def test_who_lives_after_all_is_not_buried_by_the_next_controller(cluster: Members) -> None:
    await created(cluster)
    controller, (next_one, living) = cluster.controller, [node for node in cluster.live if not node.member.is_controller]
    epoch = living.member.broker_epoch
    next_one.member.tell_dead(living.broker_id, epoch)
    await created(cluster, "looked")  # only the controller buries, and was not told
    next_one.member.take_back_dead(living.broker_id, epoch)
    living.member._candidate.stop()  # it does not stand for the office
    controller.crash()
    await cluster.until(cluster.is_settled)
    assert cluster.controller is next_one
    assert living.member.broker_epoch == epoch


@pytest.mark.parametrize("done", [False, True])
async def test_an_election_that_the_store_did_not_answer_is_held_again(cluster: Members, done: bool) -> None:
    await created(cluster)
    controller = cluster.controller
    dead = next(node for node in cluster.live if node is not controller)
    controller.store.lose_next_reply(done=done)
    dead.crash()
    await cluster.until(lambda: controller.store.session.state is SessionState.SUSPENDED)
    controller.store.resume()
    await cluster.until(cluster.is_settled)
    for number in range(3):
        assert cluster.state("t", number).leader != dead.broker_id
        assert dead.broker_id not in cluster.state("t", number).isr


async def test_a_broker_that_comes_back_before_it_was_missed_leads_in_new_epochs(cluster: Members) -> None:
    await created(cluster)
    before = cluster.controller.image.topics["t"].partitions
    victim = next(node for node in cluster.live if not node.member.is_controller)
    stop_silently(victim)
    await cluster.start(victim.broker_id)
    await cluster.until(cluster.is_settled)
    for number, state in enumerate(before):
        after = cluster.state("t", number)
        if state.leader == victim.broker_id:
            assert after.leader_epoch > state.leader_epoch


@pytest.mark.parametrize("kept", [Kept.SYNCED, Kept.UNKNOWN])
async def test_who_lost_its_power_does_not_lead_though_it_is_back_first(cluster: Members, kept: Kept) -> None:
    """All crash, and only the others have everything: they lead, and it follows."""
    await created(cluster)
    for node in cluster.live:
        node.crash()
    first = await cluster.start(1, kept)
    assert all(1 not in state.isr for state in first.settled), "it waited until nobody counts on it, and then was told so"
    await cluster.until(cluster.is_settled)
    assert all(state.leader == NO_LEADER and set(state.isr) == {2, 3} for state in first.settled)
    await cluster.start(3)
    await cluster.until(cluster.is_settled)
    assert all(state.leader == 3 for state in cluster.controller.image.topics["t"].partitions)


async def test_who_lost_its_power_leads_nothing_that_it_led_though_it_was_not_missed(cluster: Members) -> None:
    await created(cluster)
    victim = next(node for node in cluster.live if not node.member.is_controller)
    victim.crash()
    await cluster.start(victim.broker_id, Kept.SYNCED)
    await cluster.until(cluster.is_settled)
    for state in cluster.controller.image.topics["t"].partitions:
        assert victim.broker_id not in state.isr
        assert state.leader in state.isr


async def test_when_all_lose_their_power_the_log_that_goes_furthest_leads_once_all_are_back(cluster: Members) -> None:
    await created(cluster)
    for node in cluster.live:
        node.crash()
    await cluster.start(1, Kept.SYNCED, (3, 10))
    await cluster.start(2, Kept.SYNCED, (4, 5))
    await cluster.until(lambda: not cluster.state("t").is_lost and cluster.state("t").leader == NO_LEADER)
    assert cluster.state("t").last_known == (1, 2), "the third one may have everything"
    await cluster.start(3, Kept.SYNCED, (4, 7))
    await cluster.until(cluster.is_settled)
    await cluster.until(lambda: all(not broker.log_ends for broker in cluster.controller.image.brokers.values()))
    for number in range(3):
        state = cluster.state("t", number)
        assert (state.leader, state.isr, state.is_lost) == (3, (3,), False)


async def test_without_anybody_who_had_something_a_lost_partition_waits(cluster: Members) -> None:
    await created(cluster)
    for node in cluster.live:
        node.crash()
    for broker_id in (1, 2, 3):
        await cluster.start(broker_id, Kept.UNKNOWN, (-1, 0))
    await cluster.until(cluster.is_settled)
    assert cluster.state("t").is_lost
    assert cluster.state("t").last_known == ()


async def test_what_a_machine_lost_is_said_once(cluster: Members) -> None:
    """A session that expires later loses no records."""
    await created(cluster)
    for node in cluster.live:
        node.crash()
    first = await cluster.start(1, Kept.SYNCED)
    first.store.expire()
    await cluster.until(lambda: first.image.brokers[1].epoch > 4 and first.image.brokers[1].is_active)
    assert first.image.brokers[1].kept is Kept.ALL


async def test_when_all_crash_and_keep_what_they_had_the_first_to_be_back_leads(cluster: Members) -> None:
    await created(cluster)
    for node in cluster.live:
        node.crash()
    await cluster.start(2)
    await cluster.until(cluster.is_settled)
    assert all(state.leader == 2 for state in cluster.controller.image.topics["t"].partitions)


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
    node.store.resume()  # the session still lives: nobody was elected meanwhile
    await cluster.until(cluster.is_settled)
    assert node.member.broker_epoch == node.image.brokers[2].epoch


@pytest.mark.parametrize("gone", ["before it watches", "while it reads"])
async def test_a_start_waits_for_a_lost_connection(cluster: Members, monkeypatch: pytest.MonkeyPatch, gone: str) -> None:
    monkeypatch.setattr("barnabas.cluster.member.OPEN_AGAIN_MS", 10)
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
    monkeypatch.setattr("barnabas.cluster.member.OPEN_AGAIN_MS", 10)
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


async def test_a_deposed_controller_writes_nothing_more(cluster: Members) -> None:
    old = cluster.controller
    old.store.hold_watches()
    entry = cluster.tree.entries[records.CONTROLLER_EPOCH]
    thief = MemoryStore(cluster.tree)
    thief.commit(
        [
            Remove(records.CONTROLLER),
            Put(records.CONTROLLER_EPOCH, records.encode(9), entry.version),
            Put(records.CONTROLLER, records.encode_controller(ControllerOffice(7, 9, "thief")), ABSENT, ephemeral=True),
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


async def test_a_store_that_is_away_is_named(cluster: Members) -> None:
    controller = cluster.controller
    controller.store.lose_next_reply(done=True)
    with pytest.raises(KafkaError) as caught:
        await controller.member.create_topics([NewTopic("t", 1, 3)])
    assert caught.value.code is ErrorCode.REQUEST_TIMED_OUT
    controller.store.resume()
    await cluster.until(lambda: cluster.is_settled() and "t" in cluster.controller.image.topics)  # it had been done


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
