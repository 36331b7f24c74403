"""CREATE SCHEMA and DROP SCHEMA. A table in a schema has the name `schema.table`, and so has its topic."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from barnabas import limits
from barnabas.sql.catalog.definitions import PUBLIC, TableDefinition, schema_marker
from barnabas.sql.dialect import Statement
from barnabas.sql.interface import Notice, Result, SqlError
from barnabas.sql.results import Done
from barnabas.sql.statements.dropping import drop_with_users
from barnabas.sql.statements.enums import drop_columns, drop_unused
from barnabas.sql.statements.host import Host
from barnabas.sql.statements.naming import name_at
from barnabas.sql.statements.ready import Ready
from barnabas.sql.statements.sequences import drop_one
from barnabas.sql.states import not_supported, syntax_error
from barnabas.sql.views.dependents import DEPENDENT

SYSTEM = (PUBLIC, "pg_catalog", "information_schema", "barnabas")
DUPLICATE_SCHEMA, UNDEFINED_SCHEMA = "42P06", "3F000"


def create_schema(session: Host, statement: Statement) -> Ready:
    """CREATE SCHEMA [IF NOT EXISTS] name [AUTHORIZATION user]. Raises SqlError."""
    if_not_exists = [statement.word(at) for at in range(2, 5)] == ["IF", "NOT", "EXISTS"]
    name, end = _name(statement, 5 if if_not_exists else 2)
    if end < len(statement.tokens) and statement.word(end) != "AUTHORIZATION":
        raise not_supported("CREATE SCHEMA makes an empty schema only", statement.position(end), "CREATE TABLE schema.name (…)")
    if not name or "." in name or len(name) > limits.MAX_SQL_NAME // 2:
        raise SqlError("42602", f"the name of a schema has 1 to {limits.MAX_SQL_NAME // 2} characters, and no dot")
    if name.startswith("pg_"):
        raise SqlError("42939", f'unacceptable schema name "{name}"', detail='The prefix "pg_" is reserved for system schemas.')
    already = False

    def decide(tables: Mapping[str, TableDefinition]) -> Mapping[str, TableDefinition | None]:
        nonlocal already
        already = name in SYSTEM or name in session.definitions.schemas
        if already and not if_not_exists:
            raise SqlError(DUPLICATE_SCHEMA, f'schema "{name}" already exists')
        taken = [] if already else _inside(tables, name)
        if taken:
            raise SqlError(
                DUPLICATE_SCHEMA, f'the schema "{name}" would take tables of the schema "public"',
                detail=f"there is {', '.join(taken[:5])}", hint="ALTER TABLE … RENAME TO gives them names without the dot",
            )  # fmt: skip
        made = schema_marker(name)
        return {} if already else {made.name: made}

    def run(_: Sequence[object]) -> Result:
        session.check_writable()
        session.definitions.change(session.client, session.running, decide)
        if already:
            session.notify(Notice(f'schema "{name}" already exists, skipping', sqlstate=DUPLICATE_SCHEMA))
        return Done("CREATE SCHEMA")

    return Ready(statement.text, run)


def drop_schema(session: Host, statement: Statement) -> Ready:
    """DROP SCHEMA [IF EXISTS] name [CASCADE | RESTRICT]. Raises SqlError."""
    if_exists = (statement.word(2), statement.word(3)) == ("IF", "EXISTS")
    name, end = _name(statement, 4 if if_exists else 2)
    cascades = statement.word(end) == "CASCADE"
    if end < len(statement.tokens) - 1 or (end < len(statement.tokens) and statement.word(end) not in ("CASCADE", "RESTRICT")):
        raise syntax_error(f'syntax error at or near "{statement.tokens[end].text}"', statement.position(end))

    def run(_: Sequence[object]) -> Result:
        session.check_writable()
        if name in SYSTEM:
            raise SqlError("42501", f'the schema "{name}" cannot be dropped')
        session.definitions.refresh(session.running, max_age_s=0)
        if name not in session.definitions.schemas:
            if not if_exists:
                raise SqlError(UNDEFINED_SCHEMA, f'schema "{name}" does not exist', position=statement.position(end - 1))
            session.notify(Notice(f'schema "{name}" does not exist, skipping'))
            return Done("DROP SCHEMA")
        session.sequences.refresh(session.running, max_age_s=0)
        inside = [
            *_inside(session.definitions.tables, name), *_inside(session.sequences.sequences, name),
            *_inside(session.definitions.types, name),
        ]  # fmt: skip
        if not cascades and inside:
            raise SqlError(
                DEPENDENT, f'cannot drop schema {name} because other objects depend on it', detail=f"it has {', '.join(inside[:5])}",
                hint="Use DROP … CASCADE to drop the dependent objects too.",
            )  # fmt: skip
        while tables := _inside(session.definitions.tables, name):
            drop_with_users(session, tables[0])
        while sequences := _inside(session.sequences.sequences, name):
            drop_one(session, session.sequences.sequences[sequences[0]], is_cascade=True)
        while types := _inside(session.definitions.types, name):
            drop_columns(session, session.definitions.types[types[0]])
            drop_unused(session, session.definitions.types[types[0]])
        marker = schema_marker(name).name
        session.definitions.change(
            session.client,
            session.running,
            lambda tables: {} if _inside((*tables, *session.definitions.types), name) else {marker: None},
        )
        return Done("DROP SCHEMA")

    return Ready(statement.text, run)


def _inside(names: Iterable[str], schema: str) -> list[str]:
    return [each for each in names if each.startswith(f"{schema}.")]


def _name(statement: Statement, at: int) -> tuple[str, int]:
    """A name, folded unless it is quoted."""
    parts, end = name_at(statement, at)
    start = statement.tokens[at].start
    return (parts[0] if statement.text[start] in '"`' else parts[0].lower()), end
