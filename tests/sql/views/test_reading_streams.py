"""STREAM t in FROM: each record is a row, in a query and in a materialized view."""

from __future__ import annotations

import pytest

from tests.sql.engine.asking import Asking
from tests.sql.views.fake_engine import FakeEngine

ALL = "select id, x from stream items order by _partition, _offset"


@pytest.fixture
def items(ask: Asking) -> Asking:
    """A table with a primary key whose topic has five upserts and a deletion."""
    ask("create table items (id int primary key, x text)")
    ask("insert into items values (1, 'a'), (2, 'b')")
    ask("update items set x = 'c' where id = 1")
    ask("delete from items where id = 2")
    ask("insert into items values (2, 'd')")
    return ask


def drop(ask: Asking) -> None:
    ask("drop table items cascade")


def test_each_upsert_is_a_row(items: Asking) -> None:
    assert items.rows(ALL) == [(1, "a"), (2, "b"), (1, "c"), (2, "d")]
    assert items.rows("select * from stream(items) as s where s._offset >= 2 order by s._offset") == [(1, "c"), (2, "d")]
    assert items.rows("select count(*), min(_partition), count(_timestamp) from STREAM items") == [(4, 0, 4)]
    assert items.rows("select count(*) from items, stream public.items as s where items.id = s.id") == [(4,)]
    assert items.rows("select count(*) from stream items where id = 1") == [(2,)]
    items("create view upserts as select * from stream items")
    assert items.rows("select count(*) from upserts") == [(4,)]
    drop(items)


def test_a_view_over_a_stream_only_grows(items: Asking) -> None:
    query = "select id, count(*) as n, max(x) as most from stream items group by id"
    items(f"create materialized view per_item as {query}")
    items(
        "create materialized view both as select s.id, s.x, i.x as now from stream items as s left join items as i on s.id = i.id"
    )
    items("update items set x = 'e' where id = 1")
    items("delete from items where id = 2")
    assert sorted(items.rows("select * from per_item")) == sorted(items.rows(query)) == [(1, 3, "e"), (2, 2, "d")]
    assert sorted(items.rows("select * from both"), key=repr) == [
        (1, "a", "e"), (1, "c", "e"), (1, "e", "e"), (2, "b", None), (2, "d", None),
    ]  # fmt: skip
    drop(items)


def test_a_stream_of_a_view_has_its_upserts(items: Asking, running: FakeEngine) -> None:
    items("create materialized view counted as select x, count(*) as n from items group by x")
    items("insert into items values (3, 'a')")
    assert ("a", 1) in items.rows("select x, n from stream counted")
    items("create materialized view changes as select count(*) as n from stream counted")
    items("flush")
    (number,) = items.rows("select n from changes")
    assert number == items.rows("select count(*) from stream counted")[0]
    drop(items)


def test_tables_without_a_key_and_topics_are_streams_as_they_are(ask: Asking) -> None:
    ask("create table lines (line text) with (format = 'text', topic = 'lines.topic')")
    ask("insert into lines values ('one'), ('one')")
    assert ask.rows("select * from stream lines") == [("one",), ("one",)]
    assert ask.rows('select value from stream "lines.topic"') == [("one",), ("one",)]
    assert ask.rows("select window_start is not null from tumble(stream(lines), _timestamp, interval '1 day')") == [(True,)] * 2
    ask("drop table lines")


def test_windows_over_a_stream(ask: Asking) -> None:
    ask("create table clicks (id int primary key, at timestamp)")
    ask("insert into clicks values (1, '2026-01-01 00:00:10'), (2, '2026-01-01 00:00:20')")
    ask("update clicks set at = '2026-01-01 00:01:00' where id = 1")
    query = "select window_start, count(*) as n from tumble(stream(clicks), at, interval '1 minute') group by window_start"
    ask(f"create materialized view per_minute as {query}")
    assert sorted(row[1] for row in ask.rows("select * from per_minute")) == sorted(row[1] for row in ask.rows(query)) == [1, 2]
    ask("drop table clicks cascade")


def test_a_table_may_be_called_stream(ask: Asking) -> None:
    ask("create table stream (stream int)")
    ask("insert into stream (stream) values (1)")
    ask("insert into stream values (2)")
    assert ask.rows("select stream from stream where stream > 1") == [(2,)]
    assert ask.rows("select s.stream from stream as s left join stream as t using (stream) order by 1") == [(1,), (2,)]
    assert ask.rows("select count(*) from stream stream") == [(2,)]
    ask("drop table stream")


@pytest.mark.parametrize(
    ("statement", "state"),
    [
        ("select * from stream nothing", "42P01"), ("select * from stream pg_class", "42809"),
        ("select * from stream shown", "42809"), ("select * from stream barnabas.views", "42809"),
        ("delete from stream items", "0A000"), ("select * from stream", "42P01"),
    ],
)  # fmt: skip
def test_what_is_no_stream(items: Asking, statement: str, state: str) -> None:
    items("create view shown as select * from items")
    error = items.error(statement)
    assert error.sqlstate == state
    assert error.position
    drop(items)
