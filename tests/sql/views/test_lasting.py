"""Views that last: for all sessions and servers, without rows of their own."""

from __future__ import annotations

from barnabas.sql.engine import SqlEngine
from barnabas.testing import Broker
from tests.sql.engine.asking import Asking, asking, engine_of


def test_view_of_all_sessions_and_servers(ask: Asking, engine: SqlEngine, broker: Broker) -> None:
    ask("create table orders (id int, customer text, amount int)")
    ask("insert into orders values (1, 'ann', 5), (2, 'bob', 7), (3, 'ann', 1)")
    assert ask.tag("create view spent as select customer, sum(amount) as total from orders group by customer") == "CREATE VIEW"
    other = engine_of(broker)
    for asked in (ask, asking(engine), asking(other)):
        assert sorted(asked.rows("select * from spent")) == [("ann", 6), ("bob", 7)]
        assert asked.rows("with orders as (select 1 as x) select s.total from public.spent s, orders where customer = 'bob'") == [
            (7,)
        ]
    ask("insert into orders values (4, 'bob', 1)")
    assert asking(other).rows("select total from spent where customer = 'bob'") == [(8,)]
    other.close()
    assert ask.error("insert into spent values ('x', 1)").message == 'cannot change view "spent"'
    assert ask.error("drop table orders").sqlstate == "2BP01"
    assert ask.error("drop materialized view spent").sqlstate == "42809"
    assert ask.error("drop table spent").sqlstate == "42809"
    assert ask.tag("drop view spent") == "DROP VIEW"
    assert ask.error("select * from spent").sqlstate == "42P01"
    ask("drop table orders")


def test_views_on_views_and_their_columns(ask: Asking) -> None:
    ask("create table wide (a int, b int)")
    ask("insert into wide values (1, 2)")
    ask("create view first_one (x) as select * from wide")
    ask("create view second_one as select x + 1 as y, b from first_one")
    ask("alter table wide add column c int")
    assert ask("select * from first_one").names == ["x", "b"]
    assert ask.rows("select * from second_one") == [(2, 2)]
    assert ask.error("create view first_one as select 1").sqlstate == "42P07"
    assert ask.error("create or replace view first_one as select * from second_one").sqlstate == "42P17"
    assert ask.error("create or replace view first_one as select 1 as z").sqlstate == "42P16"
    ask("create or replace view first_one as select a * 10 as x, b, a from wide")
    assert ask.rows("select * from second_one") == [(11, 2)]
    ask("create view if not exists first_one as select 5 as z")
    assert ask("select * from first_one").names == ["x", "b", "a"]
    ask("alter view second_one rename to third_one")
    assert ask.rows("select y from third_one") == [(11,)]
    ask("alter view first_one rename to fourth_one")
    assert ask.rows("select y from third_one") == [(11,)]
    ask("drop view if exists fourth_one cascade")
    assert ask.error("select * from third_one").sqlstate == "42P01"
    ask("drop table wide")


def test_materialized_view_over_a_view(ask: Asking) -> None:
    ask("create table marks (k text, x int)")
    ask("create view good as select k, x from marks where x > 5")
    ask("create materialized view best as select k, max(x) as x from good group by k")
    ask("insert into marks values ('a', 9), ('a', 3), ('b', 4)")
    assert ask.rows("select * from best") == [("a", 9)]
    assert ask.error("drop view good").sqlstate == "2BP01"
    ask("create temporary view short as select 1 as a")
    assert ask.error("create view over as select * from short").sqlstate == "0A000"
    assert ask.error("create materialized view over as select * from short").sqlstate == "0A000"
    ask("create temporary view marks as select 'z' as k, 100 as x")
    assert ask.rows("select * from good") == [("a", 9)]  # of the table
    ask("drop view marks")
    ask("drop table marks cascade")
