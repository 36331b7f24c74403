"""Transactions over real topics: those of a client, and the one around the statements of a simple query."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any
from uuid import uuid4

import asyncpg
import psycopg
import pytest
from psycopg.types.json import Jsonb

from barnabas.client.config import ClientConfig
from barnabas.sql.engine import SqlEngine
from barnabas.testing import Broker
from tests.sql.postgres.running import Running, running


@pytest.fixture(scope="module")
def server() -> Iterator[Running]:
    with Broker() as broker:
        engine = SqlEngine(ClientConfig.from_options({"bootstrap.servers": broker.bootstrap_servers}))
        with running(engine=engine) as found:
            yield found


@pytest.fixture
def connection(server: Running) -> Iterator[psycopg.Connection[Any]]:
    with psycopg.connect(server.dsn, autocommit=True) as found:
        yield found


@pytest.fixture
def table(connection: psycopg.Connection[Any]) -> str:
    name = f"t{uuid4().hex}"
    connection.execute(f"create table {name} (a int, b string)")
    return name


def rows(connection: psycopg.Connection[Any], table: str) -> list[Any]:
    return connection.execute(f"select a from {table} order by a").fetchall()


def test_the_statements_of_a_query_are_one_transaction(connection: psycopg.Connection[Any], table: str) -> None:
    connection.execute(f"insert into {table} values (1, 'a'); insert into {table} values (2, 'b'); select count(*) from {table}")
    assert rows(connection, table) == [(1,), (2,)]
    with pytest.raises(psycopg.errors.UndefinedTable):
        connection.execute(f"insert into {table} values (3, 'c'); select * from nowhere")
    assert connection.info.transaction_status == psycopg.pq.TransactionStatus.IDLE
    assert rows(connection, table) == [(1,), (2,)]


@pytest.mark.parametrize(
    ("statements", "zone"),
    [
        (["begin", "set local timezone = 'Asia/Tokyo'", "commit"], "UTC"), (["begin", "set local timezone = 'Asia/Tokyo'"], "Asia/Tokyo"),
        (["set timezone = 'Asia/Tokyo'", "reset timezone"], "UTC"), (["select set_config('timezone', 'Asia/Tokyo', false)"], "Asia/Tokyo"),
        (["begin; set local timezone = 'Asia/Tokyo'; commit"], "UTC"), (["set timezone = 'Asia/Tokyo'", "discard all"], "UTC"),
    ],
    ids=repr,
)  # fmt: skip
def test_the_client_knows_the_zone_and_times_have_it(
    connection: psycopg.Connection[Any], statements: list[str], zone: str
) -> None:
    for each in statements:
        connection.execute(each)
    assert connection.info.parameter_status("TimeZone") == zone
    offset = connection.execute("select timestamptz '2024-01-01 00:00:00+00'").fetchone()
    assert offset is not None
    assert offset[0].utcoffset() == timedelta(hours=9 if zone == "Asia/Tokyo" else 0)


def test_begin_and_commit_among_the_statements_of_a_query(connection: psycopg.Connection[Any], table: str) -> None:
    with pytest.raises(psycopg.errors.UndefinedTable):
        connection.execute(
            f"insert into {table} values (1, 'a'); commit; insert into {table} values (2, 'b'); select * from nowhere"
        )
    assert rows(connection, table) == [(1,)]
    connection.execute(f"insert into {table} values (3, 'c'); begin; insert into {table} values (4, 'd')")
    assert connection.info.transaction_status == psycopg.pq.TransactionStatus.INTRANS
    connection.execute("rollback")
    assert rows(connection, table) == [(1,)]


def test_a_transaction_is_written_at_its_end(server: Running, connection: psycopg.Connection[Any], table: str) -> None:
    with psycopg.connect(server.dsn) as other:
        other.execute(f"insert into {table} values (1, 'a')")
        assert rows(other, table) == [(1,)]
        assert rows(connection, table) == []
        other.commit()
    assert rows(connection, table) == [(1,)]


def test_psycopg_copies_into_a_topic_and_out_of_it(connection: psycopg.Connection[Any], table: str) -> None:
    with connection.cursor().copy(f"copy {table} from stdin") as copy:
        for number in range(1000):
            copy.write_row((number, None if number % 2 else f"tab\t{number}"))
    with connection.cursor().copy(f"copy (select * from {table} order by a) to stdout") as copy:
        found = list(copy.rows())
    assert found[:2] == [("0", "tab\t0"), ("1", None)]
    assert len(found) == 1000


def test_cursors_over_a_topic(server: Running, connection: psycopg.Connection[Any], table: str) -> None:
    connection.execute(f"insert into {table} select range, 'x' from range(500)")
    with psycopg.connect(server.dsn) as other, other.cursor("c") as cursor, other.cursor("d") as second:
        cursor.itersize = second.itersize = 50
        cursor.execute(f"select a from {table} order by a")
        second.execute(f"select a from {table} order by a desc")
        assert [(one[0], two[0]) for one, two in zip(cursor, second, strict=True)] == [
            (number, 499 - number) for number in range(500)
        ]


def test_binary_copies(server: Running, connection: psycopg.Connection[Any], table: str) -> None:
    with connection.cursor().copy(f"copy {table} (a, b) from stdin (format binary)") as copy:
        copy.set_types(["int4", "text"])
        for number in range(300):
            copy.write_row((number, None if number % 2 else f"tab\t{number}\\"))
    for what in (table, f"(select a, b from {table} order by a)"):
        with connection.cursor().copy(f"copy {what} to stdout with (format binary)") as copy:
            copy.set_types(["int4", "text"])
            found = sorted(copy.rows())
        assert found[:2] == [(0, "tab\t0\\"), (1, None)]
        assert len(found) == 300
    with connection.cursor().copy(f"copy (select a from {table} where a > 1000) to stdout (format binary)") as copy:
        assert b"".join(copy) == b"PGCOPY\n\xff\r\n\0" + bytes(8) + b"\xff\xff"
    with (
        pytest.raises(psycopg.errors.BadCopyFileFormat),
        connection.cursor().copy(f"copy {table} from stdin (format binary)") as copy,
    ):
        copy.write(b"PGCOPY\n\xff\r\n\0" + bytes(8) + b"\0\1\0\0\0\4\0\0\0\1\xff\xff")
    with (
        pytest.raises(psycopg.errors.BadCopyFileFormat),
        connection.cursor().copy(f"copy {table} from stdin (format binary)") as copy,
    ):
        copy.write(b"no signature at all")
    assert connection.execute(f"select count(*) from {table}").fetchone() == (300,)


async def test_asyncpg_copies_records(server: Running, table: str) -> None:
    connection = await asyncpg.connect(host="127.0.0.1", port=server.port, user="anna", database="flights")
    records = [(number, f"row {number}") for number in range(100)]
    assert await connection.copy_records_to_table(table, records=records, columns=["a", "b"]) == "COPY 100"
    assert await connection.fetchval(f"select count(*) from {table}") == 100
    await connection.close()


def test_a_copy_shows_values_as_postgres_does(connection: psycopg.Connection[Any]) -> None:
    connection.execute("set TimeZone = 'Asia/Kolkata'")
    query = "select cast(1e20 as double) as a, timestamptz '2024-01-01 00:00:00+00' as b, cast(0 as decimal(20, 9)) as c, array('x y') as d"
    with connection.cursor().copy(f"copy ({query}) to stdout") as copy:
        assert b"".join(copy) == b'1e+20\t2024-01-01 05:30:00+05:30\t0.000000000\t{"x y"}\n'
    with connection.cursor().copy(
        "copy (select 'a,\"b' as a, '' as b, null as c, 'x' as d) to stdout (format csv, header)"
    ) as copy:
        assert b"".join(copy) == b'a,b,c,d\n"a,""b","",,x\n'


VALUES = [
    2**70, Decimal("0.12345678901234567890"), Decimal("-12345678901234567890123456789.5"), Decimal("1E+30"), uuid4(), [[1, 2], [3, 4]],
    [Decimal("1.5"), None], timedelta(1, 2), datetime(2024, 1, 2, tzinfo=UTC), date.max, b"bytes", None,
]  # fmt: skip


@pytest.mark.parametrize("value", VALUES, ids=[str(type(each).__name__) + str(place) for place, each in enumerate(VALUES)])
@pytest.mark.parametrize("format_", ["%t", "%b"])
def test_values_keep_their_types(connection: psycopg.Connection[Any], value: Any, format_: str) -> None:
    assert connection.execute(f"select {format_} as a", [value]).fetchone() == (value,)
    assert connection.execute("select %s as a", [Jsonb({"a": 1})]).fetchone() == ({"a": 1},)


async def test_a_pool_of_asyncpg(server: Running, table: str) -> None:
    async with asyncpg.create_pool(
        host="127.0.0.1", port=server.port, user="anna", database="flights", min_size=1, max_size=3
    ) as pool:
        for number in range(6):
            await pool.execute(f"insert into {table} values ($1, $2)", number, "x")
        assert await pool.fetchval(f"select count(*) from {table}") == 6
