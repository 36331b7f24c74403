"""Postgres' own clients and drivers against the listener."""

from __future__ import annotations

import asyncio
import io
import shutil
import subprocess
import threading
from collections.abc import Iterator
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from typing import Any
from uuid import uuid4

import asyncpg
import psycopg
import psycopg2
import psycopg2.extras
import pytest
import sqlalchemy
from psycopg.rows import dict_row

from barnabas.sql.interface import Notice
from tests.sql.postgres.running import Running
from tests.waiting import wait_until

KINDS = (
    "select 1::smallint as a, 2::int as b, 3::bigint as c, 1.5::float as d, 2.5::double as e, 12.50::decimal(9,2) as f, true as g, "
    "'x' as h, '\\xAB'::blob as i, date '2024-02-29' as j, time '01:02:03.5' as k, timestamp '2024-02-29 01:02:03.25' as l, "
    "timestamptz '2024-02-29 01:02:03+00' as m, interval '3 days 4 seconds' as n, [1, null, 3] as o, null as p, "
    "170141183460469231::hugeint as q"
)
VALUES = (
    1, 2, 3, 1.5, 2.5, Decimal("12.50"), True, "x", b"\xab", date(2024, 2, 29), time(1, 2, 3, 500_000),
    datetime(2024, 2, 29, 1, 2, 3, 250_000), datetime(2024, 2, 29, 1, 2, 3, tzinfo=UTC), timedelta(3, 4), [1, None, 3], None,  # noqa: DTZ001 - without a zone
    Decimal(170141183460469231),
)  # fmt: skip


@pytest.fixture
def connection(server: Running) -> Iterator[psycopg.Connection[Any]]:
    with psycopg.connect(server.dsn, autocommit=True) as found:
        yield found


@pytest.fixture
def table(connection: psycopg.Connection[Any]) -> str:
    name = f"t{uuid4().hex}"
    connection.execute(f"create table {name} (a int, b text)")
    return name


@pytest.mark.parametrize("binary", [False, True])
def test_psycopg_reads_every_type(connection: psycopg.Connection[Any], binary: bool) -> None:
    assert connection.cursor(binary=binary).execute(KINDS).fetchone() == VALUES


@pytest.mark.parametrize("format_", ["%s", "%t", "%b"])
@pytest.mark.parametrize(
    "value",
    [
        1,
        2**40,
        1.5,
        True,
        "text",
        b"bytes",
        Decimal("1.25"),
        date(2024, 1, 2),
        time(1, 2, 3),
        datetime(2024, 1, 2, 3, 4, 5),  # noqa: DTZ001 - without a zone
        datetime(2024, 1, 2, tzinfo=UTC),
        timedelta(1, 2),
        [1, 2],
        None,
    ],
    ids=repr,
)
def test_psycopg_sends_every_type(connection: psycopg.Connection[Any], value: Any, format_: str) -> None:
    assert connection.execute(f"select {format_} as a", [value]).fetchone() == (value,)


def test_psycopg_prepares_and_describes(connection: psycopg.Connection[Any]) -> None:
    cursor = connection.cursor(row_factory=dict_row)
    for number in range(10):
        assert cursor.execute("select %s::int + 1 as more", [number], prepare=True).fetchone() == {"more": number + 1}
    assert cursor.description is not None
    assert [(each.name, each.type_code) for each in cursor.description] == [("more", 23)]


def test_psycopg_pipelines(connection: psycopg.Connection[Any], table: str) -> None:
    with connection.pipeline():
        cursors = [connection.execute("select %s::int", [number]) for number in range(50)]
        connection.execute(f"insert into {table} values (1, 'a')")
    assert [cursor.fetchone() for cursor in cursors] == [(number,) for number in range(50)]
    cursor = connection.cursor()
    cursor.executemany(f"insert into {table} values (%s, %s)", [(number, "x") for number in range(20)])
    assert connection.execute(f"select count(*) from {table}").fetchone() == (21,)


def test_an_error_in_a_pipeline_aborts_what_follows_up_to_sync(connection: psycopg.Connection[Any]) -> None:
    good: list[psycopg.Cursor[Any]] = []

    def pipelined() -> None:
        with connection.pipeline() as pipeline:
            good.append(connection.execute("select 1"))
            pipeline.sync()
            connection.execute("select * from nowhere")
            connection.execute("select 2")

    with pytest.raises(psycopg.errors.UndefinedTable):
        pipelined()
    assert good[0].fetchone() == (1,)
    assert connection.execute("select 3").fetchone() == (3,)


@pytest.mark.parametrize("binary", [False, True])
def test_psycopg_cursors_of_the_server(server: Running, binary: bool) -> None:
    with psycopg.connect(server.dsn) as connection:
        with connection.cursor("c", binary=binary) as cursor:
            cursor.execute("select range::int as a from range(%s)", [1000])
            assert cursor.fetchone() == (0,)
            assert cursor.fetchmany(3) == [(1,), (2,), (3,)]
            assert len(cursor.fetchall()) == 996
        held = connection.cursor("h", withhold=True)
        held.execute("select * from range(5)")
        connection.commit()
        assert held.fetchall() == [(number,) for number in range(5)]
        held.close()
        with pytest.raises(psycopg.errors.InvalidCursorName):
            connection.execute("fetch next from nothing")


def test_psycopg_streams_rows(connection: psycopg.Connection[Any]) -> None:
    found = connection.cursor().stream("select range from range(100000)", size=1000)
    assert sum(row[0] for row in found) == 99_999 * 50_000


def test_psycopg_copies(connection: psycopg.Connection[Any], table: str) -> None:
    with connection.cursor().copy(f"copy {table} from stdin") as copy:
        for number in range(1000):
            copy.write_row((number, None if number % 2 else f"row {number}"))
    with connection.cursor().copy(f"copy (select * from {table} order by a) to stdout") as copy:
        rows = list(copy.rows())
    assert rows[:2] == [("0", "row 0"), ("1", None)]
    assert len(rows) == 1000
    with connection.cursor().copy(f"copy {table} to stdout (format csv)") as copy:
        assert len(list(copy)) == 1000


def test_a_copy_that_fails_leaves_the_connection_usable(connection: psycopg.Connection[Any], table: str) -> None:
    def give_up() -> None:
        with connection.cursor().copy(f"copy {table} from stdin") as copy:
            copy.write_row((1, "a"))
            raise ValueError("the caller gives up")

    with pytest.raises(ValueError, match="gives up"):
        give_up()
    with pytest.raises(psycopg.errors.InvalidTextRepresentation), connection.cursor().copy(f"copy {table} from stdin") as copy:
        copy.write_row(("no number", "a"))
    with pytest.raises(psycopg.errors.UndefinedTable), connection.cursor().copy("copy nowhere to stdout") as copy:
        list(copy)
    assert connection.execute(f"select count(*) from {table}").fetchone() == (0,)


def test_psycopg_sees_errors_and_failed_transactions(server: Running) -> None:
    with psycopg.connect(server.dsn) as connection:
        with pytest.raises(psycopg.errors.UndefinedTable) as found:
            connection.execute("select * from nowhere")
        assert (found.value.diag.severity, found.value.diag.message_hint, found.value.diag.statement_position) == (
            "ERROR",
            "a hint",
            "1",
        )
        assert connection.info.transaction_status == psycopg.pq.TransactionStatus.INERROR
        with pytest.raises(psycopg.errors.InFailedSqlTransaction):
            connection.execute("select 1")
        connection.rollback()
        with pytest.raises(psycopg.errors.InvalidTextRepresentation):
            connection.execute("select %t::int", ["x"])
        connection.rollback()
        assert connection.execute("select 1").fetchone() == (1,)


def test_an_error_of_the_protocol_fails_the_transaction(server: Running) -> None:
    with psycopg.connect(server.dsn) as connection:
        connection.execute("select 1")
        with pytest.raises(psycopg.errors.InvalidCursorName):
            connection.execute("fetch next from nothing")
        assert connection.info.transaction_status == psycopg.pq.TransactionStatus.INERROR
        with pytest.raises(psycopg.errors.InFailedSqlTransaction):
            connection.execute("select 1")
        assert connection.execute("commit").statusmessage == "ROLLBACK"
        assert connection.execute("select 1").fetchone() == (1,)


def test_psycopg_cancels(connection: psycopg.Connection[Any]) -> None:
    errors: list[BaseException] = []

    def slow() -> None:
        try:
            connection.execute("select pg_sleep(1000)")
        except psycopg.Error as error:
            errors.append(error)

    thread = threading.Thread(target=slow)
    thread.start()
    wait_until(lambda: connection.info.transaction_status == psycopg.pq.TransactionStatus.ACTIVE)

    def cancelled() -> bool:
        connection.cancel_safe(timeout=10)
        return bool(errors)

    wait_until(cancelled)
    thread.join()
    assert isinstance(errors[0], psycopg.errors.QueryCanceled)
    assert connection.execute("select 1").fetchone() == (1,)


def test_notices_come_before_their_statement_ends(server: Running) -> None:
    told: list[tuple[str | None, ...]] = []
    with psycopg.connect(server.dsn, autocommit=True) as connection:
        connection.add_notice_handler(
            lambda each: told.append((each.severity, each.sqlstate, each.message_primary, each.message_hint))
        )
        server.engine.sessions[-1].notices = [Notice("it is late"), Notice("it is very late", "WARNING", "01000", "go to bed")]
        connection.execute("select 1")
    assert told == [("NOTICE", "00000", "it is late", None), ("WARNING", "01000", "it is very late", "go to bed")]


def test_psycopg2(server: Running) -> None:
    connection = psycopg2.connect(server.dsn)
    try:
        with connection.cursor() as cursor:
            cursor.execute(KINDS)
            found = list(cursor.fetchone() or ())
            found[8] = bytes(found[8])
            assert tuple(found) == VALUES
            cursor.execute("select %s, %s, %s, %s", (1, "it's", date(2024, 1, 2), [1, 2]))
            assert cursor.fetchone() == (1, "it's", date(2024, 1, 2), [1, 2])
            cursor.execute("create table two (a int, b text); insert into two values (1, 'a')")
            psycopg2.extras.execute_values(cursor, "insert into two values %s", [(2, "b"), (3, "c")])
            cursor.copy_expert("copy two from stdin", io.StringIO("4\td\n"))
            out = io.StringIO()
            cursor.copy_expert("copy (select * from two order by a) to stdout", out)
            assert out.getvalue() == "1\ta\n2\tb\n3\tc\n4\td\n"
        with connection.cursor("named") as named:
            named.itersize = 10
            named.execute("select * from range(35)")
            assert [row[0] for row in named] == list(range(35))
        connection.commit()
        with pytest.raises(psycopg2.errors.UndefinedTable), connection.cursor() as cursor:
            cursor.execute("select * from nowhere")
        connection.rollback()
    finally:
        connection.close()


async def test_asyncpg(server: Running) -> None:
    connection = await asyncpg.connect(host="127.0.0.1", port=server.port, user="anna", database="flights")
    try:
        without_arrays = KINDS.replace("[1, null, 3] as o", "5 as o")  # asyncpg asks the catalogue about arrays
        assert tuple(await connection.fetchrow(without_arrays) or ()) == (*VALUES[:14], 5, *VALUES[15:])
        assert await connection.fetchval("select $1::int + $2::int", 1, 2) == 3
        values = [date(2024, 1, 2), datetime(2024, 1, 2, tzinfo=UTC), Decimal("1.5"), b"x", 1.5]
        kinds = ["date", "timestamptz", "numeric", "bytea", "float8"]
        for value, kind in zip(values, kinds, strict=True):
            assert await connection.fetchval(f"select $1::{kind}", value) == value, kind
        async with connection.transaction():
            numbers = [row["range"] async for row in connection.cursor("select range from range(200)", prefetch=30)]
            assert numbers == list(range(200))
            cursor = await connection.cursor("select range from range(10)")
            assert len(await cursor.fetch(3)) == 3
        with pytest.raises(asyncpg.UndefinedTableError):
            await connection.fetch("select * from nowhere")
        await connection.execute("create table three (a int, b text)")
        await connection.executemany("insert into three values ($1, $2)", [("1", "a"), ("2", "b")])
        out = io.BytesIO()
        await connection.copy_from_query("select * from three order by a", output=out)
        assert out.getvalue() == b"1\ta\n2\tb\n"
        with pytest.raises(asyncio.TimeoutError):
            await connection.fetch("select pg_sleep(1000)", timeout=0.3)
        assert await connection.fetchval("select 5") == 5
        await connection.reset()
    finally:
        await connection.close()


@pytest.mark.parametrize("driver", ["psycopg", "psycopg2"])
def test_sqlalchemy_core(server: Running, driver: str) -> None:
    engine = sqlalchemy.create_engine(f"postgresql+{driver}://anna@127.0.0.1:{server.port}/flights", _initialize=False)
    name = f"s_{driver}"
    table = sqlalchemy.Table(
        name, sqlalchemy.MetaData(), sqlalchemy.Column("a", sqlalchemy.Integer), sqlalchemy.Column("b", sqlalchemy.String)
    )
    with engine.connect() as connection:
        connection.exec_driver_sql(f"create table {name} (a int, b text)")
        connection.execute(table.insert(), [{"a": 1, "b": "x"}, {"a": 2, "b": "y"}])
        assert connection.execute(sqlalchemy.select(table.c.b).where(table.c.a == 2)).scalar_one() == "y"
        streamed = connection.execution_options(stream_results=True, yield_per=7).execute(
            sqlalchemy.text("select range from range(50)")
        )
        assert [row[0] for row in streamed] == list(range(50))
        connection.commit()
    engine.dispose()


def psql(server: Running, *commands: str, text: str | None = None) -> subprocess.CompletedProcess[str]:
    program = shutil.which("psql")
    if program is None:
        pytest.skip("psql is not installed")
    arguments = [part for each in commands for part in ("-c", each)]
    return subprocess.run(
        [program, "-X", "-A", "-t", server.dsn, *arguments], input=text, capture_output=True, text=True, timeout=60, check=False
    )  # fmt: skip


def test_psql(server: Running) -> None:
    assert psql(server, "select 1, null, 'x y'").stdout == "1||x y\n"
    assert psql(server, "select 1; select 2").stdout == "1\n2\n"
    script = (
        "create table p (a int, b text);\ncopy p from stdin;\n1\tone\n2\t\\N\n\\.\n"
        "select * from p order by a;\ncopy p to stdout;\n\\copy p to stdout csv\n"
    )
    found = psql(server, text=script)
    assert found.stdout == "CREATE\nCOPY 2\n1|one\n2|\n1\tone\n2\t\\N\n1,one\n2,\\N\n"
    script = "begin;\ndeclare c cursor for select * from range(9);\nfetch 2 from c;\nmove 5 in c;\nfetch all in c;\nclose c;\ncommit;\n"
    assert psql(server, text=script).stdout == "BEGIN\nDECLARE CURSOR\n0\n1\nMOVE 5\n7\n8\nCLOSE CURSOR\nCOMMIT\n"
    assert psql(server, text="\\set FETCH_COUNT 10\nselect * from range(35);\n").stdout.split() == [
        str(each) for each in range(35)
    ]
    wrong = psql(server, "select 1; select * from nowhere")
    assert wrong.returncode == 1
    assert "LINE 1: select 1; select * from nowhere\n                  ^" in wrong.stderr
    assert "HINT:  a hint" in wrong.stderr


def test_structs_are_records_and_maps_are_json(connection: psycopg.Connection[Any]) -> None:
    row = connection.execute("select {'a': 1, 'b': [1.5::double]} as s, map {'k': 2} as m, [{'x': 1}] as l").fetchone()
    assert row == (("1", "{1.5}"), {"k": 2}, [("1",)])
