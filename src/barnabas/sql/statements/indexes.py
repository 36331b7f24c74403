"""CREATE INDEX and DROP INDEX: names without effect, since a table in memory is read by key without an index. A unique one is kept as
UNIQUE is."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec

from barnabas import limits
from barnabas.sql.catalog.constraints import IndexDefinition, free_name
from barnabas.sql.catalog.definitions import PUBLIC, TableDefinition
from barnabas.sql.catalog.topics import TopicRelation
from barnabas.sql.dialect import Statement, parse, statement_of
from barnabas.sql.interface import Notice, Result, SqlError
from barnabas.sql.results import Done
from barnabas.sql.statements.alter_constraints import check_rows_there
from barnabas.sql.statements.constraints import UNNAMED, take_constraints, with_constraints
from barnabas.sql.statements.create import exists
from barnabas.sql.statements.host import Host
from barnabas.sql.statements.naming import name_at
from barnabas.sql.statements.ready import Ready
from barnabas.sql.states import LIMIT_EXCEEDED, UNDEFINED_OBJECT, WRONG_OBJECT, not_supported, syntax_error

EFFECT = Notice("an index has no effect: rows are found by key, or by a scan of columns", "NOTICE", "00000")


def create_index(session: Host, statement: Statement) -> Ready:
    """CREATE [UNIQUE] INDEX [CONCURRENTLY] [IF NOT EXISTS] [name] ON table …: of a plain one the columns have no effect."""
    at, is_unique = 1, statement.word(1) == "UNIQUE"
    at += is_unique
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
    is_btree = True
    while at < len(statement.tokens) and statement.tokens[at].text != "(":
        is_btree = statement.word(at) in ("USING", "BTREE")
        at += 1
    if is_unique:
        return _unique(session, statement, relation, at, given, if_not_exists=if_not_exists)
    words = [statement.word(number) for number in range(at + 1, len(statement.tokens))]
    columns = [each for each in words if each[:1].isalpha()]
    plain = (
        _plain(statement, at) if is_btree and isinstance(relation, TopicRelation) and relation.definition is not None else None
    )
    name = given or f"{relation.name}_{'_'.join(plain.columns) if plain else columns[0].lower() if columns else 'expr'}_idx"

    def change(made: TableDefinition) -> TableDefinition:
        known = None if plain is None else [made.column(each) for each in plain.columns]
        if plain is None or known is None or not all(known):
            return made
        found = msgspec.structs.replace(plain, name=name, columns=tuple(each.name for each in known if each is not None))
        return msgspec.structs.replace(made, plain_indexes=(*made.plain_indexes, found))

    def run(_: Sequence[Any]) -> Result:
        definition = relation.definition if isinstance(relation, TopicRelation) else None
        if definition is not None:
            _add(session, definition.name, name, change, if_not_exists=if_not_exists or given is None)
        session.notify(EFFECT)
        return Done("CREATE INDEX")

    return Ready(statement.text, run)


def _unique(
    session: Host, statement: Statement, relation: Any, at: int, given: str | None, *, if_not_exists: bool
) -> Ready:  # fmt: skip
    """CREATE UNIQUE INDEX … (columns) [NULLS NOT DISTINCT], which is kept as UNIQUE is. Raises SqlError."""
    definition: TableDefinition | None = relation.definition if isinstance(relation, TopicRelation) else None
    if definition is None or definition.view is not None:
        raise SqlError(WRONG_OBJECT, f'"{relation.name}" is no declared table', hint="CREATE TABLE declares one")
    columns, at = _columns(statement, at)
    words = [statement.word(number) for number in range(at, len(statement.tokens))]
    if words not in ([], ["NULLS", "NOT", "DISTINCT"], ["NULLS", "DISTINCT"]):
        raise not_supported(f"{words[0] or 'this'} of a unique index is not supported", statement.position(at))
    clause = f"{'NULLS NOT DISTINCT ' if 'NOT' in words else ''}({', '.join(columns)})"
    tree = parse(statement_of(f"CREATE TABLE t (x int, CONSTRAINT {given or UNNAMED} UNIQUE {clause})")).this
    found = take_constraints(tree)
    name = given or free_name(definition.plain_name, [each.strip('"') for each in columns], "idx", definition.indexes)

    def change(made: TableDefinition) -> TableDefinition:
        found_names = {each.name for each in made.unique}
        made = with_constraints(made, [msgspec.structs.replace(each, name=name) for each in found])
        unique = tuple(
            each if each.name in found_names else msgspec.structs.replace(each, is_index=True) for each in made.unique
        )  # fmt: skip
        return msgspec.structs.replace(made, unique=unique)

    change(msgspec.structs.replace(definition, unique=(), checks=(), indexes=()))

    def run(_: Sequence[Any]) -> Result:
        session.definitions.refresh(session.running, max_age_s=0)
        before = session.definitions.tables.get(definition.name, definition)
        if name not in before.indexes:
            check_rows_there(session, before, change(before), statement.text)
        _add(session, definition.name, name, change, if_not_exists=if_not_exists)
        return Done("CREATE INDEX")

    return Ready(statement.text, run)


def _columns(statement: Statement, at: int) -> tuple[list[str], int]:
    """The columns of a unique index as they are written, and where their list ends. Raises SqlError for an expression."""
    found = []
    while at < len(statement.tokens) and statement.tokens[at].text != ")":
        place = at + 1
        end = place
        while end < len(statement.tokens) and statement.tokens[end].text not in (",", ")"):
            if statement.tokens[end].text == "(":
                raise not_supported("a unique index of an expression is not supported", statement.position(end), "name columns")
            end += 1
        order = {statement.word(number) for number in range(place + 1, end)}
        if end == place or not order <= {"ASC", "DESC", "NULLS", "FIRST", "LAST"}:
            raise not_supported("this part of a unique index is not supported", statement.position(place + 1), "name columns")
        found.append(statement.raw(place, place + 1))
        at = end
    return found, at + 1


_ORDERS = {
    (): 0, ("ASC",): 0, ("DESC",): 3, ("NULLS", "FIRST"): 2, ("NULLS", "LAST"): 0, ("ASC", "NULLS", "FIRST"): 2,
    ("ASC", "NULLS", "LAST"): 0, ("DESC", "NULLS", "FIRST"): 3, ("DESC", "NULLS", "LAST"): 1,
}  # fmt: skip


def _plain(statement: Statement, at: int) -> IndexDefinition | None:
    """The index of a list of columns, without its name; None if it has expressions or further clauses."""
    columns, orders = [], []
    while at < len(statement.tokens) and statement.tokens[at].text != ")":
        end = at + 2
        while end < len(statement.tokens) and statement.tokens[end].text not in (",", ")", "("):
            end += 1
        order = _ORDERS.get(tuple(statement.word(number) for number in range(at + 2, end)))
        if (
            end >= len(statement.tokens)
            or statement.tokens[end].text == "("
            or order is None
            or statement.tokens[at + 1].text == "("
        ):
            return None
        raw = statement.raw(at + 1, at + 2)
        columns.append(raw.strip('"').replace('""', '"') if raw.startswith('"') else raw.lower())
        orders.append(order)
        at = end
    is_whole = bool(columns) and at == len(statement.tokens) - 1
    return IndexDefinition("", tuple(columns), tuple(orders) if any(orders) else ()) if is_whole else None


Change = Callable[[TableDefinition], TableDefinition]


def _add(session: Host, table: str, name: str, change: Change, *, if_not_exists: bool) -> None:
    """Add an index to the definition of a table; an index that is there gets a notice or an error. Raises SqlError."""
    already = False

    def decide(tables: Mapping[str, TableDefinition]) -> Mapping[str, TableDefinition | None]:
        nonlocal already
        if table not in tables:
            raise SqlError("42P01", f'relation "{table}" does not exist')
        already = _is_taken(tables, table, name)
        if already and not if_not_exists:
            raise exists(name)
        made = tables[table]
        if len(made.indexes) >= limits.MAX_SQL_INDEXES:
            raise SqlError(LIMIT_EXCEEDED, f"a table can have at most {limits.MAX_SQL_INDEXES} indexes")
        return {} if already else {table: msgspec.structs.replace(change(made), indexes=(*made.indexes, name))}

    session.check_writable()
    session.definitions.change(session.client, session.running, decide)
    if already:
        session.notify(Notice(f'relation "{name}" already exists, skipping', sqlstate="42P07"))


def _schema(table: str) -> str:
    """The schema of a table by its name; empty for public."""
    return table.rpartition(".")[0]


def _is_taken(tables: Mapping[str, TableDefinition], table: str, name: str) -> bool:
    """Whether the schema of a table has a relation or a constraint of this name."""
    schema = _schema(table)
    near = (each for each in tables.values() if _schema(each.name) == schema)
    return (f"{schema}.{name}" if schema else name) in tables or any(
        name in {*each.indexes, *each.constraint_names} for each in near
    )


def owner_of_index(
    tables: Mapping[str, TableDefinition], parts: Sequence[str], *, of_constraints: bool = False
) -> TableDefinition | None:  # fmt: skip
    """The table of an index by the parts of its name.

    Args:
        of_constraints: whether those of constraints count too.
    """
    schema = None if len(parts) < 2 else "" if parts[-2] == PUBLIC else parts[-2]
    found = (
        each for each in tables.values() if parts[-1] in each.indexes or (of_constraints and parts[-1] in each.constraint_names)
    )
    return next((each for each in found if schema in (None, _schema(each.name))), None)


def drop_index(session: Host, statement: Statement) -> Ready:
    """DROP INDEX [CONCURRENTLY] [IF EXISTS] name, … [CASCADE | RESTRICT]. Raises SqlError 42704."""
    at = 3 if statement.word(2) == "CONCURRENTLY" else 2
    if_exists = (statement.word(at), statement.word(at + 1)) == ("IF", "EXISTS")
    at += 2 if if_exists else 0
    names = []
    while True:
        parts, at = name_at(statement, at)
        names.append(parts)
        if at >= len(statement.tokens) or statement.tokens[at].text != ",":
            break
        at += 1
    if statement.word(at) in ("CASCADE", "RESTRICT"):
        at += 1
    if at < len(statement.tokens):
        raise syntax_error(f'syntax error at or near "{statement.tokens[at].text}"', statement.position(at))

    def decide(tables: Mapping[str, TableDefinition]) -> Mapping[str, TableDefinition | None]:
        changes: dict[str, TableDefinition | None] = {}
        for parts in names:
            name, owner = parts[-1], owner_of_index(tables, parts)
            if owner is None and not if_exists:
                raise SqlError(UNDEFINED_OBJECT, f'index "{name}" does not exist')
            if owner is not None:
                made = changes.get(owner.name) or owner
                changes[owner.name] = msgspec.structs.replace(
                    made, indexes=tuple(each for each in made.indexes if each != name),
                    unique=tuple(each for each in made.unique if each.name != name),
                    plain_indexes=tuple(each for each in made.plain_indexes if each.name != name),
                )  # fmt: skip
        return changes

    def run(_: Sequence[Any]) -> Result:
        session.check_writable()
        session.definitions.change(session.client, session.running, decide)
        return Done("DROP INDEX")

    return Ready(statement.text, run)


def rename_index(session: Host, statement: Statement) -> Ready:
    """ALTER INDEX [IF EXISTS] name RENAME TO name. Raises SqlError 42704."""
    at = 4 if (statement.word(2), statement.word(3)) == ("IF", "EXISTS") else 2
    old, at = name_at(statement, at)
    if (statement.word(at), statement.word(at + 1)) != ("RENAME", "TO"):
        raise not_supported(
            "this form of ALTER INDEX is not supported", statement.position(at), "ALTER INDEX name RENAME TO name"
        )
    new, end = name_at(statement, at + 2)
    if end < len(statement.tokens):
        raise syntax_error(f'syntax error at or near "{statement.tokens[end].text}"', statement.position(end))

    def decide(tables: Mapping[str, TableDefinition]) -> Mapping[str, TableDefinition | None]:
        owner = owner_of_index(tables, old)
        if owner is None:
            if statement.word(2) == "IF":
                return {}
            raise SqlError(UNDEFINED_OBJECT, f'index "{old[-1]}" does not exist')
        if _is_taken(tables, owner.name, new[-1]):
            raise exists(new[-1])

        def renamed(found: Any) -> Any:
            return tuple(msgspec.structs.replace(each, name=new[-1]) if each.name == old[-1] else each for each in found)

        indexes = tuple(new[-1] if each == old[-1] else each for each in owner.indexes)
        plain = renamed(owner.plain_indexes)
        return {owner.name: msgspec.structs.replace(owner, indexes=indexes, unique=renamed(owner.unique), plain_indexes=plain)}

    def run(_: Sequence[Any]) -> Result:
        session.check_writable()
        session.definitions.change(session.client, session.running, decide)
        return Done("ALTER INDEX")

    return Ready(statement.text, run)
