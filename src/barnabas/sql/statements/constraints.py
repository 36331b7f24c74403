"""UNIQUE and CHECK in CREATE TABLE and ALTER TABLE: from the words to the definition."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
import pyarrow as pa
from sqlglot import exp

from barnabas import limits
from barnabas.sql.catalog.constraints import CheckDefinition, UniqueDefinition, free_name
from barnabas.sql.catalog.definitions import ColumnDefinition, TableDefinition
from barnabas.sql.interface import SqlError
from barnabas.sql.planning.names import position_in
from barnabas.sql.statements.columns import text_of
from barnabas.sql.statements.table_clauses import NOTHING
from barnabas.sql.states import DUPLICATE_OBJECT, LIMIT_EXCEEDED, UNDEFINED_COLUMN, UNDEFINED_OBJECT, WRONG_OBJECT, not_supported
from barnabas.tables.column_types import JSON, mark_of

UNNAMED = "__unnamed"  # stands for the name of a constraint where sqlglot wants one
_DEFERRED = ("DEFERRABLE", "INITIALLY DEFERRED")


class Declared(msgspec.Struct, frozen=True):
    """A constraint as a statement has it.

    Args:
        name: None if the statement gives none.
        columns: of a UNIQUE constraint.
        condition: the tree of a CHECK; None for UNIQUE.
    """

    name: str | None
    node: Any
    columns: tuple[str, ...] = ()
    condition: Any = None


def take_constraints(schema: exp.Schema) -> list[Declared]:
    """Take UNIQUE and CHECK out of a declaration: those of columns, and those of the table. Raises SqlError."""
    found: list[Declared] = []
    kept = []
    for item in schema.expressions:
        if isinstance(item, exp.ColumnDef):
            kept.append(item)
            found += _of_column(item)
            continue
        made = declared(item)
        if made is None:
            kept.append(item)
        else:
            found += made
    schema.set("expressions", kept)
    return found


def _of_column(item: exp.ColumnDef) -> list[Declared]:
    found, kept = [], []
    for each in item.constraints:
        kind = each.kind
        name = each.this.name if each.this is not None else None
        if isinstance(kind, exp.UniqueColumnConstraint):
            found.append(Declared(name, _plain(kind), (item.name,)))
        elif isinstance(kind, exp.CheckColumnConstraint):
            found.append(Declared(name, kind, condition=kind.this))
        else:
            kept.append(each)
    item.set("constraints", kept)
    return found


def declared(item: Any) -> list[Declared] | None:
    """The constraints of an entry of a declaration; None if it is of another kind. Raises SqlError."""
    name, kinds = (item.this.name, item.expressions) if isinstance(item, exp.Constraint) else (None, [item])
    found = []
    for kind in kinds:
        if isinstance(kind, exp.UniqueColumnConstraint) and isinstance(kind.this, exp.Schema):
            found.append(Declared(name, _plain(kind), tuple(each.name for each in kind.this.expressions)))
        elif isinstance(kind, exp.CheckColumnConstraint):
            found.append(Declared(name, kind, condition=kind.this))
        else:
            return None
    return found


def _plain(kind: Any) -> Any:
    """A UNIQUE that can be kept. Raises SqlError."""
    if any(option in _DEFERRED for option in map(str, kind.args.get("options") or [])):
        raise not_supported("a deferred constraint is not supported", position_in(kind), "each statement is checked as a whole")
    return kind


def with_constraints(definition: TableDefinition, found: Sequence[Declared], *, is_valid: bool = True) -> TableDefinition:
    """The definition with more constraints. Raises SqlError."""
    for each in found:
        if each.condition is None:
            made: Any = _unique(definition, each)
            definition = msgspec.structs.replace(definition, unique=(*definition.unique, made))
        else:
            made = _check(definition, each, is_valid=is_valid)
            definition = msgspec.structs.replace(definition, checks=(*definition.checks, made))
    if len(definition.unique) + len(definition.checks) > limits.MAX_SQL_INDEXES:
        raise SqlError(LIMIT_EXCEEDED, f"a table can have at most {limits.MAX_SQL_INDEXES} constraints")
    return definition


def _unique(definition: TableDefinition, found: Declared) -> UniqueDefinition:
    columns: list[str] = []
    for name in found.columns:
        column = _column(definition, name, found.node)
        if column.name in columns:
            raise SqlError(
                "42701", f'column "{column.name}" appears twice in unique constraint', position=position_in(found.node)
            )
        if mark_of(column.field) == JSON and column.kind == "json":
            raise SqlError(
                UNDEFINED_OBJECT, "values of the type json cannot be unique", position=position_in(found.node), hint="use jsonb"
            )
        columns.append(column.name)
    return UniqueDefinition(
        name_of_constraint(definition, found.name, columns, "key", found.node), tuple(columns), is_nullable=not found.node.args.get("nulls")
    )  # fmt: skip


def _check(definition: TableDefinition, found: Declared, *, is_valid: bool) -> CheckDefinition:
    for node in found.condition.walk():
        if isinstance(node, exp.Query):
            raise not_supported("cannot use subquery in check constraint", position_in(node))
        if isinstance(node, exp.Window):
            raise SqlError("42P20", "window functions are not allowed in check constraints", position=position_in(node))
        if isinstance(node, exp.AggFunc):
            raise SqlError("42803", "aggregate functions are not allowed in check constraints", position=position_in(node))
    named = [_column(definition, each.name, each, "").name for each in found.condition.find_all(exp.Column)]
    columns = tuple(dict.fromkeys(named))
    name = name_of_constraint(definition, found.name, columns if len(columns) == 1 else (), "check", found.node)
    return CheckDefinition(name, text_of(found.condition), columns, is_valid)


def _column(definition: TableDefinition, name: str, node: Any, place: str = " named in key") -> ColumnDefinition:
    column = definition.column(name)
    if column is None:
        raise SqlError(UNDEFINED_COLUMN, f'column "{name}"{place} does not exist', position=position_in(node))
    return column


def name_of_constraint(definition: TableDefinition, name: str | None, columns: Sequence[str], ending: str, node: Any) -> str:
    """The name of a constraint that a table gets: the given one, or one that is free. Raises SqlError 42710."""
    used = {*definition.constraint_names, *definition.indexes}
    if name in (None, UNNAMED):
        return free_name(definition.plain_name, columns, ending, used)
    assert name is not None
    if name in used:
        raise SqlError(
            DUPLICATE_OBJECT, f'constraint "{name}" for relation "{definition.name}" already exists', position=position_in(node)
        )
    return name


def check_conditions(schema: pa.Schema) -> None:
    """Raises SqlError 42804 if a condition is no boolean, as a plan of conditions has it."""
    for each in schema:
        if not (pa.types.is_boolean(each.type) or pa.types.is_null(each.type)):
            raise SqlError("42804", "argument of CHECK must be type boolean")


def without_constraint(made: TableDefinition, name: str, *, if_exists: bool) -> TableDefinition:
    """The definition without a constraint. Raises SqlError."""
    if name not in {each.name for each in made.constraints}:
        if name == made.key_constraint:
            raise not_supported(f'the primary key "{name}" cannot be dropped', hint="CREATE TABLE … AS SELECT copies the rows")
        if if_exists:
            return made
        raise SqlError(UNDEFINED_OBJECT, f'constraint "{name}" of relation "{made.name}" does not exist')
    return msgspec.structs.replace(
        made, unique=tuple(each for each in made.unique if each.name != name),
        checks=tuple(each for each in made.checks if each.name != name),
        foreign_keys=tuple(each for each in made.foreign_keys if each.name != name),
        comments={each: text for each, text in made.comments.items() if each != name},
    )  # fmt: skip


def with_other_name(made: TableDefinition, old: str, new: str) -> TableDefinition:
    """The definition with another name of a constraint. Raises SqlError."""
    if old not in {made.key_constraint, *(each.name for each in made.constraints)}:
        raise SqlError(UNDEFINED_OBJECT, f'constraint "{old}" for table "{made.name}" does not exist')
    if new in made.constraint_names:
        raise SqlError(DUPLICATE_OBJECT, f'constraint "{new}" for relation "{made.name}" already exists')

    def renamed(found: Any) -> Any:
        return tuple(msgspec.structs.replace(each, name=new) if each.name == old else each for each in found)

    return msgspec.structs.replace(
        made, unique=renamed(made.unique), checks=renamed(made.checks), foreign_keys=renamed(made.foreign_keys),
        key_name=new if old == made.key_constraint else made.key_name,
        comments={new if name == old else name: text for name, text in made.comments.items()},
    )  # fmt: skip


def refuse_in_jobs(definition: TableDefinition | None) -> None:
    """Raises SqlError if the target of a job has UNIQUE or ON CONFLICT DO NOTHING, which look at the rows that are there."""
    if definition is not None and definition.on_conflict == NOTHING:
        raise SqlError(
            WRONG_OBJECT, f'a job cannot leave out rows whose key is there: "{definition.name}" is ON CONFLICT DO NOTHING'
        )
    for each in definition.unique if definition is not None else ():
        raise SqlError(
            WRONG_OBJECT, f'a job cannot keep the constraint "{each.name}"',
            hint="let it write to a table without UNIQUE; a PRIMARY KEY keeps one row of each key",
        )  # fmt: skip
