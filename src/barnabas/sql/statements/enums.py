"""CREATE TYPE … AS ENUM, ALTER TYPE and DROP TYPE.

The definition of a column has the labels of its type. Types and tables are in one topic with one writer at a time, so a statement that
changes a type changes its columns in the same transaction.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
from sqlglot import exp
from sqlglot.tokenizer_core import TokenType

from barnabas.sql.catalog.definitions import Definition, TableDefinition, type_key, with_type
from barnabas.sql.catalog.names import shown_name
from barnabas.sql.catalog.postgres.contents import number_of
from barnabas.sql.dialect import Statement, parse_expression
from barnabas.sql.duck.enums import MAX_LABEL, EnumDefinition
from barnabas.sql.interface import Notice, Result, SqlError
from barnabas.sql.results import Done
from barnabas.sql.statements.alter import changed
from barnabas.sql.statements.alter_columns import check_columns_unused, without_column
from barnabas.sql.statements.create import name_to_make
from barnabas.sql.statements.enum_users import text_users, users
from barnabas.sql.statements.host import Host
from barnabas.sql.statements.ready import Ready
from barnabas.sql.states import (
    DEPENDENT,
    DUPLICATE_OBJECT,
    INVALID_PARAMETER,
    UNDEFINED_OBJECT,
    UNIQUE,
    not_supported,
    syntax_error,
)

Changes = Mapping[str, "Definition | None"]
_FORM = "CREATE TYPE name AS ENUM ('label', …)"


class _Words:
    """Reads a statement from the left."""

    def __init__(self, statement: Statement, at: int) -> None:
        self.statement, self.at = statement, at

    def maybe(self, *words: str) -> bool:
        """Whether these words follow, which are then taken."""
        found = all(self.statement.word(self.at + place) == word for place, word in enumerate(words))
        self.at += len(words) * found
        return found

    def name(self) -> list[str]:
        """The parts of a name: in lower case unless they are quoted."""
        parts: list[str] = []
        while True:
            if self.at >= len(self.statement.tokens) or not self.statement.word(self.at):
                raise self.unexpected()
            token = self.statement.tokens[self.at]
            parts.append(token.text if token.token_type == TokenType.IDENTIFIER else token.text.lower())
            self.at += 1
            if self.at >= len(self.statement.tokens) or self.statement.tokens[self.at].token_type != TokenType.DOT:
                return parts
            self.at += 1

    def label(self) -> str:
        """A label in single quotes."""
        if self.at >= len(self.statement.tokens) or self.statement.tokens[self.at].token_type != TokenType.STRING:
            raise self.unexpected()
        self.at += 1
        text = str(self.statement.tokens[self.at - 1].text)
        if len(text.encode()) > MAX_LABEL:
            raise SqlError("42602", f'invalid enum label "{text}"', detail=f"Labels must be {MAX_LABEL} bytes or less.")
        return text

    def end(self) -> None:
        """Raises SqlError unless the statement ends here."""
        if self.at < len(self.statement.tokens):
            raise self.unexpected()

    def unexpected(self) -> SqlError:
        if self.at >= len(self.statement.tokens):
            return syntax_error("syntax error at end of input", self.statement.position(self.at))
        return syntax_error(f'syntax error at or near "{self.statement.tokens[self.at].text}"', self.statement.position(self.at))


def _definition(session: Host, parts: Sequence[str]) -> EnumDefinition | None:
    return session.access.types().find(parts)


def _known(session: Host, parts: Sequence[str], position: int | None = None) -> EnumDefinition:
    """The type of a name. Raises SqlError 42704."""
    found = _definition(session, parts)
    if found is None:
        raise SqlError(UNDEFINED_OBJECT, f'type "{".".join(parts)}" does not exist', position=position)
    return found


def create_type(session: Host, statement: Statement) -> Ready:
    """CREATE TYPE name AS ENUM ('label', …). Raises SqlError."""
    words = _Words(statement, 2)
    parts = words.name()
    if not words.maybe("AS", "ENUM"):
        raise not_supported("CREATE TYPE makes types of labels only", statement.position(words.at), _FORM)
    if not words.maybe("("):
        raise words.unexpected()
    labels: list[str] = []
    while not words.maybe(")"):
        if labels and not words.maybe(","):
            raise words.unexpected()
        labels.append(words.label())
    words.end()
    twice = next((each for at, each in enumerate(labels) if each in labels[:at]), None)
    if twice is not None:
        raise SqlError(
            UNIQUE, 'duplicate key value violates unique constraint "pg_enum_typid_label_index"',
            detail=f"The label {twice} comes twice.",
        )  # fmt: skip
    name = _name_to_make(session, parts, statement.position(2))

    def decide(tables: Mapping[str, TableDefinition]) -> Changes:
        _check_free(session, tables, name)
        return {type_key(name): _numbered(session, name, tuple(labels))}

    def run(_: Sequence[object]) -> Result:
        session.check_writable()
        session.definitions.change(session.client, session.running, decide)
        return Done("CREATE TYPE")

    return Ready(statement.text, run)


def _name_to_make(session: Host, parts: Sequence[str], position: int | None) -> str:
    if "." in parts[-1] or parse_expression(f"x::{shown_name(parts[-1])}").to.this != exp.DType.USERDEFINED:
        hint = "a dot cannot be in it" if "." in parts[-1] else "it is that of a type that is always there"
        raise SqlError("42602", f'a type cannot have the name "{parts[-1]}"', position=position, hint=hint)
    return name_to_make(session, parts, position)


def _check_free(session: Host, tables: Mapping[str, TableDefinition], name: str) -> None:
    """Raises SqlError 42710 if a type or a table has a name."""
    if name in session.definitions.types or name in tables:
        raise SqlError(DUPLICATE_OBJECT, f'type "{name.rpartition(".")[2]}" already exists')


def _numbered(session: Host, name: str, labels: tuple[str, ...]) -> EnumDefinition:
    """A type with numbers that no other one has."""
    taken = {number for each in session.definitions.types.values() for number in (each.oid, each.array)}
    found: list[int] = []
    for word in ("type", "array"):
        number = number_of(f"{name} {word}")
        while number in taken:
            number += 1
        taken.add(number)
        found.append(number)
    return EnumDefinition(name, found[0], found[1], labels)


def drop_type(session: Host, statement: Statement) -> Ready:
    """DROP TYPE [IF EXISTS] name, … [CASCADE | RESTRICT]. Raises SqlError."""
    words = _Words(statement, 2)
    if_exists = words.maybe("IF", "EXISTS")
    names = [(words.name(), statement.position(words.at - 1))]
    while words.maybe(","):
        names.append((words.name(), statement.position(words.at - 1)))
    cascades = words.maybe("CASCADE")
    if not cascades:
        words.maybe("RESTRICT")
    words.end()

    def run(_: Sequence[object]) -> Result:
        session.check_writable()
        session.definitions.refresh(session.running, max_age_s=0)
        found: list[EnumDefinition] = []
        for parts, position in names:
            one = _definition(session, parts)
            if one is None and not if_exists:
                raise SqlError(UNDEFINED_OBJECT, f'type "{".".join(parts)}" does not exist', position=position)
            if one is None:
                session.notify(Notice(f'type "{".".join(parts)}" does not exist, skipping'))
            else:
                found.append(one)
        for each in found:
            if cascades:
                drop_columns(session, each)
            drop_unused(session, each)
        return Done("DROP TYPE")

    return Ready(statement.text, run)


def drop_unused(session: Host, definition: EnumDefinition) -> None:
    """Drop a type. Raises SqlError 2BP01 if something has it."""

    def decide(tables: Mapping[str, TableDefinition]) -> Changes:
        known = {each.oid: name for name, each in session.definitions.types.items()}
        if definition.oid not in known:
            return {}
        found = [*users(tables, definition), *((each, definition.shown) for each in text_users(session, tables, definition))]
        if found:
            raise SqlError(
                DEPENDENT, f"cannot drop type {definition.shown} because other objects depend on it",
                detail="\n".join(f"{each} depends on type {kind}" for each, kind in found),
                hint="Use DROP ... CASCADE to drop the dependent objects too.",
            )  # fmt: skip
        return {type_key(known[definition.oid]): None}

    session.definitions.change(session.client, session.running, decide)


def drop_columns(session: Host, definition: EnumDefinition) -> None:
    """Drop the columns of a type. Raises SqlError for a column of a key, or of a view."""
    for table in [each for each in session.definitions.tables.values() if any(_is_of(one, definition) for one in each.columns)]:
        if table.view is not None:
            raise not_supported(
                f"DROP TYPE … CASCADE does not drop the view {table.name}", hint=f"DROP VIEW {table.name} drops it"
            )

        def apply(made: TableDefinition) -> TableDefinition:
            for column in [each for each in made.columns if _is_of(each, definition)]:
                name = exp.Table(this=exp.to_identifier(column.name, quoted=True))
                made = without_column(made, exp.Drop(tables=[name], kind="COLUMN"))
            return made

        check_columns_unused(session.definitions.tables, session.view_jobs.jobs(), table, apply(table))
        changed(session, table.name, apply)
        for column in [each for each in table.columns if _is_of(each, definition)]:
            session.notify(Notice(f"drop cascades to column {column.name} of table {table.name}"))


def _is_of(column: Any, definition: EnumDefinition) -> bool:
    return column.labels is not None and column.labels.oid == definition.oid


def alter_type(session: Host, statement: Statement) -> Ready:
    """ALTER TYPE name ADD VALUE …, RENAME VALUE … TO …, RENAME TO …, SET SCHEMA …. Raises SqlError."""
    words = _Words(statement, 2)
    parts, position = words.name(), statement.position(2)
    if words.maybe("ADD", "VALUE"):
        return _add_value(session, words, parts)
    if words.maybe("RENAME", "VALUE"):
        return _rename_value(session, words, parts)
    is_schema = words.maybe("SET", "SCHEMA")
    if not is_schema and not words.maybe("RENAME", "TO"):
        hint = "there are ADD VALUE, RENAME VALUE, RENAME TO and SET SCHEMA"
        raise not_supported("this form of ALTER TYPE is not supported", statement.position(words.at), hint)
    (new,) = words.name()[:1]
    words.end()
    old = _known(session, parts, position)
    name = _name_to_make(session, [new, old.plain_name] if is_schema else [old.schema, new], statement.position(words.at - 1))

    def rename(tables: Mapping[str, TableDefinition], found: EnumDefinition) -> EnumDefinition:
        if name != found.name:
            _check_free(session, tables, name)
        _check_no_text(session, tables, found)
        return msgspec.structs.replace(found, name=name)

    return _changing(session, statement, parts, rename)


def _check_no_text(session: Host, tables: Mapping[str, TableDefinition], definition: EnumDefinition) -> None:
    """Raises SqlError if a view or a constraint has the name in its text."""
    found = text_users(session, tables, definition)
    if found:
        raise SqlError(
            DEPENDENT, f"cannot rename type {definition.shown} because other objects have its name",
            detail="\n".join(f"{each} has it" for each in found), hint="DROP them first, and make them again",
        )  # fmt: skip


def _changing(session: Host, statement: Statement, parts: Sequence[str], change: Any) -> Ready:
    """A statement that changes a type, and the columns that have it."""

    def decide(tables: Mapping[str, TableDefinition]) -> Changes:
        found = _known(session, parts)
        made = change(tables, found)
        if made == found:
            return {}
        changes: dict[str, Definition | None] = {type_key(made.name): made}
        if made.name != found.name:
            changes[type_key(found.name)] = None
        having = (each for each in tables.values() if any(_is_of(column, made) for column in each.columns))
        return changes | {each.name: with_type(each, made) for each in having}

    def run(_: Sequence[object]) -> Result:
        session.check_writable()
        session.definitions.refresh(session.running, max_age_s=0)
        session.definitions.change(session.client, session.running, decide)
        return Done("ALTER TYPE")

    _known(session, parts, statement.position(2))
    return Ready(statement.text, run)


def _add_value(session: Host, words: _Words, parts: Sequence[str]) -> Ready:
    """ADD VALUE [IF NOT EXISTS] 'label' [BEFORE 'other' | AFTER 'other']."""
    if_not_exists = words.maybe("IF", "NOT", "EXISTS")
    label = words.label()
    is_before = words.maybe("BEFORE")
    other = words.label() if is_before or words.maybe("AFTER") else None
    words.end()

    def add(_: Mapping[str, TableDefinition], found: EnumDefinition) -> EnumDefinition:
        if label in found.labels:
            if not if_not_exists:
                raise SqlError(DUPLICATE_OBJECT, f'enum label "{label}" already exists')
            session.notify(Notice(f'enum label "{label}" already exists, skipping', sqlstate=DUPLICATE_OBJECT))
            return found
        place = len(found.labels) if other is None else _place(found, other) + (not is_before)
        return msgspec.structs.replace(found, labels=(*found.labels[:place], label, *found.labels[place:]))

    return _changing(session, words.statement, parts, add)


def _place(definition: EnumDefinition, label: str) -> int:
    if label not in definition.labels:
        raise SqlError(INVALID_PARAMETER, f'"{label}" is not an existing enum label')
    return definition.labels.index(label)


def _rename_value(session: Host, words: _Words, parts: Sequence[str]) -> Ready:
    """RENAME VALUE 'label' TO 'other': of a type that no column has, because rows have the label itself."""
    old = words.label()
    if not words.maybe("TO"):
        raise words.unexpected()
    new = words.label()
    words.end()

    def rename(tables: Mapping[str, TableDefinition], found: EnumDefinition) -> EnumDefinition:
        place = _place(found, old)
        if new in found.labels:
            raise SqlError(DUPLICATE_OBJECT, f'enum label "{new}" already exists')
        having = users(tables, found)
        if having:
            raise not_supported(
                f"a value of the type {found.shown} cannot be renamed: {having[0][0]} has the type, and records hold the value",
                hint=f"ALTER TYPE {found.shown} ADD VALUE '{new}', and UPDATE the rows",
            )
        _check_no_text(session, tables, found)
        return msgspec.structs.replace(found, labels=(*found.labels[:place], new, *found.labels[place + 1 :]))

    return _changing(session, words.statement, parts, rename)
