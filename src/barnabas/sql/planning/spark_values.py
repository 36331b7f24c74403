"""Values of parameters for Spark: texts beside the statement, which casts them. So no value becomes a part of a text."""

from __future__ import annotations

import datetime
import json
from decimal import Decimal
from typing import Any

import pyarrow as pa
from sqlglot import exp

from barnabas.sql.duck.types import duckdb_of

MOST_ROWS = 2**31 - 1  # that LIMIT can name


def spark_kind(kind: pa.DataType, value: Any) -> pa.DataType:
    """The type of a parameter: its own, or for an unknown one that of its value."""
    if not pa.types.is_null(kind):
        return kind
    match value:
        case bool():
            return pa.bool_()
        case int():
            return pa.int64()
        case float():
            return pa.float64()
        case bytes() | bytearray() | memoryview():
            return pa.binary()
    return pa.string()


def spark_text(value: Any) -> str | None:
    """A value as text."""
    match value:
        case None:
            return None
        case bool():
            return "true" if value else "false"
        case bytes() | bytearray() | memoryview():
            return bytes(value).hex()
        case datetime.datetime() | datetime.date() | datetime.time():
            return value.isoformat()
        case list() | tuple() | dict():
            return json.dumps(value, default=_inner)
    return str(value)


def _inner(value: Any) -> Any:
    return float(value) if isinstance(value, Decimal) else spark_text(value)


def spark_value(name: str, kind: pa.DataType, parent: Any) -> Any:
    """The parameter of a name as an expression. Behind LIMIT and OFFSET Spark wants INT and no null.

    Args:
        parent: of the parameter's place.
    """
    place = exp.Placeholder(this=name)
    if isinstance(parent, (exp.Limit, exp.Offset)):
        none = 0 if isinstance(parent, exp.Offset) else MOST_ROWS
        return exp.Coalesce(this=exp.cast(place, "INT"), expressions=[exp.convert(none)])
    if pa.types.is_binary(kind):
        return exp.Anonymous(this="unhex", expressions=[place])
    if pa.types.is_list(kind) or pa.types.is_struct(kind) or pa.types.is_map(kind):
        shape = exp.DataType.build(duckdb_of(kind), dialect="duckdb").sql("spark")
        return exp.Anonymous(this="from_json", expressions=[place, exp.Literal.string(shape)])
    return exp.cast(place, duckdb_of(kind), dialect="duckdb")
