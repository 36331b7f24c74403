"""Definitions of tables: what they declare, where they are kept, and that every engine knows them."""

from __future__ import annotations

import threading
from decimal import Decimal

import pytest
from confluent_kafka import Producer

from barnabas import limits
from barnabas.client.blocking import BlockingClient
from barnabas.sql.engine import SqlEngine
from barnabas.testing import Broker
from tests.sql.engine.asking import Asking, asking, engine_of


def client(broker: Broker) -> BlockingClient:
    return BlockingClient.to(broker.bootstrap_servers)


def test_a_table_with_a_topic_of_its_own(ask: Asking, broker: Broker) -> None:
    text = "create table people (id bigint primary key, name text not null default 'x', at timestamptz default now())"
    assert ask.tag(text) == "CREATE TABLE"
    with client(broker) as kafka:
        assert kafka.describe_topic_config("people")["cleanup.policy"] == "compact"
    assert ask.rows("select * from people") == []
    assert ask.error("create table people (id int)").sqlstate == "42P07"
    assert ask.tag("create table if not exists people (id int)") == "CREATE TABLE"
    shown = ask.rows("show create table people")[0][1]
    assert "id bigint NOT NULL" in shown
    assert "PRIMARY KEY (id)" in shown
    assert ask.tag("drop table people") == "DROP TABLE"
    with client(broker) as kafka:
        assert kafka.topics_by_name(["people"]) == {}
    assert ask.error("select * from people").sqlstate == "42P01"
    assert ask.error("drop table people").sqlstate == "42P01"
    assert ask.tag("drop table if exists people") == "DROP TABLE"


def test_the_statement_that_is_shown_makes_the_same_table(ask: Asking) -> None:
    columns = 'a int, "B c" text[], d decimal(5,2) not null default 1.5, j json'
    ask(f"create table first ({columns}) with (topic = 'first.t', key = 'a', mode = 'drop')")
    text = ask.rows("show create table first")[0][1]
    described = ask.rows("describe first")
    ask("drop table first")
    ask(text)
    assert ask.rows("show create table first")[0][1] == text
    assert ask.rows("describe first") == described
    ask("drop table first")


def test_a_table_over_a_topic_that_exists(ask: Asking, broker: Broker) -> None:
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers})
    producer.produce("events", b'{"name": "a", "n": 1}', key=b"7")
    producer.produce("events", b"no json", key=b"8")
    assert producer.flush(60) == 0
    ask("create table happened (id bigint, name text, n int) with (topic = 'events', key = 'id')")
    assert ask.rows("select id, name, n from happened order by id") == [(7, "a", 1), (8, None, None)]
    assert ask.rows("select _key from happened where id = 7") == [(7,)]
    ask("create table strict (name text) with (topic = 'events', mode = 'fail')")
    assert ask.error("select name from strict").sqlstate == "XX001"
    ask("create table plain (k text, v text) with (topic = 'events', key = 'k', format = 'text')")
    assert ask.rows("select v from plain where k = '8'") == [("no json",)]
    ask("drop table happened")
    with client(broker) as kafka:
        assert "events" in kafka.topics_by_name(["events"])


def test_every_engine_knows_a_table(ask: Asking, broker: Broker) -> None:
    other = engine_of(broker)
    try:
        there = asking(other)
        assert there.error("select * from shared").sqlstate == "42P01"
        ask("create table shared (a int)")
        assert there.rows("select * from shared") == []
        there("alter table shared add column b int not null default 7")
        ask("insert into shared values (1, 2)")
        assert ask.rows("select * from shared") == [(1, 2)]
        there("drop table shared")
        assert there.error("select * from shared").sqlstate == "42P01"
    finally:
        other.close()
    third = engine_of(broker)
    try:
        assert asking(third).error("select * from shared").sqlstate == "42P01"
        ask("create table later (a int)")
        assert asking(third).rows("select * from later") == []
    finally:
        third.close()


def test_writers_of_definitions_wait_for_each_other(broker: Broker) -> None:
    engines = [engine_of(broker) for _ in range(3)]
    made: list[str] = []

    def make(engine: SqlEngine, number: int) -> None:
        ask = asking(engine)
        made.extend(ask.tag(f"create table many_{number}_{each} (a int) with (topic = 'many')") for each in range(3))

    try:
        threads = [threading.Thread(target=make, args=(engine, number)) for number, engine in enumerate(engines)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert made == ["CREATE TABLE"] * 9
        for engine in engines:
            found = {row[0] for row in asking(engine).rows("show tables")}
            assert {f"many_{number}_{each}" for number in range(3) for each in range(3)} <= found
    finally:
        for engine in engines:
            engine.close()


def test_columns_are_added(ask: Asking) -> None:
    ask("create table grown (id int primary key, a text)")
    ask("insert into grown values (1, 'x')")
    ask("alter table grown add column b int, add column c int not null default 5")
    assert ask.rows("select * from grown") == [(1, "x", None, 5)]
    ask("insert into grown values (2, 'y', 3, 4)")
    assert ask.rows("select * from grown where id = 2") == [(2, "y", 3, 4)]
    assert ask.error("alter table grown add column b int").sqlstate == "42701"
    assert ask.error("alter table grown add column d int not null").sqlstate == "23502"
    assert ask.tag("alter table grown add column if not exists b int") == "ALTER TABLE"
    assert ask.error("alter table grown add unique (a)").sqlstate in ("0A000", "42601")
    ask("alter table grown alter column a set default 'z'")
    ask("insert into grown (id) values (3)")
    assert ask.rows("select a from grown where id = 3") == [("z",)]


def test_comments(ask: Asking) -> None:
    ask("create table noted (a int)")
    ask("comment on table noted is 'a table'")
    ask("comment on column noted.a is 'a column'")
    assert ("noted", "noted", "json", None, "a table") in ask.rows("show tables")
    assert ask.rows("describe noted")[0][5] == "a column"
    ask("comment on table noted is null")
    assert ("noted", "noted", "json", None, None) in ask.rows("show tables")


@pytest.mark.parametrize("keyed", [False, True])
def test_truncate(ask: Asking, keyed: bool) -> None:
    name = f"emptied_{keyed}".lower()
    ask(f"create table {name} (id int {'primary key' if keyed else ''}, a int)")
    ask(f"insert into {name} values (1, 2), (3, 4)")
    assert ask.tag(f"truncate table {name}") == "TRUNCATE TABLE"
    assert ask.rows(f"select * from {name}") == []
    ask(f"insert into {name} values (1, 2)")
    assert ask.rows(f"select * from {name}") == [(1, 2)]


@pytest.mark.parametrize(
    ("text", "state"),
    [
        ("create table bad (a int, a text)", "42701"),
        ("create table bad (a int check (a > 0))", "0A000"),
        ("create table bad (_offset int)", "42939"),
        ("create table bad (a foo)", "42704"),
        ("create table bad (a numeric(99,2))", "22023"),
        ("create table bad (a int) with (topik = 'x')", "22023"),
        ("create table bad (a int) with (format = 'xml')", "22023"),
        ("create table bad (a int) with (partitions = 0)", "22023"),
        ("create table bad (a int) with (key = 'b')", "42703"),
        ("create table bad (a int, b int) with (format = 'text')", "42P16"),
        ("create table bad (a int default b)", "0A000"),
        ("create table \"a b\" (a int)", "42602"),
        ("create table other.bad (a int)", "3F000"),
        ("create unlogged table bad (a int)", "0A000"),
        ("create table bad", "0A000"),
        ("create unique index i on bad (a)", "0A000"),
        ("drop view bad", "42P01"),
        ("truncate bad", "42P01"),
    ],
)  # fmt: skip
def test_definitions_that_are_refused(ask: Asking, text: str, state: str) -> None:
    assert ask.error(text).sqlstate == state
    assert ask.error("select * from bad").sqlstate == "42P01"


@pytest.mark.parametrize(("text", "words", "hint"), [
    ("create table bad (a int auto_increment)", "AUTO_INCREMENT", "IDENTITY"),
    ("create table bad (a point)", '"point" does not exist', "text"),
    ("create user ann", "CREATE USER", "barnabas user add"),
    ("create role ann", "CREATE ROLE", "barnabas acl"),
    ("alter table worded rename column a to b", "RENAME COLUMN", "ADD COLUMN"),
    ("alter table worded alter column a type text", "cannot become text", "wider"),
    ("alter table worded add constraint k primary key (a)", "ADD CONSTRAINT", "ADD COLUMN"),
    ("alter table worded drop constraint k", "DROP", "ADD COLUMN"),
    ("alter table worded drop column a", "the only column", "DROP TABLE"),
])  # fmt: skip
def test_a_refusal_has_the_words_of_the_statement(ask: Asking, text: str, words: str, hint: str) -> None:
    ask("create table if not exists worded (a int)")
    error = ask.error(text)
    assert words in str(error)
    assert error.hint is not None
    assert hint in error.hint


def test_the_reader_of_statements_writes_nothing_to_the_log(ask: Asking, caplog: pytest.LogCaptureFixture) -> None:
    ask("create table if not exists worded (a int)")
    assert ask.error("alter table worded owner to ann").sqlstate == "0A000"
    assert ask.rows("select (array[5, 6])[1]") == [(5,)]
    assert [each.name for each in caplog.records if each.name.startswith("sqlglot")] == []


def test_limits_of_definitions(ask: Asking, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "MAX_SQL_COLUMNS", 2)
    assert ask.error("create table wide (a int, b int, c int)").sqlstate == "54011"
    monkeypatch.setattr(limits, "MAX_SQL_NAME", 5)
    assert ask.error("create table too_long (a int)").sqlstate == "42602"
    monkeypatch.setattr(limits, "MAX_SQL_DEFINITION_BYTES", 10)
    assert ask.error("create table large (a int)").sqlstate in ("54000", "42602")
    monkeypatch.setattr(limits, "MAX_SQL_NAME", 50)
    assert ask.error("create table large (a int)").sqlstate == "54000"
    monkeypatch.undo()
    monkeypatch.setattr(limits, "MAX_SQL_DEFINITIONS", 0)
    assert ask.error("create table further (a int)").sqlstate == "54000"


def test_create_table_as(ask: Asking) -> None:
    assert ask.tag("create table copied as select 1 as id, 'a' as name, 1.5 as v union all select 2, 'b', null") == "SELECT 2"
    assert sorted(ask.rows("select * from copied"))[0][:2] == (1, "a")
    assert ask.tag("create table if not exists copied as select 1 as x") == "CREATE TABLE AS"
    assert ask.tag("create table named (a, b) with (partitions = 2) as select id, name from copied") == "SELECT 2"
    assert sorted(ask.rows("select b, a from named")) == [("a", 1), ("b", 2)]
    assert ask.tag("create table empty as select 1 as x with no data") == "CREATE TABLE AS"
    assert ask.rows("select * from empty") == []
    assert ask.error("create table copied as select 1 as x").sqlstate == "42P07"
    assert ask.error("create table dup as select 1 as a, 2 as a").sqlstate == "42701"


@pytest.mark.parametrize(
    ("default", "sqlstate"), [("'abc'", "22P02"), ("nosuch()", "42883"), ("nextval('counter')", "42P01"), ("2147483648", "22003")]
)
def test_a_default_that_gives_no_value_is_refused(ask: Asking, default: str, sqlstate: str) -> None:
    ask("create table if not exists given (id bigint primary key, a int)")
    for text in (
        f"create table refused (a int default {default})",
        f"alter table given add column b int default {default}",
        f"alter table given alter column a set default {default}",
    ):
        assert ask.error(text).sqlstate == sqlstate
    assert ask.error("select * from refused").sqlstate == "42P01"
    assert "DEFAULT" not in ask.rows("show create table given")[0][1]


def test_alter_if_exists(ask: Asking) -> None:
    assert ask.tag("alter table if exists nowhere add column a int") == "ALTER TABLE"
    assert ask.error("alter table nowhere add column a int").sqlstate == "42P01"


def test_a_form_that_the_parser_lacks_is_not_in_the_log(ask: Asking, caplog: pytest.LogCaptureFixture) -> None:
    error = ask.error("create temp table noted (a int) on commit drop")
    assert error.sqlstate == "0A000"
    assert caplog.records == []


def test_texts_have_one_order(ask: Asking) -> None:
    ask('create table sorted (a text collate "C", b text collate "default")')
    assert ask.error('create table others (a text collate "de_DE")').sqlstate == "0A000"
    assert ask.error("create table others (a text encode zstd)").sqlstate == "0A000"


@pytest.mark.parametrize(
    "column",
    [
        "b int references elsewhere (id)",
        "b int not null references elsewhere",
        "b int, foreign key (b) references elsewhere (id) on delete cascade",
        "b int, constraint named foreign key (b) references elsewhere (id)",
    ],
)
def test_foreign_keys_are_taken_with_a_warning(ask: Asking, column: str) -> None:
    ask.session.take_notices()
    ask(f"create table referring (id int primary key, {column})")
    assert [(each.severity, each.message) for each in ask.session.take_notices()] == [
        ("WARNING", "foreign keys are not enforced")
    ]
    ask("insert into referring values (1, 7)")
    assert ask.rows("select * from referring") == [(1, 7)]
    ask("drop table referring")


def test_a_table_gets_another_name_and_the_views_over_it_follow(ask: Asking) -> None:
    ask("create table old_name (a int, b int)")
    ask("insert into old_name values (1, 2)")
    ask("create view over_name as select old_name.a, (select count(*) from old_name as o) as n from old_name")
    ask("alter table old_name rename to new_name")
    assert ask.rows("select * from new_name") == [(1, 2)]
    assert ask.rows("select * from over_name") == [(1, 1)]
    assert ask.error("select * from old_name").sqlstate == "42P01"
    ask("create table old_name (c int)")  # with another topic, as the first one has the rows of new_name
    ask("insert into old_name values (5)")
    assert ask.rows("select * from old_name") == [(5,)]
    assert ask.rows("select * from new_name") == [(1, 2)]
    ask("drop table old_name")
    ask("create table other_name (id serial)")
    assert ask.error("alter table new_name rename to over_name").sqlstate == "42P07"
    assert ask.error("alter table other_name rename to third_name").sqlstate == "0A000"


def test_a_dropped_column_does_not_come_back(ask: Asking) -> None:
    ask("create table shrunk (id int primary key, a text, b int)")
    ask("insert into shrunk values (1, 'x', 2)")
    ask("alter table shrunk drop column a")
    assert ask.rows("select * from shrunk") == [(1, 2)]
    ask("insert into shrunk values (2, 3)")
    assert ask.rows("select * from shrunk order by id") == [(1, 2), (2, 3)]
    assert ask.error("alter table shrunk add column a text").sqlstate == "0A000"
    assert ask.error("alter table shrunk drop column id").sqlstate == "0A000"
    assert ask.error("alter table shrunk drop column nothing").sqlstate == "42703"
    assert ask.tag("alter table shrunk drop column if exists nothing") == "ALTER TABLE"
    ask("alter table shrunk add column c int")
    ask("create view of_shrunk as select b from shrunk")
    assert ask.error("alter table shrunk drop column b").sqlstate == "2BP01"
    assert ask.tag("alter table shrunk drop column c") == "ALTER TABLE"


def test_a_column_becomes_wider(ask: Asking) -> None:
    ask("create table widened (a smallint, b real, c decimal(4,2))")
    ask("insert into widened values (1, 1.5, 2.25)")
    ask(
        "alter table widened alter column a type bigint, alter column b type double precision, alter c set data type decimal(10,3)"
    )
    ask("insert into widened values (5000000000, 2.5, 1234567.125)")
    found = ask.rows("select a, b, c from widened order by a")
    assert found == [(1, 1.5, Decimal("2.250")), (5000000000, 2.5, Decimal("1234567.125"))]
    for kind in ("int", "text", "decimal(20,10)"):
        assert ask.error(f"alter table widened alter column a type {kind}").sqlstate == "0A000"


def test_names_of_indexes_are_kept(ask: Asking) -> None:
    ask("create table found_by (a int, b int)")
    assert ask.tag("create index found_a on found_by (a desc) include (b) distributed by (a)") == "CREATE INDEX"
    assert ask.error("create index found_a on found_by (b)").sqlstate == "42P07"
    assert ask.tag("create index if not exists found_a on found_by (b)") == "CREATE INDEX"
    assert ask.tag("create index concurrently on found_by using btree (a, lower(b::text))") == "CREATE INDEX"
    assert ask.tag("drop index found_a, found_by_a_idx") == "DROP INDEX"
    assert ask.error("drop index found_a").sqlstate == "42704"
    assert ask.tag("drop index if exists found_a cascade") == "DROP INDEX"
    assert ask.error("create index i on nothing (a)").sqlstate == "42P01"
    assert ask.error("create unique index i on found_by (a)").sqlstate == "0A000"


def test_a_table_has_a_limit_of_indexes(ask: Asking, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "MAX_SQL_INDEXES", 1)
    ask("create table indexed_once (a int)")
    ask("create index once on indexed_once (a)")
    assert ask.error("create index twice on indexed_once (a)").sqlstate == "54000"


def test_generated_columns(ask: Asking) -> None:
    ask("create table made (a int as b - 1, b int, c double precision generated always as (b * 1.5) stored, id int primary key)")
    ask("insert into made (b, id) values (1, 1), (2, 2)")
    ask("insert into made values (4, 3)")
    ask("insert into made values (default, 6, default, 4)")
    assert ask.rows("select a, b, c from made order by id") == [(0, 1, 1.5), (1, 2, 3.0), (3, 4, 6.0), (5, 6, 9.0)]
    ask("update made set b = 10 where id = 1")
    ask("insert into made (b, id) values (20, 2) on conflict (id) do update set b = excluded.b")
    assert ask.rows("select a, c from made where id in (1, 2) order by id") == [(9, 15.0), (19, 30.0)]
    ask("merge into made using (select 3 as id) s on made.id = s.id when matched then update set b = 100")
    assert ask.rows("select a from made where id = 3") == [(99,)]
    assert ask.copy_in("copy made (b, id) from stdin with (format csv)", b"7,7\n") == "COPY 1"
    assert ask.rows("select a, c from made where id = 7") == [(6, 10.5)]


@pytest.mark.parametrize(("text", "state"), [
    ("insert into computed (a, b) values (1, 2)", "428C9"),
    ("update computed set b = 3", "428C9"),
    ("create table bad (a int as b + 1, b int as c, c int)", "42P16"),
    ("create table bad (a int as nothing + 1, b int)", "42703"),
    ("create table bad (a int as 1)", "42P16"),
    ("create table bad (a int, b int generated always as (a) stored primary key)", "0A000"),
    ("create table bad (a int, b int as (select 1))", "0A000"),
    ("alter table computed drop column a", "2BP01"),
])  # fmt: skip
def test_a_generated_column_takes_no_value(ask: Asking, text: str, state: str) -> None:
    ask("create table if not exists computed (a int, b int as a + 1, c int)")
    assert ask.error(text).sqlstate == state


def test_options_have_the_names_of_ksqldb_too(ask: Asking) -> None:
    ask(
        "create stream riders (id varchar, latitude double) with (kafka_topic = 'locations', value_format = 'JSON', partitions = 1)"
    )
    ask("insert into riders values ('a', 37.5)")
    assert ask.rows("select * from riders") == [("a", 37.5)]
    assert ask.session.client.topics_by_name(["locations"])
    error = ask.error("create table current as select id, count(*) as n from riders group by id emit changes")
    assert (error.sqlstate, "CREATE MATERIALIZED VIEW" in (error.hint or "")) == ("0A000", True)
