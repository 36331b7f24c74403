"""The looks of an event loop belong to callers, and there are not too many."""

from __future__ import annotations

import asyncio
from uuid import UUID

import pyarrow as pa
import pytest

from barnabas import limits
from barnabas.client.config import ClientConfig
from barnabas.sql.live.at_once import AtOnce, Look, Question
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
        each._task = asyncio.ensure_future(asyncio.wait_for(busy, None))
    assert look("c") is None
    first.close()
    first._task = None
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
    assert look.ask(question(told))
    assert look.ask(question(told))
    await until(lambda: len(told) == 2)
    assert told == [False, False]
    assert not look.ask(question(told))
    await looks.close()
    await until(lambda: not look.is_busy)
