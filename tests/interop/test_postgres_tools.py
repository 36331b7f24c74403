"""pgcli, and the questions of Superset by SQLAlchemy, against the Postgres listener."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Any

import psycopg
import pytest
import sqlalchemy as sa
from pgcli.pgexecute import PGExecute
from pgspecial.main import PGSpecial

from barnabas.client.config import ClientConfig
from barnabas.sql.engine import SqlEngine
from barnabas.testing import Broker
from tests.sql.postgres.running import Running, running
from tests.terminal import Terminal
from tests.waiting import wait_until

pytestmark = [pytest.mark.interop, pytest.mark.timeout(300)]
PGCLI = str(Path(sys.executable).with_name("pgcli"))
LOOKS = 30  # a tenth of a second each
STATEMENTS = (
    "create table flights (id bigint primary key, origin text not null default 'ZRH', price numeric(10,2), tags text[], at timestamptz)",
    "create table log (id bigint, line text)",
    "comment on table flights is 'all of them'",
    "comment on column flights.price is 'in francs'",
    "insert into flights values (1, 'ZRH', 1.5, array['a'], '2024-01-02 03:04:05+00'), (2, 'GVA', 2.5, null, '2024-01-09 00:00:00+00')",
)


@pytest.fixture(scope="module")
def postgres() -> Iterator[Running]:
    with Broker() as broker:
        engine = SqlEngine(ClientConfig.from_options({"bootstrap.servers": broker.bootstrap_servers}))
        with running(engine=engine) as found:
            with psycopg.connect(found.dsn, autocommit=True) as connection:
                for each in STATEMENTS:
                    connection.execute(each)
            yield found


@pytest.fixture
def environment(tmp_path: Path) -> Mapping[str, str]:
    own = {"HOME": str(tmp_path), "XDG_CONFIG_HOME": str(tmp_path), "PAGER": "cat", "TERM": "xterm", "PROMPT_TOOLKIT_NO_CPR": "1"}
    return {**os.environ, **own}


def pgcli(postgres: Running, *arguments: str) -> list[str]:
    place = ["-h", "127.0.0.1", "-p", str(postgres.port), "-U", "anna", "-d", "barnabas", "-w", "--less-chatty"]
    return [PGCLI, *place, *arguments]


@pytest.fixture(scope="module")
def executor(postgres: Running) -> Iterator[PGExecute]:
    made = PGExecute(database="barnabas", user="anna", host="127.0.0.1", port=postgres.port)
    yield made
    made.conn.close()


def test_what_pgcli_asks_for_its_completions(executor: PGExecute) -> None:
    assert executor.search_path() == ["pg_catalog", "public"]
    assert executor.schemata() == ["information_schema", "pg_catalog", "public"]
    assert executor.databases() == ["barnabas"]
    assert {("public", "flights"), ("public", "log"), ("pg_catalog", "pg_class")} <= set(executor.tables())
    assert ("information_schema", "columns") in set(executor.views())
    columns = {each[2:4] for each in executor.table_columns() if each[:2] == ("public", "flights")}
    assert columns == {
        ("id", "bigint"), ("origin", "text"), ("price", "numeric"), ("tags", "text[]"), ("at", "timestamp with time zone"),
    }  # fmt: skip
    for ask in (executor.view_columns, executor.foreignkeys, executor.functions, executor.datatypes, executor.casing):
        list(ask())
    assert executor.get_timezone() == "UTC"
    assert not executor.is_virtual_database()


@pytest.mark.parametrize(
    ("command", "wanted"),
    [
        ("\\d", ("public", "flights", "table", "anna")),
        ("\\dt", ("public", "log", "table", "anna")),
        ("\\dt+ flights", ("public", "flights", "table", "anna", "0 bytes", "all of them")),
        ("\\d flights", ["origin", "text", " not null default 'ZRH'::text"]),
        ("\\d+ flights", ["price", "numeric(10,2)", "", "main", None, "in francs"]),
        ("\\d log", ["line", "text", ""]),
        ("\\di", ("public", "flights_pkey", "index", "anna")),
        ("\\dn", ("public", "anna")),
        ("\\l", ("barnabas", "anna", "UTF8", "C.UTF-8", "C.UTF-8", None)),
        ("select id, price from flights where id = 1", (1, Decimal("1.50"))),
        ("select origin from flights order by 1\\G", ("GVA",)),
    ],
)
def test_commands_of_pgcli(executor: PGExecute, command: str, wanted: Any) -> None:
    rows = [row for _, rows, *_ in executor.run(command, PGSpecial()) for row in rows]
    assert wanted in rows


@pytest.mark.parametrize(
    "command",
    [
        "\\dv", "\\dm", "\\ds", "\\dE", "\\du", "\\dx", "\\df", "\\dT", "\\dp", "\\ddp", "\\dD",
        "\\db", "\\dF", "\\dn+", "\\l+", "\\d flights_pkey",
    ],
)  # fmt: skip
def test_further_commands_of_pgcli_run(executor: PGExecute, command: str) -> None:
    assert len(list(executor.run(command, PGSpecial()))) == 1


def test_the_program_pgcli(postgres: Running, environment: Mapping[str, str]) -> None:
    command = pgcli(postgres, "-c", "\\dt", "-c", "select origin from flights where id = 2", "-c", "select nothing from flights")
    done = subprocess.run(
        command, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120, check=True
    )
    assert "| public | flights | table | anna  |" in done.stdout
    assert "| GVA    |" in done.stdout
    assert 'column "nothing" does not exist' in done.stdout + done.stderr


def is_offered(terminal: Terminal, last: str, wanted: str) -> bool:
    """Whether a completion is shown after the last letter, which is typed again: pgcli asks for the tables in the background.

    Each letter stops the search for completions, so the next one waits for some looks.
    """
    terminal.send("\x7f" + last)
    return any(terminal.shows(wanted) for _ in range(LOOKS))


def test_pgcli_completes_tables_and_columns(postgres: Running, environment: Mapping[str, str]) -> None:
    terminal = Terminal(pgcli(postgres), environment)
    try:
        terminal.expect("barnabas>")
        for typed, offered in (("\\d fli", " flights "), ("select * from flights where pri", " price ")):
            terminal.send(typed)
            wait_until(partial(is_offered, terminal, typed[-1], offered), f"{offered} is not offered")
            terminal.send("\x03")
            terminal.expect("barnabas>")
        terminal.send("\x04")
        assert terminal.status() == 0
    finally:
        terminal.kill()


@pytest.fixture(scope="module", params=["psycopg2", "psycopg"])
def superset(request: pytest.FixtureRequest, postgres: Running) -> Iterator[sa.Engine]:
    made = sa.create_engine(f"postgresql+{request.param}://anna@127.0.0.1:{postgres.port}/barnabas")
    yield made
    made.dispose()


def rows_of(engine: sa.Engine, text: str, **values: Any) -> list[tuple[Any, ...]]:
    with engine.connect() as connection:
        return [tuple(row) for row in connection.execute(sa.text(text), values)]


def test_the_connection_test_of_superset(superset: sa.Engine) -> None:
    connection = superset.raw_connection()
    try:
        assert superset.dialect.do_ping(connection.dbapi_connection)  # type: ignore[arg-type]  # it is a connection of the driver
    finally:
        connection.close()
    assert rows_of(superset, "select 1") == [(1,)]
    assert superset.dialect.server_version_info is not None


def test_what_superset_lists(superset: sa.Engine) -> None:
    seen = sa.inspect(superset)
    assert seen.get_schema_names() == ["information_schema", "public"]
    assert set(seen.get_table_names("public")) == {"flights", "log"}
    assert seen.get_view_names("public") == []
    assert seen.get_materialized_view_names("public") == []
    assert "columns" in seen.get_view_names("information_schema")
    assert rows_of(superset, "SELECT datname FROM pg_database WHERE datistemplate = false") == [("barnabas",)]
    assert rows_of(superset, "SELECT schemaname, matviewname FROM pg_matviews") == []
    partitioned = (
        "SELECT relname FROM pg_class c JOIN pg_namespace n ON n.oid = relnamespace"
        " WHERE nspname = 'public' AND relkind = ANY('{r,p}')"
    )
    assert set(rows_of(superset, partitioned)) == {("flights",), ("log",)}


@pytest.mark.parametrize("schema", [None, "public"])
def test_what_superset_asks_about_a_table(superset: sa.Engine, schema: str | None) -> None:
    seen = sa.inspect(superset)
    columns = seen.get_columns("flights", schema)
    types = [each["type"].compile(superset.dialect) for each in columns]
    assert types == ["BIGINT", "TEXT", "NUMERIC(10, 2)", "TEXT[]", "TIMESTAMP WITH TIME ZONE"]
    assert [(each["name"], each["nullable"], each["default"], each["comment"]) for each in columns] == [
        ("id", False, None, None), ("origin", False, "'ZRH'::text", None), ("price", True, None, "in francs"), ("tags", True, None, None),
        ("at", True, None, None),
    ]  # fmt: skip
    assert seen.get_pk_constraint("flights", schema)["constrained_columns"] == ["id"]
    assert seen.get_table_comment("flights", schema) == {"text": "all of them"}
    for ask in (seen.get_indexes, seen.get_foreign_keys, seen.get_unique_constraints, seen.get_check_constraints):
        assert ask("flights", schema) == []
    assert seen.has_table("flights", schema)
    assert not seen.has_table("nothing", schema)


def test_catalogue_joins_of_superset(superset: sa.Engine) -> None:
    keys = (
        "SELECT a.attname FROM pg_index i JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = ANY(i.indkey)"
        " WHERE i.indrelid = 'flights'::regclass AND i.indisprimary"
    )
    assert rows_of(superset, keys) == [("id",)]
    comments = (
        "SELECT a.attname, d.description FROM pg_attribute a JOIN pg_description d ON d.objoid = a.attrelid AND d.objsubid = a.attnum"
        " WHERE a.attrelid = 'flights'::regclass"
    )
    assert rows_of(superset, comments) == [("price", "in francs")]
    assert rows_of(superset, "SELECT proname FROM pg_proc WHERE prorettype = 'trigger'::regtype") == []
    assert rows_of(superset, "SELECT tgname FROM pg_trigger WHERE tgrelid = 'flights'::regclass") == []


def test_charts_of_superset(superset: sa.Engine) -> None:
    by_week = (
        "SELECT DATE_TRUNC('week', at) AS __timestamp, SUM(price) AS \"SUM(price)\" FROM public.flights"
        " WHERE at >= TO_TIMESTAMP('2024-01-01 00:00:00.000000', 'YYYY-MM-DD HH24:MI:SS.US')"
        " GROUP BY DATE_TRUNC('week', at) ORDER BY 1 LIMIT 1000"
    )
    with superset.connect() as connection:
        connection.exec_driver_sql('SET search_path = "public"')
        assert [row[1] for row in connection.exec_driver_sql(by_week)] == [Decimal("1.50"), Decimal("2.50")]
    counted = (
        "SELECT COUNT(*) AS rowcount FROM (SELECT origin AS origin FROM public.flights GROUP BY origin LIMIT 5) AS rowcount_qry"
    )
    assert rows_of(superset, counted) == [(2,)]
    names = rows_of(superset, "SELECT origin AS origin FROM flights GROUP BY origin ORDER BY COUNT(*) DESC, 1 LIMIT 100")
    assert names == [("GVA",), ("ZRH",)]
