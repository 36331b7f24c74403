"""BEGIN, COMMIT, ROLLBACK and savepoints.

A transaction keeps its rows in the session until COMMIT, and writes them in one transaction of Kafka: others see all of them or none.
Its own statements see its rows. Each statement reads what is committed at its start, as READ COMMITTED does, and the rows that it changes
are locked until the end. The levels REPEATABLE READ and SERIALIZABLE are accepted with a warning. Definitions of tables are
written at once; ROLLBACK does not undo them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from barnabas.sql.dialect import Statement
from barnabas.sql.interface import Result, SqlError
from barnabas.sql.results import Done
from barnabas.sql.statements.host import Host
from barnabas.sql.statements.ready import Ready, done
from barnabas.sql.states import NO_TRANSACTION, not_supported, syntax_error


def begin(session: Host, statement: Statement, _: Any) -> Ready:
    """BEGIN [WORK | TRANSACTION] [modes], START TRANSACTION [modes]."""
    tag = "START TRANSACTION" if statement.word(0) == "START" else "BEGIN"
    if statement.word(0) == "START" and statement.word(1) != "TRANSACTION":
        raise syntax_error("START needs TRANSACTION", statement.position(1))
    modes = modes_of(statement, 2 if statement.word(1) in ("WORK", "TRANSACTION") else 1)

    def run() -> None:
        if session.state == "I":
            session.begin()
        for name, value in modes.items():
            session.settings.set(f"transaction_{name}", value)

    return done(statement.text, tag, run)


def modes_of(statement: Statement, at: int) -> dict[str, str]:
    """The modes of a transaction from a token on: values by the names of settings without `transaction_`. Raises SqlError."""
    found: dict[str, str] = {}
    while at < len(statement.tokens):
        words = tuple(statement.word(each) for each in range(at, at + 4))
        at += 2
        match words:
            case "ISOLATION", "LEVEL", "READ", "COMMITTED" | "UNCOMMITTED":
                found["isolation"], at = f"read {words[3].lower()}", at + 2
            case "ISOLATION", "LEVEL", "REPEATABLE", "READ":
                found["isolation"], at = "repeatable read", at + 2
            case "ISOLATION", "LEVEL", "SERIALIZABLE", _:
                found["isolation"], at = "serializable", at + 1
            case "READ", "ONLY" | "WRITE", _, _:
                found["read_only"] = "on" if words[1] == "ONLY" else "off"
            case "NOT", "DEFERRABLE", _, _:
                pass
            case "DEFERRABLE", _, _, _:
                at -= 1
            case _:
                raise syntax_error("the modes are READ ONLY, READ WRITE and ISOLATION LEVEL", statement.position(at - 2))
        at += statement.word(at) == ","
    return found


def commit(session: Host, statement: Statement, _: Any) -> Ready:
    """COMMIT, END: without a transaction nothing happens; of a failed one it is a ROLLBACK."""
    _refuse_chain(statement)

    def run(_: Sequence[Any]) -> Result:
        return Done("COMMIT" if session.commit() else "ROLLBACK")

    return Ready(statement.text, run, ends_transaction=True)


def rollback(session: Host, statement: Statement, _: Any) -> Ready:
    """ROLLBACK, ABORT, ROLLBACK TO [SAVEPOINT] name."""
    _refuse_chain(statement)
    at = 2 if statement.word(1) in ("WORK", "TRANSACTION") else 1
    if statement.word(at) != "TO":
        return done(statement.text, "ROLLBACK", session.rollback, ends_transaction=True)
    at += 2 if statement.word(at + 1) == "SAVEPOINT" else 1
    name = _name(statement, at)

    def run() -> None:
        _required(session, "ROLLBACK TO SAVEPOINT")
        session.buffer.back_to(name)
        session.settings.back_to(name)
        session.recover()

    return done(statement.text, "ROLLBACK", run, ends_transaction=True)


def savepoint(session: Host, statement: Statement, _: Any) -> Ready:
    """SAVEPOINT name."""
    name = _name(statement, 1)

    def run() -> None:
        _required(session, "SAVEPOINT")
        session.buffer.save(name)
        session.settings.save(name)

    return done(statement.text, "SAVEPOINT", run)


def release(session: Host, statement: Statement, _: Any) -> Ready:
    """RELEASE [SAVEPOINT] name."""
    name = _name(statement, 2 if statement.word(1) == "SAVEPOINT" else 1)

    def run() -> None:
        _required(session, "RELEASE SAVEPOINT")
        session.buffer.release(name)
        session.settings.release(name)

    return done(statement.text, "RELEASE", run)


def _refuse_chain(statement: Statement) -> None:
    words = [statement.word(each) for each in range(len(statement.tokens))]
    if "PREPARED" in words[1:2] or words[-2:] == ["AND", "CHAIN"]:
        raise not_supported(f"{' '.join(words).strip()} is not supported", statement.position(1), f"use {words[0]}")


def _name(statement: Statement, at: int) -> str:
    if at >= len(statement.tokens):
        raise syntax_error("the name of a savepoint is missing", statement.position(at))
    return str(statement.tokens[at].text)


def _required(session: Host, word: str) -> None:
    if session.state == "I":
        raise SqlError(NO_TRANSACTION, f"{word} can only be used in transaction blocks")
