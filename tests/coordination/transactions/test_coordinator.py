"""The coordinator over a log that commits when the test says so, and markers that are delivered when it says so."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass

import pytest

from barnabas.coordination.result import CoordinatorResult, Now
from barnabas.coordination.transactions.coordinator import Delivery, TransactionCoordinator
from barnabas.coordination.transactions.data_types import InitRequest
from barnabas.coordination.transactions.markers import Marker
from barnabas.coordination.transactions.transaction import Owner, TopicPartition
from barnabas.errors import ErrorCode, InvariantViolated, KafkaError
from tests.coordination.support import ManualClock, MemoryLog
from tests.coordination.transactions.driver import TIMEOUT_MS, A, B, Config

EPOCH = 5
FOR_EVER_MS = 2**31 - 1


class Ids:
    """Two at a time."""

    def __init__(self) -> None:
        self.at_hand: list[int] = []
        self.least = 0
        self.next = 1000

    @property
    def has_one(self) -> bool:
        return bool(self.at_hand)

    async def fill(self) -> None:
        await asyncio.sleep(0)
        while len(self.at_hand) < 2:
            self.at_hand.append(self.next)
            self.next += 1

    def take(self) -> int:
        if not self.at_hand:
            raise KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE)
        return self.at_hand.pop(0)


@dataclass
class Sent:
    marker: Marker
    coordinator_epoch: int
    partitions: frozenset[TopicPartition]
    delivery: Delivery


class Sender:
    def __init__(self) -> None:
        self.sent: list[Sent] = []

    def send(self, marker: Marker, coordinator_epoch: int, partitions: frozenset[TopicPartition], delivery: Delivery) -> None:
        self.sent.append(Sent(marker, coordinator_epoch, partitions, delivery))


class World:
    def __init__(self) -> None:
        self.log = MemoryLog(partition_count=2)
        self.clock = ManualClock()
        self.sender = Sender()
        self.config = Config()
        self.coordinator = TransactionCoordinator(
            self.log, self.config, self.clock, Ids(), self.sender, lambda partition: EPOCH + partition
        )

    @property
    def home(self) -> int:
        return self.coordinator.partition_of("t")

    async def end(self, transactional_id: str, owner: Owner, *, commit: bool, client_version: int) -> Owner:
        found = self.coordinator.end(transactional_id, owner, commit=commit, client_version=client_version)
        self.coordinator.follow_up()
        return found if isinstance(found, Owner) else await found()

    async def begun(self) -> Owner:
        await self.coordinator.load(self.home)
        owner = (await self.coordinator.init(InitRequest("t", TIMEOUT_MS))).owner
        await self.coordinator.add("t", owner, [A, B], 2)
        return owner

    async def state(self) -> str:
        return (await self.coordinator.describe("t")).state.title


async def turns() -> None:
    """Let every task go on until it waits for something that does not come by itself."""
    for _ in range(10):
        await asyncio.sleep(0)


@pytest.fixture
async def world() -> AsyncIterator[World]:
    it = World()
    yield it
    it.coordinator.close()


async def test_markers_go_out_once_the_decision_is_committed(world: World) -> None:
    owner = await world.begun()
    world.log.hold = True
    ending = asyncio.ensure_future(world.end("t", owner, commit=True, client_version=2))
    await turns()
    assert len(world.log.pinned_files) == 1
    assert not ending.done()
    assert world.sender.sent == []
    world.log.commit_held()
    assert await ending == Owner(owner.producer_id, 1)
    (sent,) = world.sender.sent
    assert (sent.partitions, sent.coordinator_epoch, sent.marker.commit) == (frozenset({A, B}), EPOCH + world.home, True)
    sent.delivery.written([A])
    assert await world.state() == "PrepareCommit"
    sent.delivery.written([B])
    assert await world.state() == "CompleteCommit"
    sent.delivery.written([A, B])
    assert await world.state() == "CompleteCommit"


async def test_who_ends_a_transaction_can_be_told_before_its_markers_go_out(world: World) -> None:
    owner = await world.begun()
    assert world.coordinator.end("t", owner, commit=True, client_version=2) == Owner(owner.producer_id, 1)
    assert world.sender.sent == []
    world.coordinator.follow_up()
    (sent,) = world.sender.sent
    sent.delivery.written([A, B])
    assert await world.state() == "CompleteCommit"


async def test_no_answer_rests_on_what_is_not_committed(world: World) -> None:
    owner = await world.begun()
    world.log.hold = True
    adding = asyncio.ensure_future(world.coordinator.add("t", owner, [("c", 0)], 2))
    await turns()
    assert len(world.log.pinned_files) == 1
    again = asyncio.ensure_future(world.coordinator.add("t", owner, [("c", 0)], 2))
    verifying = asyncio.ensure_future(world.coordinator.verify("t", owner, [("c", 0)]))
    await turns()
    assert [task.done() for task in (adding, again, verifying)] == [False] * 3
    world.log.commit_held()
    await asyncio.gather(adding, again)
    assert await verifying == {("c", 0): ErrorCode.NONE}


async def test_partitions_join_once_the_end_before_is_complete(world: World) -> None:
    owner = await world.begun()
    following = await world.end("t", owner, commit=True, client_version=2)
    adding = [asyncio.ensure_future(world.coordinator.add("t", following, [each], 2)) for each in (A, B)]
    await turns()
    assert [task.done() for task in adding] == [False, False]
    world.sender.sent[0].delivery.written([A, B])
    await asyncio.gather(*adding)
    assert (await world.coordinator.describe("t")).partitions == {A, B}


async def test_partitions_do_not_wait_for_an_end_that_is_not_theirs(world: World) -> None:
    owner = await world.begun()
    await world.end("t", owner, commit=True, client_version=2)
    with pytest.raises(KafkaError, match="PRODUCER_FENCED"):
        await world.coordinator.add("t", owner, [A], 2)


async def test_partitions_do_not_wait_for_ever(world: World) -> None:
    world.config.add_partitions_to_txn_retry_backoff_max_ms = 1
    owner = await world.begun()
    following = await world.end("t", owner, commit=True, client_version=2)
    with pytest.raises(KafkaError, match="CONCURRENT_TRANSACTIONS"):
        await world.coordinator.add("t", following, [A], 2)
    world.sender.sent[0].delivery.written([A, B])
    await world.coordinator.add("t", following, [A], 2)
    assert await world.state() == "Ongoing"


@pytest.mark.parametrize(("leaves", "told"), [("unload", "NOT_COORDINATOR"), ("close", "COORDINATOR_NOT_AVAILABLE")])
async def test_who_waits_for_an_end_is_sent_away_with_the_others(world: World, leaves: str, told: str) -> None:
    world.config.add_partitions_to_txn_retry_backoff_max_ms = FOR_EVER_MS
    owner = await world.begun()
    following = await world.end("t", owner, commit=True, client_version=2)
    adding = asyncio.ensure_future(world.coordinator.add("t", following, [A], 2))
    await turns()
    if leaves == "unload":
        world.coordinator.unload(world.home)
    else:
        world.coordinator.close()
    with pytest.raises(KafkaError, match=told):
        await adding


async def test_what_is_answered_at_once_is_committed(world: World) -> None:
    owner = await world.begun()
    assert world.coordinator.add_at_once("t", owner, [("c", 0)], 2)
    assert world.coordinator.add_at_once("t", owner, [("c", 0)], 2)
    world.log.hold = True
    assert not world.coordinator.add_at_once("t", owner, [("c", 1)], 2)
    assert not world.coordinator.add_at_once("t", owner, [("c", 1)], 2)
    assert world.coordinator.verify_at_once("t", owner, [("c", 1)]) is None
    world.log.commit_held()
    await turns()
    assert world.coordinator.add_at_once("t", owner, [("c", 1)], 2)
    assert world.coordinator.verify_at_once("t", owner, [("c", 1), ("c", 2)]) == {
        ("c", 1): ErrorCode.NONE,
        ("c", 2): ErrorCode.TRANSACTION_ABORTABLE,
    }


async def test_a_marker_of_a_former_coordinator_is_not_wanted(world: World) -> None:
    owner = await world.begun()
    await world.end("t", owner, commit=True, client_version=2)
    (sent,) = world.sender.sent
    world.coordinator.unload(world.home)
    assert not sent.delivery.is_wanted
    await world.coordinator.load(world.home)
    assert not sent.delivery.is_wanted
    sent.delivery.written([A, B])
    assert await world.state() == "PrepareCommit"
    world.sender.sent[1].delivery.written([A, B])
    assert await world.state() == "CompleteCommit"


async def test_an_end_that_the_log_refused_is_written_later(world: World) -> None:
    owner = await world.begun()
    await world.end("t", owner, commit=True, client_version=2)
    world.log.refusal = KafkaError(ErrorCode.NOT_ENOUGH_REPLICAS)
    world.sender.sent[0].delivery.written([A, B])
    assert await world.state() == "PrepareCommit"
    world.log.refusal = None
    world.clock.advance(1_000)
    world.coordinator.runtime.wake()
    assert await world.state() == "CompleteCommit"


async def test_who_takes_the_id_waits_for_the_abort(world: World) -> None:
    await world.begun()
    with pytest.raises(KafkaError, match="CONCURRENT_TRANSACTIONS"):
        await world.coordinator.init(InitRequest("t", TIMEOUT_MS))
    (sent,) = world.sender.sent
    assert not sent.marker.commit
    sent.delivery.written(sent.partitions)
    assert (await world.coordinator.init(InitRequest("t", TIMEOUT_MS))).owner.epoch == 2


async def test_a_deleted_topic(world: World) -> None:
    owner = await world.begun()
    await world.end("t", owner, commit=False, client_version=2)
    world.coordinator.delete_topics(["a", "b"])
    assert await world.state() == "CompleteAbort"


async def test_not_here(world: World) -> None:
    await world.coordinator.load(1 - world.home)
    for call in (
        lambda: world.coordinator.init(InitRequest("t", TIMEOUT_MS)),
        lambda: world.coordinator.add("t", Owner(1, 0), [A], 2),
        lambda: world.end("t", Owner(1, 0), commit=True, client_version=2),
        lambda: world.coordinator.describe("t"),
        lambda: world.coordinator.verify("t", Owner(1, 0), [A]),
    ):
        with pytest.raises(KafkaError, match="NOT_COORDINATOR"):
            await call()


async def test_listing(world: World) -> None:
    await world.begun()
    await world.coordinator.load(1 - world.home)
    assert [each.transactional_id for each in await world.coordinator.list_transactions(lambda _: True)] == ["t"]
    assert await world.coordinator.list_transactions(lambda each: each.producer_id < 0) == []


async def test_a_shard_that_breaks_over_a_deadline_takes_no_timers_with_it(monkeypatch: pytest.MonkeyPatch, world: World) -> None:
    await world.begun()
    other = next(name for name in ("u", "v", "w", "x") if world.coordinator.partition_of(name) != world.home)
    await world.coordinator.load(world.coordinator.partition_of(other))
    owner = (await world.coordinator.init(InitRequest(other, TIMEOUT_MS))).owner
    await world.coordinator.add(other, owner, [A], 2)

    def breaks(now: Now) -> Iterator[CoordinatorResult]:
        yield CoordinatorResult()
        raise InvariantViolated("on purpose")

    monkeypatch.setattr(world.coordinator.runtime.active()[world.home], "expire", breaks)
    world.clock.advance(TIMEOUT_MS)
    world.coordinator.runtime.wake()
    with pytest.raises(KafkaError, match="NOT_COORDINATOR"):
        await world.state()
    assert (await world.coordinator.describe(other)).state.title == "PrepareAbort"
