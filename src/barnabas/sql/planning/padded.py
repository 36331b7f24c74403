"""Comparisons with columns of `char(n)`, whose spaces at the end do not count: rows do not have them, so the other side loses them too."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
from sqlglot import exp

from barnabas.sql.writing.fitting import CHAR
from barnabas.tables.column_types import size_of

Field = Callable[[exp.Column], "pa.Field[Any] | None"]
_COMPARISONS = (exp.EQ, exp.NEQ, exp.GT, exp.GTE, exp.LT, exp.LTE, exp.NullSafeEQ, exp.NullSafeNEQ)


def read_padded(tree: Any, field_of: Field) -> None:
    """Take the spaces off the values that columns of `char(n)` are compared with."""
    for column in list(tree.find_all(exp.Column)):
        parent = column.parent
        if not isinstance(parent, (*_COMPARISONS, exp.In, exp.Between)):
            continue
        found = field_of(column)
        sized = None if found is None else size_of(found)
        if sized is None or sized[0] != CHAR:
            continue
        for value in _others(parent, column):
            _trim(value)


def _others(parent: Any, column: Any) -> list[Any]:
    if isinstance(parent, exp.In):
        return list(parent.expressions)
    if isinstance(parent, exp.Between):
        return [parent.args["low"], parent.args["high"]]
    return [parent.expression if parent.this is column else parent.this]


def _trim(value: Any) -> None:
    if isinstance(value, exp.Literal) and value.is_string:
        value.set("this", value.name.rstrip(" "))
    elif isinstance(value, exp.Parameter):
        made = exp.Anonymous(this="rtrim", expressions=[value.copy(), exp.Literal.string(" ")])
        value.replace(made)
