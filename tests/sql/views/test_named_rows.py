"""Views, streams and jobs over tables without a primary key, whose topic other programs write to as well."""

from __future__ import annotations

import pytest

from barnabas.sql.engine import SqlEngine
from tests.sql.engine.asking import Asking
from tests.sql.engine.named_rows import Rows
from tests.sql.views.fake_engine import FakeEngine
from tests.sql.views.test_subscribe import Subscriber

VIEWS = {
    "plain": "select n, s from {0} where n > 0",
    "sums": "select s, count(*) as c, sum(n) as t from {0} group by s",
    "pairs": "select a.n, b.s from {0} a join {0} b on a.n = b.n",
    "places": "select _row as place, _partition as p, n from {0}",
    "brought": "select s, count(*) as c from stream {0} group by s",
}


def test_a_view_has_keys_of_streams_alone(ask: Asking, running: FakeEngine) -> None:
    ask("create table with_keys (n int)")
    error = ask.error("create materialized view bad as select _key as k, n from with_keys")
    assert (error.sqlstate, "STREAM" in (error.hint or "")) == ("0A000", True)
    ask("insert into with_keys values (1)")
    ask("create materialized view good as select _key as k, n from stream with_keys")
    assert ask.rows("select * from good") == [(None, 1)]
    ask("drop table with_keys cascade")


@pytest.mark.parametrize("format_name", ["primary key", ""])
def test_records_that_do_not_fit_are_no_rows_of_views(ask: Asking, running: FakeEngine, format_name: str) -> None:
    ask(f"create table strict (id text {format_name}, n int) with (mode = 'drop')")
    ask("create materialized view fits as select count(*) as c, sum(n) as t from strict")
    ask("insert into strict values ('a', 1), ('b', 2)")
    ask("create table any_text (id text, line text) with (topic = 'strict', key = 'id', format = 'text')")
    ask("insert into any_text values ('b', 'no row'), ('c', 'none either')")
    ask("flush")
    expected = ask.rows("select count(*), sum(n) from strict")
    assert ask.rows("select * from fits") == expected == [(1, 1) if format_name else (2, 3)]
    ask("drop table any_text, strict cascade")


@pytest.mark.parametrize("seed", range(3))
def test_views_are_their_queries(ask: Asking, running: FakeEngine, seed: int) -> None:
    table = f"viewed_{seed}"
    rows = Rows(ask, table, seed)
    rows.insert()
    for name, query in VIEWS.items():
        ask(f"create materialized view {name}_{seed} as {query.format(table)}")
    for _ in range(6):
        for _ in range(4):
            rows.step()
        rows.check()
        for name, query in VIEWS.items():
            ask(f"refresh materialized view {name}_{seed}")
            view, wanted = f"select * from {name}_{seed}", query.format(table)
            assert ask.rows(f"({view}) except all ({wanted})") == []
            assert ask.rows(f"({wanted}) except all ({view})") == []
    ask(f"drop table {table} cascade")


def test_a_job_takes_each_row_of_a_stream_once(ask: Asking, running: FakeEngine) -> None:
    ask("create table sightings (bird text, n int)")
    ask("create table kinds (bird text, kind text)")
    ask("insert into kinds values ('wren', 'old'), ('owl', 'large')")
    ask("update kinds set kind = 'small' where bird = 'wren'")
    ask("create table seen (bird text, kind text, n int)")
    ask("insert into sightings values ('wren', 1)")
    ask("update sightings set n = 5")
    ask(
        "insert into seen with (start = 'earliest', job = 'see') "
        "select s.bird, k.kind, s.n from stream sightings s left join kinds k on s.bird = k.bird"
    )
    ask("insert into sightings values ('owl', 2), ('kite', 3)")
    ask("update sightings set n = 100")
    ask("flush")
    expected = [("kite", None, 3), ("owl", "large", 2), ("wren", "small", 1)]
    assert sorted(ask.rows("select * from seen")) == expected
    ask("update kinds set kind = 'tiny' where bird = 'wren'")
    ask("flush")
    ask("insert into sightings values ('wren', 4)")
    ask("flush")
    assert sorted(ask.rows("select * from seen"), key=str) == sorted([*expected, ("wren", "tiny", 4)], key=str)
    assert ask.tag("update seen set n = 0 where bird = 'wren'") == "UPDATE 2"
    assert sorted(ask.rows("select n from seen")) == [(0,), (0,), (2,), (3,)]
    ask("drop job see")
    ask("drop table sightings, kinds, seen cascade")


def test_a_subscription_names_the_rows(ask: Asking, running: FakeEngine, engine: SqlEngine) -> None:
    ask("create table moves (k text, x int)")
    ask("insert into moves values ('a', 1), ('b', 2)")
    found = Subscriber(engine, "subscribe to moves")
    assert found.names == ["_offset", "_deleted", "k", "x", "_row"]
    assert [row[1:] for row in found.take(2)] == [(False, "a", 1, "0:0"), (False, "b", 2, "0:1")]
    ask("update moves set x = 7 where k = 'a'")
    ask("delete from moves where k = 'b'")
    ask("insert into moves values ('c', 3)")
    assert [row[1:] for row in found.take(3)] == [(False, "a", 7, "0:0"), (True, None, None, "0:1"), (False, "c", 3, "0:4")]
    found.close()
    ask("drop table moves")
