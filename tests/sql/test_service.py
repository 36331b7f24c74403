"""`barnabas sql start`, and SQL in the process of the services: ready lines, both ports, bad settings, and the end."""

from __future__ import annotations

import asyncio
import contextlib
import json
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.request import urlopen

import psycopg
import pytest

from barnabas.client.config import ClientConfig
from barnabas.errors import ConfigError
from barnabas.sql.interface import Caller, Engine
from barnabas.sql.lazy import LazyEngine
from barnabas.sql.listening import postgres_address
from barnabas.sql.service import SqlService, _runs_python
from barnabas.testing import Broker
from barnabas.web.service import ServiceContext, ServiceError
from tests.sql.duckdb_engine import DuckEngine
from tests.waiting import until, wait_until

NOWHERE = ClientConfig((("127.0.0.1", 1),))
COMMAND = [sys.executable, "-m", "barnabas.cli", "sql", "start", "--listener", "http://127.0.0.1:0"]


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker() as broker:
        yield broker


@contextmanager
def started(broker: Broker, *options: str) -> Iterator[tuple[subprocess.Popen[str], str, int]]:
    command = [*COMMAND, "--postgres", "127.0.0.1:0", "-b", broker.bootstrap_servers, *options]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        http, postgres = process.stdout.readline(), process.stdout.readline()
        assert http.startswith("barnabas SQL over HTTP accepts connections on http://127.0.0.1:")
        assert postgres.startswith("barnabas Postgres port accepts connections on 127.0.0.1:")
        yield process, http.split()[-1], int(postgres.rpartition(":")[2])
    finally:
        process.kill()
        process.communicate()


def test_both_ports_have_the_same_tables_until_a_signal(broker: Broker) -> None:
    with started(broker) as (process, http, port):
        with psycopg.connect(host="127.0.0.1", port=port, user="me", dbname="barnabas", autocommit=True) as connection:
            connection.execute("create table served (id int primary key, v text)")
            connection.execute("insert into served values (1, 'x')")
        with urlopen(f"{http}/sql?statement=select+*+from+served", timeout=60) as answer:
            assert json.loads(answer.read())["rows"] == [[1, "x"]]
        with urlopen(f"{http}/readyz", timeout=60) as answer:
            assert answer.status == 200
        process.send_signal(signal.SIGTERM)
        assert process.wait(30) == 0


@pytest.mark.parametrize(
    ("options", "line"),
    [
        (["-X", "sql.queries=-1"], "sql.queries"),
        (["-X", "postgres.authentication.method=KERBEROS"], "postgres.authentication.method"),
        (["--postgres", "nowhere"], "nowhere"),
        (["-X", "postgres.listener=nowhere"], "postgres.listener"),
        (["-X", "postgres.authentication.method=SCRAM"], "TRUST unless security.protocol has SASL"),
        (["-X", "authentication.sasl.mechanism=GSSAPI"], "authentication.sasl.mechanism"),
        (["--data-dir", "/dev/null/x"], "sql.data.dir"),
    ],
)
def test_bad_settings_end_the_command(broker: Broker, options: list[str], line: str) -> None:
    ended = subprocess.run(
        [*COMMAND, "-b", broker.bootstrap_servers, *options], capture_output=True, text=True, timeout=60, check=False
    )
    assert ended.returncode == 2
    assert line in ended.stderr
    assert ended.stderr.count("\n") == 1


def test_a_taken_postgres_port_is_named(broker: Broker) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        command = [*COMMAND, "-b", broker.bootstrap_servers, "--postgres", f"127.0.0.1:{taken.getsockname()[1]}"]
        ended = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert ended.returncode == 2
    assert "another program has this port; --postgres-listener" in ended.stderr


def test_nothing_heavy_is_loaded_before_the_first_connection() -> None:
    heavy = ("duckdb", "numba", "pyarrow", "sqlglot")
    code = f"import barnabas.sql.service, barnabas.cli.services, sys; print([each for each in {heavy} if each in sys.modules])"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert found.stdout == "[]\n"


async def test_a_service_without_a_postgres_port_opens_none() -> None:
    service = SqlService(ServiceContext(NOWHERE, "http://127.0.0.1:0", {}))
    await service.start()
    assert service.is_ready()
    assert service.ready_lines == []
    await service.close()
    assert not service.is_ready()


async def test_a_service_whose_port_is_taken_does_not_start() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        settings = {"postgres.listener": f"127.0.0.1:{taken.getsockname()[1]}"}
        service = SqlService(ServiceContext(NOWHERE, "http://127.0.0.1:0", settings))
        with pytest.raises(ServiceError, match="--postgres-listener"):
            await service.start()
        await service.close()


def test_addresses_of_the_postgres_port() -> None:
    assert postgres_address("127.0.0.1:5433") == ("127.0.0.1", 5433)
    assert postgres_address("[::1]:0") == ("::1", 0)
    for text in ("5433", ":5433", "host:", "host:x", "host:99999", f"{'a' * 70}:1"):
        with pytest.raises(ConfigError):
            postgres_address(text)


async def test_the_postgres_port_listens_on_an_address_of_version_6() -> None:
    service = SqlService(ServiceContext(NOWHERE, "http://127.0.0.1:0", {"postgres.listener": "[::1]:0"}))
    await service.start()
    (line,) = service.ready_lines
    assert "on [::1]:" in line
    socket.create_connection(("::1", int(line.rpartition(":")[2]))).close()
    await service.close()


async def test_a_protocol_that_cannot_be_loaded_refuses_clients(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "barnabas.sql.postgres.server", None)
    settings = {"postgres.listener": "127.0.0.1:0"}
    service = SqlService(ServiceContext(NOWHERE, "http://127.0.0.1:0", settings))
    await service.start()
    _, writer = await asyncio.open_connection("127.0.0.1", int(service.ready_lines[0].rpartition(":")[2]))
    await until(lambda: _is_refused(int(service.ready_lines[0].rpartition(":")[2])))
    assert service.is_ready(), "HTTP goes on"
    writer.close()
    await service.close()


def _is_refused(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), 1).close()
    except OSError:
        return True
    return False


@pytest.mark.parametrize(
    ("key", "value"),
    [("sql.queries", "0"), ("sql.query.memory.bytes", "1000"), ("sql.query.rows", "-1"), ("sql.query.timeout.ms", "soon")],
)
def test_limits_of_queries_have_a_smallest_value(key: str, value: str) -> None:
    with pytest.raises(ConfigError, match=key):
        SqlService(ServiceContext(NOWHERE, "http://127.0.0.1:0", {key: value}))


def test_an_engine_is_loaded_once_and_closed_once() -> None:
    made: list[DuckEngine] = []

    def load() -> Engine:
        made.append(DuckEngine())
        return made[-1]

    lazy = LazyEngine(load)
    threads = [threading.Thread(target=lambda: lazy.session(Caller()).close()) for _ in range(8)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert len(made) == 1
    lazy.close()
    assert all(each.closed.is_set() for each in made[0].sessions)


def test_an_engine_that_cannot_be_loaded_is_tried_again() -> None:
    attempts = []

    def load() -> Engine:
        attempts.append(1)
        if len(attempts) == 1:
            raise ImportError("no duckdb")
        return DuckEngine()

    lazy = LazyEngine(load)
    with pytest.raises(ImportError):
        lazy.session(Caller())
    lazy.session(Caller()).close()
    lazy.close()


def test_servers_that_are_killed_give_no_number_twice(broker: Broker) -> None:
    taken: list[int] = []

    def connected(port: int) -> psycopg.Connection[tuple[int, ...]]:
        return psycopg.connect(host="127.0.0.1", port=port, user="me", dbname="barnabas", autocommit=True)

    def insert(port: int, until_it_ends: bool) -> None:
        with contextlib.suppress(psycopg.OperationalError), connected(port) as connection:
            for _ in range(1_000_000 if until_it_ends else 40):
                row = connection.execute("insert into killed (v) values ('x') returning id").fetchone()
                assert row is not None
                taken.append(row[0])

    with started(broker) as (first, _, port), started(broker) as (_, _, other):
        with connected(port) as connection:
            connection.execute("create table killed (id bigserial primary key, v text)")
        threads = [threading.Thread(target=insert, args=args) for args in ((port, True), (port, True), (other, False))]
        for thread in threads:
            thread.start()
        wait_until(lambda: len(taken) >= 60)
        first.kill()
        for thread in threads:
            thread.join()
        insert(other, False)
    with started(broker) as (_, _, port):
        insert(port, False)
        with connected(port) as connection:
            known = connection.execute("select count(*), count(distinct id) from killed").fetchall()[0]
    assert len(taken) == len(set(taken)) >= 140
    assert known[0] == known[1] >= len(taken)


@pytest.mark.parametrize(
    ("listener", "settings", "secured", "expected"),
    [
        ("http://127.0.0.1:8088", {}, False, True),
        ("http://localhost:8088", {"postgres.listener": "[::1]:5433"}, False, True),
        ("http://0.0.0.0:8088", {}, False, False),
        ("http://127.0.0.1:8088", {"postgres.listener": "0.0.0.0:5433"}, False, False),
        ("http://sql.example.org:8088", {}, False, False),
        ("https://sql.example.org:8088", {}, True, True),
        ("http://0.0.0.0:8088", {"sql.python.functions": "true"}, False, True),
        ("http://127.0.0.1:8088", {"sql.python.functions": "false"}, True, False),
    ],
)
def test_python_runs_where_only_known_callers_are(listener: str, settings: dict[str, str], secured: bool, expected: bool) -> None:
    assert _runs_python(ServiceContext(NOWHERE, listener, settings, secured=secured)) is expected


def test_the_setting_for_python_is_true_or_false() -> None:
    with pytest.raises(ConfigError, match=r"sql\.python\.functions"):
        SqlService(ServiceContext(NOWHERE, "http://127.0.0.1:0", {"sql.python.functions": "maybe"}))
