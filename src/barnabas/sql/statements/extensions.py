"""CREATE EXTENSION and DROP EXTENSION, with which scripts for PostgreSQL begin.

No statement loads anything: what scripts use of the extensions below is always there. Any other extension is refused.
"""

from __future__ import annotations

from collections.abc import Sequence

from barnabas.sql.dialect import Statement
from barnabas.sql.interface import Notice, Result, SqlError
from barnabas.sql.results import Done
from barnabas.sql.statements.host import Host
from barnabas.sql.statements.naming import name_at
from barnabas.sql.statements.ready import Ready
from barnabas.sql.states import DUPLICATE_OBJECT, UNDEFINED_OBJECT, not_supported, syntax_error

ALWAYS_THERE = ("plpgsql", "uuid-ossp", "pgcrypto")  # no procedures; uuid_generate_v4; gen_random_uuid, digest


def create_extension(session: Host, statement: Statement) -> Ready:
    """CREATE EXTENSION [IF NOT EXISTS] name [[WITH] [SCHEMA schema] [VERSION version] [CASCADE]]. Raises SqlError."""
    if_not_exists = [statement.word(at) for at in range(2, 5)] == ["IF", "NOT", "EXISTS"]
    (name, *more), at = name_at(statement, 5 if if_not_exists else 2)
    at += statement.word(at) == "WITH"
    while statement.word(at) in ("SCHEMA", "VERSION"):
        at += 2
    at += statement.word(at) == "CASCADE"
    if more or at != len(statement.tokens):
        raise syntax_error(
            "the statement is CREATE EXTENSION [IF NOT EXISTS] name", statement.position(min(at, len(statement.tokens) - 1))
        )
    if name not in ALWAYS_THERE:
        place = statement.position(5 if if_not_exists else 2)
        raise not_supported(f'extension "{name}" is not available', place, f"there are {', '.join(ALWAYS_THERE)}")
    if name == "plpgsql" and not if_not_exists:
        raise SqlError(DUPLICATE_OBJECT, f'extension "{name}" already exists')

    def run(_: Sequence[object]) -> Result:
        if name == "plpgsql":
            session.notify(Notice(f'extension "{name}" already exists, skipping', sqlstate=DUPLICATE_OBJECT))
        return Done("CREATE EXTENSION")

    return Ready(statement.text, run)


def drop_extension(session: Host, statement: Statement) -> Ready:
    """DROP EXTENSION [IF EXISTS] name. Raises SqlError: none can be dropped."""
    if_exists = [statement.word(at) for at in (2, 3)] == ["IF", "EXISTS"]
    (name, *_), _ = name_at(statement, 4 if if_exists else 2)
    if name in ALWAYS_THERE:
        raise not_supported(f'extension "{name}" cannot be dropped', statement.position(0), "its functions are always there")
    if not if_exists:
        raise SqlError(UNDEFINED_OBJECT, f'extension "{name}" does not exist')

    def run(_: Sequence[object]) -> Result:
        session.notify(Notice(f'extension "{name}" does not exist, skipping'))
        return Done("DROP EXTENSION")

    return Ready(statement.text, run)
