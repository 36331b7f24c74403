"""FindCoordinator names who coordinates, and not who is about to: what clients are told while a broker is slow to take a partition up."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from barnabas.errors import ErrorCode
from barnabas.protocol.messages.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from barnabas.protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from barnabas.server.broker import Broker
from tests.server.cluster.in_process import running
from tests.server.in_process import Client
from tests.waiting import asked_until

NAMES = [f"name-{number}" for number in range(12)]  # enough names for each of three partitions
SETTINGS: dict[str, Any] = {
    "offsets_topic_replication_factor": "1",
    "transaction_state_log_num_partitions": "3",
    "transaction_state_log_replication_factor": "1",
}


class Kind(NamedTuple):
    topic: str
    key_type: int


KINDS = pytest.mark.parametrize(
    "kind", [Kind("__consumer_offsets", 0), Kind("__transaction_state", 1)], ids=["group", "transaction"]
)


async def find(client: Client, kind: Kind) -> dict[str, tuple[int, int]]:
    """Error code and node of each name."""
    request = FindCoordinatorRequest(key_type=kind.key_type, coordinator_keys=NAMES)
    answer = await client.ask((10, 4), request, FindCoordinatorResponse)
    return {each.key: (each.error_code, each.node_id) for each in answer.coordinators}


async def first_request(client: Client, kind: Kind, name: str) -> int:
    """The error code of what a client sends first to its coordinator."""
    if kind.key_type == 0:
        return (await client.committed_offset(name))[0]
    request = InitProducerIdRequest(transactional_id=name, transaction_timeout_ms=1_000)
    return int((await client.ask((22, 4), request, InitProducerIdResponse)).error_code)


def led_by(broker: Broker, kind: Kind, leader: int) -> set[str]:
    coordinator = broker.groups if kind.key_type == 0 else broker.transactions
    states = broker.metadata.topics[kind.topic].partitions
    return {name for name in NAMES if states[coordinator.partition_of(name)].leader == leader}


async def works(client: Client, kind: Kind, name: str) -> None:
    """From the first request on, nothing else is said than that it is loading."""
    asked: list[int] = []

    async def ask() -> int:
        asked.append(await first_request(client, kind, name))
        return asked[-1]

    await asked_until(ask, lambda code: code == ErrorCode.NONE)
    assert set(asked) <= {ErrorCode.NONE, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS}


@asynccontextmanager
async def held() -> AsyncIterator[asyncio.Event]:
    """An event for which brokers wait; a test that fails sets it too, for a broker that waits does not stop."""
    event = asyncio.Event()
    try:
        yield event
    finally:
        event.set()


@KINDS
async def test_a_broker_that_does_not_know_yet_that_it_leads_is_not_named(tmp_path: Path, kind: Kind) -> None:
    async with running(tmp_path, **SETTINGS) as cluster:
        slow, asked = cluster.others
        cluster.stores[slow].hold_watches()

        def named(told: dict[str, tuple[int, int]]) -> set[str]:
            return {name for name, (code, _) in told.items() if code == ErrorCode.NONE}

        # While the topic is created, or the other leaders have not answered yet, the answer names no coordinator.
        told = await asked_until(partial(find, cluster.clients[asked], kind), named)
        late = led_by(cluster.brokers[asked], kind, slow)
        assert late
        told = await asked_until(partial(find, cluster.clients[asked], kind), lambda told: named(told) >= set(NAMES) - late)
        assert {name for name, (code, _) in told.items() if code == ErrorCode.COORDINATOR_NOT_AVAILABLE} == late
        cluster.stores[slow].release_watches()
        told = await asked_until(partial(find, cluster.clients[asked], kind), lambda told: named(told) == set(NAMES))
        assert {name for name, node in told.items() if node == (ErrorCode.NONE, slow)} == late
        for name in late:
            await works(cluster.clients[slow], kind, name)


@KINDS
async def test_a_broker_whose_disk_is_slow_to_have_the_log_says_that_it_loads(
    tmp_path: Path, kind: Kind, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with running(tmp_path, **SETTINGS) as cluster, held() as disk:
        slow = cluster.others[0]
        broker = cluster.brokers[slow]
        create = broker.replica_manager.create

        async def late(wanted: Any) -> None:
            await disk.wait()
            await create(wanted)

        monkeypatch.setattr(broker.replica_manager, "create", late)
        # The first answer is an error: the topic is in creation, and the logs of this broker are missing.
        told = await asked_until(partial(find, cluster.clients[slow], kind), lambda found: found[NAMES[0]][0] == ErrorCode.NONE)
        mine = led_by(broker, kind, slow)
        assert mine
        assert {name for name, node in told.items() if node == (ErrorCode.NONE, slow)} == mine
        name = min(mine)
        assert await first_request(cluster.clients[slow], kind, name) == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        disk.set()
        await works(cluster.clients[slow], kind, name)


async def test_after_a_failover_the_next_coordinator_is_named_when_it_leads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kind = Kind("__consumer_offsets", 0)
    settings: dict[str, Any] = {"offsets_topic_num_partitions": "1", "offsets_topic_replication_factor": "3"}
    async with running(tmp_path, **settings) as cluster, held() as disk:
        told = await asked_until(partial(find, cluster.clients[1], kind), lambda found: found[NAMES[0]][0] == ErrorCode.NONE)
        first = told[NAMES[0]][1]
        await works(cluster.clients[first], kind, NAMES[0])
        # A broker without its replica creates it as leader, and `change` is not called.
        await cluster.until(lambda: all(broker.partitions.get(kind.topic, 0) is not None for broker in cluster.brokers.values()))
        for broker_id, broker in cluster.brokers.items():
            if broker_id != first:
                monkeypatch.setattr(broker.replica_manager, "change", partial(_late, disk, broker.replica_manager.change))
        await cluster.stop(first)
        left = next(iter(cluster.brokers.values()))
        await cluster.until(lambda: left.metadata.topics[kind.topic].partitions[0].leader not in {first, -1})
        second = left.metadata.topics[kind.topic].partitions[0].leader
        third = next(broker_id for broker_id in cluster.brokers if broker_id != second)
        await cluster.until(lambda: cluster.brokers[second].metadata.topics[kind.topic].partitions[0].leader == second)
        assert await first_request(cluster.clients[second], kind, NAMES[0]) == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        await cluster.until(lambda: cluster.brokers[third].metadata.topics[kind.topic].partitions[0].leader == second)
        assert (await find(cluster.clients[third], kind))[NAMES[0]][0] == ErrorCode.COORDINATOR_NOT_AVAILABLE
        disk.set()
        await asked_until(partial(find, cluster.clients[third], kind), lambda found: found[NAMES[0]] == (ErrorCode.NONE, second))
        await works(cluster.clients[second], kind, NAMES[0])


async def _late(disk: asyncio.Event, change: Any, instruction: Any) -> None:
    await disk.wait()
    await change(instruction)
