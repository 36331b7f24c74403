"""The commonest programs of Postgres' clients, on a broker: types of parameters, errors of constraints, mapped classes, reflection."""

from __future__ import annotations

import enum
import json
import uuid
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

import asyncpg
import psycopg
import pytest
import sqlalchemy as sa
from psycopg.types.enum import EnumInfo, register_enum
from sqlalchemy.dialects.postgresql import ARRAY, JSONB
from sqlalchemy.dialects.postgresql import insert as insert_of_postgres
from sqlalchemy.orm import DeclarativeBase, Mapped, Session, mapped_column, relationship

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


def test_errors_of_constraints_name_them(server: Running) -> None:
    with psycopg.connect(server.dsn, autocommit=True) as connection:
        connection.execute("create table mails (id serial primary key, mail text unique not null, constraint pos check (id > 0))")
        assert connection.execute("insert into mails (mail) values ('a') returning id").fetchone() == (1,)
        with pytest.raises(psycopg.errors.UniqueViolation) as unique:
            connection.execute("insert into mails (mail) values ('a')")
        told = unique.value.diag
        assert (told.constraint_name, told.table_name, told.schema_name) == ("mails_mail_key", "mails", "public")
        with pytest.raises(psycopg.errors.NotNullViolation) as null:
            connection.execute("insert into mails (mail) values (null)")
        assert null.value.diag.column_name == "mail"
        with pytest.raises(psycopg.errors.CheckViolation) as check:
            connection.execute("insert into mails values (-1, 'b')")
        assert check.value.diag.constraint_name == "pos"
        connection.execute("drop table mails")


async def test_asyncpg_sends_objects_of_python(server: Running) -> None:
    connection = await asyncpg.connect(host="127.0.0.1", port=server.port, user="anna", database="flights")
    try:
        await connection.set_type_codec("jsonb", encoder=json.dumps, decoder=json.loads, schema="pg_catalog")
        await connection.execute(
            "create table sent (i int primary key, a int[], j json, b jsonb, u uuid, v interval, n numeric, z timestamptz, d date)"
        )
        row = (
            1, [1, None], '{"x": 1}', {"y": [2]}, uuid.UUID(int=7), timedelta(days=1), Decimal("1.25"), datetime(2026, 1, 1, tzinfo=UTC),
            date(2026, 1, 1),
        )  # fmt: skip
        await connection.execute("insert into sent values ($1, $2, $3, $4, $5, $6, $7, $8, $9)", *row)
        assert tuple(await connection.fetchrow("select * from sent")) == row
        assert await connection.fetchval("select i from sent where u = $1", uuid.UUID(int=7)) == 1
        await connection.execute("update sent set b = $1 where i = $2", {"z": None}, 1)
        assert await connection.fetchval("select b from sent") == {"z": None}
        prepared = await connection.prepare("select $1::json, $2::jsonb, $3::uuid")
        assert [each.name for each in prepared.get_parameters()] == ["json", "jsonb", "uuid"]
        await connection.copy_records_to_table("sent", records=[(2,), (3,)], columns=["i"])
        with pytest.raises(asyncpg.UniqueViolationError) as unique:
            await connection.execute("insert into sent (i) values (3)")
        assert unique.value.constraint_name == "sent_pkey"
        await connection.execute("drop table sent")
    finally:
        await connection.close()


class Base(DeclarativeBase):
    """The mapped classes."""


class Parent(Base):
    __tablename__ = "parents"
    __table_args__ = (sa.Index("parents_by_age", "age"), sa.UniqueConstraint("name", "age", name="name_and_age"))

    id: Mapped[int] = mapped_column(primary_key=True)
    name: Mapped[str] = mapped_column(sa.String(50), unique=True)
    age: Mapped[int | None] = mapped_column(sa.CheckConstraint("age > 0", name="age_positive"))
    data: Mapped[Any] = mapped_column(JSONB, nullable=True)
    tags: Mapped[Any] = mapped_column(ARRAY(sa.Text), nullable=True)
    at: Mapped[datetime] = mapped_column(sa.DateTime(timezone=True), server_default=sa.func.now())
    children: Mapped[list[Child]] = relationship(back_populates="parent")


class Child(Base):
    __tablename__ = "children"

    id: Mapped[int] = mapped_column(primary_key=True)
    parent_id: Mapped[int] = mapped_column(sa.ForeignKey("parents.id"))
    parent: Mapped[Parent] = relationship(back_populates="children")


@pytest.mark.parametrize("driver", ["psycopg", "psycopg2"])
def test_mapped_classes_of_sqlalchemy(server: Running, driver: str) -> None:
    engine = sa.create_engine(f"postgresql+{driver}://anna@127.0.0.1:{server.port}/flights", poolclass=sa.NullPool)
    Base.metadata.drop_all(engine)
    Base.metadata.create_all(engine)
    Base.metadata.create_all(engine)
    with Session(engine) as session:
        ann = Parent(name="ann", age=5, data={"a": [1]}, tags=["x", "y"], children=[Child(), Child()])
        session.add(ann)
        session.commit()
        assert (ann.id, ann.tags) == (1, ["x", "y"])
        ann.age = 6
        session.add_all([Parent(name=f"n{number}", age=number + 1) for number in range(4)])
        session.commit()
        of_document = sa.select(Parent).join(Child).where(Parent.data["a"][0].as_integer() == 1)
        assert {each.name for each in session.scalars(of_document)} == {"ann"}
        upsert = insert_of_postgres(Parent).values(name="ann", age=9)
        session.execute(upsert.on_conflict_do_update(index_elements=["name"], set_={"age": upsert.excluded.age + 90}))
        session.execute(sa.update(Parent).where(Parent.name.like("n%")).values(age=Parent.age + 10))
        session.execute(sa.delete(Parent).where(Parent.name == "n3"))
        session.commit()
        ages = sa.select(Parent.name, Parent.age).order_by(Parent.id)
        assert [tuple(each) for each in session.execute(ages)] == [("ann", 99), ("n0", 11), ("n1", 12), ("n2", 13)]
        session.add(Parent(name="ann"))
        with pytest.raises(sa.exc.IntegrityError):
            session.commit()
    found = sa.MetaData()
    found.reflect(engine, only=["parents"])
    assert [each.name for each in found.tables["parents"].primary_key] == ["id"]
    seen = sa.inspect(engine)
    assert sorted(tuple(each["column_names"]) for each in seen.get_unique_constraints("parents")) == [("name",), ("name", "age")]
    assert [each["name"] for each in seen.get_check_constraints("parents")] == ["age_positive"]
    Base.metadata.drop_all(engine)
    engine.dispose()


def test_paths_into_documents_as_parameters(server: Running) -> None:
    """SQLAlchemy binds a path as a text in braces, and casts what is there."""
    engine = sa.create_engine(f"postgresql+psycopg://anna@127.0.0.1:{server.port}/flights", poolclass=sa.NullPool)
    table = sa.Table("nested", sa.MetaData(), sa.Column("id", sa.Integer, primary_key=True), sa.Column("doc", sa.JSON))
    table.create(engine)
    with engine.begin() as connection:
        connection.execute(table.insert(), {"id": 1, "doc": {"a": {"b c": 5, "d": "x"}, "e": True}})
        path = table.c.doc["a", "b c"]
        found = connection.execute(sa.select(path.as_integer(), path.as_numeric(10, 2), table.c.doc["a", "d"].as_string())).one()
        assert tuple(found) == (5, Decimal("5.00"), "x")
        assert connection.scalar(sa.select(table.c.doc["e"].as_boolean())) is True
    table.drop(engine)
    with psycopg.connect(server.dsn) as raw:
        assert raw.execute("select '{\"a\": [1, 2]}'::jsonb #>> %s", ("{a,1}",)).fetchone() == ("2",)
        raw.execute("create temporary table docs (doc jsonb)")
        raw.execute("insert into docs values ('{\"a\": [1, 2]}')")
        for operator, given, wanted in (
            ("#>", ["a"], [1, 2]), ("#>", "{a,0}", 1), ("->", "a", [1, 2]), ("->>", "a", "[1,2]"), ("?", "a", True),
            ("?|", ["b", "a"], True), ("?&", "{b,a}", False), ("-", "a", {}), ("@>", '{"a": [1]}', True),
        ):  # fmt: skip
            assert raw.execute(f"select doc {operator} %s from docs", (given,)).fetchone() == (wanted,), operator


class Mood(enum.Enum):
    """A type of labels."""

    sad = "sad"
    ok = "ok"
    happy = "happy"


def test_enums_of_psycopg(server: Running) -> None:
    with psycopg.connect(server.dsn, autocommit=True) as connection:
        connection.execute("create type mood as enum ('sad', 'ok', 'happy')")
        connection.execute("create table felt (id int primary key, m mood, a mood[])")
        connection.execute("insert into felt values (%s, %s, %s)", (1, "ok", ["sad", "happy"]))
        info = EnumInfo.fetch(connection, "mood")
        assert info is not None
        assert info.labels == ["sad", "ok", "happy"]
        register_enum(info, connection, Mood)
        connection.execute("insert into felt values (%s, %s, %s)", (2, Mood.happy, [Mood.sad, None]))
        connection.execute("insert into felt values (%b, %b, %b)", (3, Mood.sad, [Mood.ok]))
        for form in ("s", "b"):
            cursor = connection.cursor(binary=form == "b")
            text = f"select m, a from felt where m >= %{form} and m = any(%{form}) order by m".encode()
            rows = cursor.execute(text, (Mood.ok, [Mood.happy, Mood.ok, Mood.sad])).fetchall()
            assert rows == [(Mood.ok, [Mood.sad, Mood.happy]), (Mood.happy, [Mood.sad, None])]
            assert [each.type_code for each in cursor.description or ()] == [info.oid, info.array_oid]
        with pytest.raises(psycopg.errors.InvalidTextRepresentation, match='invalid input value for enum mood: "bad"'):
            connection.execute("insert into felt values (4, %s)", ("bad",))
        with pytest.raises(psycopg.errors.InvalidTextRepresentation, match='invalid input value for enum mood: "bad"'):
            connection.execute("select * from felt where m = %s", ("bad",))
        _copy_enums(connection, info)
        connection.execute("drop table felt")
        connection.execute("drop type mood")


def _copy_enums(connection: psycopg.Connection[Any], info: EnumInfo) -> None:
    """COPY in and out, as text and binary."""
    with connection.cursor().copy("copy felt from stdin") as copy:
        copy.write_row((5, "happy", ["sad"]))
    with connection.cursor().copy("copy felt from stdin (format binary)") as copy:
        copy.set_types(["int4", "mood", info.array_oid])
        copy.write_row((6, Mood.happy, [Mood.sad, Mood.ok]))
    with connection.cursor().copy("copy (select * from felt where id > 4 order by id) to stdout (format binary)") as copy:
        copy.set_types(["int4", "mood", info.array_oid])
        assert list(copy.rows()) == [(5, Mood.happy, [Mood.sad]), (6, Mood.happy, [Mood.sad, Mood.ok])]
    with connection.cursor().copy("copy (select * from felt where id > 4 order by id) to stdout") as copy:
        assert b"".join(map(bytes, copy)) == b"5\thappy\t{sad}\n6\thappy\t{sad,ok}\n"
    with (
        pytest.raises(psycopg.errors.InvalidTextRepresentation, match='enum mood: "bad"'),
        connection.cursor().copy("copy felt from stdin") as copy,
    ):
        copy.write_row((7, "bad", None))


async def test_enums_of_asyncpg(server: Running) -> None:
    connection = await asyncpg.connect(host="127.0.0.1", port=server.port, user="anna", database="flights")
    try:
        await connection.execute("create type size as enum ('s', 'm', 'l')")
        await connection.execute("create table sized (id int primary key, s size, a size[])")
        await connection.execute("insert into sized values ($1, $2, $3), (2, 'l', '{}')", 1, "m", ["s", None])
        rows = await connection.fetch("select * from sized where s >= $1 and s = any($2) order by s desc", "m", ["l", "m"])
        assert [tuple(row) for row in rows] == [(2, "l", []), (1, "m", ["s", None])]
        asked = await connection.prepare("select s, a from sized where s = $1 or $2 = any(a)")
        assert [each.name for each in asked.get_parameters()] == ["size", "size"]
        assert [each.type.name for each in asked.get_attributes()] == ["size", "size[]"]
        with pytest.raises(asyncpg.InvalidTextRepresentationError):
            await connection.execute("update sized set s = $1", "xl")
        await connection.execute("drop table sized")
        await connection.execute("drop type size")
    finally:
        await connection.close()


@pytest.mark.parametrize("driver", ["psycopg", "psycopg2"])
def test_enums_of_sqlalchemy(server: Running, driver: str) -> None:
    engine = sa.create_engine(f"postgresql+{driver}://anna@127.0.0.1:{server.port}/flights", poolclass=sa.NullPool)
    data = sa.MetaData()
    kind, mood = sa.Enum("x", "b", "a", name="kind_of_thing"), sa.Enum(Mood, name="felt_mood")
    things = sa.Table(
        "things", data, sa.Column("id", sa.Integer, primary_key=True), sa.Column("k", kind, server_default="b"),
        sa.Column("ks", ARRAY(kind)), sa.Column("m", mood),
    )  # fmt: skip
    data.create_all(engine)
    data.create_all(engine)
    with engine.begin() as connection:
        rows = [{"id": 1, "k": "a", "ks": ["x", "a"], "m": Mood.ok}, {"id": 2, "k": "x", "ks": None, "m": None}]
        connection.execute(things.insert(), rows)
        connection.execute(things.insert().values(id=3))
        ordered = sa.select(things).where(things.c.k > "x").order_by(things.c.k)
        assert [tuple(row) for row in connection.execute(ordered)] == [(3, "b", None, None), (1, "a", ["x", "a"], Mood.ok)]
    seen: Any = sa.inspect(engine)  # the stubs do not know what PostgreSQL's has
    labels = {each["name"]: each["labels"] for each in seen.get_enums()}
    assert labels == {"kind_of_thing": ["x", "b", "a"], "felt_mood": ["sad", "ok", "happy"]}
    columns = {each["name"]: each for each in seen.get_columns("things")}
    assert (columns["k"]["type"].enums, columns["k"]["default"]) == (["x", "b", "a"], "'b'::kind_of_thing")
    data.drop_all(engine)
    seen = sa.inspect(engine)
    assert seen.get_enums() == []
    engine.dispose()
