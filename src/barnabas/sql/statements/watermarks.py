"""WATERMARK FOR column AS expression, of CREATE TABLE and ALTER TABLE."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
from sqlglot import exp

from barnabas.sql.catalog.definitions import ColumnDefinition, WatermarkDefinition
from barnabas.sql.dialect import to_duckdb
from barnabas.sql.interface import SqlError
from barnabas.sql.planning.intervals import read_intervals
from barnabas.sql.planning.names import position_in
from barnabas.sql.states import INVALID_TABLE, UNDEFINED_COLUMN, not_supported
from barnabas.tables.scan import TIMESTAMP

FORM = "WATERMARK FOR at AS at - INTERVAL '5 seconds'"


def take_watermark(schema: exp.Schema) -> Any | None:
    """Take the watermark out of a declaration. Raises SqlError if there are several."""
    found = [each for each in schema.expressions if isinstance(each, exp.WatermarkColumnConstraint)]
    if not found:
        return None
    if len(found) > 1:
        raise SqlError(INVALID_TABLE, "a table has one watermark only", position=position_in(found[1]))
    schema.set("expressions", [each for each in schema.expressions if each is not found[0]])
    return found[0]


def watermark_of(tree: Any, columns: Sequence[ColumnDefinition], *, can_change: bool) -> WatermarkDefinition:
    """The watermark that a constraint declares.

    Args:
        can_change: whether rows of the table can change.

    Raises:
        SqlError: 0A000 for such a table; another code for what the constraint says.
    """
    if can_change:
        raise not_supported(
            "a table whose rows can change cannot have a watermark",
            position_in(tree),
            "CREATE TABLE … APPEND ONLY, or with a watermark and without a primary key, only takes rows in",
        )
    name = tree.this.name
    column = next((each for each in columns if each.name.lower() == name.lower()), None)
    if column is None and name.lower() != TIMESTAMP:
        raise SqlError(UNDEFINED_COLUMN, f'column "{name}" named in WATERMARK does not exist', position=position_in(tree))
    if column is not None and not pa.types.is_timestamp(column.field.type):
        raise SqlError(
            INVALID_TABLE, f'the watermark column "{column.name}" has the type {column.kind}', position=position_in(tree),
            hint="timestamp or timestamptz",
        )  # fmt: skip
    return WatermarkDefinition(TIMESTAMP if column is None else column.name, _delay(tree, name))


def _delay(tree: Any, name: str) -> str:
    """The interval that is taken from the time. Raises SqlError for another expression."""
    holder = exp.Tuple(expressions=[tree.expression.copy()])
    read_intervals(holder)
    value = holder.expressions[0].unnest()
    if isinstance(value, exp.Column) and value.name.lower() == name.lower():
        return ""
    if (
        isinstance(value, exp.Sub)
        and isinstance(value.this.unnest(), exp.Column)
        and value.this.unnest().name.lower() == name.lower()
    ):
        delay = value.expression.unnest()
        if isinstance(delay, exp.Interval) or (isinstance(delay, exp.Cast) and delay.to.this == exp.DType.INTERVAL):
            return to_duckdb(delay)
    raise not_supported(f"this expression of WATERMARK FOR {name} is not supported", position_in(tree.expression), FORM)
