"""Serial and identity columns as the clients of Postgres use them, over the whole engine."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from typing import Any

import asyncpg
import psycopg
import pytest
import sqlalchemy as sa
from sqlalchemy.orm import DeclarativeBase, Mapped, Session, mapped_column, relationship

from barnabas.testing import Broker
from tests.sql.engine.asking import engine_of
from tests.sql.postgres.running import Running, running


@pytest.fixture(scope="module")
def numbering() -> Iterator[Running]:
    with Broker() as broker:
        engine = engine_of(broker)
        with running(engine=engine) as found:
            yield found
        engine.close()


@pytest.fixture
def connection(numbering: Running) -> Iterator[psycopg.Connection[Any]]:
    with psycopg.connect(numbering.dsn, autocommit=True) as connection:
        yield connection


class Base(DeclarativeBase):
    pass


class User(Base):
    __tablename__ = "user_account"
    id: Mapped[int] = mapped_column(primary_key=True)
    name: Mapped[str] = mapped_column(sa.String(30))
    fullname: Mapped[str | None]
    addresses: Mapped[list[Address]] = relationship(back_populates="user", cascade="all, delete-orphan")


class Address(Base):
    __tablename__ = "address"
    id: Mapped[int] = mapped_column(primary_key=True)
    email_address: Mapped[str]
    user_id: Mapped[int] = mapped_column(sa.ForeignKey("user_account.id"))
    user: Mapped[User] = relationship(back_populates="addresses")


@pytest.fixture(params=["psycopg", "psycopg2"])
def alchemy(numbering: Running, request: pytest.FixtureRequest) -> Iterator[sa.Engine]:
    engine = sa.create_engine(f"postgresql+{request.param}://anna@127.0.0.1:{numbering.port}/barnabas")
    yield engine
    engine.dispose()


def test_the_first_steps_of_sqlalchemys_orm(alchemy: sa.Engine) -> None:
    Base.metadata.create_all(alchemy)
    with Session(alchemy) as session:
        sandy = User(name="sandy", addresses=[Address(email_address="s@x"), Address(email_address="s@y")])
        session.add_all([User(name="bob", fullname="Bob", addresses=[Address(email_address="b@x")]), sandy, User(name="pat")])
        session.commit()
        assert session.execute(sa.select(User.id, User.name).order_by(User.id)).all() == [(1, "bob"), (2, "sandy"), (3, "pat")]
        assert session.execute(sa.select(Address.id, Address.user_id).order_by(Address.id)).all() == [(1, 1), (2, 2), (3, 2)]
        found = sa.select(Address).join(Address.user).where(User.name == "sandy").where(Address.email_address == "s@y")
        session.scalars(found).one().email_address = "new@y"
        pat = session.scalars(sa.select(User).where(User.name == "pat")).one()
        pat.addresses.append(Address(email_address="p@x"))
        session.commit()
        assert pat.addresses[0].id == 4
        sandy.addresses.remove(sandy.addresses[0])
        session.delete(pat)
        session.commit()
        assert session.execute(sa.select(Address.id, Address.email_address).order_by(Address.id)).all() == [
            (1, "b@x"),
            (3, "new@y"),
        ]
    assert [each["name"] for each in sa.inspect(alchemy).get_columns("address")] == ["id", "email_address", "user_id"]
    Base.metadata.drop_all(alchemy)
    assert not {"address_id_seq", "user_account_id_seq"} & set(sa.inspect(alchemy).get_sequence_names())


def test_sqlalchemy_core(alchemy: sa.Engine) -> None:
    metadata = sa.MetaData()
    table = sa.Table(
        "numbered", metadata, sa.Column("id", sa.BigInteger, sa.Identity(always=True, start=5, increment=2), primary_key=True),
        sa.Column("v", sa.Text), sa.Column("q", sa.Integer, sa.Sequence("queue", start=7)), sa.Column("w", sa.Integer),
    )  # fmt: skip
    metadata.create_all(alchemy)
    with alchemy.begin() as connection:
        assert connection.execute(table.insert(), {"v": "x"}).inserted_primary_key == (5,)
        assert connection.scalar(sa.Sequence("queue")) == 8
        made = connection.execute(
            table.insert().returning(table.c.id, table.c.v, sort_by_parameter_order=True), [{"v": str(i)} for i in range(40)]
        ).all()
        assert [each.v for each in made] == [str(i) for i in range(40)]
        assert [each.id for each in made] == list(range(7, 7 + 80, 2))
    inspector = sa.inspect(alchemy)
    identity = inspector.get_columns("numbered")[0]["identity"]
    assert (identity["always"], identity["start"], identity["increment"], identity["cycle"]) == (True, 5, 2, False)
    assert inspector.has_sequence("queue")
    metadata.drop_all(alchemy)
    again = sa.MetaData()
    again.reflect(alchemy)
    assert "numbered" not in again.tables


def test_sqlalchemy_reflects_serial_columns(alchemy: sa.Engine) -> None:
    metadata = sa.MetaData()
    sa.Table("reflected", metadata, sa.Column("id", sa.Integer, primary_key=True), sa.Column("v", sa.Text))
    metadata.create_all(alchemy)
    again = sa.MetaData()
    again.reflect(alchemy)
    column = again.tables["reflected"].c.id
    assert isinstance(column.server_default, sa.DefaultClause)
    assert str(column.server_default.arg) == "nextval('reflected_id_seq'::regclass)"
    with alchemy.begin() as connection:
        assert connection.execute(again.tables["reflected"].insert(), {"v": "x"}).inserted_primary_key == (1,)
    metadata.drop_all(alchemy)


def test_what_django_sends(connection: psycopg.Connection[Any]) -> None:
    connection.execute(
        'CREATE TABLE "polls_question" ("id" bigint NOT NULL PRIMARY KEY GENERATED BY DEFAULT AS IDENTITY, '
        '"question_text" varchar(200) NOT NULL, "pub_date" timestamp with time zone NOT NULL)'
    )
    insert = (
        'INSERT INTO "polls_question" ("question_text", "pub_date") VALUES (%s, %s), (%s, %s) RETURNING "polls_question"."id"'
    )
    values = ["What's new?", "2026-01-01T00:00:00+00:00", "And?", "2026-01-02T00:00:00+00:00"]
    assert connection.execute(insert, values).fetchall() == [(1,), (2,)]
    assert connection.execute(insert, values).fetchall() == [(3,), (4,)]
    reset = (
        'SELECT setval(pg_get_serial_sequence(\'"polls_question"\',\'id\'), coalesce(max("id"), 1), max("id") IS NOT null) '
        'FROM "polls_question"'
    )
    connection.execute("INSERT INTO \"polls_question\" VALUES (20, 'x', now())")
    assert connection.execute(reset).fetchone() == (20,)
    assert connection.execute(insert, values).fetchall() == [(21,), (22,)]
    connection.execute('DROP TABLE "polls_question" CASCADE')


def test_psycopg_executemany(connection: psycopg.Connection[Any]) -> None:
    connection.execute("create table batches (id serial primary key, v text)")
    cursor = connection.cursor()
    cursor.executemany("insert into batches (v) values (%s) returning id", [("a",), ("b",), ("c",)], returning=True)
    found = [cursor.fetchone()]
    while cursor.nextset():
        found.append(cursor.fetchone())
    assert found == [(1,), (2,), (3,)]
    cursor.executemany("insert into batches (v) values (%s)", [(str(number),) for number in range(300)])
    assert connection.execute("select count(*), count(distinct id), max(id) from batches").fetchone() == (303, 303, 303)
    with cursor.copy("copy batches (v) from stdin") as copy:
        copy.write_row(("d",))
    assert connection.execute("select lastval()").fetchone() == (304,)
    assert connection.execute("select nextval(%s), currval(%s::regclass)", ["batches_id_seq"] * 2).fetchone() == (305, 305)
    connection.execute("drop table batches")


async def test_asyncpg(numbering: Running) -> None:
    connection = await asyncpg.connect(host="127.0.0.1", port=numbering.port, user="anna", database="barnabas")
    await connection.execute("create table pg_async (id serial primary key, v text)")
    assert await connection.fetchval("insert into pg_async (v) values ($1) returning id", "x") == 1
    await connection.executemany("insert into pg_async (v) values ($1)", [("y",), ("z",)])
    await connection.copy_records_to_table("pg_async", records=[("w",)], columns=["v"])
    assert [row["id"] for row in await connection.fetch("select id from pg_async order by id")] == [1, 2, 3, 4]
    assert await connection.fetchval("select nextval('pg_async_id_seq')") == 5
    await connection.execute("drop table pg_async")
    await connection.close()


def test_psql_describes_them(numbering: Running) -> None:
    def shown(*commands: str) -> str:
        words = [word for each in commands for word in ("-c", each)]
        place = ["-h", "127.0.0.1", "-p", str(numbering.port), "-U", "anna", "barnabas"]
        return subprocess.run(["psql", "-X", *place, *words], check=True, capture_output=True, text=True, timeout=60).stdout

    shown(
        "create table told (id serial primary key, a bigint generated always as identity)", "create sequence aside start 3 cycle"
    )
    table = shown("\\d told")
    assert "not null | nextval('told_id_seq'::regclass)" in table
    assert "not null | generated always as identity" in table
    assert "public | told_a_seq  | sequence | anna" in shown("\\ds told*")
    assert "bigint |     3 |       1 | 9223372036854775807 |         1 | yes     |     1" in shown("\\d aside")
    assert "Owned by: public.told.id" in shown("\\d told_id_seq")
    assert "Sequence for identity column: public.told.a" in shown("\\d told_a_seq")
    shown("drop table told", "drop sequence aside")
