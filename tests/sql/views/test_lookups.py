"""FOR SYSTEM_TIME AS OF PROCTIME(): a row meets the rows that a table has when the row comes."""

from __future__ import annotations

from tests.sql.engine.asking import Asking


def test_rows_are_not_taken_back(ask: Asking) -> None:
    ask("create table orders (id int, product text) append only")
    ask("create table prices (product text primary key, price int)")
    ask("create view known as select product, price from prices")
    ask("insert into prices values ('tea', 2)")
    as_of = "for system_time as of proctime()"
    ask(f"create materialized view paid as select id, price from orders join prices {as_of} as p on orders.product = p.product")
    ask(f"create materialized view asked as select id, price from orders left join known {as_of} using (product)")
    ask("insert into orders values (1, 'tea'), (2, 'cake')")
    ask("flush")
    ask("insert into prices values ('cake', 5)")
    ask("update prices set price = 3 where product = 'tea'")
    ask("flush")
    ask("insert into orders values (3, 'tea'), (4, 'cake')")
    assert sorted(ask.rows("select * from paid")) == [(1, 2), (3, 3), (4, 5)]
    assert sorted(ask.rows("select * from asked")) == [(1, 2), (2, None), (3, 3), (4, 5)]
    plain = f"select id, price from orders left join prices {as_of} as p using (product)"
    assert sorted(ask.rows(plain)) == [(1, 3), (2, 5), (3, 3), (4, 5)]
    lines = [row[0] for row in ask.rows("explain paid")]
    assert any("has when they come" in each and "keeps the rows of" in each for each in lines)
    ask("drop table orders cascade")
    ask("drop view known")
    ask("drop table prices cascade")


def test_what_is_refused(ask: Asking) -> None:
    ask("create table rows_of (id int primary key, k int)")
    view = "create materialized view w as select a.id from rows_of a"
    error = ask.error(f"{view} join rows_of for system_time as of proctime() as b on a.k = b.k")
    assert (error.sqlstate, "only added" in error.message) == ("0A000", True)
    assert ask.error(f"{view} right join rows_of for system_time as of proctime() as b on a.k = b.k").sqlstate == "0A000"
    error = ask.error("select * from rows_of for system_time as of timestamp '2024-01-01'")
    assert (error.sqlstate, error.hint) == ("0A000", "FOR SYSTEM_TIME AS OF PROCTIME()")
    ask("drop table rows_of")
