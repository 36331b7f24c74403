"""Transactions over real topics: those of a client, and the one around the statements of a simple query."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from uuid import uuid4

import psycopg
import pytest

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
