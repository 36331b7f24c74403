"""One log directory of several fails: the broker goes on with the others, and other brokers lead what was there."""

from __future__ import annotations

from pathlib import Path

import pytest

from barnabas.cluster.metadata.image import OFFSETS_TOPIC, PartitionState
from barnabas.errors import ErrorCode
from barnabas.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest, CreateTopicsResponse
from barnabas.testing.failing_files import READS, WRITES
from tests.server.cluster.in_process import Cluster, running
from tests.server.in_process import STORAGE_ERROR

PARTITIONS = 6
VICTIM = 2


async def create(cluster: Cluster) -> None:
    topics = [CreatableTopic(name="t", num_partitions=PARTITIONS, replication_factor=3)]
    await cluster.clients[1].ask((19, 7), CreateTopicsRequest(topics=topics, timeout_ms=10_000), CreateTopicsResponse)
    hosted = [broker.partitions for broker in cluster.brokers.values()]
    await cluster.until(lambda: all(len(each) + each.offline_count == PARTITIONS for each in hosted))


def states(cluster: Cluster, broker_id: int) -> tuple[PartitionState, ...]:
    return cluster.brokers[broker_id].metadata.topics["t"].partitions


def led_by(cluster: Cluster, broker_id: int) -> set[int]:
    return {index for index, state in enumerate(states(cluster, 1)) if state.leader == broker_id}


def are_given_up(cluster: Cluster, partitions: set[int]) -> bool:
    """Whether every broker knows that others lead these partitions, and that the victim's replicas do not count."""
    found = [states(cluster, broker_id)[index] for broker_id in cluster.brokers for index in partitions]
    return all(state.leader not in {-1, VICTIM} and VICTIM not in state.isr for state in found)


async def produce_to_all(cluster: Cluster, value: bytes) -> list[int]:
    """The answer of the leader of each partition."""
    leaders = [state.leader for state in states(cluster, 1)]
    return [await cluster.clients[leader].produce(value, index) for index, leader in enumerate(leaders)]


async def everybody_is_told(cluster: Cluster, bad: Path, lost: set[int]) -> None:
    """That the directory failed, and that the replicas in it are offline."""
    directories = {path.name: STORAGE_ERROR if path == bad else 0 for path in cluster.directories_of(VICTIM)}
    assert await cluster.clients[VICTIM].directories() == directories
    expected = [(ErrorCode.NONE, [VICTIM] if index in lost else []) for index in range(PARTITIONS)]
    for client in cluster.clients.values():
        assert [(code, offline) for code, _, offline in await client.leaders("t")] == expected


async def heal(cluster: Cluster) -> None:
    """Start the broker anew with a directory that works, and see all its replicas come back."""
    cluster.files.heal()
    await cluster.stop(VICTIM)
    await cluster.start(VICTIM)
    await cluster.until(lambda: all(len(state.isr) == 3 for state in states(cluster, VICTIM)))


async def test_leaders_move_off_the_directory_and_the_broker_goes_on(tmp_path: Path) -> None:
    async with running(tmp_path, 2) as cluster:
        await create(cluster)
        everything = set(range(PARTITIONS))
        assert await produce_to_all(cluster, b"before") == [0] * PARTITIONS
        victim, (_, bad) = cluster.brokers[VICTIM], cluster.directories_of(VICTIM)
        lost = {index for index in everything if victim.logs.directory_of("t", index).path == bad}
        assert set() < lost < everything
        led = led_by(cluster, VICTIM)

        cluster.files.fail(WRITES, bad)
        answers = await produce_to_all(cluster, b"meanwhile")
        assert {index for index, code in enumerate(answers) if code == STORAGE_ERROR} == lost & led
        await cluster.until(lambda: are_given_up(cluster, lost))
        assert all(len(states(cluster, 1)[index].isr) == 3 for index in everything - lost)
        assert led_by(cluster, VICTIM) == led - lost
        assert await produce_to_all(cluster, b"after") == [0] * PARTITIONS

        assert not victim.failure.done()
        await everybody_is_told(cluster, bad, lost)
        await heal(cluster)
        for index, state in enumerate(states(cluster, VICTIM)):
            values = [b"before", b"after"] if index in lost & led else [b"before", b"meanwhile", b"after"]
            assert await cluster.clients[state.leader].fetch(index) == (0, values)


@pytest.mark.parametrize("number", [0, 1])
async def test_a_broker_starts_without_a_directory_that_has_failed(tmp_path: Path, number: int) -> None:
    async with running(tmp_path, 2) as cluster:
        await create(cluster)
        everything = set(range(PARTITIONS))
        assert await produce_to_all(cluster, b"before") == [0] * PARTITIONS
        bad = cluster.directories_of(VICTIM)[number]
        lost = {index for index in everything if cluster.brokers[VICTIM].logs.directory_of("t", index).path == bad}
        assert set() < lost < everything

        await cluster.stop(VICTIM)
        cluster.files.fail(READS | WRITES, bad)
        victim = await cluster.start(VICTIM)
        await cluster.until(lambda: all(len(states(cluster, 1)[index].isr) == 3 for index in everything - lost))
        assert are_given_up(cluster, lost)
        assert {topic_id: set(numbers) for topic_id, numbers in victim.metadata.brokers[VICTIM].offline.items()} == {
            victim.metadata.topics["t"].topic_id: lost
        }
        assert await produce_to_all(cluster, b"after") == [0] * PARTITIONS
        await everybody_is_told(cluster, bad, lost)
        await heal(cluster)
        assert [each.log.log_end_offset for each in cluster.brokers[VICTIM].partitions] == [2] * PARTITIONS


async def test_a_topic_made_anew_gets_no_second_log_beside_one_that_cannot_be_seen(tmp_path: Path) -> None:
    async with running(tmp_path, 2) as cluster:
        await create(cluster)
        assert await produce_to_all(cluster, b"before") == [0] * PARTITIONS
        bad = cluster.directories_of(VICTIM)[1]
        held = {path.name for path in bad.glob("t-*")}
        await cluster.stop(VICTIM)
        cluster.files.fail(READS | WRITES, bad)
        await cluster.start(VICTIM)
        await cluster.clients[1].delete("t")
        await cluster.until(lambda: all("t" not in broker.metadata.topics for broker in cluster.brokers.values()))
        await create(cluster)
        await cluster.until(lambda: are_given_up(cluster, {int(name.rpartition("-")[2]) for name in held}))
        assert await produce_to_all(cluster, b"anew") == [0] * PARTITIONS
        cluster.files.heal()
        await cluster.stop(VICTIM)
        await cluster.start(VICTIM)  # a broker does not start with two logs of one partition
        await cluster.until(lambda: all(len(state.isr) == 3 for state in states(cluster, VICTIM)))
        assert await produce_to_all(cluster, b"more") == [0] * PARTITIONS


async def test_a_topic_deleted_meanwhile_is_removed_by_the_next_start(tmp_path: Path) -> None:
    async with running(tmp_path, 2) as cluster:
        await create(cluster)
        bad = cluster.directories_of(VICTIM)[1]
        cluster.files.fail(WRITES, bad)
        await produce_to_all(cluster, b"a")
        await cluster.until(lambda: cluster.brokers[1].metadata.brokers[VICTIM].offline)
        await cluster.clients[1].delete("t")
        await cluster.until(lambda: list(cluster.brokers[1].metadata.deletions.values()) == [(VICTIM,)])
        assert list(bad.glob("t-*"))
        cluster.files.heal()
        await cluster.stop(VICTIM)
        await cluster.start(VICTIM)
        await cluster.until(lambda: not cluster.brokers[1].metadata.deletions)
        assert not list(bad.glob("t-*"))


async def test_a_coordinator_s_log_for_which_there_was_no_room_is_loaded_once_there_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("barnabas.server.logs.replica_manager.RETRY_MS", 10)
    async with running(tmp_path) as cluster:
        cluster.files.fill(cluster.directories_of(VICTIM)[0])
        groups = cluster.brokers[VICTIM].groups
        await groups.prepare()
        await cluster.until(lambda: cluster.brokers[VICTIM].partitions.offline_count == 3)
        partitions = cluster.brokers[VICTIM].metadata.topics[OFFSETS_TOPIC].partitions
        led = {index for index, state in enumerate(partitions) if state.leader == VICTIM}
        assert led
        assert not groups.shards
        cluster.files.heal()
        await cluster.until(lambda: set(groups.shards) == led)
