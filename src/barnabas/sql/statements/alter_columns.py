"""ALTER TABLE … DROP COLUMN and ALTER COLUMN … TYPE: changes of the definition. The records stay as they are."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
import pyarrow as pa
from sqlglot import exp

from barnabas.engine.jobs import InsertWork, Job, ViewWork
from barnabas.sql.catalog.definitions import ColumnDefinition, TableDefinition
from barnabas.sql.dialect import Statement, parse_expression, parse_tokens, tokens_of
from barnabas.sql.duck.enums import enum_of
from barnabas.sql.duck.types import declared_field, shown_type
from barnabas.sql.interface import SqlError
from barnabas.sql.planning.names import position_in
from barnabas.sql.statements.columns import RESERVED, folded
from barnabas.sql.statements.emit import without_emit
from barnabas.sql.statements.foreign_keys import with_renamed
from barnabas.sql.states import DUPLICATE_COLUMN, INVALID_TABLE, UNDEFINED_COLUMN, not_supported
from barnabas.sql.views.dependents import DEPENDENT, users_of
from barnabas.sql.views.insert_jobs import inserts, shown
from barnabas.tables.column_types import mark_of, type_name

_WIDER = (pa.int16(), pa.int32(), pa.int64())


def without_column(made: TableDefinition, action: Any) -> TableDefinition:
    """DROP COLUMN [IF EXISTS] name. Raises SqlError."""
    name = folded(action.args["tables"][0].this)
    column = made.column(name)
    if column is None:
        if action.args.get("exists"):
            return made
        raise SqlError(
            UNDEFINED_COLUMN, f'column "{name}" of relation "{made.name}" does not exist', position=position_in(action)
        )
    if column.name in made.key or column.identity or (column.default or "").lower().startswith("nextval"):
        raise not_supported(f'the column "{column.name}" cannot be dropped: it has the key, or a sequence', position_in(action))
    if made.format != "json" or len(made.columns) - len(made.key) == 1:
        raise not_supported("the only column beside the key cannot be dropped", position_in(action), "DROP TABLE drops the table")
    for each in made.columns:
        if each.generated is not None and column.name.lower() in each.generated.lower():
            raise SqlError(DEPENDENT, f'column "{each.name}" is generated from the column "{column.name}"')
    kept = tuple(each for each in made.columns if each is not column)
    gone = {each.name for each in made.plain_indexes if column.name in each.columns}
    gone |= {each.name for each in made.unique if column.name in each.columns}
    made = msgspec.structs.replace(made, columns=kept, dropped=(*made.dropped, column.stored or column.name))
    return msgspec.structs.replace(
        made, unique=tuple(each for each in made.unique if column.name not in each.columns),
        foreign_keys=tuple(each for each in made.foreign_keys if column.name not in each.columns),
        plain_indexes=tuple(each for each in made.plain_indexes if column.name not in each.columns),
        indexes=tuple(each for each in made.indexes if each not in gone),
        checks=tuple(each for each in made.checks if column.name not in each.columns),
    )  # fmt: skip


def free_field(made: TableDefinition, name: str) -> str:
    """The name in records of an added column: another one if records may have that name from before; empty for its own."""
    used = {*made.dropped, *(each.stored or each.name for each in made.columns)}
    number, free = 2, name
    while free in used:
        number, free = number + 1, f"{name}_{number}"
    return "" if free == name else free


def with_renamed_column(made: TableDefinition, action: Any) -> TableDefinition:
    """RENAME COLUMN name TO name: records keep the name that they have. Raises SqlError."""
    old, new = folded(action.this.this), folded(action.args["to"].this)
    column = _column(made, old, action)
    if made.column(new) is not None:
        raise SqlError(DUPLICATE_COLUMN, f'column "{new}" of relation "{made.name}" already exists', position=position_in(action))
    if new.lower() in RESERVED:
        raise SqlError("42939", f'column name "{new}" is reserved', position=position_in(action))
    if made.is_registered:
        raise not_supported("the names of columns with a registered schema are those of the schema", position_in(action))
    if column.identity or (column.default or "").lower().startswith("nextval"):
        raise not_supported(f'the column "{column.name}" with a sequence cannot be renamed', position_in(action))
    if made.watermark is not None and made.watermark.column == column.name:
        raise not_supported(
            f'the column "{column.name}" of the watermark cannot be renamed', position_in(action), "ALTER TABLE … DROP WATERMARK"
        )
    for each in made.columns:
        if each.generated is not None:
            each = msgspec.structs.replace(each, generated=_with_name(each.generated, column.name, new))
            made = msgspec.structs.replace(made, columns=tuple(each if one.name == each.name else one for one in made.columns))
    is_whole = made.key == (column.name,) and not made.is_key_object  # nothing names it in records
    stored = "" if is_whole or made.format != "json" or column.stored == new else column.stored or column.name
    renamed = msgspec.structs.replace(column, name=new, stored=stored)
    made = with_renamed(made, made.name, column.name, new)
    return msgspec.structs.replace(
        made,
        columns=tuple(renamed if each.name == column.name else each for each in made.columns),
        key=_renamed(made.key, column.name, new),
        unique=tuple(msgspec.structs.replace(each, columns=_renamed(each.columns, column.name, new)) for each in made.unique),
        plain_indexes=tuple(
            msgspec.structs.replace(each, columns=_renamed(each.columns, column.name, new)) for each in made.plain_indexes
        ),
        checks=tuple(
            msgspec.structs.replace(
                each, condition=_with_name(each.condition, column.name, new), columns=_renamed(each.columns, column.name, new)
            )
            for each in made.checks
        ),
    )


def _renamed(names: tuple[str, ...], old: str, new: str) -> tuple[str, ...]:
    return tuple(new if each == old else each for each in names)


def _with_name(text: str, old: str, new: str) -> str:
    """An expression with another name of a column."""
    holder = exp.Paren(this=parse_expression(text))
    for column in holder.find_all(exp.Column):
        if column.name.lower() == old.lower():
            column.set("this", exp.to_identifier(new, quoted=True))
    return str(holder.this.sql("postgres"))


def with_nulls(made: TableDefinition, action: Any) -> TableDefinition:
    """ALTER COLUMN name SET NOT NULL, DROP NOT NULL. Raises SqlError."""
    column = _column(made, folded(action.this), action)
    nullable = bool(action.args["allow_null"])
    if column.nullable == nullable:
        return made
    is_key = column.name in made.key or any(each.is_primary and column.name in each.columns for each in made.unique)
    if nullable and (is_key or column.identity):
        kind = "is in a primary key" if is_key else "is an identity column"
        raise SqlError(INVALID_TABLE, f'column "{column.name}" {kind}', position=position_in(action))
    if made.is_registered or (column.added and column.default is not None and column.missing is None):
        raise not_supported(
            f'whether the column "{column.name}" is null cannot be changed', position_in(action),
            "its schema says it" if made.is_registered else "older records show its default, since it was added later",
        )  # fmt: skip
    changed = msgspec.structs.replace(column, nullable=nullable)
    return msgspec.structs.replace(made, columns=tuple(changed if each is column else each for each in made.columns))


def _column(made: TableDefinition, name: str, action: Any) -> ColumnDefinition:
    column = made.column(name)
    if column is None:
        raise SqlError(
            UNDEFINED_COLUMN, f'column "{name}" of relation "{made.name}" does not exist', position=position_in(action)
        )
    return column


def with_type(made: TableDefinition, action: Any) -> TableDefinition:
    """ALTER COLUMN name [SET DATA] TYPE type: a wider one of the same kind. Raises SqlError."""
    name = folded(action.this)
    column = _column(made, name, action)
    field = declared_field(column.name, action.args["dtype"])
    if column.labels is not None or enum_of(field) is not None:
        return _with_labels(made, column, field, action)
    is_key = column.name in made.key and column.field.type != field.type
    if not _is_cast(action.args.get("using"), column, field) or is_key or not _is_wider(column, field):
        raise not_supported(
            f'the column "{column.name}" of the type {column.kind} cannot become {type_name(field)}', position_in(action),
            "whole numbers, reals and decimals can become wider, whole numbers decimals, and texts and times can get other sizes",
        )  # fmt: skip
    changed = msgspec.structs.replace(column, kind=type_name(field))
    return msgspec.structs.replace(made, columns=tuple(changed if each is column else each for each in made.columns))


def _with_labels(made: TableDefinition, column: ColumnDefinition, field: Any, action: Any) -> TableDefinition:
    """A column of texts gets a type of CREATE TYPE, or loses it: records have texts in both cases. Raises SqlError."""
    using, labels = action.args.get("using") or None, enum_of(field)
    while isinstance(using, (exp.Cast, exp.Paren)):
        using = using.this
    is_other = using is not None and not (isinstance(using, exp.Column) and using.name.lower() == column.name.lower())
    is_text = column.field.type == field.type and field.type in (pa.string(), pa.list_(pa.string()))
    if is_other or not is_text or mark_of(column.field) or mark_of(field) or column.name in made.key:
        raise not_supported(
            f'the column "{column.name}" of the type {shown_type(column.field)} cannot become {shown_type(field)}',
            position_in(action), "a text can become a value of CREATE TYPE, and the reverse; USING casts the column",
        )  # fmt: skip
    if labels is not None and column.labels is None and not action.args.get("using"):
        raise SqlError(
            "42804", f'column "{column.name}" cannot be cast automatically to type {labels.shown}', position=position_in(action),
            hint=f'You might need to specify "USING {column.name}::{labels.shown}".',
        )  # fmt: skip
    is_scalar = pa.types.is_string(field.type)
    default = parse_expression(column.default) if column.default is not None else None
    if labels is not None and isinstance(default, exp.Literal) and is_scalar and default.name not in labels.labels:
        raise SqlError("42804", f'default for column "{column.name}" cannot be cast automatically to type {labels.shown}')
    changed = msgspec.structs.replace(column, kind=type_name(field), labels=labels)
    return msgspec.structs.replace(made, columns=tuple(changed if each is column else each for each in made.columns))


def _is_cast(using: Any, column: ColumnDefinition, field: Any) -> bool:
    """Whether USING says nothing more than the type: the column itself, or its cast to the type."""
    if isinstance(using, exp.Cast):
        if type_name(declared_field(column.name, using.to)) != type_name(field):
            return False
        using = using.this
    return not using or (isinstance(using, exp.Column) and using.name.lower() == column.name.lower())


def _is_wider(column: ColumnDefinition, field: Any) -> bool:
    old, new = column.field.type, field.type
    if mark_of(column.field) or mark_of(field):
        return False
    if old == new or (old == pa.float32() and new == pa.float64()):
        return True
    if old in _WIDER and new in _WIDER:
        return _WIDER.index(old) <= _WIDER.index(new)
    if pa.types.is_decimal(new) and old in _WIDER:
        return bool(new.precision - new.scale >= (5, 10, 19)[_WIDER.index(old)])
    if pa.types.is_decimal(new) and pa.types.is_decimal(old):
        return bool(new.scale >= old.scale and new.precision - new.scale >= old.precision - old.scale)
    return False


def check_columns_unused(
    tables: Mapping[str, TableDefinition], jobs: Mapping[str, Job], before: TableDefinition, after: TableDefinition
) -> None:
    """Raises SqlError 2BP01 if a view reads a column that goes, or gets another type."""
    kinds = {each.name: (shown_type(each.field), each.nullable) for each in after.columns}
    own = {each.name: shown_type(each.field) for each in before.columns}
    gone = {
        each.name
        for each in before.columns
        if kinds.get(each.name) not in ((own[each.name], each.nullable), (own[each.name], False))
    }
    for insert in inserts(jobs, before.topic) if gone else ():
        assert isinstance(insert.work, InsertWork)
        tables_of_it = (*insert.work.tables.values(), insert.work.target)
        if gone & {name for each in tables_of_it if each.topic == before.topic for name in each.names}:
            named = ", ".join(sorted(gone))
            raise SqlError(
                DEPENDENT, f'cannot change the column {named} of table "{before.name}" because other objects depend on it',
                detail=f"the {shown(insert)} needs it", hint="DROP it first",
            )  # fmt: skip
    for user in users_of(tables, before.name) if gone else ():
        job = jobs.get(user.topic) if user.view is not None and user.view.is_materialized else None
        if job is not None and isinstance(job.work, ViewWork):
            read = {name for each in job.work.tables.values() if each.topic == before.topic for name in each.names}
        else:
            read = _named_in(user, gone)
        if read & gone:
            named = ", ".join(sorted(read & gone))
            raise SqlError(
                DEPENDENT, f'cannot change the column {named} of table "{before.name}" because other objects depend on it',
                detail=f"the view {user.name} reads it", hint="DROP the view first",
            )  # fmt: skip


def _named_in(user: TableDefinition, names: set[str]) -> set[str]:
    """Those of the names that the query of a view has; all of them if it has a star."""
    text = "" if user.view is None else user.view.query
    tree = parse_tokens(text, without_emit(Statement(text, tokens_of(text))).tokens) if text else None
    if tree is None or any(not isinstance(each.parent, exp.Count) for each in tree.find_all(exp.Star)):
        return names
    used = {each.name.lower() for each in tree.find_all(exp.Identifier)}
    return {each for each in names if each.lower() in used}
