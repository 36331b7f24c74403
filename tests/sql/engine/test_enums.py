"""Types of CREATE TYPE … AS ENUM: their records, what other servers know of them, and rows of other programs."""

from __future__ import annotations

import json

import pytest
from confluent_kafka import Producer

from barnabas.sql.catalog.store import TOPIC
from barnabas.sql.duck.enums import TypeNumber
from barnabas.sql.interface import SqlError
from barnabas.testing import Broker
from tests.sql.engine.asking import Asking, asking, engine_of
from tests.waiting import wait_until


def test_every_engine_knows_a_type_by_the_same_number(ask: Asking, broker: Broker) -> None:
    number = "select oid, typarray from pg_type where typname = 'colour'"
    other = engine_of(broker)
    try:
        there = asking(other)
        assert there.error("select 'red'::colour").sqlstate == "42704"
        ask("create type colour as enum ('red', 'blue')")
        assert there.rows("select 'red'::colour") == [("red",)]
        found = ask.rows(number)
        assert there.rows(number) == found
        there("create table painted (c colour)")
        ask("alter type colour add value 'black' before 'red'")
        wait_until(lambda: there.rows("select enum_first(null::colour)") == [("black",)])
        there("insert into painted values ('red'), ('black')")
        assert ask.rows("select c from painted order by c") == [("black",), ("red",)]
        there("alter type colour rename to paint")
        assert ask.error("drop type paint").sqlstate == "2BP01"
    finally:
        other.close()
    third = engine_of(broker)
    try:
        assert asking(third).rows(number.replace("colour", "paint")) == found
        assert asking(third).rows("select max(c) from painted where c < 'red'") == [("black",)]
    finally:
        third.close()
    ask("drop table painted")
    ask("drop type paint")


def test_a_statement_that_was_checked_before_its_type_went(ask: Asking) -> None:
    ask("create type gone as enum ('a')")
    ready = ask.session.prepare("create table of_gone (g gone)")
    ask("drop type gone")
    with pytest.raises(SqlError, match='type "gone" does not exist') as caught:
        ask.session.execute(ready, ())
    assert caught.value.sqlstate == "42704"
    ask("create type gone as enum ('a')")
    assert ask.error("create table gone (a int)").sqlstate == "42710"
    ask("drop type gone")
    assert not {"gone", "of_gone"} & {row[0] for row in ask.rows("show topics")}


def test_records_of_later_versions_are_left_alone(ask: Asking, broker: Broker, caplog: pytest.LogCaptureFixture) -> None:
    ask("create type there as enum ('a')")
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers})
    producer.produce(TOPIC, key=b"\0domain x", value=b"{}")
    producer.produce(TOPIC, key=b"\0type broken", value=b'{"name": 1}')
    producer.flush()
    wait_until(lambda: "type=broken" in caplog.text or ask.rows("select 'a'::there") != [("a",)])
    assert ask.error("select 'a'::broken").sqlstate == "42704"
    assert "domain" not in caplog.text
    ask("create table domain_free (a int)")
    ask("drop table domain_free")
    ask("drop type there")


def test_a_text_of_another_program_that_is_no_label_is_null(ask: Asking, broker: Broker) -> None:
    ask("create type grade as enum ('low', 'high')")
    ask("create table graded (id int primary key, g grade, a grade[])")
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers})
    for key, value in ((1, "high"), (2, "other"), (3, "low")):
        producer.produce("graded", key=str(key), value=json.dumps({"g": value, "a": [value]}))
    producer.flush()
    wait_until(lambda: ask.rows("select count(*) from graded") == [(3,)])
    assert ask.rows("select id, g from graded order by g nulls last, id") == [(3, "low"), (1, "high"), (2, None)]
    for key, found in ((1, ("high", ["high"])), (2, (None, [None]))):
        assert ask.rows(f"select g, a from graded where id = {key}") == [found]
        assert ask.rows(f"select g, a from graded where id = {key} and id < 9") == [found]
    ask("drop table graded")
    ask("drop type grade")


def test_values_that_are_in_use_keep_their_names(ask: Asking) -> None:
    ask("create type kept as enum ('a', 'b')")
    ask("alter type kept rename value 'a' to 'c'")
    ask("create table of_kept (k kept)")
    error = ask.error("alter type kept rename value 'c' to 'a'")
    assert (error.sqlstate, "column k of table of_kept" in error.message) == ("0A000", True)
    ask("create view over_kept as select k from of_kept where k = 'b'::kept")
    assert ask.error("alter type kept rename to other").sqlstate == "2BP01"
    assert "view over_kept" in (ask.error("drop type kept").detail or "")
    ask("drop view over_kept")
    ask("drop table of_kept")
    ask("drop type kept")


def test_the_statement_that_is_shown_has_the_type(ask: Asking) -> None:
    ask("create type shown as enum ('a', 'b')")
    ask("create table of_shown (id int primary key, s shown not null default 'b', a shown[])")
    text = ask.rows("show create table of_shown")[0][1]
    assert "s shown NOT NULL DEFAULT 'b'" in text
    assert [row[1] for row in ask.rows("describe of_shown")] == ["int", "shown", "shown[]"]
    ask("drop table of_shown")
    ask(text)
    assert ask.rows("show create table of_shown")[0][1] == text
    ask("drop table of_shown")
    ask("drop type shown")


@pytest.mark.parametrize(
    ("text", "state"),
    [
        ("create type x", "0A000"),
        ("do", "0A000"),
        ("do $$ begin null; end $$", "0A000"),
        ("do $$ begin drop table t; exception when duplicate_object then null; end $$", "0A000"),
        ("do $$ begin create type x as enum ('a'); end $$ language sql", "0A000"),
        ("do $$ create type x as enum ('a') $$", "0A000"),
        ("create type x as (a int)", "0A000"),
        ("create type x as enum ('a'", "42601"),
        ("create type x as enum ('a',)", "42601"),
        ("create type x as enum (a)", "42601"),
        ("create type x as enum ('a') more", "42601"),
        ("create type text as enum ('a')", "42602"),
        ("create type \"a.b\" as enum ('a')", "42602"),
        ("create type nowhere.x as enum ('a')", "3F000"),
        ("drop type", "42601"),
        ("drop type a b", "42601"),
        ("drop type int_of_nobody", "42704"),
        ("alter type nothing_here add value 'a'", "42704"),
        ("alter type nothing_here rename to other", "42704"),
        ("alter type nothing_here add attribute a int", "0A000"),
        ("alter type nothing_here add value a", "42601"),
    ],
)
def test_statements_that_are_refused(ask: Asking, text: str, state: str) -> None:
    assert ask.error(text).sqlstate == state


def test_parameters_of_a_type_by_its_number(ask: Asking) -> None:
    ask("create type numbered as enum ('b', 'a')")
    ((oid, array),) = ask.rows("select oid, typarray from pg_type where typname = 'numbered'")
    assert ask("select $1 as x, $2 as y", "a", ["b", "a"], types=[TypeNumber(oid), TypeNumber(array)]).rows == [("a", ["b", "a"])]
    assert ask("select $1 < $2", "b", "a", types=[TypeNumber(oid), TypeNumber(oid)]).rows == [(True,)]
    with pytest.raises(SqlError, match="type with OID 999999 does not exist"):
        ask("select $1", "a", types=[TypeNumber(999_999)])
    ask("drop type numbered")
