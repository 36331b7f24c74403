"""ADD COLUMN … DEFAULT: rows that came before the column show its default, and rows with a null show null."""

from __future__ import annotations

import datetime
import json
from collections.abc import Iterator
from decimal import Decimal

import pyarrow as pa
import pytest

from barnabas.sql.engine import SqlEngine
from barnabas.tables.declaration import declared
from barnabas.tables.json_format import JsonFormat, decode_each, decode_json
from barnabas.testing import Broker
from tests.sql.engine.asking import Asking, asking, engine_of


@pytest.fixture(params=["id int primary key, a text", "id int, a text"], ids=["keyed", "named"])
def grown(ask: Asking, request: pytest.FixtureRequest) -> Iterator[Asking]:
    ask(f"create table grown ({request.param})")
    ask("insert into grown select i, 'x' from range(1, 50) r(i)")
    yield ask
    ask("drop table grown cascade")


def test_rows_that_are_there_have_the_default(grown: Asking) -> None:
    grown("alter table grown add column c int default 5")
    grown("insert into grown values (100, 'y', null), (101, 'y', 7)")
    grown("insert into grown (id) values (102)")
    assert grown.rows("select c from grown where id in (1, 100, 101, 102) order by id") == [(5,), (None,), (7,), (5,)]
    assert grown.rows("select * from grown where id = 1") == [(1, "x", 5)]
    assert grown.rows("select count(*) from grown where c = 5") == [(50,)]
    assert grown.rows("select count(*) from grown where c is null") == [(1,)]
    grown("alter table grown alter column c set default 9")
    grown("insert into grown (id) values (103)")
    assert grown.rows("select c from grown where id in (1, 103) order by id") == [(5,), (9,)]
    grown("update grown set a = 'z' where id = 1")
    assert grown.rows("select * from grown where id = 1") == [(1, "z", 5)]
    grown("alter table grown rename column c to d")
    assert grown.rows("select d from grown where id = 2") == [(5,)]
    grown("alter table grown drop column d")
    grown("alter table grown add column c text default 'again'")
    assert grown.rows("select distinct c from grown") == [("again",)]


def test_defaults_of_all_kinds(grown: Asking) -> None:
    grown("alter table grown add column b boolean not null default true, add column n numeric(5,2) default 1.5")
    grown("""alter table grown add column j jsonb default '{"a": 1}', add column l int[] default array[1, 2]""")
    grown("alter table grown add column d date default '2020-01-02', add column at timestamptz default now()")
    row = grown.rows("select b, n, j, l, d from grown where id = 3")
    assert row == [(True, Decimal("1.50"), '{"a": 1}', [1, 2], datetime.date(2020, 1, 2))]
    first = grown.rows("select distinct at from grown")
    assert len(first) == 1
    assert grown.rows("select distinct at from grown") == first
    assert '-- records without the field have b true, n 1.50, j {"a": 1}, l [1,2], d "2020-01-02"' in grown.rows(
        "show create table grown"
    )[0][1]  # fmt: skip
    grown("alter table grown alter column b drop not null")
    grown("insert into grown (id, b) values (200, null)")
    assert grown.rows("select b from grown where id in (1, 200) order by id") == [(True,), (None,)]


def test_defaults_that_cannot_be_one_value(grown: Asking) -> None:
    for default in ("random()", "gen_random_uuid()::text", "clock_timestamp()::text"):
        error = grown.error(f"alter table grown add column r text default {default}")
        assert (error.sqlstate, "UPDATE the rows" in (error.hint or "")) == ("0A000", True)
    assert grown.error("alter table grown add column r varchar(2) default 'abc'").sqlstate == "22001"
    assert grown.error("alter table grown add column r int default 1 unique").sqlstate == "0A000"
    assert grown.error("alter table grown add column r int default -1 check (r >= 0)").sqlstate == "23514"
    grown("alter table grown add column r int not null default 0 check (r >= 0)")
    assert grown.error("insert into grown (id, r) values (300, -1)").sqlstate == "23514"
    assert grown.rows("select distinct r from grown") == [(0,)]


def test_views_and_other_engines_see_the_default(broker: Broker, grown: Asking) -> None:
    grown("alter table grown add column c int default 5")
    grown("create view seen as select c, count(*) as n from grown group by c")
    other: SqlEngine = engine_of(broker)
    try:
        session = asking(other)
        assert session.rows("select * from seen") == [(5, 49)]
        assert session.rows("select c from grown where id = 1") == [(5,)]
        session.session.close()
    finally:
        other.close()


def test_kernels_and_python_decode_the_same_values() -> None:
    fields = declared("a int default '5', b text default '\"it''s\"', c decimal(5,2) default '1.5', d text, e json default '[1]'")
    lines = [{}, {"a": None, "b": None}, {"a": 1, "b": "x", "c": 2, "d": "y", "e": {}}, {"b": "z"}, [], None]
    payloads = pa.array([json.dumps(each).encode() for each in lines] * 20 + [None], pa.binary())
    one_by_one, bulk = decode_each(fields, payloads), decode_json(fields, payloads)
    assert [each.to_pylist() for each in bulk.columns] == [each.to_pylist() for each in one_by_one.columns]
    assert [each.to_pylist()[:6] for each in bulk.columns] == [
        [5, None, 1, 5, None, None], ["it's", None, "x", "z", None, None],
        [Decimal("1.50"), Decimal("1.50"), Decimal("2.00"), Decimal("1.50"), None, None], [None, None, "y", None, None, None],
        ["[1]", "[1]", "{}", "[1]", None, None],
    ]  # fmt: skip


def test_a_written_null_is_read_back() -> None:
    made = JsonFormat(declared("a int default '5', b text"))
    rows = pa.RecordBatch.from_arrays([pa.array([None, 1], pa.int32()), pa.array(["x", None])], names=["a", "b"])
    decoded = made.decode(made.encode(rows), None, ["a", "b"])
    assert [each.to_pylist() for each in decoded.columns] == [[None, 1], ["x", None]]
