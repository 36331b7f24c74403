"""Requests for one row by its key, as the event loop answers them: the bytes that the session's thread gives."""

from __future__ import annotations

import asyncio
import json
import random
from typing import Any

import pytest

from barnabas.sql.http.quick import QuickAnswers
from barnabas.testing import Broker
from tests.sql.engine.asking import asking, engine_of
from tests.sql.http.test_surface import asked, serving_engine

COLUMNS = "id bigint primary key, name text, price double precision, at timestamptz, parts bigint[]"


async def test_the_loop_and_the_thread_give_the_same_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    chance = random.Random(7)
    plain = QuickAnswers.json
    hits: list[bool] = []
    by_thread = [False]

    async def answer(self: QuickAnswers, *arguments: Any) -> bytes | None:
        found = None if by_thread[0] else await plain(self, *arguments)
        hits.append(found is not None)
        return found

    monkeypatch.setattr(QuickAnswers, "json", answer)
    with Broker() as broker:
        engine = engine_of(broker)
        ask = asking(engine)
        ask(f"create table over_http ({COLUMNS})")
        ask("insert into over_http select i, 'name ' || i, i / 3.0, timestamp '2026-01-01 00:00:00', null from range(40) r(i)")
        ask("update over_http set price = 'nan', parts = [1, null] where id < 10")
        async with serving_engine(engine) as port:
            for step in range(120):
                key = chance.choice([chance.randrange(50), chance.randrange(50), -1, "x", None, 2**70])
                text, values = chance.choice(
                    [
                        ("select * from over_http where id = $1", [key]),
                        ("select name, price from over_http where id = $1", [key]),
                        (f"select * from over_http where id = {chance.randrange(50)}", []),
                        (f"select * from over_http where id = {chance.randrange(50)};", []),
                        ("select 1; select 2", []),
                    ]
                )
                body = json.dumps({"statement": text, "parameters": values}).encode()
                path = chance.choice(["/sql", "/sql", "/sql?format=jsonl"])
                found = []
                for by_thread[0] in (False, True):
                    found += [await asyncio.to_thread(asked, port, "POST", path, body, content_type="application/json")]
                assert found[0] == found[1], body
                if step % 10 == 3:
                    ask("update over_http set name = $1 where id = $2", f"step {step}", chance.randrange(40))
                if step % 10 == 7:
                    ask("delete from over_http where id = $1", chance.randrange(40))
        assert hits.count(True) > 20
        ask.session.close()
        engine.close()
