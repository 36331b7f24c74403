"""The looks of an event loop belong to callers, and there are not too many."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from functools import partial
from typing import Any
from uuid import UUID

import pyarrow as pa
import pytest

from barnabas import limits
from barnabas.client.asynchronous import AsyncClient
from barnabas.client.config import ClientConfig
from barnabas.sql.live.at_once import LOOKS_AT_ONCE, AtOnce, Look, Question
from barnabas.sql.live.decoded import Made
from barnabas.sql.live.rows import LivePartition
from barnabas.sql.live.tables import Followed, LiveTables
from barnabas.tables.scalar_format import ScalarFormat
from tests.waiting import until

ID = UUID(int=1)


def config(name: str, port: int = 1) -> ClientConfig:
    return ClientConfig.from_options({"bootstrap.servers": f"127.0.0.1:{port}", "client.id": name})


def followed() -> Followed:
    return Followed(ScalarFormat(pa.field("id", pa.int64())))


def question(told: list[bool]) -> Question:
    return Question(b"1", {}, None, "kind", lambda _: Made([], 0), lambda known, _: told.append(known))


async def test_a_caller_has_looks_of_its_own_and_the_oldest_at_rest_goes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "MAX_SQL_LOOKING_CALLERS", 2)
    looks, live, table = AtOnce(), LiveTables(), followed()

    def look(name: str) -> Look | None:
        return looks.look(config(name), live, table, "topic", ID)

    first, second = look("a"), look("b")
    assert first is not None
    assert first is look("a")
    assert second is not None
    assert second is not first
    busy = asyncio.get_running_loop().create_future()
    for each in (first, second):
        each._tasks = {asyncio.ensure_future(asyncio.wait_for(busy, None))}
    assert look("c") is None
    first.close()
    first._tasks.clear()
    assert look("c") is not None
    assert look("b") is second
    assert look("a") is not None, "c is at rest"
    assert look("b") is second
    busy.cancel()
    await looks.close()


async def test_few_tables_have_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "MAX_SQL_LIVE_TABLES", 3)
    looks, live = AtOnce(), LiveTables()
    for _ in range(10):
        assert looks.look(config("a"), live, followed(), "topic", ID) is not None
        assert len(looks._looks) <= 3
    await looks.close()


async def test_a_cluster_that_is_away_gives_no_answer() -> None:
    told: list[bool] = []
    looks, live, table = AtOnce(), LiveTables(), followed()
    assert table.rows is not None
    table.rows.partitions[0] = LivePartition()
    look = looks.look(config("a"), live, table, "topic", ID)
    assert look is not None

    def fails(known: bool, form: object) -> None:
        raise ValueError

    assert look.ask(Question(b"1", {}, None, "kind", lambda _: Made([], 0), fails))
    assert look.ask(question(told))
    assert look.ask(question(told))
    await until(lambda: len(told) == 2)
    assert told == [False, False]
    assert not look.ask(question(told))
    await looks.close()
    await until(lambda: not look.is_busy)


class Scripted(Look):
    """A look whose answers come when the test lets them."""

    def __init__(self, client: AsyncClient) -> None:
        super().__init__(client, LiveTables(), followed(), "topic", ID)
        self.looks: list[tuple[int, asyncio.Future[None]]] = []

    async def _look(self, asked: Sequence[Question]) -> list[tuple[bool, Any]]:
        released = asyncio.get_running_loop().create_future()
        self.looks.append((len(asked), released))
        await released
        return [(True, None)] * len(asked)


def _has_looks(look: Scripted, count: int) -> bool:
    return len(look.looks) == count


async def test_two_looks_are_under_way_and_the_next_one_takes_all_that_wait() -> None:
    told: list[bool] = []
    async with AsyncClient(config("a")) as client:
        look = Scripted(client)
        for count in (1, 2, 3, 4):
            assert look.ask(question(told))
            await until(partial(_has_looks, look, min(count, LOOKS_AT_ONCE)))
        assert [count for count, _ in look.looks] == [1, 1]
        look.looks[1][1].set_result(None)
        await until(lambda: len(look.looks) == 3)
        assert (told, look.looks[2][0]) == ([True], 2)
        for _, released in (look.looks[0], look.looks[2]):
            released.set_result(None)
        await until(lambda: not look.is_busy)
        assert told == [True] * 4


async def test_a_question_after_the_last_answer_of_a_look_gets_an_answer() -> None:
    told: list[bool] = []
    async with AsyncClient(config("a")) as client:
        look = Scripted(client)

        def again(known: bool, _: object) -> None:
            asyncio.get_running_loop().call_soon(look.ask, question(told))

        for number in range(1, LOOKS_AT_ONCE + 1):
            assert look.ask(Question(b"1", {}, None, "kind", lambda _: Made([], 0), again))
            await until(partial(_has_looks, look, number))
        for _, released in list(look.looks):
            released.set_result(None)
        await until(lambda: sum(count for count, _ in look.looks) == 2 * LOOKS_AT_ONCE)
        for _, released in look.looks[LOOKS_AT_ONCE:]:
            released.set_result(None)
        await until(lambda: told == [True] * LOOKS_AT_ONCE and not look.is_busy)


async def test_looks_that_are_closed_answer_all_questions() -> None:
    told: list[bool] = []
    async with AsyncClient(config("a")) as client:
        look = Scripted(client)
        assert look.ask(question(told))
        await until(lambda: len(look.looks) == 1)
        assert look.ask(question(told))
        look.close()
        await until(lambda: told == [False, False] and not look.is_busy)
