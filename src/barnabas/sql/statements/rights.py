"""Statements about owners and rights that set-up scripts have. The rights here are the cluster's access control lists.

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

_HINT = "rights are the cluster's access control lists: see `barnabas acl`"
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
    tag = "ALTER MATERIALIZED VIEW" if kind == "MATERIALIZED" else f"ALTER {kind}"
    return done(statement.text, tag, lambda: session.notify(Notice("an owner has no effect", hint=_HINT)))
