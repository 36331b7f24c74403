"""Queries for one row by its key, as the event loop answers them: the bytes that the session's thread gives, at any time."""

from __future__ import annotations

import asyncio
import random
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from struct import pack
from typing import Any

import pytest

from barnabas.sql.engine import SqlEngine
from barnabas.sql.interface import Caller
from barnabas.sql.live import at_once
from barnabas.sql.live.at_once import AtOnce, Look
from barnabas.sql.postgres import quick
from barnabas.sql.postgres.connection import Connection
from barnabas.sql.session import SqlSession
from barnabas.testing import Broker
from tests.sql.engine.asking import asking, engine_of
from tests.sql.postgres.running import SYNC, Answer, Client, Running, bind, describe, execute, parse, query, running
from tests.waiting import wait_until

COLUMNS = (
    "id bigint primary key, name text, price double precision, amount decimal(12, 3), day date, at timestamptz, plain timestamp,"
    " active boolean, small smallint, data bytea, tag uuid, doc json, parts bigint[]"
)
ROW = (
    "i, 'name ' || i, i / 7.0, i * 1.125, date '2020-01-01' + i::int, timestamp '2026-01-01 00:00:00' + i * interval 1 minute,"
    " timestamp '1969-01-01 00:00:00' + i * interval 1 hour, i % 3 = 0, i % 100, null, null, null, null"
)


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker() as broker:
        yield broker


@pytest.fixture(scope="module")
def engine(broker: Broker) -> Iterator[SqlEngine]:
    engine = engine_of(broker)
    yield engine
    engine.close()


class Borrowed:
    """An engine that a server must not close."""

    def __init__(self, engine: SqlEngine) -> None:
        self._engine = engine

    def session(self, caller: Caller) -> SqlSession:
        return self._engine.session(caller)

    def close(self) -> None:
        pass


@pytest.fixture(scope="module")
def server(engine: SqlEngine) -> Iterator[Running]:
    with running(engine=Borrowed(engine)) as found:
        yield found


@pytest.fixture
def answered(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Whether the loop had an answer, for each round that it took."""
    found: list[bool] = []
    plain = quick.Quick._answer

    def answer(self: quick.Quick, made: Any, form: bytes | None, *, is_known: bool) -> None:
        found.append(is_known)
        plain(self, made, form, is_known=is_known)

    monkeypatch.setattr(quick.Quick, "_answer", answer)
    return found


@pytest.fixture
def by_thread(monkeypatch: pytest.MonkeyPatch, server: Running) -> Iterator[Callable[[], Client]]:
    """Clients whose statements all run in threads."""
    plain = Connection.quick
    made: list[Client] = []

    def client() -> Client:
        monkeypatch.setattr(Connection, "quick", lambda *_: None)
        made.append(server.client(TimeZone="Europe/Zurich"))
        made[-1].query("select 1")
        monkeypatch.setattr(Connection, "quick", plain)
        return made[-1]

    yield client
    for each in made:
        each.close()


def both(one: Client, other: Client, *messages: bytes) -> list[Answer]:
    """The answers to a round, which two clients get alike."""
    found = one.round(*messages)
    assert other.round(*messages) == found
    return found


def random_round(chance: random.Random, prepared: bool) -> list[bytes]:
    """A query for a row, in one of the ways of the protocol."""
    keys: list[int | str] = [chance.randrange(60), chance.randrange(60), chance.randrange(60), 10**9, -5, "x", 2**70]
    key = chance.choice(keys)
    columns = chance.choice(
        ["*", "name, id", "price, amount as sum, *", "day, at, plain, small, active", "id, data, tag, doc, parts"]
    )
    text = f"select {columns} from loop_rows where id = "
    formats = chance.choice([(), (0,), (1,)])
    value = chance.choice([str(key).encode(), str(key).encode(), None if chance.random() < 0.2 else str(key).encode()])
    described = [describe("P")] if chance.random() < 0.5 else []
    if chance.random() < 0.3:
        literal = key if isinstance(key, int) else f"'{key}'"
        return [query(chance.choice([f"{text}{literal}", f"{text}{literal};", f"{text}{literal} limit 1", f"{text} '{key}'"]))]
    rest = [*described, execute(), SYNC]
    if prepared and chance.random() < 0.5:
        return [bind(value, statement="named", results=formats), *rest]
    return [parse(f"{text}$1"), bind(value, results=formats), *rest]


@pytest.mark.parametrize("seed", range(3))
def test_the_loop_and_the_thread_give_the_same_bytes(
    engine: SqlEngine, server: Running, by_thread: Callable[[], Client], answered: list[bool], seed: int
) -> None:
    chance = random.Random(seed)
    ask = asking(engine)
    ask(f"create table loop_rows ({COLUMNS}) with (partitions = {chance.choice([1, 3])})")
    ask(f"insert into loop_rows select {ROW} from range(50) r(i)")
    ask(
        "update loop_rows set data = 'ab'::bytea, tag = '11111111-2222-3333-4444-555555555555', doc = '{\"a\": [1, null]}',"
        " parts = [1, null, 3] where id < 20"
    )
    ask("update loop_rows set name = null, price = 'nan', amount = null, day = null, at = null, active = null where id > 40")
    with server.client(TimeZone="Europe/Zurich") as client:
        other = by_thread()
        both(client, other, parse("select * from loop_rows where id = $1", "named"), SYNC)
        for step in range(300):
            both(client, other, *random_round(chance, prepared=True))
            number = chance.randrange(60)
            match step % 15:
                case 3:
                    ask("update loop_rows set name = $1, price = price + 1 where id = $2", f"step {step}", number)
                case 7:
                    ask("delete from loop_rows where id = $1", number)
                case 11:
                    ask("insert into loop_rows (id, name) values ($1, 'again') on conflict do nothing", number)
                case 13:
                    both(client, other, query(chance.choice(["begin", "commit", "rollback", "begin; select 1"])))
                case 14:
                    both(client, other, execute(), SYNC)  # the portal of the last round, if a transaction keeps it
        assert answered.count(True) > 40
    ask("drop table loop_rows")
    ask.session.close()


def test_a_changed_table_has_another_plan(engine: SqlEngine, server: Running, answered: list[bool]) -> None:
    ask = asking(engine)
    ask("create table grown (id bigint primary key, name text)")
    ask("insert into grown values (1, 'one')")
    with server.client() as client:
        client.query("select * from grown where id = 1")
        for number in range(3):
            client.query(f"select * from grown where id = {number}")
        assert any(answered)
        ask("alter table grown add column more bigint")
        wait_until(lambda: len(client.query("select * from grown where id = 1")[1].row) == 3)
        ask("drop table grown")
        wait_until(lambda: client.query("select * from grown where id = 1")[0].kind == "E")
        ask("create table grown (id bigint primary key, other text)")
        ask("insert into grown values (1, 'new')")
        wait_until(lambda: client.query("select * from grown where id = 1")[0].kind == "T")
        assert client.query("select * from grown where id = 1")[1].row == [b"1", b"new"]
    ask.session.close()


def test_a_read_sees_what_was_written_before(engine: SqlEngine, server: Running, answered: list[bool]) -> None:
    ask = asking(engine)
    ask("create table fresh (id bigint primary key, n bigint)")
    with server.client() as client, server.client() as other:
        for each in (client, other):
            each.round(parse("insert into fresh values ($1, $2) on conflict (id) do update set n = excluded.n", "put"), SYNC)
            each.round(parse("select n from fresh where id = $1", "get"), SYNC)
        for number in range(60):
            writer, key = (client, other)[number % 2], str(number % 7).encode()
            writer.round(bind(key, str(number).encode(), statement="put"), execute(), SYNC)
            for each in (client, other):
                found = each.round(bind(key, statement="get"), execute(), SYNC)
                assert found[1].row == [str(number).encode()]
    assert answered.count(True) > 90
    ask.session.close()


def test_clients_at_once_read_ever_newer_rows(engine: SqlEngine, server: Running, answered: list[bool]) -> None:
    ask = asking(engine)
    ask("create table rising (id bigint primary key, n bigint)")
    ask("insert into rising values (1, 0)")
    ended = threading.Event()

    def read() -> None:
        with server.client() as client:
            client.round(parse("select n from rising where id = $1", "get"), SYNC)
            last = 0
            while not ended.is_set():
                found = client.round(bind(b"1", statement="get"), execute(), SYNC)
                (value,) = found[1].row
                assert value is not None
                assert int(value) >= last
                last = int(value)

    with ThreadPoolExecutor(4) as threads:
        readers = [threads.submit(read) for _ in range(4)]
        try:
            for number in range(40):
                ask("update rising set n = $1 where id = 1", number)
        finally:
            ended.set()
        for each in readers:
            each.result()
    assert any(answered)
    ask.session.close()


def test_what_the_loop_cannot_answer_goes_to_the_thread(
    engine: SqlEngine, server: Running, answered: list[bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    ask = asking(engine)
    ask("create table given_back (id bigint primary key, n bigint)")
    ask("insert into given_back values (1, 10)")
    looks: list[Look] = []
    plain = Look.ask

    def asked(self: Look, question: Any) -> bool:
        looks.append(self)
        return plain(self, question)

    monkeypatch.setattr(Look, "ask", asked)
    with server.client() as client:
        get = [bind(b"1", statement="get"), execute(), SYNC]
        client.round(parse("select n from given_back where id = $1", "get"), SYNC)
        client.round(*get)
        answered.clear()
        assert client.round(*get)[1].row == [b"10"]
        assert answered == [True]
        look = looks[-1]
        look.followed.lock.acquire()
        try:
            client.send(*get)
            wait_until(lambda: answered == [True, False])
        finally:
            look.followed.lock.release()
        assert [client.receive().kind for _ in range(4)] == [*"2DCZ"]
        monkeypatch.setattr(at_once, "MOST_BYTES", 0)
        ask("update given_back set n = 11 where id = 1")
        assert client.round(*get)[1].row == [b"11"]
        assert answered == [True, False, False]
        monkeypatch.setattr(at_once, "PATIENCE_S", -1.0)
        assert client.round(*get)[1].row == [b"11"]
    ask.session.close()


def test_more_messages_and_the_end_of_a_client_while_a_round_waits(
    engine: SqlEngine, server: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    ask = asking(engine)
    ask("create table held (id bigint primary key, n bigint)")
    ask("insert into held values (1, 10)")
    held: list[Any] = []

    def hold(_: Look, question: Any) -> bool:
        held.append(question)
        return True

    monkeypatch.setattr(Look, "ask", hold)
    get = [bind(b"1", statement="get"), execute(), SYNC]
    with server.client() as client, server.client() as gone:
        for each in (client, gone):
            each.round(parse("select n from held where id = $1", "get"), SYNC)
            if each is client:
                each.round(*get)  # by the thread: the table is not in memory yet
        client.send(*get)
        wait_until(lambda: len(held) == 1)
        client.send(*get)
        assert [client.receive().kind for _ in range(8)] == [*"2DCZ2DCZ"]
        held[0].answer(True, b"too late")
        client.send(*get)
        wait_until(lambda: len(held) == 2)
        cancel = server.stranger()
        cancel.send(pack(">II", 16, (1234 << 16) + 5678) + client.key)
        assert client.receive().kind in "2E"  # it may have ended before it was cancelled
        gone.send(*get)
        cancel.close()
    held[-1].answer(True, b"too late")
    ask.session.close()


def test_looks_have_the_rights_of_their_caller() -> None:
    from tests.sql.live.test_live_tables import created, rows, secured

    with secured() as (broker, admin_config, deny), ExitStack() as ending:
        engine = SqlEngine(admin_config)
        ending.callback(engine.close)
        admin = engine.session(Caller("admin"))
        alice = engine.session(Caller("alice", settings=broker.login("alice", "PLAIN")))
        created(admin, "hidden")
        text = "select name from hidden where id = $1"
        for session in (admin, alice):
            assert rows(session, text, [1]) == [{"name": "name 1"}]

        async def is_told(session: SqlSession, looks: AtOnce) -> bool:
            row = session.one_row(session.prepare(text), [1])
            assert row is not None
            answer: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
            assert row.ask(looks, "kind", lambda records: [b"x"] * records.num_rows, lambda known, _: answer.set_result(known))
            return await answer

        async def told() -> list[bool]:
            looks = AtOnce()
            found = [await is_told(session, looks) for session in (admin, alice, admin)]
            await looks.close()
            return found

        assert asyncio.run(told()) == [True, True, True]
        deny("alice", "hidden")
        assert asyncio.run(told()) == [True, False, True]
