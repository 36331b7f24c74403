"""Sessions: parameters, named statements, cancelling, limits. One bad query harms nobody."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator
from random import Random

import pytest

from barnabas import limits
from barnabas.errors import ConfigError
from barnabas.sql.engine import SqlEngine
from barnabas.sql.interface import Caller, SqlError
from barnabas.testing import Broker
from tests.sql.engine.asking import Asking, asking, engine_of
from tests.waiting import wait_until

ENDLESS = "select sum(a.range * b.range) from range(100000000) a, range(1000000) b"


def test_the_name_of_a_setting_may_be_a_parameter(ask: Asking) -> None:
    text = "select current_setting($1)"
    assert ask.rows(text, "default_table_access_method") == [("heap",)]
    ask("set time zone 'Europe/Berlin'")
    assert ask.rows(text, "TimeZone") == [("Europe/Berlin",)]
    assert "unrecognized configuration parameter" in str(ask.error(text, "nope"))


def test_parameters_of_a_session(ask: Asking) -> None:
    assert ask.rows("show server_version") == [("16.4",)]
    assert ask("show standard_conforming_strings").names == ["standard_conforming_strings"]
    assert ask.tag("set search_path to a, public") == "SET"
    assert ask.rows("show search_path") == [("a, public",)]
    for given, shown in (
        ("'2min'", "2min"),
        ("90000", "90s"),
        ("1500", "1500ms"),
        ("'1.5h'", "90min"),
        ("'36 h'", "36h"),
        ("0", "0"),
    ):
        ask(f"set statement_timeout = {given}")
        assert ask.rows("select current_setting('statement_timeout')") == ask.rows("show statement_timeout") == [(shown,)]
    ask("set time zone 'Europe/Berlin'")
    assert ask.rows("show time zone") == [("Europe/Berlin",)]
    ask("set my.own = 'x'")
    assert ask.rows("show my.own") == [("x",)]
    assert "TimeZone" in dict(row[:2] for row in ask.rows("show all"))
    ask("reset all")
    assert ask.rows("show search_path") == [('"$user", public',)]
    assert ask.session.parameter("client_encoding") == "UTF8"
    assert ask.session.parameter("nope") is None
    for text, state in (
        ("set nope = 1", "42704"), ("show nope", "42704"), ("set server_version = '1'", "55P02"),
        ("set client_encoding = 'latin1'", "0A000"),
        ("set standard_conforming_strings = off", "0A000"), ("set statement_timeout = 'soon'", "22023"),
        ("set time zone 'Nowhere'", "22023"),
        ("set sql_dialect = 'basic'", "22023"), ("set jit = perhaps", "22023"), ("set", "42601"), ("show", "42601"),
        ("select current_setting('nope')", "42704"),
    ):  # fmt: skip
        assert ask.error(text).sqlstate == state, text


def test_parameters_at_the_start(engine: SqlEngine) -> None:
    ask = asking(engine, application_name="tests", unknown="1", TimeZone="Etc/UTC")
    assert ask.rows("show application_name") == [("tests",)]
    with pytest.raises(SqlError):
        asking(engine, client_encoding="latin1")
    with pytest.raises(SqlError) as caught:
        engine.session(Caller(settings={"security.protocol": "nonsense"}))
    assert caught.value.sqlstate == "22023"


def test_named_statements(ask: Asking) -> None:
    assert ask.tag("prepare p (bigint, text) as select $1 + 1 as n, $2 as t") == "PREPARE"
    assert ask("execute p(1 + 1, 'x')").rows == [(3, "x")]
    assert ask.error("prepare p as select 1").sqlstate == "42P05"
    assert ask.error("execute p(1)").sqlstate == "42601"
    assert ask.error("prepare q as select nope").sqlstate == "42703"
    assert ask.tag("deallocate p") == "DEALLOCATE"
    assert ask.error("execute p(1, 'x')").sqlstate == "26000"
    assert ask.error("deallocate p").sqlstate == "26000"
    ask("prepare one as values (1)")
    assert ask.tag("discard all") == "DISCARD ALL"
    assert ask.error("execute one").sqlstate == "26000"


def test_the_limit_of_named_statements(ask: Asking, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "MAX_SQL_PREPARED", 1)
    ask("prepare a as select 1")
    assert ask.error("prepare b as select 1").sqlstate == "54000"


def test_a_prepared_statement_is_checked_again_when_tables_change(ask: Asking) -> None:
    ask("create table changing (a int)")
    whole, part = ask.session.prepare("select * from changing"), ask.session.prepare("select a from changing")
    ask("alter table changing add column b int")
    with pytest.raises(SqlError, match="cached plan"):
        ask.session.execute(whole)
    assert list(ask.session.execute(part).batches()) == []


def test_explain(ask: Asking) -> None:
    ask("create table explained (id bigint primary key, a text)")
    ask("insert into explained values (1, 'x'), (2, 'y')")
    lines = "\n".join(row[0] for row in ask.rows("explain analyze select a from explained where _offset > 0"))
    assert "explained: topic explained" in lines
    assert "rows: 1" in lines
    ask("create table explained_log (a int) append only")
    ask("insert into explained_log values (1), (2), (3)")
    assert "offsets" in "\n".join(row[0] for row in ask.rows("explain analyze select * from explained_log where _offset > 1"))
    assert ask("explain select 1").names == ["QUERY PLAN"]
    assert ask.error("explain (format json) select 1").sqlstate == "0A000"
    assert ask.error("explain insert into explained values (3)").sqlstate == "0A000"


def test_wait_for(ask: Asking) -> None:
    ask("create table waited (a int)")
    ask("insert into waited values (1), (2)")
    assert ask.tag("wait for waited") == "WAIT"
    assert ask.tag("wait for waited partition 0 offset 1") == "WAIT"
    ask("set statement_timeout = '50ms'")
    assert ask.error("wait for waited offset 1000").sqlstate == "57014"
    ask("reset statement_timeout")
    assert ask.error("wait for waited partition 7").sqlstate == "22023"
    assert ask.error("wait waited").sqlstate == "42601"


def test_cancelling(ask: Asking) -> None:
    errors: list[SqlError] = []

    def work() -> None:
        errors.append(ask.error(ENDLESS))

    ask.session.cancel()  # nothing runs: without effect
    thread = threading.Thread(target=work)
    thread.start()
    wait_until(lambda: bool(ask.session.running._leases))
    ask.session.cancel()
    thread.join()
    assert errors[0].sqlstate == "57014"
    assert ask.rows("select 1") == [(1,)]


def test_a_statement_has_a_time(broker: Broker) -> None:
    engine = engine_of(broker, seconds=0.2)
    try:
        ask = asking(engine)
        assert ask.error(ENDLESS).sqlstate == "57014"
        assert ask.rows("select 1") == [(1,)]
    finally:
        engine.close()


@pytest.fixture
def small(broker: Broker) -> Iterator[SqlEngine]:
    engine = engine_of(
        broker, memory_bytes=100 << 20, spill_bytes=1 << 20, queries=1, wait_s=0.05, rows=1000, sessions=2, threads=1
    )
    yield engine
    engine.close()


def test_a_query_has_its_memory(small: SqlEngine) -> None:
    ask = asking(small)
    assert ask.error("select string_agg(range::text, ',') from range(100000000)").sqlstate in ("53200", "53100")
    assert ask.error(
        "select count(*) from (select range, random() r from range(30000000) order by r limit 25000000)"
    ).sqlstate in ("53200", "53100")
    assert ask.rows("select 1") == [(1,)]


def test_results_queries_and_sessions_are_counted(small: SqlEngine) -> None:
    ask, other = asking(small), asking(small)
    assert ask.error("select * from range(2000)").sqlstate == "54000"
    with pytest.raises(SqlError) as caught:
        small.session(Caller())
    assert caught.value.sqlstate == "53300"
    open_result = ask.session.execute(ask.session.prepare("select * from range(900)"))
    assert other.error("select 1").sqlstate == "53300"
    open_result.close()
    assert other.rows("select 1") == [(1,)]
    other.session.close()
    assert asking(small).rows("select 1") == [(1,)]


def test_hostile_statements(ask: Asking, monkeypatch: pytest.MonkeyPatch) -> None:
    assert ask.error("select " + "(" * 500 + "1" + ")" * 500).sqlstate == "54001"
    assert ask.error("select " + "-".join(["(1"] * 90) + ")" * 90 + " nope from").sqlstate in ("42601", "54001")
    assert ask.rows("select " + "(" * 30 + "1" + ")" * 30) == [(1,)]
    assert ask.error("select " + "not " * 3000 + "true").sqlstate in ("54001", "42601")
    assert ask.rows("select " + "+".join(["1"] * 300)) == [(300,)]
    assert ask.error("select '" + "x" * 100).sqlstate == "42601"
    monkeypatch.setattr(limits, "MAX_SQL_TOKENS", 100)
    assert ask.error("select " + "+".join(["1"] * 100)).sqlstate == "54000"
    monkeypatch.setattr(limits, "MAX_SQL_CHARACTERS", 100)
    assert ask.error("select '" + "x" * 100 + "'").sqlstate == "54000"
    monkeypatch.undo()
    monkeypatch.setattr(limits, "MAX_SQL_DEPTH", 3)
    assert ask.error("select ((((1))))").sqlstate == "54001"


WORDS = (
    "'",
    '"',
    "(",
    ")",
    "$1",
    "\\",
    "\x00",
    "--",
    "/*",
    ";",
    "::",
    "null",
    "*",
    ",",
    "[",
    "]",
    "select",
    "from",
    "as",
    "<",
    "é",
)
SEEDS = (
    "select a, sum(b) over (partition by a) from (values (1, 2)) t(a, b) where a in (1, 2) order by 1 limit 3",
    "create table fuzzed (a text[], b struct<x int>, m map<text, int>, n numeric(10, 2) default 1, primary key (a)) with (topic = 'x')",
    "insert into fuzzed (a, n) values ('{x}', 1), (default, null) on conflict (a) do update set n = excluded.n returning *",
    "merge into fuzzed using (select 1 as i) s on a = s.i when matched then delete when not matched then insert (a) values (s.i)",
    "copy fuzzed (a, n) from stdin with (format csv, header true, null 'x')",
    "comment on column fuzzed.a is 'x'",
    "alter table fuzzed add column if not exists c int not null default 3",
    "prepare p (int, text) as select $1 + 1, $2",
    "with recursive r(n) as (select 1 union all select n + 1 from r where n < 5) select * from r",
    "select cast(a as int), 'x'::regclass, interval '1 day', extract(year from now()), current_setting('jit') from pg_class",
    "explain (analyze, format text) select 1",
)


def test_statements_that_are_nearly_right(ask: Asking) -> None:
    random = Random(7)
    states = set()
    for _ in range(500):
        words = re.findall(r"\w+|\s+|[^\w\s]", random.choice(SEEDS))
        for _ in range(random.randint(1, 3)):
            place = random.randrange(len(words))
            if random.random() < 0.5:
                words.insert(place, random.choice([*WORDS, random.choice(words)]))
            elif len(words) > 1:
                del words[place]
        try:
            prepared = ask.session.prepare("".join(words))
            states.add("prepared" if prepared.copy is None else "copy")
        except SqlError as error:
            states.add(error.sqlstate)
    assert {"prepared", "42601"} <= states
    assert "XX000" not in states
    assert ask.rows("select 1") == [(1,)]


def test_connections_to_topics_are_limited(ask: Asking, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "MAX_SQL_SOURCES", 1)
    for number in range(3):
        ask(f"create table source_{number} (a int) append only")
        assert ask.rows(f"select * from source_{number}") == []
    assert len(ask.session.access._sources) == 1


def test_an_engine_that_is_closed(broker: Broker) -> None:
    engine = engine_of(broker)
    ask = asking(engine)
    engine.close()
    engine.close()
    assert ask.error("select 1").sqlstate == "57P01"
    with pytest.raises(SqlError):
        engine.session(Caller())
    with pytest.raises(ConfigError):
        engine_of(broker, dialect="basic")


def test_limits_have_a_default(engine: SqlEngine) -> None:
    assert engine._most == limits.MAX_SQL_SESSIONS


def test_a_limit_of_rows_is_not_negative(ask: Asking) -> None:
    assert ask.error("set max_rows = -1").sqlstate == "22023"
    ask("set extra_float_digits = -1")


@pytest.mark.parametrize(
    ("name", "kept", "refused"),
    [
        ("standard_conforming_strings", "on", "off"),
        ("DateStyle", "iso, dmy", "German"),
        ("IntervalStyle", "POSTGRES", "iso_8601"),
        ("bytea_output", "hex", "escape"),
        ("transform_null_equals", "off", "on"),
        ("array_nulls", "on", "off"),
    ],
)
def test_a_setting_that_would_change_results_keeps_its_value(ask: Asking, name: str, kept: str, refused: str) -> None:
    ask(f"set {name} = '{kept}'")
    assert ask.error(f"set {name} = '{refused}'").sqlstate == "0A000"


@pytest.mark.parametrize(
    ("texts", "is_fresh"),
    [
        (["select 1"], True),
        (["create table if not exists freshness (id bigint primary key)", "select * from freshness where id = 1"], True),
        (["set timezone = 'Europe/Zurich'"], False),
        (["set timezone = 'Europe/Zurich'", "reset all"], True),
        (["begin"], False),
        (["begin", "commit"], True),
        (["begin", "set local timezone = 'Europe/Zurich'", "rollback"], True),
        (["create temporary table passing (id bigint)"], False),
        (["prepare p as select 1"], False),
        (["prepare p as select 1", "deallocate p"], True),
        (["select set_config('timezone', 'Europe/Zurich', false)"], None),
    ],
)
def test_a_session_is_fresh_until_it_keeps_something(ask: Asking, texts: list[str], is_fresh: bool | None) -> None:
    for text in texts:
        try:
            ask(text)
        except SqlError:
            assert is_fresh is None, text
    wanted = ask.session.parameter("timezone") == "UTC" if is_fresh is None else is_fresh
    assert ask.session.is_fresh is wanted
