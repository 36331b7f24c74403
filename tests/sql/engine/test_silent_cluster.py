"""A cluster that is silent or gone: statements end in bounded time, and say what may have happened."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager

import pytest

from barnabas.client.config import ClientConfig
from barnabas.client.errors import TimedOut
from barnabas.sql.engine import SqlEngine
from barnabas.sql.interface import SqlError
from barnabas.sql.running import Deadlines, Running
from barnabas.sql.turns import Turns
from barnabas.testing import Broker
from tests.sql.engine.asking import Asking, asking
from tests.waiting import wait_until

STATEMENTS = (
    "select * from keyed",
    "select * from keyed where id = 1",
    "select * from plain",
    "select count(*) from free",
    "select * from unknown",
    "select table_name from information_schema.tables",
    "show tables",
    "wait for plain",
    "insert into keyed values (2)",
    "insert into plain values (2)",
    "insert into plain select repeat('x', 2000000) from range(2)",
    "update keyed set id = 3",
    "create table further (a int)",
    "alter table keyed add column b int",
    "drop table keyed",
    "truncate plain",
    "create temporary table mine (a int)",
)


@contextmanager
def stopped(broker: Broker) -> Iterator[None]:
    """While it neither answers nor closes connections."""
    assert broker.pid is not None
    os.kill(broker.pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(broker.pid, signal.SIGCONT)


@pytest.fixture
def made(ask: Asking) -> Iterator[Asking]:
    ask("create table keyed (id bigint primary key)")
    ask("create table plain (a text)")
    ask("create table free (a text)")
    ask("insert into keyed values (1)")
    ask("insert into plain values ('1')")
    yield ask
    for name in ("keyed", "plain", "free", "further"):
        ask(f"drop table if exists {name}")


def test_a_timeout_ends_every_statement(broker: Broker, made: Asking) -> None:
    found = {}
    made("set statement_timeout = 200")
    with stopped(broker):
        for text in STATEMENTS:
            found[text] = made.error(text).sqlstate
    made("reset statement_timeout")
    assert found == dict.fromkeys(STATEMENTS, "57014")
    assert made.rows("select * from keyed") == [(1,)]


def test_a_write_without_an_answer_may_have_happened(broker: Broker, made: Asking) -> None:
    prepared = made.session.prepare("insert into plain values ('2')")
    made.session.execute(prepared)
    made("set statement_timeout = 200")
    with stopped(broker), pytest.raises(SqlError) as caught:
        made.session.execute(prepared)
    assert (caught.value.sqlstate, caught.value.detail) == ("08007", "the operation was interrupted")
    made("reset statement_timeout")
    assert made.rows("select count(*) from plain") in ([(2,)], [(3,)])
    made.session.execute(prepared)
    assert made.rows("select count(*) from plain") in ([(3,)], [(4,)])


def test_a_statement_is_cancelled_while_another_has_the_turn(broker: Broker, engine: SqlEngine, made: Asking) -> None:
    other = asking(engine, statement_timeout="200")
    with ThreadPoolExecutor(1) as threads, stopped(broker):
        first = threads.submit(made.error, "select * from keyed")
        wait_until(
            lambda: any(each._waiting for each in made.session.running._interruptions)
        )  # its own, or that of the definitions
        assert other.error("select * from keyed").sqlstate == "57014"
        made.session.cancel()
        assert first.result(60).sqlstate == "57014"
    other.session.close()


def test_temporary_tables_do_not_hold_up_the_end_of_a_session(
    broker: Broker, engine: SqlEngine, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("barnabas.sql.temporary.CLOSE_S", 0.2)
    ending = asking(engine)
    ending("create temporary table mine (a int)")
    with stopped(broker):
        ending.session.close()
    assert "event=temporary-table-left" in caplog.text
    other = asking(engine)
    (left,) = [name for name in engine.shared.definitions.tables if name.endswith(".mine")]
    assert left in other.session.client.topics()
    other(f'drop table "{left}"')
    assert left not in other.session.client.topics()
    other.session.close()


def test_a_broker_that_was_killed() -> None:
    with Broker() as broker:
        config = ClientConfig.from_options(
            {"bootstrap.servers": broker.bootstrap_servers, "default.api.timeout.ms": "2000", "request.timeout.ms": "2000"}
        )
        engine = SqlEngine(config)
        asked = asking(engine)
        asked("create table keyed (id bigint primary key)")
        asked("create table plain (a text)")
        insert = asked.session.prepare("insert into plain values ('1')")
        asked.session.execute(insert)
        broker.kill()
        with pytest.raises(SqlError) as caught:
            asked.session.execute(insert)
        assert caught.value.sqlstate == "08007"
        assert asked.error("select * from keyed").sqlstate == "08006"
        assert asked.error("select * from plain").sqlstate == "08006"
        assert asked.error("insert into plain values ('2')").sqlstate == "08006"
        assert asked.error("create table further (a int)").sqlstate == "08006"
        asked.session.close()
        engine.close()


def test_all_that_wait_for_a_turn_get_the_failure_of_the_first() -> None:
    turns, deadlines = Turns(), Deadlines()
    begun: list[int] = []
    waiting: list[Future[None]] = []

    def wait(number: int) -> None:
        running = Running(deadlines)
        begun.append(number)
        with turns.turn(running):
            raise AssertionError("it asks the cluster again")

    with ThreadPoolExecutor(4) as threads:

        def fail() -> None:
            with turns.turn(Running(deadlines)):
                waiting.extend(threads.submit(wait, number) for number in range(4))
                wait_until(lambda: len(begun) == 4)
                raise TimedOut("answer", 1)

        with pytest.raises(TimedOut):
            fail()
        for each in waiting:
            with pytest.raises(TimedOut):
                each.result(60)
    with turns.turn(Running(deadlines)):
        pass
