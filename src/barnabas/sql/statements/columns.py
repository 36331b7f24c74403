"""The columns of CREATE TABLE and ALTER TABLE: their types, constraints, defaults and sequences."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

import msgspec
import pyarrow as pa
from sqlglot import exp

from barnabas import limits
from barnabas.incremental.interface import ROW
from barnabas.sql.catalog.definitions import ALWAYS, BY_DEFAULT, ColumnDefinition
from barnabas.sql.dialect import IDENTITY_OPTIONS, WRITTEN, words_of
from barnabas.sql.duck.enums import enum_of
from barnabas.sql.duck.types import declared_field
from barnabas.sql.interface import SqlError
from barnabas.sql.planning.literals import moment_of
from barnabas.sql.planning.names import position_in
from barnabas.sql.statements.numbered import Numbering
from barnabas.sql.statements.sequence_options import SequenceOptions, new_sequence, options_in
from barnabas.sql.states import (
    DUPLICATE_COLUMN,
    INVALID_PARAMETER,
    INVALID_TABLE,
    UNDEFINED_COLUMN,
    not_supported,
    syntax_error,
)
from barnabas.sql.writing.fitting import invalid_value
from barnabas.sql.zones import Zone
from barnabas.tables.column_types import type_name
from barnabas.tables.scan import EXTRA_FIELDS, META_FIELDS

RESERVED = {each.name for each in (*META_FIELDS, *EXTRA_FIELDS)} | {"_key", ROW}
COLLATIONS = ("c", "posix", "default", "ucs_basic")  # texts are compared by their bytes
_SERIALS = {exp.DType.SMALLSERIAL: "smallint", exp.DType.SERIAL: "integer", exp.DType.BIGSERIAL: "bigint"}
_WHOLE: dict[pa.DataType, str] = {pa.int16(): "smallint", pa.int32(): "integer", pa.int64(): "bigint"}


def folded(identifier: Any) -> str:
    """A name as Postgres has it."""
    return str(identifier.name if identifier.args.get("quoted") else identifier.name.lower())


def columns_of(schema: Any, zone: Zone) -> tuple[list[ColumnDefinition], tuple[str, ...], Mapping[str, Numbering]]:
    """The columns, the primary key, and the columns with a sequence of their own. Raises SqlError.

    Args:
        zone: of the session, for defaults.
    """
    columns: list[ColumnDefinition] = []
    numbered: dict[str, Numbering] = {}
    primary: list[str] = []
    for item in schema.expressions:
        if isinstance(item, exp.ColumnDef):
            column, is_primary, numbering = column_of(item, zone)
            if any(each.name == column.name for each in columns):
                raise SqlError(DUPLICATE_COLUMN, f'column "{column.name}" specified more than once', position=position_in(item))
            columns.append(column)
            if numbering is not None:
                numbered[column.name] = numbering
            primary += [column.name] if is_primary else []
        else:
            names = _primary(item)
            if primary:
                raise SqlError(INVALID_TABLE, "a table has one primary key only")
            primary = [key_column(columns, each) for each in names]
    if len(columns) > limits.MAX_SQL_COLUMNS:
        raise SqlError("54011", f"tables can have at most {limits.MAX_SQL_COLUMNS} columns")
    if not columns:
        raise not_supported("a table needs columns", hint="CREATE TABLE name (column type, …)")
    made = [msgspec.structs.replace(each, nullable=False) if each.name in primary else each for each in columns]
    return made, tuple(primary), numbered


def key_name_of(schema: Any) -> str:
    """The name that a declaration gives the primary key; empty if it gives none."""
    for item in schema.expressions:
        for each in item.constraints if isinstance(item, exp.ColumnDef) else [item]:
            kind = each.kind if isinstance(each, exp.ColumnConstraint) else _constraint_of(each)
            if isinstance(kind, (exp.PrimaryKey, exp.PrimaryKeyColumnConstraint)) and kind is not each and each.this is not None:
                return str(each.this.name)
    return ""


def _constraint_of(item: Any) -> Any:
    """The constraint of an entry of a declaration, with or without a name."""
    return item.expressions[0] if isinstance(item, exp.Constraint) and item.expressions else item


def _primary(item: Any) -> list[str]:
    item = _constraint_of(item)
    if isinstance(item, exp.PrimaryKey):
        return [each.name for each in item.expressions]
    hint = "there are PRIMARY KEY, UNIQUE, CHECK, NOT NULL, DEFAULT and GENERATED"
    raise not_supported(f"the constraint {words_of(item)} is not supported", position_in(item), hint)


def key_column(columns: Sequence[ColumnDefinition], name: str) -> str:
    """The column that a key names, whatever its case. Raises SqlError 42703."""
    found = next((each.name for each in columns if each.name.lower() == name.lower()), None)
    if found is None:
        raise SqlError(UNDEFINED_COLUMN, f'column "{name}" named in key does not exist')
    return found


def column_of(item: Any, zone: Zone) -> tuple[ColumnDefinition, bool, Numbering | None]:
    """A column, whether it is the primary key, and its sequence. Raises SqlError.

    Args:
        zone: of the session, for its default.
    """
    name = folded(item.this)
    if name.lower() in RESERVED:
        raise SqlError(
            "42939", f'column name "{name}" is reserved', position=position_in(item), hint="every table has this column"
        )
    if item.kind is None:
        raise not_supported(f'the column "{name}" needs a type', position_in(item))
    field = declared_field(name, item.kind)
    numbering = Numbering(_SERIALS[item.kind.this]) if item.kind.this in _SERIALS else None
    nullable = numbering is None
    default, comment, is_primary = None, None, False
    generated = _generated(item)
    for each in item.constraints:
        kind = each.kind
        match kind:
            case exp.PrimaryKeyColumnConstraint():
                is_primary, nullable = True, False
            case exp.NotNullColumnConstraint():
                nullable = bool(kind.args.get("allow_null"))
            case exp.DefaultColumnConstraint():
                default = default_of_type(kind.this, field, zone)
            case exp.GeneratedAsIdentityColumnConstraint():
                numbering, nullable = _identity(name, field, kind, numbering), False
            case exp.AutoIncrementColumnConstraint():
                raise not_supported("AUTO_INCREMENT is not supported", position_in(item), "GENERATED BY DEFAULT AS IDENTITY")
            case exp.CommentColumnConstraint():
                comment = kind.this.name
            case exp.CollateColumnConstraint() if kind.this.name.lower() in COLLATIONS:
                pass
            case _ if not isinstance(kind, exp.ComputedColumnConstraint):
                _primary(kind)
    _check_one_value(item, name, default, numbering, generated)
    made = ColumnDefinition(name, type_name(field), nullable, default, comment, generated=generated, labels=enum_of(field))
    return made, is_primary, numbering


def _check_one_value(item: Any, name: str, default: Any, numbering: Any, generated: Any) -> None:
    if numbering is not None and default is not None:
        raise syntax_error(f'multiple default values specified for column "{name}"', position_in(item))
    if generated is not None and (default is not None or numbering is not None):
        raise syntax_error(f'both default and generation expression specified for column "{name}"', position_in(item))


def _generated(item: Any) -> str | None:
    """The text of the expression that gives the values of a column."""
    found = [each.kind for each in item.constraints if isinstance(each.kind, exp.ComputedColumnConstraint)]
    return text_of(found[0].this) if found else None


def text_of(expression: Any) -> str:
    """The text of an expression, without brackets around all of it."""
    while isinstance(expression, exp.Paren):
        expression = expression.this
    return str(expression.sql("postgres"))


def _identity(name: str, field: pa.Field[Any], kind: Any, before: Numbering | None) -> Numbering:
    if before is not None:
        raise syntax_error(f'multiple identity specifications for column "{name}"', position_in(kind))
    if field.type not in _WHOLE:
        raise SqlError(INVALID_PARAMETER, "identity column type must be smallint, integer, or bigint", position=position_in(kind))
    options = kind.meta.get(IDENTITY_OPTIONS)
    made = Numbering(
        _WHOLE[field.type], ALWAYS if kind.this else BY_DEFAULT, options_in(options) if options else SequenceOptions()
    )
    new_sequence(made.options.name or "unnamed", made.options, made.kind)
    return made


def default_of_type(value: Any, field: pa.Field[Any], zone: Zone) -> str | None:
    """The text of a default. That of a column of CREATE TYPE is without a cast to its type, which may get another name.

    Args:
        field: the column.
        zone: of the session.

    Raises:
        SqlError: it needs a row, or is no label.
    """
    labels = enum_of(field)
    if labels is None:
        return default_text(value, type_name(field), zone)
    while isinstance(value, (exp.Cast, exp.Paren)):
        value = value.this
    is_list = pa.types.is_list(field.type)
    if not isinstance(value, (exp.Literal, exp.Null, *((exp.Array,) if is_list else ()))):
        raise not_supported("the default of a column of CREATE TYPE is one of its labels", position_in(value))
    if isinstance(value, exp.Literal) and not is_list and value.name not in labels.labels:
        raise invalid_value(labels, value.name, position_in(value))
    return default_text(value, type_name(field), zone)


_LOCAL = re.compile(r"\d{4}-\d\d-\d\d(?:[ T]\d\d:\d\d(?::\d\d(?:\.\d{1,6})?)?)?", re.ASCII)


def default_text(value: Any, kind: str, zone: Zone) -> str | None:
    """The text of a default. Raises SqlError for one that needs a row.

    Args:
        kind: of the column. A time for `timestamptz` without an offset is one of the zone now, and the same moment for later sessions.
        zone: of the session.
    """
    if isinstance(value, exp.Null):
        return None
    literal = value.this if isinstance(value, exp.Cast) else value
    local = moment_of(literal.name.strip()) if isinstance(literal, exp.Literal) and literal.is_string else ""
    if kind == "timestamptz" and _LOCAL.fullmatch(local):
        with contextlib.suppress(ValueError, OverflowError):  # of a day that is none: the check of defaults tells it
            return f"'{zone.moment(datetime.fromisoformat(local)).isoformat(' ')}'"
    for node in value.find_all(exp.Column, exp.Query, exp.Parameter):
        raise not_supported(
            f"a default cannot use {node.sql('postgres')}", position_in(value), "use a literal or a function such as now()"
        )
    if isinstance(value, exp.CurrentTimestamp) and value.meta.get(WRITTEN) == "now":
        return "now()"
    return str(value.sql("postgres"))
