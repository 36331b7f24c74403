"""Sequences: what numbers rows, in one session, in several, and on several servers."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import pytest

from barnabas import limits
from barnabas.sql.catalog import sequence_store
from barnabas.sql.catalog.sequences import decode, default_text, encode, parts_of_text
from barnabas.sql.engine import SqlEngine
from barnabas.sql.interface import SqlError
from barnabas.sql.statements.sequence_options import SequenceOptions, new_sequence
from barnabas.testing import Broker
from tests.sql.engine.asking import Asking, asking, engine_of


@pytest.fixture
def other(broker: Broker) -> Iterator[Asking]:
    """A session on another server."""
    engine = engine_of(broker)
    made = asking(engine)
    yield made
    made.session.close()
    engine.close()


def numbers(ask: Asking, count: int, name: str) -> list[int]:
    return [row[0] for row in ask.rows(f"select nextval('{name}') from range({count})")]


@pytest.mark.parametrize("statement", [
    "insert into {t} (a) values ('x') returning id", "insert into {t} values (default, 'x') returning id",
    "insert into {t} (a) select 'x' returning id", "insert into {t} (a) values ('x' || 'y') returning id",
    "insert into {t} (id, a) values (nextval('{t}_id_seq'), 'x') returning id",
    "insert into {t} (id, a) select nextval('{t}_id_seq'), 'x' returning id",
    "insert into {t} (id, a) values (nextval('public.{t}_id_seq'::regclass) + 0, 'x') returning id",
    "with s as (select 'x' as a) insert into {t} (a) select a from s returning id",
    "insert into {t} (a) values ('x') on conflict (id) do nothing returning id",
    "insert into {t} (a) values ('x') on conflict (id) do update set a = excluded.a returning id",
])  # fmt: skip
def test_an_insert_takes_the_next_number(ask: Asking, statement: str) -> None:
    ask("create table if not exists taking (id bigserial primary key, a text)")
    before = ask.rows("insert into taking (a) values ('before') returning id")[0][0]
    assert ask.rows(statement.format(t="taking")) == [(before + 1,)]
    assert ask.rows("select currval('taking_id_seq'), lastval()") == [(before + 1, before + 1)]
    assert ask.rows("insert into taking default values returning id") == [(before + 2,)]


def test_values_of_parameters(ask: Asking) -> None:
    ask("create table given (id serial primary key, a text)")
    prepared = ask.session.prepare("insert into given (a) values ($1)")
    for name in ("x", "y", "z"):
        ask.session.execute(prepared, [name])
    assert ask.rows("select * from given order by id") == [(1, "x"), (2, "y"), (3, "z")]


def test_the_first_server_counts_from_one_whatever_session_asks(engine: SqlEngine, ask: Asking) -> None:
    ask("create table counted (id serial primary key, a int)")
    second = asking(engine)
    for number in range(1, 100):
        session = ask if number % 2 else second
        assert session.rows("insert into counted (a) values (0) returning id") == [(number,)]
    assert second.error("select currval('nosuch')").sqlstate == "42P01"
    second.session.close()


def test_numbers_of_many_rows_follow_the_order_of_the_rows(ask: Asking) -> None:
    ask("create table many (id serial primary key, a int)")
    ask("insert into many (a) select range from range(3000) order by range desc")
    assert ask.rows("select count(*), min(id), max(id), count(*) filter (where id + a = 3000) from many") == [
        (3000, 1, 3000, 3000)
    ]


def test_copy_numbers_its_rows(ask: Asking) -> None:
    ask("create table copied (id serial primary key, a text, n int generated always as identity)")
    assert ask.copy_in("copy copied (a) from stdin", b"x\ny\n", b"z\n") == "COPY 3"
    assert ask.rows("select * from copied order by id") == [(1, "x", 1), (2, "y", 2), (3, "z", 3)]
    assert ask.copy_in("copy copied from stdin", b"9\tx\t8\n") == "COPY 1"


def test_merge_numbers_the_rows_that_it_inserts(ask: Asking) -> None:
    ask("create table merged (id serial primary key, a text)")
    ask("insert into merged (a) values ('x')")
    ask(
        "merge into merged m using (values ('x'), ('y'), ('z')) s (a) on m.a = s.a "
        "when matched then do nothing when not matched then insert (a) values (s.a)"
    )
    assert ask.rows("select id from merged order by id") == [(1,), (2,), (3,)]


def test_a_rollback_gives_no_number_back(ask: Asking) -> None:
    ask("create table rolled (id serial primary key, a int)")
    ask("begin")
    assert ask.rows("insert into rolled (a) values (1), (2) returning id") == [(1,), (2,)]
    ask("rollback")
    assert ask.rows("insert into rolled (a) values (3) returning id") == [(3,)]


def test_a_value_beside_the_sequence_is_taken(ask: Asking) -> None:
    ask("create table beside (id serial primary key, a int)")
    ask("insert into beside values (2, 0)")
    assert ask.rows("insert into beside (a) values (1) returning id") == [(1,)]
    assert ask.error("insert into beside (a) values (2)").sqlstate == "23505"
    assert ask.rows("insert into beside (a) values (2) returning id") == [(3,)]


def test_a_read_only_transaction_takes_no_number(ask: Asking) -> None:
    ask("create sequence unread")
    for text in (
        "select nextval('unread')",
        "select setval('unread', 5)",
        "alter sequence unread restart",
        "drop sequence unread",
    ):
        ask("begin read only")
        assert ask.error(text).sqlstate == "25006", text
        ask("rollback")
    assert ask.rows("select nextval('unread')") == [(1,)]


def test_what_a_session_had(engine: SqlEngine, ask: Asking) -> None:
    ask("create sequence had")
    second = asking(engine)
    assert second.error("select lastval()").sqlstate == "55000"
    ask("select nextval('had')")
    error = second.error("select currval('had')")
    assert (error.sqlstate, str(error)) == ("55000", 'currval of sequence "had" is not yet defined in this session')
    assert second.rows("select nextval('had'), currval('had'), lastval()") == [(2, 2, 2)]
    assert ask.rows("select currval('had')") == [(1,)]
    ask("drop sequence had")
    assert ask.error("select lastval()").sqlstate == "55000"
    second.session.close()


def test_a_sequence_in_expressions(ask: Asking) -> None:
    ask("create sequence odd increment 2")
    assert ask.rows("select nextval('odd') * 10, case when false then nextval('odd') end, nextval(null)") == [(10, None, None)]
    assert ask.rows("select pg_catalog.nextval('\"odd\"'), nextval('odd') where nextval('odd') > 0") != []
    assert ask.error("select nextval('a b')").sqlstate == "42602"
    assert ask.error("select nextval('odd', 'odd')").sqlstate == "42883"
    assert ask("select nextval($1)", "odd").names == ["nextval"]
    assert ask.error("select nextval($1)", "nosuch").sqlstate == "42P01"


def test_a_sequence_goes_with_its_table(ask: Asking) -> None:
    ask("create table gone (id serial primary key, a int generated always as identity)")
    ask("create sequence gone_by owned by gone.a")
    ask("insert into gone default values")
    assert ask.rows("select count(*) from pg_sequences where sequencename like 'gone%'") == [(3,)]
    ask("drop table gone")
    assert ask.rows("select count(*) from pg_sequences where sequencename like 'gone%'") == [(0,)]
    ask("create table gone (id serial primary key, a int)")
    assert ask.rows("insert into gone (a) values (0) returning id") == [(1,)]


def test_names_are_taken_by_one_kind_of_relation(ask: Asking) -> None:
    ask("create table one_kind (id serial primary key)")
    ask("create sequence one_sequence")
    assert ask.error("create sequence one_kind").sqlstate == "42P07"
    assert ask.error("create sequence one_sequence").sqlstate == "42P07"
    assert ask.error("create table one_sequence (a int)").sqlstate == "42P07"
    assert ask.tag("create sequence if not exists one_sequence start 5") == "CREATE SEQUENCE"
    assert ask.rows("select nextval('one_sequence')") == [(1,)]
    ask('create sequence "One"')
    assert ask.rows("select nextval('\"One\"')") == [(1,)]
    assert ask.error("select nextval('One')").sqlstate == "42P01"
    ask("create sequence two_id_seq")
    ask("create table two (id serial primary key, a int)")
    assert ask.rows("select pg_get_serial_sequence('two', 'id')") == [("public.two_id_seq1",)]


@pytest.mark.parametrize(("text", "sqlstate"), [
    ("drop sequence kept_id_seq", "2BP01"), ("drop sequence kept_b_seq", "2BP01"), ("drop sequence kept_b_seq cascade", "2BP01"),
    ("drop sequence kept", "42809"), ("drop table kept_id_seq", "42809"), ("insert into kept_id_seq values (1)", "42809"),
    ("alter sequence kept restart", "42809"), ("alter sequence nosuch restart", "42P01"), ("drop sequence nosuch", "42P01"),
    ("alter sequence kept_id_seq", "42601"), ("alter sequence kept_id_seq set schema other", "0A000"),
    ("alter sequence kept_id_seq maxvalue 1 start 2", "22023"), ("create sequence bad increment 0", "22023"),
    ("create sequence bad minvalue 5 maxvalue 4", "22023"), ("create sequence bad start 0", "22023"),
    ("create sequence bad as smallint maxvalue 40000", "22023"), ("create sequence bad cache 0", "22023"),
    ("create sequence bad start 1 start 2", "42601"), ("create sequence bad start x", "42601"), ("create sequence bad start", "42601"),
    ("create sequence bad nosense", "42601"), ("create sequence bad restart 5", "42601"), ("create sequence no.bad", "3F000"),
    ("create sequence bad owned by kept", "42601"), ("create sequence bad owned by nosuch.a", "42P01"),
    ("create sequence bad owned by kept.nosuch", "42703"), ("create sequence", "42601"),
    ("create table bad (a serial, b int generated always as identity (start 0))", "22023"),
    ("alter table kept add column c bigserial", "0A000"), ("alter table kept alter column b set default 5", "42601"),
    ("alter table kept add column c int not null default nextval('kept_id_seq')", "0A000"),
    ("insert into kept (b) select 5", "428C9"), ("update kept set b = 5", "428C9"),
    ("insert into kept (b) overriding user value select 5", "0A000"),
])  # fmt: skip
def test_refusals(ask: Asking, text: str, sqlstate: str) -> None:
    ask("create table if not exists kept (id serial primary key, b int generated always as identity)")
    assert ask.error(text).sqlstate == sqlstate
    assert ask.error("select * from bad").sqlstate == "42P01"


def test_dropping_with_cascade_takes_the_default(ask: Asking) -> None:
    ask("create sequence held")
    ask("create table holding (id int default nextval('public.held'), a int)")
    assert "default value for column id of table holding" in str(ask.error("drop sequence held").detail)
    ask("drop sequence if exists held, nosuch cascade")
    ask("insert into holding (a) values (1)")
    assert ask.rows("select id from holding") == [(None,)]


def test_numbers_that_the_column_cannot_hold(ask: Asking) -> None:
    ask("create sequence large start 2147483648")
    ask("create table narrow (id int primary key default nextval('large'), a int)")
    assert ask.error("insert into narrow (a) values (1)").sqlstate == "22003"
    assert ask.error("insert into narrow (a) select 1").sqlstate == "22003"
    ask("create table ended (id smallserial primary key, a int)")
    ask("select setval('ended_id_seq', 32766)")
    ask("insert into ended (a) values (1)")
    error = ask.error("insert into ended (a) values (2)")
    assert (error.sqlstate, str(error)) == ("2200H", 'nextval: reached maximum value of sequence "ended_id_seq" (32767)')


def test_options_are_shown(ask: Asking) -> None:
    ask("create sequence shown as integer increment by 3 minvalue -5 maxvalue 50 start with 7 cache 4 cycle")
    row = ask.rows("select data_type, start_value, min_value, max_value, increment_by, cycle, cache_size, last_value from pg_sequences "
                   "where sequencename = 'shown'")  # fmt: skip
    assert row == [("integer", 7, -5, 50, 3, True, 4, None)]
    ask("alter sequence shown as bigint no maxvalue no cycle")
    assert numbers(ask, 2, "shown") == [7, 10]
    assert ask.rows("select data_type, max_value, last_value from pg_sequences where sequencename = 'shown'") == [
        ("bigint", 2**63 - 1, 10)
    ]
    assert ask.rows("select relkind from pg_class where relname = 'shown'") == [("S",)]
    assert ask.rows("select maximum_value from information_schema.sequences where sequence_name = 'shown'") == [(str(2**63 - 1),)]


def test_columns_are_shown(ask: Asking) -> None:
    ask(
        "create table seen (id serial primary key, a bigint generated always as identity (start 5), b int generated by default as identity)"
    )
    assert ask.rows(
        "select column_name, column_default, is_nullable, is_identity, identity_generation, identity_start "
        "from information_schema.columns where table_name = 'seen' order by ordinal_position"
    ) == [
        ("id", "nextval('seen_id_seq'::regclass)", "NO", "NO", None, None),
        ("a", None, "NO", "YES", "ALWAYS", "5"),
        ("b", None, "NO", "YES", "BY DEFAULT", "1"),
    ]
    assert ask.rows("select attidentity, atthasdef from pg_attribute where attrelid = 'seen'::regclass order by attnum") == [
        ("", True), ("a", False), ("d", False)
    ]  # fmt: skip
    made = ask.rows("show create table seen")[0][1]
    ask("drop table seen")
    ask(made)
    assert ask.rows("insert into seen default values returning *") == [(1, 5, 1)]


def test_temporary_sequences_end_with_their_session(engine: SqlEngine, ask: Asking) -> None:
    other = asking(engine)
    other("create temp table passing (id serial primary key, a int)")
    other("create temp sequence passed")
    other("insert into passing (a) values (1)")
    assert other.rows("select currval('passing_id_seq'), nextval('passed')") == [(1, 1)]
    assert ask.error("select nextval('passed')").sqlstate == "42P01"
    ask("create sequence hidden start 5")
    assert other.rows("select nextval('hidden')") == [(5,)]
    other("create temp sequence hidden")
    assert other.rows("select nextval('hidden')") == [(1,)]
    assert ask.rows("select count(*) from pg_sequences where sequencename like '%pass%'") == [(0,)]
    other.session.close()
    assert [name for name in engine.shared.sequences.sequences if "pass" in name] == []


def test_servers_share_sequences_and_never_a_number(ask: Asking, other: Asking) -> None:
    ask("create table shared (id serial primary key, a int)")
    assert ask.rows("insert into shared (a) values (1) returning id") == [(1,)]
    assert other.rows("insert into shared (a) values (2) returning id") == [(33,)]
    assert ask.rows("insert into shared (a) values (3) returning id") == [(2,)]
    assert other.rows("insert into shared (a) values (4) returning id") == [(34,)]


def test_servers_number_at_the_same_time(broker: Broker, ask: Asking) -> None:
    """Each server ends without a word and comes back, as one that was killed."""
    ask("create table at_once (id bigserial primary key, a int)")
    failures: list[BaseException] = []

    def work() -> None:
        try:
            for _ in range(3):
                engine = engine_of(broker)
                mine = asking(engine)
                for size in (1, 40, 5, 300):
                    mine("insert into at_once (a) select $1 from range($2)", 0, size)
                mine.session.close()
                engine.close()
        except BaseException as error:  # noqa: BLE001 - the test raises it
            failures.append(error)

    threads = [threading.Thread(target=work) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert ask.rows("select count(*), count(distinct id) from at_once") == [(2076, 2076)]


def test_another_server_sees_a_change(monkeypatch: pytest.MonkeyPatch, ask: Asking, other: Asking) -> None:
    monkeypatch.setattr(sequence_store, "REFRESH_S", 0.0)
    ask("create sequence changed")
    assert numbers(ask, 2, "changed") == [1, 2]
    assert numbers(other, 1, "changed") == [33]
    other("select setval('changed', 500)")
    assert numbers(ask, 1, "changed") == [501]
    ask("alter sequence changed restart with 7 increment 3")
    assert numbers(other, 2, "changed") == [7, 10]
    other("drop sequence changed")
    assert ask.error("select nextval('changed')").sqlstate == "42P01"
    other("create sequence changed")
    assert numbers(ask, 1, "changed") == [1]


def test_a_table_that_was_made_again_counts_from_one_on_every_server(ask: Asking, other: Asking) -> None:
    for _ in range(2):
        ask("create table again (id serial primary key, a int)")
        for session in (ask, other):
            session("insert into again (a) values (1)")
        assert ask.rows("select min(id) from again") == [(1,)]
        other("drop table again")
        assert ask.error("insert into again (a) values (1)").sqlstate == "42P01"


def test_blocks_grow_with_use(ask: Asking, engine: SqlEngine) -> None:
    ask("create sequence growing")
    ends = set()
    for _ in range(110):
        numbers(ask, 30, "growing")
        ends.add(engine.shared.sequences.sequences["growing"].last)
    assert sorted(ends)[:6] == [32, 96, 224, 480, 992, 2016]
    assert max(ends) - 2016 in (1024, 2048)


def test_a_name_in_a_text() -> None:
    for name in ("plain", "Odd", "a.b", 'q"uote', "it's"):
        text = default_text(name)
        assert parts_of_text(text.removeprefix("nextval('").removesuffix("'::regclass)").replace("''", "'")) == name.split(".")
    assert parts_of_text('Public."S"') == ["public", "S"]
    for bad in ("", "a b", "a.", '"a', "1a"):
        with pytest.raises(SqlError):
            parts_of_text(bad)


@pytest.mark.parametrize("payload", [b"", b"{}", b"[1]", b"\xff", b'{"name":"s","id":"1","kind":"text"}'])
def test_records_that_cannot_be_read(payload: bytes) -> None:
    made: Any = new_sequence("s", SequenceOptions(start=5))
    assert decode(encode(made)) == made
    with pytest.raises(Exception, match=r".") as caught:
        decode(payload)
    assert type(caught.value).__name__ == "BadSequence"


@pytest.mark.parametrize(("limit", "most"), [("MAX_SQL_SEQUENCES", 0), ("MAX_SQL_SEQUENCE_BYTES", 20)])
def test_limits_of_sequences(broker: Broker, monkeypatch: pytest.MonkeyPatch, limit: str, most: int) -> None:
    monkeypatch.setattr(limits, limit, most)
    engine = engine_of(broker)
    mine = asking(engine)
    assert mine.error("create sequence beyond").sqlstate == "54000"
    mine.session.close()
    engine.close()
