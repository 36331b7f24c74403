"""ALTER TABLE … ADD CONSTRAINT, and what the rows that are there must be like: the table is read once when a constraint is added."""

from __future__ import annotations

from typing import Any

import msgspec
from sqlglot import exp

from barnabas.sql.catalog.constraints import CheckDefinition, UniqueDefinition
from barnabas.sql.catalog.definitions import ColumnDefinition, TableDefinition
from barnabas.sql.catalog.topics import TopicRelation
from barnabas.sql.dialect import Statement, parse_expression, tokens_of
from barnabas.sql.interface import SqlError
from barnabas.sql.planning.names import table_of
from barnabas.sql.statements.added_columns import added_row
from barnabas.sql.statements.constraints import UNNAMED, Declared, check_conditions, declared, with_constraints
from barnabas.sql.statements.enforcement import WRITTEN, checks_plan
from barnabas.sql.statements.foreign_keys import reference_in, with_references
from barnabas.sql.statements.host import Host
from barnabas.sql.statements.select import checked, collected
from barnabas.sql.states import CHECK, INVALID_TABLE, NOT_NULL, UNIQUE, not_supported
from barnabas.sql.writing.fitting import CHAR, VARCHAR, too_long
from barnabas.tables.column_types import size_of


def readable(statement: Statement) -> Statement:
    """An ALTER TABLE with words that sqlglot wants: a name before each CHECK, and COLUMN behind RENAME."""
    made: list[Any] = []
    for at, token in enumerate(statement.tokens):
        made.append(token)
        if (statement.word(at), statement.word(at + 1)) == ("ADD", "CHECK"):
            made += tokens_of(f'CONSTRAINT "{UNNAMED}"')
        if statement.word(at) == "RENAME" and statement.word(at + 2) == "TO" and statement.word(at + 1) != "CONSTRAINT":
            made += tokens_of("COLUMN")
    return Statement(statement.text, made)


def with_added(session: Host, made: TableDefinition, action: Any, *, is_valid: bool) -> TableDefinition:
    """ADD CONSTRAINT. Raises SqlError."""
    for item in action.expressions:
        inner = item.expressions[0] if isinstance(item, exp.Constraint) and item.expressions else item
        reference = reference_in(item)
        if reference is not None:
            made = with_references(session, made, [reference], is_valid=is_valid)
            continue
        if isinstance(inner, exp.PrimaryKey):
            made = _with_key(made, item, inner)
            continue
        found = declared(item)
        if found is None:
            raise not_supported("this constraint is not supported", hint="there are PRIMARY KEY, FOREIGN KEY, UNIQUE and CHECK")
        made = with_constraints(made, found, is_valid=is_valid)
    return made


def has_foreign_key(action: Any) -> bool:
    """Whether an action adds a reference to another table."""
    return isinstance(action, (exp.AddConstraint, exp.ColumnDef)) and action.find(exp.ForeignKey, exp.Reference) is not None


def _with_key(made: TableDefinition, item: Any, key: Any) -> TableDefinition:
    """ADD PRIMARY KEY: columns that are not null, and whose values no two rows have. The records keep their own keys."""
    if (made.key and made.is_keyed) or any(each.is_primary for each in made.unique):
        raise SqlError(INVALID_TABLE, f'multiple primary keys for table "{made.name}" are not allowed')
    if made.is_registered:
        raise not_supported("a primary key cannot be added to a table with registered schemas", hint="CREATE TABLE … PRIMARY KEY")
    name = item.this.name if isinstance(item, exp.Constraint) else f"{made.plain_name}_pkey"
    named = [each.this if isinstance(each, exp.Ordered) else each for each in key.expressions]
    found = exp.UniqueColumnConstraint(this=exp.Schema(expressions=named))
    made = with_constraints(made, [Declared(name, found, tuple(each.name for each in named))])
    added = msgspec.structs.replace(made.unique[-1], is_primary=True, is_nullable=False)
    columns = tuple(
        msgspec.structs.replace(each, nullable=False) if each.name in added.columns else each for each in made.columns
    )
    return msgspec.structs.replace(made, unique=(*made.unique[:-1], added), columns=columns)


def check_rows_there(session: Host, before: TableDefinition, after: TableDefinition, text: str) -> None:
    """Raises SqlError if rows of the table do not fit a constraint that it gets, or a column that must not be null any more."""
    relation = session.access.relation_of(before)
    conditions = [each for each in after.checks if each not in before.checks]
    if conditions:
        check_conditions(checks_plan(session, session.access.relation_of(after), conditions, text).schema)
    for column in after.columns:
        old = before.column(column.name)
        if old is not None and old.kind != column.kind:
            _check_sizes(session, relation, old, column, text)
    known = {each.name for each in before.columns}
    for each in conditions:
        if each.is_valid and known.issuperset(each.columns):
            _check_condition(session, relation, each, text)
        elif each.is_valid:
            _check_added(session, before, after, each, text)
    for unique in after.unique:
        if unique not in before.unique and known.issuperset(unique.columns):
            _check_values(session, relation, unique, text)
    for column in after.columns:
        old = before.column(column.name)
        if old is not None and old.nullable and not column.nullable:
            name = exp.column(exp.to_identifier(column.name, quoted=True))
            if _any(session, relation, exp.Is(this=name, expression=exp.Null()), text):
                raise SqlError(
                    NOT_NULL, f'column "{column.name}" of relation "{before.name}" contains null values', table=before.name,
                    column=column.name,
                )  # fmt: skip


def _check_sizes(session: Host, relation: TopicRelation, old: ColumnDefinition, column: ColumnDefinition, text: str) -> None:
    """Raises SqlError if a value does not fit the size that a column gets: the records stay as they are."""
    sized, before = size_of(column.field), size_of(old.field)
    if sized is None:
        return
    word, size = sized
    name = f'"{column.name.replace(chr(34), chr(34) * 2)}"'
    if word in (CHAR, VARCHAR):
        shrinks = before is None or before[1] > size
        if shrinks and _any(session, relation, parse_expression(f"length(rtrim({name}, ' ')) > {size}"), text):
            raise too_long(word, size)
        odd = f"{name} <> rtrim({name}, ' ')" if word == CHAR else f"length({name}) > {size}"
        has_odd = _any(session, relation, parse_expression(odd), text)
    else:
        step = 10 ** (6 - size)
        odd = f"cast(extract(microseconds from {name}) as bigint) % {step} <> 0"
        has_odd = (before is None or before[1] > size) and _any(session, relation, parse_expression(odd), text)
    if has_odd:
        raise not_supported(
            f'values of the column "{column.name}" would change with the type {column.kind}', hint="UPDATE the rows before"
        )


def _any(session: Host, relation: TopicRelation, condition: Any, text: str) -> bool:
    """Whether a row fits a condition."""
    query = exp.select(exp.alias_(exp.Literal.number(1), "c")).from_(table_of(relation.name)).where(condition).limit(1)
    return bool(collected(session, checked(session, query, text), (), text).num_rows)


def _check_condition(session: Host, relation: TopicRelation, check: CheckDefinition, text: str) -> None:
    if _any(session, relation, exp.Not(this=exp.Paren(this=parse_expression(check.condition))), text):
        raise SqlError(
            CHECK, f'check constraint "{check.name}" of relation "{relation.name}" is violated by some row', table=relation.name,
            constraint=check.name,
        )  # fmt: skip


def _check_added(session: Host, before: TableDefinition, after: TableDefinition, check: CheckDefinition, text: str) -> None:
    """Raises SqlError if the default of added columns does not fit a condition, which can name no other columns."""
    names, row = added_row(before, after)
    if not set(names).issuperset(check.columns):
        if any(each.missing is not None for each in after.columns if each.name in names):
            hint = "ALTER TABLE … ADD CONSTRAINT in another statement looks at the rows that are there"
            raise not_supported("a constraint of an added column with a default cannot name other columns", hint=hint)
        return
    relation = session.access.relation_of(after)
    found = collected(session, checks_plan(session, relation, [check], text), (), text, {WRITTEN: row})
    everything = exp.EQ(this=exp.Literal.number(1), expression=exp.Literal.number(1))
    if found.column(0)[0].as_py() is False and _any(session, session.access.relation_of(before), everything, text):
        raise SqlError(
            CHECK, f'check constraint "{check.name}" of relation "{after.name}" is violated by some row', table=after.name,
            constraint=check.name,
        )  # fmt: skip


def _check_values(session: Host, relation: TopicRelation, unique: UniqueDefinition, text: str) -> None:
    columns = [exp.column(exp.to_identifier(each, quoted=True)) for each in unique.columns]
    query = exp.select(*columns).from_(table_of(relation.name))
    if unique.is_nullable:
        query = query.where(exp.and_(*(exp.Not(this=exp.Is(this=each.copy(), expression=exp.Null())) for each in columns)))
    query = query.group_by(*columns).having(exp.GT(this=exp.Count(this=exp.Star()), expression=exp.Literal.number(1))).limit(1)
    found = collected(session, checked(session, query, text), (), text)
    if found.num_rows:
        shown = ", ".join("null" if each is None else str(each)[:100] for each in found.slice(0, 1).to_pylist()[0].values())
        raise SqlError(
            UNIQUE, f'could not create unique index "{unique.name}"',
            detail=f"Key ({', '.join(unique.columns)})=({shown}) is duplicated.", table=relation.name, constraint=unique.name,
        )  # fmt: skip
