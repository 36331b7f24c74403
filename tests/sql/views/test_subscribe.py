"""SUBSCRIBE: rows, then changes, to cancel and to resume."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from barnabas.sql.engine import SqlEngine
from barnabas.sql.interface import SqlError
from tests.sql.engine.asking import Asking, asking
from tests.sql.views.fake_engine import FakeEngine


class Subscriber:
    """A subscription in a session of its own."""

    def __init__(self, engine: SqlEngine, text: str) -> None:
        self._asked = asking(engine)
        result = self._asked.session.execute(self._asked.session.prepare(text))
        assert result.schema is not None
        self.names = result.schema.names
        self._batches = result.batches()
        self._found: list[tuple[Any, ...]] = []

    def has_begun(self) -> bool:
        """Take the batch without rows that comes at the begin."""
        return next(self._batches).num_rows == 0

    def rest(self) -> list[Any]:
        """The batches that are left, of a subscription that ends by itself."""
        return list(self._batches)

    def take(self, count: int) -> list[tuple[Any, ...]]:
        """The next rows."""
        while len(self._found) < count:
            self._found += [tuple(row.values()) for row in next(self._batches).to_pylist()]
        rows, self._found = self._found[:count], self._found[count:]
        return rows

    def error(self) -> SqlError:
        """The error that ends it."""
        with pytest.raises(SqlError) as caught:
            for _ in self._batches:
                pass
        return caught.value

    def cancel(self) -> None:
        self._asked.session.cancel()

    def close(self) -> None:
        self._asked.session.close()


@pytest.fixture
def totals(ask: Asking) -> Iterator[Asking]:
    """A view with two rows."""
    ask("create table moves (k text, x int)")
    ask("insert into moves values ('a', 1), ('b', 2)")
    ask("create materialized view balance as select k, sum(x) as s from moves group by k having sum(x) <> 0")
    yield ask
    ask("drop table moves cascade")


def test_snapshot_and_changes(totals: Asking, engine: SqlEngine) -> None:
    found = Subscriber(engine, "subscribe to balance")
    assert found.names == ["_offset", "_deleted", "k", "s"]
    assert sorted(row[1:] for row in found.take(2)) == [(False, "a", 1), (False, "b", 2)]
    totals("insert into moves values ('a', 10)")
    assert [row[1:] for row in found.take(1)] == [(False, "a", 11)]
    totals("insert into moves values ('b', -2)")
    ((offset, *row),) = found.take(1)
    assert row[:2] == [True, "b"]
    found.cancel()
    assert found.error().sqlstate == "57014"
    found.close()
    totals("insert into moves values ('c', 5)")
    again = Subscriber(engine, f"subscribe balance with (from = '{offset}')")
    assert [row[1:] for row in again.take(1)] == [(False, "c", 5)]
    again.close()
    late = Subscriber(engine, "subscribe balance with (snapshot = off)")
    next(late._batches)
    totals("insert into moves values ('d', 7)")
    assert [row[1:] for row in late.take(1)] == [(False, "d", 7)]
    late.close()


def test_tables(ask: Asking, engine: SqlEngine, running: FakeEngine) -> None:
    ask("create table kept (id int primary key, name text)")
    ask("insert into kept values (1, 'one')")
    found = Subscriber(engine, "subscribe kept")
    assert [row[1:] for row in found.take(1)] == [(False, 1, "one")]
    ask("delete from kept where id = 1")
    assert [row[1:] for row in found.take(1)] == [(True, 1, None)]
    ask("drop table kept")
    assert found.error().sqlstate in ("55000", "42P01")
    found.close()
    ask("create table grows (a int) with (partitions = 3)")
    ask("insert into grows values (1), (2)")
    found = Subscriber(engine, "subscribe grows")
    assert sorted(row[2] for row in found.take(2)) == [1, 2]
    ask("insert into grows values (3)")
    assert [row[2] for row in found.take(1)] == [3]
    found.close()
    ask("drop table grows")


def test_what_cannot_be_subscribed(totals: Asking) -> None:
    totals("create view plain_balance as select * from balance")
    assert totals.error("subscribe plain_balance").sqlstate == "42809"
    assert totals.error("subscribe barnabas.views").sqlstate == "42809"
    assert totals.error("subscribe nothing_there").sqlstate == "42P01"
    assert totals.error("subscribe").sqlstate == "42601"
    assert totals.error("subscribe balance with (snapshot = maybe)").sqlstate == "42601"
    assert totals.error("subscribe balance with (speed = 1)").sqlstate == "42601"
    assert totals.error("subscribe balance with (from = 'x')").sqlstate == "22023"
    assert totals.error("subscribe balance with (snapshot = on, from = '0:1')").sqlstate == "22023"


def test_statement_timeout_ends_it(totals: Asking, engine: SqlEngine) -> None:
    asked = asking(engine, statement_timeout="300ms")
    result = asked.session.execute(asked.session.prepare("subscribe balance"))
    with pytest.raises(SqlError) as caught:
        for _ in result.batches():
            pass
    assert caught.value.sqlstate == "57014"
    assert asked.rows("select 1") == [(1,)]
    asked.session.close()
