"""BEGIN to COMMIT: all rows or none, seen by the session itself before that."""

from __future__ import annotations

import pytest

from barnabas import limits
from barnabas.sql.engine import SqlEngine
from barnabas.sql.interface import SqlError
from tests.sql.engine.asking import Asking, asking


@pytest.fixture
def ask(ask: Asking) -> Asking:
    ask("drop table if exists t")
    ask("create table t (id int primary key, name text)")
    ask("drop table if exists log")
    ask("create table log (a int)")
    ask("insert into t values (1, 'one')")
    ask.session.take_notices()  # the tables may not have been there
    return ask


def test_rows_are_seen_inside_and_not_outside(ask: Asking, engine: SqlEngine) -> None:
    other = asking(engine)
    assert (ask.session.state, ask.tag("begin"), ask.session.state) == ("I", "BEGIN", "T")
    ask("insert into t values (2, 'two')")
    ask("insert into log values (1), (2)")
    ask("update t set name = 'ONE' where id = 1")
    ask("update t set name = name || '!' where id = 2")
    assert ask.rows("select * from t order by id") == [(1, "ONE"), (2, "two!")]
    assert ask.rows("select name, _key from t where id = 2") == [("two!", 2)]
    assert ask.rows("select count(*), max(_offset) is null from log") == [(2, True)]
    assert other.rows("select * from t") == [(1, "one")]
    assert other.rows("select * from log") == []
    assert (ask.tag("commit"), ask.session.state) == ("COMMIT", "I")
    assert other.rows("select * from t order by id") == [(1, "ONE"), (2, "two!")]
    assert other.rows("select count(*) from log") == [(2,)]


def test_rollback(ask: Asking) -> None:
    ask("start transaction isolation level read committed, read write")
    ask("insert into log values (1)")
    ask("delete from t")
    assert ask.rows("select * from t") == []
    assert ask.tag("rollback") == "ROLLBACK"
    assert ask.rows("select * from t") == [(1, "one")]
    assert ask.rows("select * from log") == []
    assert ask.tag("rollback") == "ROLLBACK"
    assert ask.tag("commit") == "COMMIT"


def test_a_transaction_that_failed_ends_only(ask: Asking) -> None:
    ask("begin")
    ask("insert into log values (1)")
    assert ask.error("insert into t values (1, 'again')").sqlstate == "23505"
    assert ask.session.state == "E"
    assert ask.error("select 1").sqlstate == "25P02"
    assert ask.tag("commit") == "ROLLBACK"
    assert ask.session.state == "I"
    assert ask.rows("select * from log") == []


def test_keys_of_the_transaction_count(ask: Asking) -> None:
    ask("begin")
    ask("insert into t values (2, 'b')")
    assert ask.error("insert into t values (2, 'c')").sqlstate == "23505"
    ask("rollback")
    ask("begin")
    ask("delete from t where id = 1")
    assert ask.tag("insert into t values (1, 'new')") == "INSERT 0 1"
    ask("commit")
    assert ask.rows("select * from t") == [(1, "new")]


def test_savepoints(ask: Asking) -> None:
    assert ask.error("savepoint a").sqlstate == "25P01"
    ask("begin")
    ask("insert into t values (2, 'b')")
    ask("savepoint a")
    ask("insert into t values (3, 'c')")
    ask("insert into log values (1)")
    ask("savepoint b")
    assert ask.error("insert into t values (3, 'd')").sqlstate == "23505"
    assert ask.tag("rollback to savepoint a") == "ROLLBACK"
    assert ask.session.state == "T"
    assert ask.rows("select id from t order by id") == [(1,), (2,)]
    assert ask.rows("select * from log") == []
    assert ask.error("rollback to b").sqlstate == "3B001"
    ask("rollback to a")
    assert ask.tag("release savepoint a") == "RELEASE"
    ask("commit")
    assert ask.rows("select id from t order by id") == [(1,), (2,)]


def test_prepared_statements_see_the_rows_too(ask: Asking) -> None:
    count = ask.session.prepare("select count(*) from t")
    assert next(ask.session.execute(count).batches()).to_pylist() == [{"count": 1}]
    ask("begin")
    ask("insert into t values (5, 'e')")
    assert next(ask.session.execute(count).batches()).to_pylist() == [{"count": 2}]
    ask("rollback")
    assert next(ask.session.execute(count).batches()).to_pylist() == [{"count": 1}]


WRITES = (
    "insert into log values (1)",
    "insert into t select 3, 'three'",
    "update t set name = 'other'",
    "delete from t",
    "merge into t using (select 1 as id) s on t.id = s.id when matched then delete",
    "truncate log",
    "create table further (a int)",
    "create table further as select 1 as a",
    "create temporary table further (a int)",
    "alter table log add column b int",
    "comment on table log is 'x'",
    "drop table log",
)


def test_a_read_only_transaction_writes_nothing(ask: Asking) -> None:
    ask("create temporary table own (a int)")
    for text in WRITES:
        for begin in ("begin read only", "start transaction read write, read only", "begin; set transaction read only"):
            for each in begin.split("; "):
                ask(each)
            assert ask.rows("select * from t") == [(1, "one")]
            ask("insert into own values (1)")
            assert ask.error(text).sqlstate == "25006", text
            assert ask.tag("commit") == "ROLLBACK"
    ask("begin read only")
    with pytest.raises(SqlError) as caught:
        ask.copy_in("copy log from stdin", b"1\n")
    assert caught.value.sqlstate == "25006"
    ask("rollback")


@pytest.mark.parametrize(
    "text", ["set default_transaction_read_only = on", "set session characteristics as transaction read only"]
)
def test_a_read_only_session_writes_nothing(ask: Asking, text: str) -> None:
    ask(text)
    assert ask.rows("show transaction_read_only") == [("on",)]
    for write in WRITES:
        assert ask.error(write).sqlstate == "25006", write
    with pytest.raises(SqlError) as caught:
        ask.copy_in("copy log from stdin", b"1\n")
    assert caught.value.sqlstate == "25006"
    ask("begin read write")
    ask("insert into log values (1)")
    ask("commit")
    ask("reset all")
    ask("insert into log values (2)")
    assert ask.rows("select count(*) from log") == [(2,)]


@pytest.mark.parametrize("level", ["repeatable read", "serializable"])
def test_levels_that_do_not_hold_are_accepted_with_a_warning(ask: Asking, level: str) -> None:
    for begin in ("begin", "start transaction"):
        ask(f"{begin} isolation level {level}, read only")
        assert ask.rows("show transaction_isolation") == [(level,)]
        (warning,) = ask.session.take_notices()
        assert (warning.severity, warning.sqlstate) == ("WARNING", "01000")
        assert "each statement sees what was committed when it began" in warning.message
        ask("rollback")
        assert ask.rows("show transaction_isolation") == [("read committed",)]
    ask("begin")
    ask(f"set transaction isolation level {level}")
    assert ask.rows("show transaction isolation level") == [(level,)]
    ask("commit")
    for statement in (
        f"set session characteristics as transaction isolation level {level}",
        f"set default_transaction_isolation = '{level}'",
        f"select set_config('default_transaction_isolation', '{level}', false)",
    ):
        ask.session.take_notices()
        ask(statement)
        assert len(ask.session.take_notices()) == 1, statement
        assert ask.rows("show transaction_isolation") == [(level,)]
        ask("reset default_transaction_isolation")
    assert ask.session.take_notices() == []


def test_a_session_keeps_few_notices(ask: Asking, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "MAX_SQL_NOTICES", 2)
    for _ in range(3):
        ask("set default_transaction_isolation = serializable")
    assert len(ask.session.take_notices()) == 2


def test_modes_that_are_refused(ask: Asking) -> None:
    for prefix in ("begin ", "start transaction ", "set transaction ", "set session characteristics as transaction "):
        assert ask.error(f"{prefix}nonsense").sqlstate == "42601"
    assert ask.session.state == "I"
    assert ask.error("rollback and chain").sqlstate == ask.error("commit work and chain").sqlstate == "0A000"
    ask("begin transaction isolation level read uncommitted not deferrable")
    assert ask.rows("show transaction_isolation") == [("read uncommitted",)]
    ask("rollback and no chain")


def test_locks_that_are_refused(ask: Asking) -> None:
    for words in ("for update", "for no key update of t nowait", "for share skip locked"):
        assert ask.error(f"select * from (select * from t {words}) x").sqlstate == "0A000"
    assert ask.error("select pg_advisory_lock(1)").sqlstate == "42883"


def test_set_local_outside_of_a_transaction_has_no_effect(ask: Asking) -> None:
    for text in ("set local application_name = 'inner'", "set transaction read only", "set transaction_read_only = on"):
        assert ask.tag(text) == "SET"
    assert ask.rows("show application_name") == [("",)]
    assert ask.tag("insert into log values (1)") == "INSERT 0 1"


def test_set_local_ends_with_the_transaction(ask: Asking) -> None:
    ask("begin")
    ask("set local application_name = 'inner'")
    assert ask.rows("show application_name") == [("inner",)]
    ask("commit")
    assert ask.rows("show application_name") == [("",)]


def test_the_limit_of_a_transaction(ask: Asking, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "MAX_SQL_TRANSACTION_BYTES", 1_000)
    ask("begin")
    assert ask.error("insert into log select range from range(10000)").sqlstate == "54000"
    ask("rollback")


def test_a_session_that_is_closed_writes_nothing(engine: SqlEngine, ask: Asking) -> None:
    other = asking(engine)
    other("begin")
    other("insert into log values (1)")
    other.session.close()
    other.session.close()
    assert ask.rows("select * from log") == []
    assert other.error("select 1").sqlstate == "57P01"


def test_returning_after_other_writes_to_the_table(ask: Asking) -> None:
    ask("begin")
    assert ask.rows("insert into t values (2, 'two') returning id") == [(2,)]
    assert ask.rows("insert into t values (3, 'three') on conflict (id) do update set name = 'x' returning id, name") == [
        (3, "three")
    ]
    assert ask.rows("insert into t values (3, 'four') on conflict (id) do update set name = excluded.name returning *") == [
        (3, "four")
    ]
    assert ask.rows("update t set name = 'ONE' where id = 1 returning name") == [("ONE",)]
    assert ask.rows("update t as other set name = 'two!' where id = 2 returning other.name") == [("two!",)]
    assert ask.rows("delete from t where id = 1 returning *") == [(1, "ONE")]
    ask("commit")
    assert ask.rows("select * from t order by id") == [(2, "two!"), (3, "four")]


@pytest.mark.parametrize("begin", [
    ("begin read only",), ("start transaction isolation level read committed, read only",), ("begin", "set transaction read only"),
    ("begin", "set transaction_read_only = on"), ("set session characteristics as transaction read only", "begin"),
    ("set default_transaction_read_only = on", "begin"), ("set default_transaction_read_only = on",),
])  # fmt: skip
def test_what_may_only_read_writes_nothing(ask: Asking, begin: tuple[str, ...]) -> None:
    writes = [
        "insert into t values (2, 'two')", "update t set name = 'x'", "delete from t", "truncate t", "drop table t",
        "alter table t add column b int", "create table made (a int)", "create table made as select 1 as a", "comment on table t is 'x'",
        "merge into t using (select 1 as id) s on t.id = s.id when matched then delete",
    ]  # fmt: skip
    for text in writes:
        for each in begin:
            ask(each)
        assert ask.rows("select name from t") == [("one",)]
        assert ask.error(text).sqlstate == "25006", text
        ask("rollback")
    ask("set session characteristics as transaction read write")
    assert ask.error("select * from made").sqlstate == "42P01"
    ask("insert into t values (2, 'two')")
    assert ask.rows("select count(*) from t") == [(2,)]


def test_read_only_ends_with_its_transaction(ask: Asking) -> None:
    ask("begin read only")
    ask("commit")
    ask("set transaction read only")
    ask("insert into t values (2, 'two')")
    ask("begin")
    ask("insert into t values (3, 'three')")
    ask("commit")
    ask("set default_transaction_read_only = on")
    ask("begin read write")
    ask("insert into t values (4, 'four')")
    ask("commit")
    assert ask.rows("select count(*) from t") == [(4,)]
    ask("begin")
    assert ask.rows("show transaction_read_only") == [("on",)]
    ask("rollback")
    with pytest.raises(SqlError, match="read-only"):
        ask.copy_in("copy t from stdin", b"5\tfive\n")
