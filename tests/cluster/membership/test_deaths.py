"""Members that die: found dead or missed, back with all they had or without the end of it."""

from __future__ import annotations

import pytest

from barnabas.cluster.metadata.image import Kept
from barnabas.cluster.planning.configs import AlterOperation, ResourceChange
from barnabas.cluster.planning.instructions import StandDown
from barnabas.cluster.planning.topics import NewTopic
from barnabas.cluster.store.interface import SessionState
from barnabas.protocol.values import NO_LEADER, ResourceType
from tests.cluster.members import Members, created, stop_silently


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
    """The last one becomes controller by unregistering the one before, and then unregisters the rest."""
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
    await created(cluster, "after")  # the controller has handled the report by now
    assert node.member.broker_epoch == again


async def test_who_lives_after_all_is_not_buried_by_the_next_controller(cluster: Members) -> None:
    await created(cluster)
    controller, (next_one, living) = cluster.controller, [node for node in cluster.live if not node.member.is_controller]
    epoch = living.member.broker_epoch
    next_one.member.tell_dead(living.broker_id, epoch)
    await created(cluster, "looked")  # only the controller unregisters brokers, and it got no report
    next_one.member.take_back_dead(living.broker_id, epoch)
    living.member._candidate.stop()  # this broker does not become the controller
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


async def test_what_nobody_leads_is_led_as_soon_as_settings_allow_it(cluster: Members) -> None:
    controller = cluster.controller
    first, last = (node.broker_id for node in cluster.live if node is not controller)
    await controller.member.create_topics([NewTopic("t", assignments=[(0, (first, last))])])
    for broker_id in (first, last):
        cluster.nodes[broker_id].crash()
        await cluster.until(cluster.is_settled)
    await cluster.start(first)
    await cluster.until(cluster.is_settled)
    assert (cluster.state("t").leader, cluster.state("t").isr) == (NO_LEADER, (last,))
    change = ResourceChange(ResourceType.TOPIC, "t", [("unclean.leader.election.enable", AlterOperation.SET, "true")])
    assert await controller.member.alter_configs([change]) == [None]
    await cluster.until(lambda: cluster.state("t").leader == first)
    await cluster.until(cluster.is_settled)
