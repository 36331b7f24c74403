"""Markers of partitions that are led here: which are written at once, and which again."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable
from types import SimpleNamespace
from typing import Any, cast

import pytest

from barnabas.coordination.transactions.markers import Marker
from barnabas.errors import ErrorCode
from barnabas.protocol.values import NO_LEADER
from barnabas.server.transactions import marker_sender
from barnabas.server.transactions.marker_sender import MarkerSender
from tests.waiting import until

HERE = 1
MARKER = Marker("t", 7, 0, commit=True, client_version=0)
A, B = ("a", 0), ("b", 0)


class Delivery:
    def __init__(self) -> None:
        self.is_wanted = True
        self.told: list[set[tuple[str, int]]] = []

    def written(self, partitions: Iterable[tuple[str, int]]) -> None:
        self.told.append(set(partitions))


class World:
    """Partitions with leaders, and what becomes of a marker in those that are led here."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.leaders = {A: HERE, B: HERE}
        self.codes: dict[tuple[str, int], ErrorCode | asyncio.Future[None]] = {}
        self.delivery = Delivery()
        metadata = SimpleNamespace(partition=lambda *place: SimpleNamespace(leader=self.leaders[place]))
        config = SimpleNamespace(broker_id=HERE)
        services: Any = SimpleNamespace(loop=asyncio.get_running_loop(), config=config, metadata=metadata)
        monkeypatch.setattr(
            marker_sender, "begin_marker", lambda _, __, *place_end: self.codes.get(place_end[:2], ErrorCode.NONE)
        )
        self.sender = MarkerSender(services, cast(Any, None))

    def send(self) -> None:
        self.sender.send(MARKER, 0, frozenset({A, B}), self.delivery)


@pytest.fixture
async def world(monkeypatch: pytest.MonkeyPatch) -> Any:
    it = World(monkeypatch)
    yield it
    await it.sender.close()


async def test_markers_that_stand_at_once_are_told_at_once(world: World) -> None:
    world.codes[B] = ErrorCode.INVALID_PRODUCER_EPOCH  # the partition has this marker already
    world.send()
    assert world.delivery.told == [{A, B}]


async def test_a_partition_without_a_leader_gets_its_marker_from_the_next_one(world: World) -> None:
    world.leaders[B] = NO_LEADER
    world.send()
    await until(lambda: world.delivery.told)
    assert world.delivery.told == [{A}]
    world.leaders[B] = HERE
    await until(lambda: world.delivery.told[-1] == {B})
    assert world.delivery.told.count({A}) == 1


async def test_a_marker_that_is_not_committed_is_told_when_it_is(world: World) -> None:
    commit = world.codes[A] = asyncio.get_running_loop().create_future()
    world.send()
    assert world.delivery.told == []
    commit.set_result(None)
    await until(lambda: world.delivery.told)
    assert world.delivery.told == [{A, B}]


async def test_a_marker_that_was_refused_is_written_again(world: World) -> None:
    world.codes[A] = ErrorCode.NOT_ENOUGH_REPLICAS
    world.send()
    await until(lambda: world.delivery.told)
    assert world.delivery.told == [{B}]
    world.codes[A] = ErrorCode.NONE
    await until(lambda: world.delivery.told[-1] == {A})
    assert world.delivery.told.count({B}) == 1


async def test_a_fenced_coordinator_writes_no_more(world: World, caplog: pytest.LogCaptureFixture) -> None:
    world.codes[A] = ErrorCode.TRANSACTION_COORDINATOR_FENCED
    with caplog.at_level(logging.INFO):
        world.send()
        await until(lambda: "transaction-marker-fenced" in caplog.text)
    assert world.delivery.told == []
