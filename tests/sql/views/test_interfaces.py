"""Views over HTTP and over the Postgres protocol, in the process that users start."""

from __future__ import annotations

import http.client
import json
from collections.abc import Iterator
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import psycopg
import pytest

from barnabas.testing import Broker
from tests.sql.test_service import started
from tests.sql.views.fake_engine import FakeEngine


class Places(NamedTuple):
    """The address of HTTP, the DSN of Postgres, and a table with a view of its sums by key, which a test has for itself."""

    url: str
    dsn: str
    table: str
    view: str


@pytest.fixture(scope="module")
def addresses(broker: Broker, running: FakeEngine) -> Iterator[tuple[str, str]]:
    with started(broker) as (_, url, port):
        yield url, f"host=127.0.0.1 port={port} user=me dbname=barnabas"


@pytest.fixture
def places(addresses: tuple[str, str], request: pytest.FixtureRequest) -> Places:
    url, dsn = addresses
    table, view = (f"{name}_{request.node.name.removeprefix('test_')}" for name in ("sales", "totals"))
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute(f"create table {table} (k text, x int)")
        connection.execute(f"insert into {table} values ('a', 1), ('b', 2)")
        connection.execute(f"create materialized view {view} as select k, sum(x) as s from {table} group by k")
    return Places(url, dsn, table, view)


def test_postgres_client_subscribes(places: Places) -> None:
    with psycopg.connect(places.dsn, autocommit=True) as reader, psycopg.connect(places.dsn, autocommit=True) as writer:
        rows = reader.cursor().stream(f"subscribe {places.view}")
        assert sorted(next(rows)[1:] for _ in range(2)) == [(False, "a", 1), (False, "b", 2)]
        writer.execute(f"insert into {places.table} values ('a', 5)")
        assert next(rows)[1:] == (False, "a", 6)
        reader.cancel()
        with pytest.raises(psycopg.errors.QueryCanceled):
            next(rows)
        assert reader.execute(f"select s from {places.view} where k = 'a'").fetchone() == (6,)


def test_cursor_takes_what_is_there(places: Places) -> None:
    with psycopg.connect(places.dsn) as reader, psycopg.connect(places.dsn, autocommit=True) as writer:
        reader.execute(f"declare changes cursor for subscribe {places.view} with (snapshot = off)")
        assert reader.execute("fetch all changes").fetchall() == []
        writer.execute(f"insert into {places.table} values ('b', 5)")
        found: list[Any] = []
        while not found:
            found = reader.execute("fetch 10 changes").fetchall()
        assert [row[1:] for row in found] == [(False, "b", 7)]


def _events(answer: http.client.HTTPResponse) -> Iterator[dict[str, str]]:
    event: dict[str, str] = {}
    while line := answer.readline().decode():
        name, _, value = line.rstrip("\n").partition(": ")
        if name and value:
            event[name] = value
        elif event and line == "\n":
            if "data" in event:
                yield event
            event = {}


def test_server_sent_events(places: Places) -> None:
    at = urlsplit(places.url)
    connection = http.client.HTTPConnection(at.netloc, timeout=60)
    connection.request("GET", f"/subscribe/{places.view}")
    answer = connection.getresponse()
    assert (answer.status, answer.getheader("content-type")) == (200, "text/event-stream")
    events = _events(answer)
    assert {json.loads(next(events)["data"])["k"] for _ in range(2)} == {"a", "b"}
    with psycopg.connect(places.dsn, autocommit=True) as writer:
        writer.execute(f"insert into {places.table} values ('c', 3)")
        event = next(events)
        assert json.loads(event["data"]) == {"_offset": event["id"], "_deleted": False, "k": "c", "s": 3}
        connection.close()
        writer.execute(f"insert into {places.table} values ('d', 4)")
    connection.request("GET", f"/subscribe/{places.view}", headers={"Last-Event-ID": event["id"]})
    assert json.loads(next(_events(connection.getresponse()))["data"])["k"] == "d"
    connection.close()
    connection.request("GET", "/subscribe/nothing")
    assert connection.getresponse().status == 400
    connection.close()
    body = json.dumps({"statement": f"subscribe {places.view}"})
    connection.request("POST", "/sql", body, {"Accept": "application/x-ndjson", "Content-Type": "application/json"})
    assert json.loads(connection.getresponse().readline())["_deleted"] is False
    connection.close()


def test_notices_reach_the_client(places: Places) -> None:
    with psycopg.connect(places.dsn, autocommit=True) as connection:
        heard: list[Any] = []
        connection.add_notice_handler(lambda notice: heard.append((notice.severity, notice.message_primary)))
        connection.execute(f"create materialized view if not exists {places.view} as select k, x as s from {places.table}")
        connection.execute("begin isolation level serializable")
        connection.execute("rollback")
    assert ("NOTICE", f'relation "{places.view}" already exists, skipping') in heard
    assert [severity for severity, _ in heard if severity == "WARNING"] == ["WARNING"]
