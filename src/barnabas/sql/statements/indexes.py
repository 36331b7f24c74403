"""CREATE INDEX and DROP INDEX: names without effect, since a table in memory is read by key without an index."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from barnabas import limits
from barnabas.sql.catalog.definitions import TableDefinition
from barnabas.sql.catalog.topics import TopicRelation
from barnabas.sql.dialect import Statement
from barnabas.sql.interface import Notice, Result, SqlError
from barnabas.sql.results import Done
from barnabas.sql.statements.create import exists
from barnabas.sql.statements.host import Host
from barnabas.sql.statements.naming import name_at
from barnabas.sql.statements.ready import Ready
from barnabas.sql.states import LIMIT_EXCEEDED, UNDEFINED_OBJECT, not_supported, syntax_error

EFFECT = Notice("an index has no effect: rows are found by key, or by a scan of columns", "NOTICE", "00000")


def create_index(session: Host, statement: Statement) -> Ready:
    """CREATE INDEX [CONCURRENTLY] [IF NOT EXISTS] [name] ON table …: what follows the table has no effect."""
    at = 1
    if statement.word(at) == "UNIQUE":
        raise not_supported("CREATE UNIQUE INDEX is not supported", statement.position(1), "declare a PRIMARY KEY")
    at += 2 if statement.word(at + 1) == "CONCURRENTLY" else 1
    if_not_exists = [statement.word(at + place) for place in range(3)] == ["IF", "NOT", "EXISTS"]
    at += 3 if if_not_exists else 0
    given = None
    if statement.word(at) != "ON":
        parts, at = name_at(statement, at)
        given = parts[-1]
    if statement.word(at) != "ON":
        raise syntax_error("CREATE INDEX name ON table (columns)", statement.position(at))
    at += 2 if statement.word(at + 1) == "ONLY" else 1
    place = at
    parts, at = name_at(statement, at)
    relation = session.find(parts, statement.position(place))
    while at < len(statement.tokens) and statement.tokens[at].text != "(":
        at += 1
    words = [statement.word(number) for number in range(at + 1, len(statement.tokens))]
    columns = [each for each in words if each[:1].isalpha()]
    name = given or f"{relation.name}_{columns[0].lower() if columns else 'expr'}_idx"

    def run(_: Sequence[Any]) -> Result:
        definition = relation.definition if isinstance(relation, TopicRelation) else None
        if definition is not None and not _add(session, definition.name, name, if_not_exists=if_not_exists or given is None):
            session.notify(Notice(f'relation "{name}" already exists, skipping', sqlstate="42P07"))
        session.notify(EFFECT)
        return Done("CREATE INDEX")

    return Ready(statement.text, run)


def _add(session: Host, table: str, name: str, *, if_not_exists: bool) -> bool:
    already = False

    def decide(tables: Mapping[str, TableDefinition]) -> Mapping[str, TableDefinition | None]:
        nonlocal already
        if table not in tables:
            raise SqlError("42P01", f'relation "{table}" does not exist')
        already = name in tables or any(name in each.indexes for each in tables.values())
        if already and not if_not_exists:
            raise exists(name)
        made = tables[table]
        if len(made.indexes) >= limits.MAX_SQL_INDEXES:
            raise SqlError(LIMIT_EXCEEDED, f"a table can have at most {limits.MAX_SQL_INDEXES} indexes")
        return {} if already else {table: msgspec.structs.replace(made, indexes=(*made.indexes, name))}

    session.check_writable()
    session.definitions.change(session.client, session.running, decide)
    return not already


def drop_index(session: Host, statement: Statement) -> Ready:
    """DROP INDEX [CONCURRENTLY] [IF EXISTS] name, … [CASCADE | RESTRICT]. Raises SqlError 42704."""
    at = 3 if statement.word(2) == "CONCURRENTLY" else 2
    if_exists = (statement.word(at), statement.word(at + 1)) == ("IF", "EXISTS")
    at += 2 if if_exists else 0
    names = []
    while True:
        parts, at = name_at(statement, at)
        names.append(parts[-1])
        if at >= len(statement.tokens) or statement.tokens[at].text != ",":
            break
        at += 1
    if statement.word(at) in ("CASCADE", "RESTRICT"):
        at += 1
    if at < len(statement.tokens):
        raise syntax_error(f'syntax error at or near "{statement.tokens[at].text}"', statement.position(at))

    def decide(tables: Mapping[str, TableDefinition]) -> Mapping[str, TableDefinition | None]:
        changes: dict[str, TableDefinition | None] = {}
        for name in names:
            owner = next((each for each in tables.values() if name in each.indexes), None)
            if owner is None and not if_exists:
                raise SqlError(UNDEFINED_OBJECT, f'index "{name}" does not exist')
            if owner is not None:
                made = changes.get(owner.name) or owner
                changes[owner.name] = msgspec.structs.replace(made, indexes=tuple(each for each in made.indexes if each != name))
        return changes

    def run(_: Sequence[Any]) -> Result:
        session.check_writable()
        session.definitions.change(session.client, session.running, decide)
        return Done("DROP INDEX")

    return Ready(statement.text, run)
