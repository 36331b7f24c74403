"""The controller dies at every commit of every command, and what was asked of it comes to be all the same."""

from __future__ import annotations

import asyncio

import pytest

from barnabas.cluster.metadata import store_entries
from barnabas.cluster.metadata.image import PartitionState
from barnabas.cluster.planning import reassignment
from barnabas.cluster.planning.alter_partition import InSyncChange
from barnabas.cluster.planning.configs import AlterOperation, ResourceChange
from barnabas.cluster.planning.partitions import ElectionType, InSyncRequest, MoveRequest
from barnabas.cluster.planning.topics import MorePartitions, NewTopic
from barnabas.cluster.store.interface import StoreUnavailable
from barnabas.errors import KafkaError
from barnabas.protocol.base_message import ZERO_UUID
from barnabas.protocol.values import NO_LEADER, ResourceType
from tests.cluster.members import Members, stop_silently
from tests.waiting import WITHIN_S

BROKERS = 4
CONTROLLER, LEADER, FOLLOWER, LAST = 1, 2, 3, 4
REPLICAS = ((1, 2, 3), (2, 3, 4), (3, 4, 1))  # replicas of topic t
PLACE = 1  # the partition of most steps: the controller has no replica of it
MOVED, TARGET = 0, (LEADER, FOLLOWER, LAST)  # the partition that moves: LAST is added, the controller removed


class Step:
    """One thing that the controller does; the first commit after `prepare` is its own."""

    is_asked_again = True  # a client or broker without an answer sends the request again

    async def prepare(self, cluster: Members) -> None:
        """Make the state that the case needs. The controller still lives."""

    async def act(self, cluster: Members) -> None:
        raise NotImplementedError

    async def check(self, cluster: Members) -> None:
        """Its effect, with whoever is controller by then; the cluster is settled."""
        raise NotImplementedError


def partition(cluster: Members) -> PartitionState:
    return cluster.state("t", PLACE)


async def propose(cluster: Members, *in_sync: int, number: int = PLACE) -> None:
    """The leader says who is in sync with it."""
    state = cluster.state("t", number)
    epochs = {node.broker_id: node.member.broker_epoch for node in cluster.live}
    change = InSyncChange(state.leader_epoch, state.partition_epoch, tuple((each, epochs[each]) for each in in_sync))
    request = InSyncRequest(cluster.controller.image.topics["t"].topic_id, number, change)
    await cluster.controller.member.alter_partitions(state.leader, epochs[state.leader], [request])
    await cluster.until(cluster.is_settled)


async def lose(cluster: Members, broker_id: int) -> None:
    cluster.nodes[broker_id].crash()
    await cluster.until(cluster.is_settled)


class Create(Step):
    async def act(self, cluster: Members) -> None:
        await cluster.controller.member.create_topics([NewTopic("new", 2, 3)])

    async def check(self, cluster: Members) -> None:
        states = cluster.controller.image.topics["new"].partitions
        assert [len(set(state.replicas)) for state in states] == [3, 3]


class Delete(Step):
    async def act(self, cluster: Members) -> None:
        await cluster.controller.member.delete_topics([("t", ZERO_UUID)])

    async def check(self, cluster: Members) -> None:
        assert "t" not in cluster.controller.image.topics
        dead = {broker_id for broker_id, node in cluster.nodes.items() if node.is_dead}
        await cluster.until(lambda: all(set(waits) <= dead for waits in cluster.controller.image.deletions.values()))
        assert not any(node.logs for node in cluster.live)


class DeleteWithoutAnother(Delete):
    async def prepare(self, cluster: Members) -> None:
        await lose(cluster, LAST)

    async def check(self, cluster: Members) -> None:
        await super().check(cluster)
        (waits,) = cluster.controller.image.deletions.values()
        assert LAST in waits
        await cluster.start(LAST)
        await cluster.until(lambda: all(LAST not in waits for waits in cluster.controller.image.deletions.values()))


class Unregister(DeleteWithoutAnother):
    async def prepare(self, cluster: Members) -> None:
        await super().prepare(cluster)
        await super().act(cluster)
        await cluster.until(lambda: list(cluster.controller.image.deletions.values()) == [(LAST,)])
        await cluster.until(cluster.is_settled)

    async def act(self, cluster: Members) -> None:
        await cluster.controller.member.unregister(LAST)

    async def check(self, cluster: Members) -> None:
        assert not cluster.controller.image.deletions


class AddPartitions(Step):
    async def act(self, cluster: Members) -> None:
        await cluster.controller.member.create_partitions([MorePartitions("t", 5)])

    async def check(self, cluster: Members) -> None:
        states = cluster.controller.image.topics["t"].partitions
        assert tuple(state.replicas for state in states[:3]) == REPLICAS
        assert [len(set(state.replicas)) for state in states[3:]] == [3, 3]


class Move(Step):
    async def act(self, cluster: Members) -> None:
        await cluster.controller.member.reassign([MoveRequest("t", MOVED, TARGET)])

    async def check(self, cluster: Members) -> None:
        moved = cluster.state("t", MOVED)
        assert reassignment.under_way(cluster.controller.image, None) == [("t", MOVED, moved)]
        assert (moved.adding, moved.removing) == ((LAST,), (CONTROLLER,))


class CancelMove(Move):
    async def prepare(self, cluster: Members) -> None:
        await super().act(cluster)
        await cluster.until(cluster.is_settled)

    async def act(self, cluster: Members) -> None:
        await cluster.controller.member.reassign([MoveRequest("t", MOVED, None)])

    async def check(self, cluster: Members) -> None:
        assert not reassignment.under_way(cluster.controller.image, None)
        assert set(cluster.state("t", MOVED).replicas) == set(REPLICAS[MOVED])  # the order differs, as in Kafka


class EndMove(Move):
    """The replica that a move adds has caught up: its leader, another broker than the controller, says so, which ends the move."""

    async def prepare(self, cluster: Members) -> None:
        await super().act(cluster)
        await cluster.controller.member.elect_leaders(ElectionType.PREFERRED, [("t", MOVED)])
        await cluster.until(cluster.is_settled)
        assert cluster.state("t", MOVED).leader == LEADER

    async def act(self, cluster: Members) -> None:
        await propose(cluster, *cluster.state("t", MOVED).isr, LAST, number=MOVED)

    async def check(self, cluster: Members) -> None:
        moved = cluster.state("t", MOVED)
        assert (moved.replicas, set(moved.isr), moved.is_moving) == (TARGET, set(TARGET), False)


class Shrink(Step):
    async def act(self, cluster: Members) -> None:
        await propose(cluster, LEADER, FOLLOWER)

    async def check(self, cluster: Members) -> None:
        assert (partition(cluster).leader, partition(cluster).isr) == (LEADER, (LEADER, FOLLOWER))


class Grow(Shrink):
    async def prepare(self, cluster: Members) -> None:
        await super().act(cluster)

    async def act(self, cluster: Members) -> None:
        await propose(cluster, LEADER, FOLLOWER, LAST)

    async def check(self, cluster: Members) -> None:
        assert (partition(cluster).leader, set(partition(cluster).isr)) == (LEADER, {LEADER, FOLLOWER, LAST})


class ElectPreferred(Step):
    async def prepare(self, cluster: Members) -> None:
        await cluster.controller.member.reassign([MoveRequest("t", PLACE, (FOLLOWER, LAST, LEADER))])
        await cluster.until(cluster.is_settled)
        assert partition(cluster).leader == LEADER

    async def act(self, cluster: Members) -> None:
        await cluster.controller.member.elect_leaders(ElectionType.PREFERRED, None)

    async def check(self, cluster: Members) -> None:
        assert partition(cluster).leader == FOLLOWER


class Balance(ElectPreferred):
    async def act(self, cluster: Members) -> None:
        await cluster.controller.member.balance()


class ElectUncleanly(Step):
    async def prepare(self, cluster: Members) -> None:
        await propose(cluster, LEADER)
        await lose(cluster, LEADER)
        assert partition(cluster).leader == NO_LEADER

    async def act(self, cluster: Members) -> None:
        await cluster.controller.member.elect_leaders(ElectionType.UNCLEAN, [("t", PLACE)])

    async def check(self, cluster: Members) -> None:
        assert (partition(cluster).leader, partition(cluster).isr) == (FOLLOWER, (FOLLOWER,))


class Configure(Step):
    async def act(self, cluster: Members) -> None:
        change = ResourceChange(ResourceType.TOPIC, "t", [("min.insync.replicas", AlterOperation.SET, "2")])
        await cluster.controller.member.alter_configs([change])

    async def check(self, cluster: Members) -> None:
        assert cluster.controller.image.config(ResourceType.TOPIC, "t")["min.insync.replicas"] == "2"


class TakeProducerIds(Step):
    async def prepare(self, cluster: Members) -> None:
        self.given = set(await cluster.controller.member.take_producer_ids())

    async def act(self, cluster: Members) -> None:
        taken = set(await cluster.controller.member.take_producer_ids())
        assert not taken & self.given
        self.given |= taken

    async def check(self, cluster: Members) -> None:
        for node in cluster.live:
            taken = set(await node.member.take_producer_ids())
            assert not taken & self.given
            self.given |= taken


class LoseAnother(Step):
    """Its session ends."""

    is_asked_again = False

    async def act(self, cluster: Members) -> None:
        cluster.nodes[LEADER].crash()

    async def check(self, cluster: Members) -> None:
        state = partition(cluster)
        assert (state.leader, state.isr, state.leader_epoch) == (FOLLOWER, (FOLLOWER, LAST), 1)


class BuryAnother(LoseAnother):
    """It is found dead while its session lives on."""

    async def act(self, cluster: Members) -> None:
        dead = cluster.nodes[LEADER]
        stop_silently(dead)
        for node in cluster.live:
            node.member.tell_dead(LEADER, dead.member.broker_epoch)


class LetAnotherLeave(LoseAnother):
    """A controlled shutdown: others lead the broker's partitions before it ends."""

    async def act(self, cluster: Members) -> None:
        leaving = cluster.nodes[LEADER]
        await leaving.member.leave(5_000)
        assert all(state.leader != LEADER for topic in leaving.image.topics.values() for state in topic.partitions)
        await leaving.member.close()
        leaving.is_dead = True


class TakeOneBack(Step):
    """The only one in sync is back, and leads again."""

    is_asked_again = False

    async def prepare(self, cluster: Members) -> None:
        await propose(cluster, LEADER)
        await lose(cluster, LEADER)
        assert partition(cluster).leader == NO_LEADER

    async def act(self, cluster: Members) -> None:
        await cluster.start(LEADER)

    async def check(self, cluster: Members) -> None:
        assert (partition(cluster).leader, partition(cluster).isr) == (LEADER, (LEADER,))


STEPS = [Create, Delete, DeleteWithoutAnother, Unregister, AddPartitions, Move, CancelMove, EndMove, Shrink, Grow, ElectPreferred,
         Balance, ElectUncleanly, Configure, TakeProducerIds, LoseAnother, BuryAnother, LetAnotherLeave, TakeOneBack]  # fmt: skip


@pytest.mark.parametrize("done", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("kind", STEPS)
async def test_the_controller_may_die_at_any_commit(kind: type[Step], done: bool) -> None:
    for crash_at in range(10):
        async with Members(BROKERS) as cluster:
            step = kind()
            await cluster.controller.member.create_topics([NewTopic("t", assignments=tuple(enumerate(REPLICAS)))])
            await cluster.until(cluster.is_settled)
            await step.prepare(cluster)
            controller = cluster.controller
            assert controller.broker_id == CONTROLLER
            controller.store.crash_at, controller.store.crash_done = controller.store.commits + crash_at, done
            try:
                async with asyncio.timeout(WITHIN_S):
                    await step.act(cluster)
                    await cluster.until(cluster.is_settled)
            except (StoreUnavailable, KafkaError):
                assert controller.is_dead
            died = controller.is_dead
            controller.store.crash_at = None
            await cluster.until(cluster.is_settled)
            if died and step.is_asked_again and crash_at == 0 and not done:  # in the other cases the store has the change
                await step.act(cluster)
                await cluster.until(cluster.is_settled)
            await step.check(cluster)
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
        stored = cluster.tree.entries[store_entries.topic_path(topic.name)]
        assert store_entries.decode_head(stored.value) == (topic.topic_id, len(topic.partitions))
        assert all(state.leader in alive for state in topic.partitions)
    names = {path.removeprefix(store_entries.TOPICS) for path in cluster.tree.entries if path.startswith(store_entries.TOPICS)}
    chunks = {store_entries.topic_of_path(path) for path in cluster.tree.entries if path.startswith(store_entries.PARTITIONS)}
    assert names == chunks == set(image.topics)
