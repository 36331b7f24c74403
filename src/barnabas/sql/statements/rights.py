"""Statements about owners, rights and tuning that set-up scripts have. The rights here are the cluster's access control lists.

GRANT and OWNER TO change nothing and say so, because nobody can do more or less than the lists say. REVOKE is refused: a user would keep
the right that a script believes to be gone.
"""

from __future__ import annotations

from typing import Any

from barnabas.sql.dialect import Statement
from barnabas.sql.interface import Notice
from barnabas.sql.statements.host import Host
from barnabas.sql.statements.naming import name_at
from barnabas.sql.statements.ready import Ready, done
from barnabas.sql.states import syntax_error

_HINT = "rights are the cluster's access control lists: see `barnabas acl`"
_TUNING = ("PARALLELISM", "MAX_PARALLELISM", "SOURCE_RATE_LIMIT", "BACKFILL_RATE_LIMIT", "DML_RATE_LIMIT", "STREAMING_RATE_LIMIT")
_WITH_COLUMNS = ("TABLE", "VIEW", "MATERIALIZED", "STREAM")


def grant(session: Host, statement: Statement, _: Any) -> Ready:
    """GRANT … TO …: a warning."""
    told = Notice("GRANT has no effect", "WARNING", "01007", _HINT)
    return done(statement.text, "GRANT", lambda: session.notify(told))


def owner_to(session: Host, statement: Statement) -> Ready:
    """ALTER … name OWNER TO user: a notice. Raises SqlError 42P01 for a table or a view that is not there."""
    kind = statement.word(1)
    if kind in _WITH_COLUMNS:
        at = 3 if kind == "MATERIALIZED" else 2
        at += 2 if (statement.word(at), statement.word(at + 1)) == ("IF", "EXISTS") else statement.word(at) == "ONLY"
        parts, _ = name_at(statement, at)
        if statement.word(at - 1) != "EXISTS" and session.access.plain_view(parts) is None:
            session.find(parts, statement.position(at))
    return done(statement.text, _tag(kind), lambda: session.notify(Notice("an owner has no effect", hint=_HINT)))


def tuning(session: Host, statement: Statement) -> Ready | None:
    """ALTER SYSTEM SET …, and ALTER … name SET PARALLELISM … and its kin, which RisingWave has: a warning. None for other statements."""
    words, kind = [statement.word(at) for at in range(len(statement.tokens))], statement.word(1)
    if kind == "SYSTEM":
        name = " ".join(words[2:4]).lower()
        if words[2:3] not in (["SET"], ["RESET"]):
            raise syntax_error("the statement is ALTER SYSTEM SET name = value", statement.position(2))
        told = Notice(
            f"ALTER SYSTEM has no effect: {name}", "WARNING", "01000", "`barnabas config` changes the settings of brokers"
        )
        return done(statement.text, "ALTER SYSTEM", lambda: session.notify(told))
    at = next((at for at in range(3, len(words) - 1) if words[at] == "SET" and words[at + 1] in _TUNING), None)
    if at is None or kind not in _WITH_COLUMNS:
        return None
    place = 3 if kind == "MATERIALIZED" else 2
    parts, _ = name_at(statement, place)
    if session.access.plain_view(parts) is None:
        session.find(parts, statement.position(place))
    told = Notice(f"{words[at + 1].lower()} has no effect here", "WARNING", "01000")
    return done(statement.text, _tag(kind), lambda: session.notify(told))


def _tag(kind: str) -> str:
    """The tag of an ALTER of this kind."""
    return "ALTER MATERIALIZED VIEW" if kind == "MATERIALIZED" else f"ALTER {kind}"
