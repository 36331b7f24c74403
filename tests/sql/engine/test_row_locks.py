"""Statements of several sessions that change one row follow one another."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor

import pytest

from barnabas.sql.engine import SqlEngine
from barnabas.sql.interface import SqlError
from tests.sql.engine.asking import Asking, asking
from tests.waiting import wait_until

SESSIONS, TIMES = 4, 8
Waiting = Callable[[Callable[[], object]], Future[object]]


@pytest.fixture
def threads() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(SESSIONS) as pool:
        yield pool


@pytest.fixture
def other(engine: SqlEngine) -> Iterator[Asking]:
    made = asking(engine)
    yield made
    made.session.close()


@pytest.fixture
def ask(ask: Asking) -> Asking:
    ask("drop table if exists counts")
    ask("create table counts (id int primary key, n int, name text unique)")
    ask("insert into counts values (1, 0, 'a'), (2, 0, 'b')")
    return ask


@pytest.fixture
def waiting(engine: SqlEngine, threads: ThreadPoolExecutor) -> Waiting:
    """Runs an action in a thread, which waits for a lock by then."""

    def start(action: Callable[[], object]) -> Future[object]:
        found = threads.submit(action)
        wait_until(lambda: found.done() or engine.shared.locks.waiting, "a session waits for a lock")
        assert not found.done()
        return found

    return start


@pytest.mark.parametrize(
    "statements",
    [
        ["update counts set n = n + 1 where id = 1"],
        ["begin", "update counts set n = n + 1 where id = 1", "commit"],
        ["update counts set n = n + 1 where n >= 0 and id < 2"],
        ["insert into counts values (1, 1, 'a') on conflict (id) do update set n = counts.n + excluded.n"],
        ["merge into counts using (select 1 as id) s on counts.id = s.id when matched then update set n = n + 1"],
    ],
    ids=["by key", "in a transaction", "by a condition", "on conflict", "merge"],
)
def test_no_change_is_lost(engine: SqlEngine, ask: Asking, threads: ThreadPoolExecutor, statements: list[str]) -> None:
    def count() -> None:
        own = asking(engine)
        for _ in range(TIMES):
            for each in statements:
                own(each)
        own.session.close()

    for each in [threads.submit(count) for _ in range(SESSIONS)]:
        each.result()
    assert ask.rows("select n from counts where id = 1") == [(SESSIONS * TIMES,)]


def test_transfers_keep_the_sum(engine: SqlEngine, ask: Asking, threads: ThreadPoolExecutor) -> None:
    """Sessions that would wait for each other begin again, as programs do."""

    def transfer(number: int) -> None:
        own, done = asking(engine), 0
        while done < TIMES:
            source, target = (1, 2) if (number + done) % 2 else (2, 1)
            own("begin")
            try:
                own(f"update counts set n = n - {number + 1} where id = {source}")
                own(f"update counts set n = n + {number + 1} where id = {target}")
            except SqlError as error:
                own("rollback")
                if error.sqlstate != "40P01":
                    raise
            else:
                done += own.tag("commit") == "COMMIT"
        own.session.close()

    for each in [threads.submit(transfer, number) for number in range(SESSIONS)]:
        each.result()
    assert ask.rows("select sum(n) from counts") == [(0,)]


def test_a_second_row_with_the_key_waits_for_the_first(ask: Asking, other: Asking, waiting: Waiting) -> None:
    ask("begin")
    ask("insert into counts values (3, 0, 'c')")
    second = waiting(lambda: other.error("insert into counts values (3, 1, 'd')"))
    ask("commit")
    found = second.result()
    assert isinstance(found, SqlError)
    assert (found.sqlstate, found.constraint) == ("23505", "counts_pkey")
    ask("begin")
    ask("insert into counts values (4, 0, 'e')")
    third = waiting(lambda: other.tag("insert into counts values (4, 1, 'f')"))
    ask("rollback")
    assert third.result() == "INSERT 0 1"
    assert ask.rows("select id, n from counts where id > 2 order by id") == [(3, 0), (4, 1)]


def test_a_second_row_with_a_unique_value_waits(
    engine: SqlEngine, ask: Asking, other: Asking, threads: ThreadPoolExecutor, waiting: Waiting
) -> None:
    ask("begin")
    ask("update counts set name = 'z' where id = 1")
    second = waiting(lambda: other.error("insert into counts values (5, 1, 'z')"))
    skipped = threads.submit(lambda: asking(engine).tag("insert into counts values (6, 1, 'z') on conflict (name) do nothing"))
    ask("commit")
    found = second.result()
    assert isinstance(found, SqlError)
    assert (found.sqlstate, found.constraint) == ("23505", "counts_name_key")
    assert skipped.result() == "INSERT 0 0"


def test_copy_waits(ask: Asking, other: Asking, waiting: Waiting) -> None:
    ask("begin")
    ask("insert into counts values (7, 0, 'g')")
    copied = waiting(lambda: other.copy_in("copy counts from stdin", b"8\t1\th\n7\t1\ti\n"))
    ask("commit")
    with pytest.raises(SqlError) as caught:
        copied.result()
    assert caught.value.sqlstate == "23505"
    assert ask.rows("select id from counts where id > 6") == [(7,)]


def test_sessions_that_wait_for_each_other(ask: Asking, other: Asking, waiting: Waiting) -> None:
    for number, each in enumerate((ask, other), 1):
        each("begin")
        each(f"update counts set n = {number} where id = {number}")
    first = waiting(lambda: ask.tag("update counts set n = n + 10 where id = 2"))
    error = other.error("update counts set n = n + 10 where id = 1")
    assert (error.sqlstate, error.message) == ("40P01", "deadlock detected")
    assert first.result() == "UPDATE 1"  # the session that failed holds nothing any more
    assert (ask.tag("commit"), other.tag("rollback")) == ("COMMIT", "ROLLBACK")
    assert ask.rows("select id, n from counts order by id") == [(1, 1), (2, 10)]


def test_a_waiting_statement_ends_by_its_time_or_when_it_is_cancelled(ask: Asking, other: Asking, waiting: Waiting) -> None:
    ask("begin")
    ask("delete from counts where id = 1")
    other("set lock_timeout = '20ms'")
    error = other.error("update counts set n = 5 where id = 1")
    assert (error.sqlstate, error.message) == ("55P03", "canceling statement due to lock timeout")
    other("set lock_timeout = 0")
    second = waiting(lambda: other.error("update counts set n = 5 where id = 1"))
    other.session.cancel()
    found = second.result()
    assert isinstance(found, SqlError)
    assert found.sqlstate == "57014"
    third = waiting(lambda: other.tag("update counts set n = 5 where id = 1"))
    ask.session.close()
    assert third.result() == "UPDATE 1"  # the deletion was never written


def test_a_savepoint_keeps_the_locks_of_a_transaction_that_failed(ask: Asking, other: Asking, waiting: Waiting) -> None:
    ask("begin")
    ask("update counts set n = 7 where id = 1")
    ask("savepoint a")
    assert ask.error("insert into counts values (2, 0, 'x')").sqlstate == "23505"
    second = waiting(lambda: other.tag("update counts set n = n + 1 where id = 1"))
    ask("rollback to a")
    ask("commit")
    assert second.result() == "UPDATE 1"
    assert ask.rows("select n from counts where id = 1") == [(8,)]


def test_other_rows_and_readers_do_not_wait(ask: Asking, other: Asking) -> None:
    ask("begin")
    ask("update counts set n = 7 where id = 1")
    assert other.tag("update counts set n = 8 where id = 2") == "UPDATE 1"
    assert other.rows("select id, n from counts order by id") == [(1, 0), (2, 8)]
    ask("commit")
    assert other.rows("select id, n from counts order by id") == [(1, 7), (2, 8)]


def test_select_for_update(ask: Asking, other: Asking, waiting: Waiting) -> None:
    ask("begin")
    assert ask.rows("select n from counts where id = 1 for update") == [(0,)]
    assert ask.rows("select 1 as a for update") == [(1,)]
    error = other.error("select * from counts c where id < 3 order by id for no key update of c nowait")
    assert (error.sqlstate, error.message) == ("55P03", 'could not obtain lock on row in relation "counts"')
    assert other.rows("select id from counts where id = 2 for share nowait") == [(2,)]
    other("set engine = spark")  # which knows no locks
    second = waiting(lambda: other.rows("select n + 0 from counts where id = 1 for update"))
    ask("update counts set n = 5 where id = 1")
    ask("commit")
    assert second.result() == [(5,)]


def test_skip_locked_gives_each_session_rows_of_its_own(ask: Asking, other: Asking) -> None:
    ask("insert into counts values (3, 0, 'c')")
    take = "select id from counts where n = 0 order by id limit 1 for update skip locked"
    ask("begin")
    other("begin")
    assert ask.rows(take) == [(1,)]
    assert other.rows(take) == [(2,)]
    assert ask.rows(take) == [(1,)]  # its own row is free for it
    ask("update counts set n = 1 where id = 1")
    assert other.rows("select id from counts order by id for no key update skip locked") == [(2,), (3,)]
    assert ask.rows("select id from counts where n = 0 for share skip locked") == []
    ask("commit")
    assert other.rows("select id, n from counts order by id limit 2 for update skip locked") == [(1, 1), (2, 0)]
    other("rollback")
    assert ask.rows(take) == [(2,)]


def test_skip_locked_of_rows_without_a_key(ask: Asking, other: Asking) -> None:
    ask("drop table if exists jobs")
    ask("create table jobs (name text)")
    ask("insert into jobs values ('a'), ('a'), ('b')")
    take = "select name from jobs where name = 'a' limit 1 for update skip locked"
    ask("begin")
    other("begin")
    assert [ask.rows(take), other.rows(take)] == [[("a",)], [("a",)]]
    ask("delete from jobs where _row = '0:0'")
    ask("commit")
    other("commit")
    assert ask.rows("select count(*) from jobs") == [(2,)]


def test_lock_table_keeps_others_from_changing_rows(ask: Asking, other: Asking, waiting: Waiting) -> None:
    ask("begin")
    ask("lock table counts in row exclusive mode")  # others may change rows
    assert other("update counts set n = 1 where id = 1").tag == "UPDATE 1"
    ask("lock counts")
    assert other.error("select * from counts where id = 2 for update nowait").sqlstate == "55P03"
    other("begin")
    error = other.error("lock table counts nowait")
    assert (error.sqlstate, error.message) == ("55P03", 'could not obtain lock on relation "counts"')
    other("rollback")
    second = waiting(lambda: other("update counts set n = n + 1 where id = 1"))
    ask("update counts set n = 5 where id = 1")
    ask("commit")
    second.result()
    assert ask.rows("select n from counts where id = 1") == [(6,)]


@pytest.mark.parametrize(
    ("statement", "sqlstate", "message"),
    [
        ("select count(*) from counts for update", "0A000", "FOR UPDATE is not allowed with aggregate functions"),
        ("select n from counts group by n for share", "0A000", "FOR SHARE is not allowed with GROUP BY clause"),
        ("select 1 union select 2 for update", "0A000", "FOR UPDATE is not allowed with UNION/INTERSECT/EXCEPT"),
        ("select * from counts for update of t", "42P01", 'relation "t" in FOR UPDATE clause not found in FROM clause'),
        (
            "select * from counts limit 1 offset 1 for update skip locked",
            "0A000",
            "SKIP LOCKED with a join or OFFSET is not supported",
        ),
        ("select * from counts limit 1 + 1 for update skip locked", "0A000", "SKIP LOCKED needs a number behind LIMIT"),
        ("select * from (select * from counts for update) t", "0A000", "FOR UPDATE is not supported here"),
    ],
)
def test_queries_that_lock_no_rows(ask: Asking, statement: str, sqlstate: str, message: str) -> None:
    error = ask.error(statement)
    assert (error.sqlstate, error.message) == (sqlstate, message)
