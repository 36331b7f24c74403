"""BEGIN, COMMIT, ROLLBACK and savepoints.

A transaction keeps its rows in the session until COMMIT, and writes them in one transaction of Kafka: others see all of them or none.
Its own statements see its rows. It is not isolated from others: each statement reads what is committed at its start, as READ COMMITTED
does, and nothing is locked. Definitions of tables are written at once; ROLLBACK does not undo them.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

from barnabas.sql.dialect import Statement
from barnabas.sql.interface import Result, SqlError
from barnabas.sql.results import Done
from barnabas.sql.statements.host import Host
from barnabas.sql.statements.ready import Ready, done
from barnabas.sql.states import NO_TRANSACTION, not_supported, syntax_error


def begin(session: Host, statement: Statement, _: Any) -> Ready:
    """BEGIN [WORK | TRANSACTION] [modes], START TRANSACTION [modes]. Every isolation level is READ COMMITTED."""
    tag = "START TRANSACTION" if statement.word(0) == "START" else "BEGIN"
    if statement.word(0) == "START" and statement.word(1) != "TRANSACTION":
        raise syntax_error("START needs TRANSACTION", statement.position(1))
    mode = read_only_mode(statement)
    return done(statement.text, tag, lambda: session.begin(read_only=mode) if session.state == "I" else None)


def read_only_mode(statement: Statement) -> bool | None:
    """Whether the modes of a transaction say READ ONLY or READ WRITE; None if they say neither."""
    words = [statement.word(at) for at in range(len(statement.tokens))]
    modes = [after for word, after in itertools.pairwise(words) if word == "READ" and after in ("ONLY", "WRITE")]
    return modes[-1] == "ONLY" if modes else None


def set_modes(session: Host, statement: Statement, at: int) -> Ready:
    """SET TRANSACTION modes, SET SESSION CHARACTERISTICS AS TRANSACTION modes."""
    mode = read_only_mode(statement)
    is_default = statement.word(at) == "CHARACTERISTICS"

    def run() -> None:
        if mode is None or not (is_default or session.state == "T"):
            return
        name = "default_transaction_read_only" if is_default else "transaction_read_only"
        session.settings.set(name, "on" if mode else "off", is_local=not is_default)

    return done(statement.text, "SET", run)


def commit(session: Host, statement: Statement, _: Any) -> Ready:
    """COMMIT, END: without a transaction nothing happens; of a failed one it is a ROLLBACK."""
    if statement.word(1) == "PREPARED" or statement.word(2) == "CHAIN":
        raise not_supported(f"COMMIT {statement.word(1)} is not supported", statement.position(1), "use COMMIT")

    def run(_: Sequence[Any]) -> Result:
        return Done("COMMIT" if session.commit() else "ROLLBACK")

    return Ready(statement.text, run, ends_transaction=True)


def rollback(session: Host, statement: Statement, _: Any) -> Ready:
    """ROLLBACK, ABORT, ROLLBACK TO [SAVEPOINT] name."""
    at = 2 if statement.word(1) in ("WORK", "TRANSACTION") else 1
    if statement.word(at) != "TO":
        return done(statement.text, "ROLLBACK", session.rollback, ends_transaction=True)
    at += 2 if statement.word(at + 1) == "SAVEPOINT" else 1
    name = _name(statement, at)

    def run() -> None:
        _required(session, "ROLLBACK TO SAVEPOINT")
        session.buffer.back_to(name)
        session.recover()

    return done(statement.text, "ROLLBACK", run, ends_transaction=True)


def savepoint(session: Host, statement: Statement, _: Any) -> Ready:
    """SAVEPOINT name."""
    name = _name(statement, 1)

    def run() -> None:
        _required(session, "SAVEPOINT")
        session.buffer.save(name)

    return done(statement.text, "SAVEPOINT", run)


def release(session: Host, statement: Statement, _: Any) -> Ready:
    """RELEASE [SAVEPOINT] name."""
    name = _name(statement, 2 if statement.word(1) == "SAVEPOINT" else 1)

    def run() -> None:
        _required(session, "RELEASE SAVEPOINT")
        session.buffer.release(name)

    return done(statement.text, "RELEASE", run)


def _name(statement: Statement, at: int) -> str:
    if at >= len(statement.tokens):
        raise syntax_error("the name of a savepoint is missing", statement.position(at))
    return str(statement.tokens[at].text)


def _required(session: Host, word: str) -> None:
    if session.state == "I":
        raise SqlError(NO_TRANSACTION, f"{word} can only be used in transaction blocks")
