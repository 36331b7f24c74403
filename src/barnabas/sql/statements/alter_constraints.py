"""ALTER TABLE … ADD CONSTRAINT, and what the rows that are there must be like: the table is read once when a constraint is added."""

from __future__ import annotations

from typing import Any

from sqlglot import exp

from barnabas.sql.catalog.constraints import CheckDefinition, UniqueDefinition
from barnabas.sql.catalog.definitions import TableDefinition
from barnabas.sql.catalog.topics import TopicRelation
from barnabas.sql.dialect import Statement, parse_expression, tokens_of
from barnabas.sql.interface import SqlError
from barnabas.sql.planning.names import table_of
from barnabas.sql.statements.constraints import UNNAMED, check_conditions, declared, with_constraints
from barnabas.sql.statements.enforcement import checks_plan
from barnabas.sql.statements.host import Host
from barnabas.sql.statements.select import checked, collected
from barnabas.sql.states import CHECK, NOT_NULL, UNIQUE, not_supported


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


def with_added(made: TableDefinition, action: Any, *, is_valid: bool) -> TableDefinition:
    """ADD CONSTRAINT. Raises SqlError."""
    for item in action.expressions:
        found = declared(item)
        if found is None:
            inner = item.expressions[0] if isinstance(item, exp.Constraint) and item.expressions else item
            is_key = isinstance(inner, exp.PrimaryKey)
            word = "a primary key cannot be added" if is_key else "this constraint is not supported"
            raise not_supported(word, hint="CREATE TABLE … PRIMARY KEY" if is_key else "there are UNIQUE and CHECK")
        made = with_constraints(made, found, is_valid=is_valid)
    return made


def check_rows_there(session: Host, before: TableDefinition, after: TableDefinition, text: str) -> None:
    """Raises SqlError if rows of the table do not fit a constraint that it gets, or a column that must not be null any more."""
    relation = session.access.relation_of(before)
    conditions = [each for each in after.checks if each not in before.checks]
    if conditions:
        check_conditions(checks_plan(session, session.access.relation_of(after), conditions, text).schema)
    known = {each.name for each in before.columns}
    for each in conditions:
        if each.is_valid and known.issuperset(each.columns):
            _check_condition(session, relation, each, text)
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
