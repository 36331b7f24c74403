"""SUBSCRIBE in the shell: rows are shown as they come, and Ctrl-C ends the statement alone."""

from __future__ import annotations

import threading

import pytest

from barnabas.cli.sql.backslash import run_command
from barnabas.cli.sql.printers import Style
from barnabas.cli.sql.shell import Failed, Options, Shell
from barnabas.sql.engine import SqlEngine
from barnabas.sql.interface import Caller
from tests.sql.engine.asking import Asking
from tests.waiting import wait_until


@pytest.mark.parametrize("style", ["table", "jsonl"])
def test_rows_until_an_interrupt(ask: Asking, engine: SqlEngine, capsys: pytest.CaptureFixture[str], style: str) -> None:
    ask("create table shown (id int primary key, name text)")
    ask("insert into shown values (1, 'first')")
    errors: list[str] = []
    shell = Shell(lambda: engine.session(Caller()), errors.append, run_command, Options(Style(style)), typed=True)
    failed: list[bool] = []

    def run() -> None:
        try:
            shell.run_statement("subscribe shown")
        except Failed:
            failed.append(True)

    seen: list[str] = []

    def has(word: str) -> bool:
        seen.append(capsys.readouterr().out)
        return word in "".join(seen)

    thread = threading.Thread(target=run)
    thread.start()
    wait_until(lambda: has("first"))
    ask("insert into shown values (2, 'second')")
    wait_until(lambda: has("second"))
    shell.interrupt()
    thread.join()
    assert failed == [True]
    assert "canceling statement due to user request" in "".join(errors)
    shell.run_statement("select name from shown where id = 2")
    assert "second" in capsys.readouterr().out
    errors.clear()
    shell.run_statement("create table if not exists shown (id int)")
    shell.run_statement("begin isolation level serializable")
    assert errors[0].startswith("WARNING:  SERIALIZABLE is not enforced")
    shell.run_statement("rollback")
    shell.close()
    ask("drop table shown")
