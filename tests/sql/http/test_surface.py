"""SQL over HTTP: formats, errors, and clients that go away, over real sockets and an engine of DuckDB alone."""

from __future__ import annotations

import asyncio
import base64
import csv
import io
import json
import os
import threading
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager
from http.client import HTTPConnection, IncompleteRead
from typing import Any

import pyarrow as pa
import pytest

from barnabas import limits
from barnabas.services.application import Application
from barnabas.services.listener import Listener, bind
from barnabas.services.metrics import RequestTimes
from barnabas.services.web_server import WebServer
from barnabas.sql.http.formats import chosen, duration_text
from barnabas.sql.http.idle import IdleSessions
from barnabas.sql.http.surface import Surface
from barnabas.sql.interface import Caller, Engine, Prepared, Result, Session
from barnabas.web.routing import HttpError, Response, Router
from barnabas.web.service import Service, ServiceContext, ServiceEntry
from tests.sql.duckdb_engine import DuckEngine, DuckSession
from tests.waiting import until

LONG = "select count(*) from range(200000) a, range(200000) b where (a.range + b.range) % 7 = 3"


class SurfaceAlone:
    ready_lines: Sequence[str] = ()

    def __init__(self, engine: Engine) -> None:
        self._surface = Surface()
        self._surface.engine = engine
        self.router: Router = self._surface.router

    async def start(self) -> None:
        """It is ready."""

    async def close(self) -> None:
        """Close the sessions that wait."""
        await self._surface.close()

    def is_ready(self) -> bool:
        return True

    def error(self, error: HttpError) -> Response:
        return self._surface.error(error)

    async def metrics(self) -> bytes:
        return b""


def _never(_context: ServiceContext) -> Service:
    raise AssertionError


@asynccontextmanager
async def serving(*, is_fresh: bool = False) -> AsyncIterator[tuple[DuckEngine, int]]:
    engine = DuckEngine(is_fresh=is_fresh)
    async with serving_engine(engine) as port:
        yield engine, port


@asynccontextmanager
async def serving_engine(engine: Engine) -> AsyncIterator[int]:
    """The port of a listener over an engine."""
    listening = bind(ServiceEntry("sql", "SQL", 0, "sql", (), _never), Listener("http", "127.0.0.1", 0), "--sql-listener")
    surface = SurfaceAlone(engine)
    application = Application("sql", surface, RequestTimes(), timeout_s=60.0, follows_clients=True)
    server = WebServer(application, listening, None)
    await server.start()
    try:
        yield listening.getsockname()[1]
    finally:
        await server.close()
        await surface.close()


def asked(port: int, method: str, path: str, body: Any = None, **headers: str) -> tuple[int, bytes]:
    connection = HTTPConnection("127.0.0.1", port, timeout=60)
    try:
        connection.request(method, path, body, {name.replace("_", "-"): value for name, value in headers.items()})
        answer = connection.getresponse()
        return answer.status, answer.read()
    finally:
        connection.close()


async def posted(port: int, statement: str, path: str = "/sql", **headers: str) -> tuple[int, bytes]:
    return await asyncio.to_thread(asked, port, "POST", path, statement.encode(), **headers)


TWO = "select 1 as a, 'x\"y' as b union all select 2, null order by a"


async def test_rows_as_json() -> None:
    async with serving() as (engine, port):
        status, body = await posted(port, TWO)
        assert (status, json.loads(body)) == (
            200,
            {
                "columns": [{"name": "a", "type": "int32"}, {"name": "b", "type": "string"}],
                "rows": [[1, 'x"y'], [2, None]],
                "tag": "SELECT 2",
            },
        )
        await until(lambda: all(each.closed.is_set() for each in engine.sessions))


async def test_rows_as_lines_csv_and_arrow() -> None:
    async with serving() as (_, port):
        _, lines = await posted(port, TWO, Accept="application/x-ndjson")
        assert [json.loads(line) for line in lines.splitlines()] == [{"a": 1, "b": 'x"y'}, {"a": 2, "b": None}]
        _, text = await posted(port, TWO, "/sql?format=csv")
        assert list(csv.reader(io.StringIO(text.decode()))) == [["a", "b"], ["1", 'x"y'], ["2", ""]]
        _, data = await posted(port, TWO, "/sql?format=arrow")
        assert pa.ipc.open_stream(data).read_all().to_pydict() == {"a": [1, 2], "b": ['x"y', None]}


async def test_many_batches_come_whole() -> None:
    async with serving() as (_, port):
        statement = "select range as n, 'text ' || range as t from range(50000)"
        _, body = await posted(port, statement)
        assert json.loads(body)["rows"] == [[n, f"text {n}"] for n in range(50_000)]
        _, data = await posted(port, statement, "/sql?format=arrow")
        assert pa.ipc.open_stream(data).read_all().num_rows == 50_000


@pytest.mark.parametrize("format_", ["json", "jsonl", "csv", "arrow"])
async def test_values_of_every_type_can_be_written(format_: str) -> None:
    statement = (
        "select 1::decimal(10,2) d, 'a'::blob b, date '2024-02-29' on_day, timestamp '2024-01-02 03:04:05' moment, [1, null] l, "
        "{'x': 1} s, map {'k': 2} m, 'nan'::double n, true t, null z, interval 1 day AS i, uuid() u, time '01:02:03' c"
    )
    async with serving() as (_, port):
        status, body = await posted(port, statement, f"/sql?format={format_}")
        assert (status, bool(body)) == (200, True)
        if format_ == "json":
            row = json.loads(body)["rows"][0]
            assert row[:5] == ["1.00", base64.b64encode(b"a").decode(), "2024-02-29", "2024-01-02T03:04:05", [1, None]]
            assert row[5:11] == [{"x": 1}, {"k": 2}, "nan", True, None, "P1D"]


async def test_statements_without_rows_and_several_statements() -> None:
    async with serving() as (_, port):
        status, body = await posted(port, "create table t (a int); insert into t values (7); select a from t")
        assert (status, json.loads(body)["rows"]) == (200, [[7]])
        status, body = await posted(port, "create table t (a int)")
        assert (status, json.loads(body)) == (200, {"columns": [], "rows": [], "tag": "CREATE TABLE"})
        status, body = await posted(port, "select 1 as a where false")
        assert json.loads(body)["rows"] == []


async def test_parameters() -> None:
    body = json.dumps({"statement": "select $1::int + 1 as n", "parameters": [41]})
    async with serving() as (_, port):
        headers = {"Content_Type": "application/json"}
        status, answer = await asyncio.to_thread(asked, port, "POST", "/sql", body, **headers)
        assert (status, json.loads(answer)["rows"]) == (200, [[42]])
        status, answer = await asyncio.to_thread(asked, port, "GET", "/sql?statement=select+3")
        assert json.loads(answer)["rows"] == [[3]]


@pytest.mark.parametrize(
    ("path", "headers", "body", "status", "sqlstate"),
    [
        ("/sql", {}, b"select from where", 400, "42601"),
        ("/sql", {}, b"select * from nowhere", 400, "42P01"),
        ("/sql", {}, b"", 400, "42601"),
        ("/sql", {}, b"\xff", 400, "08P01"),
        ("/sql?format=xml", {}, b"select 1", 406, "08P01"),
        ("/sql", {"Accept": "text/html"}, b"select 1", 406, "08P01"),
        ("/sql", {"Content_Type": "application/json"}, b'{"statment": "select 1"}', 400, "08P01"),
        ("/sql", {"Content_Type": "application/json"}, b"[", 400, "08P01"),
        ("/sql", {"Content_Type": "image/png"}, b"x", 415, "08P01"),
        ("/nowhere", {}, b"x", 404, "08P01"),
    ],
)
async def test_bad_requests_are_told_what_is_wrong(
    path: str, headers: dict[str, str], body: bytes, status: int, sqlstate: str
) -> None:
    async with serving() as (engine, port):
        found, answer = await asyncio.to_thread(asked, port, "POST", path, body, **headers)
        said = json.loads(answer)
        assert (found, said["sqlstate"]) == (status, sqlstate)
        assert said["message"]
        await until(lambda: all(each.closed.is_set() for each in engine.sessions))


async def test_an_error_after_the_first_rows_stands_in_the_stream() -> None:
    # so many rows that no thread of DuckDB comes to the last ones before the first are sent
    late = "select case when range > 1950000 then error('late') else range end as n from range(2000000)"
    async with serving() as (_, port):
        status, body = await posted(port, late)
        assert (status, json.loads(body)["error"]["sqlstate"]) == (200, "22000")
        status, lines = await posted(port, late, "/sql?format=jsonl")
        assert "late" in lines.decode().splitlines()[-1]
        for name in ("csv", "arrow"):
            with pytest.raises(IncompleteRead):
                await posted(port, late, f"/sql?format={name}")


@pytest.mark.parametrize("statement", [LONG, f"select range as n from range(100000000) where ({LONG}) is not null or true"])
async def test_a_client_that_goes_away_ends_its_statement(statement: str) -> None:
    async with serving() as (engine, port):
        _, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"POST /sql HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n%s" % (len(statement), statement.encode()))
        await writer.drain()
        await until(lambda: len(engine.sessions) == 1)
        assert not engine.sessions[0].closed.is_set()
        writer.close()
        await until(lambda: engine.sessions[0].closed.is_set())


@pytest.mark.parametrize(
    ("parts", "text"),
    [((0, 0, 0), "PT0S"), ((14, -3, 0), "P14M-3D"), ((0, 1, 1_500_000_000), "P1DT1.5S"), ((0, 0, -1000), "PT-0.000001S")],
)
def test_intervals_as_text(parts: tuple[int, int, int], text: str) -> None:
    assert duration_text(*parts) == text


def test_the_format_that_a_request_asks_for() -> None:
    assert chosen(None, "") == "json"
    assert chosen(None, "text/html, application/*;q=0.8") == "json"
    assert chosen(None, "text/csv") == "csv"
    assert chosen("arrow", "text/csv") == "arrow"
    assert chosen("none", "") is None
    assert chosen(None, "text/html") is None


async def test_an_answer_without_its_body_releases_the_session() -> None:
    async with serving() as (engine, port):
        status, body = await asyncio.to_thread(asked, port, "HEAD", "/sql?statement=select+range+from+range(50000)")
        assert (status, body) == (200, b"")
        await until(lambda: engine.sessions[0].closed.is_set())


async def test_a_session_whose_client_is_gone_waits_for_the_next_request() -> None:
    loaded, asked_for = threading.Event(), threading.Event()

    class Loading(DuckEngine):
        def session(self, caller: Caller) -> Session:
            asked_for.set()
            assert loaded.wait(30)
            return super().session(caller)

    engine, surface = Loading(is_fresh=True), Surface()
    request = asyncio.create_task(surface._new_session(engine, Caller()))
    await until(asked_for.is_set)
    request.cancel()
    with pytest.raises(asyncio.CancelledError):
        await request
    loaded.set()
    await until(lambda: len(surface._idle) == 1)
    await surface.close()
    assert engine.sessions[0].closed.is_set()


async def test_a_fresh_session_serves_the_next_request() -> None:
    async with serving(is_fresh=True) as (engine, port):
        for _ in range(3):
            assert (await posted(port, TWO))[0] == 200
            assert (await posted(port, "select range from range(20000)"))[0] == 200
        assert len(engine.sessions) == 1
        assert not engine.sessions[0].closed.is_set()
    assert engine.sessions[0].closed.is_set(), "the surface was closed"


async def test_a_session_that_failed_or_is_changed_serves_no_other_request() -> None:
    async with serving(is_fresh=True) as (engine, port):
        assert (await posted(port, "select * from nowhere"))[0] == 400
        await until(lambda: engine.sessions[0].closed.is_set())
        assert (await posted(port, "select 1"))[0] == 200
        engine.sessions[1].is_fresh = False
        assert (await posted(port, "select 1"))[0] == 200
        await until(lambda: engine.sessions[1].closed.is_set())
        engine.is_fresh = False
        assert (await posted(port, "select 1"))[0] == 200
        assert len(engine.sessions) == 3


async def test_a_session_goes_to_its_own_caller_alone() -> None:
    engine, idle = DuckEngine(is_fresh=True), IdleSessions()
    alice, bob = Caller("alice", settings={"sasl.password": "a"}), Caller("bob", settings={"sasl.password": "b"})
    session = engine.session(alice)
    idle.give(alice, session)
    assert idle.take(bob) is None
    assert idle.take(Caller("alice", settings={"sasl.password": "other"})) is None
    assert idle.take(Caller("alice", settings={"sasl.password": "a"})) is session
    assert idle.take(alice) is None
    session.close()


async def test_at_most_max_sql_idle_sessions_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "MAX_SQL_IDLE_SESSIONS", 2)
    engine, idle = DuckEngine(is_fresh=True), IdleSessions()
    for _ in range(3):
        idle.give(Caller(), engine.session(Caller()))
    assert len(idle) == 2
    await until(lambda: engine.sessions[0].closed.is_set())
    assert idle.take(Caller()) is engine.sessions[2], "the one that waits shortest"
    engine.sessions[2].close()
    await idle.close()
    assert engine.sessions[1].closed.is_set()
    late = engine.session(Caller())
    idle.give(Caller(), late)
    await until(lambda: engine.sessions[3].closed.is_set())


async def test_a_session_waits_for_sql_idle_session_s(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "SQL_IDLE_SESSION_S", 0.01)
    engine, idle = DuckEngine(is_fresh=True), IdleSessions()
    for _ in range(2):
        idle.give(Caller(), engine.session(Caller()))
        await until(lambda: engine.sessions[-1].closed.is_set() and not len(idle))
    assert len(engine.sessions) == 2
    await idle.close()


class Waiting:
    """A result whose rows come as time goes on."""

    tag, is_live = "SELECT", True
    schema: pa.Schema | None = pa.schema([pa.field("a", pa.int32())])

    def __init__(self, released: threading.Event) -> None:
        self._released = released

    def batches(self) -> Iterator[pa.RecordBatch]:
        assert self.schema is not None
        yield pa.RecordBatch.from_arrays([pa.array([], pa.int32())], schema=self.schema)
        assert self._released.wait(60)

    def close(self) -> None:
        """Nothing is held."""


class WaitingSession(DuckSession):
    def __init__(self, engine: DuckEngine, caller: Caller, released: threading.Event, waiting: list[str]) -> None:
        super().__init__(engine, caller)
        self._released, self._waiting = released, waiting

    def execute(self, prepared: Prepared, values: Sequence[Any] = ()) -> Result:
        if "changes" not in prepared.text:
            return super().execute(prepared, values)
        self._waiting.append(prepared.text)
        return Waiting(self._released)


async def test_statements_that_wait_for_rows_hold_back_no_others() -> None:
    released = threading.Event()
    waiting: list[str] = []

    class WaitingEngine(DuckEngine):
        def session(self, caller: Caller) -> Session:
            return WaitingSession(self, caller, released, waiting)

    many = 2 + min(32, (os.cpu_count() or 1) + 4)  # more than the threads of an event loop
    async with serving_engine(WaitingEngine()) as port:
        connections = [HTTPConnection("127.0.0.1", port, timeout=60) for _ in range(many)]
        try:
            for each in connections:
                each.request("GET", "/sql?statement=select+%27changes%27")
            await until(lambda: len(waiting) == many)
            assert (await posted(port, "select 1"))[0] == 200
            released.set()
            answers = [json.loads(await asyncio.to_thread(lambda each: each.getresponse().read(), each)) for each in connections]
        finally:
            released.set()
            for each in connections:
                each.close()
    assert [each["rows"] for each in answers] == [[]] * many
