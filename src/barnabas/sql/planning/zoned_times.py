"""Arithmetic of timestamps with a time zone as Postgres has it, where DuckDB has another one. In UTC both are the same.

| | Postgres | DuckDB |
|---|---|---|
| the difference of two | the time that went by: 23 hours over the start of summer time | counts days of the calendar: 1 day |
| minus `1 day 2 hours` | first the day, then the hours | first the hours |
| plus days or months, into the hour that comes twice | its second time | its first time |
| `date_trunc('hour', …)` in that hour | keeps the offset | gives its second time |

DuckDB knows the types. So macros with overloads choose (`incremental/macros.sql`), unless the types are known here.
"""

from __future__ import annotations

import re
from typing import Any

import pyarrow as pa
import pyarrow.types as pt
from sqlglot import exp

from barnabas.sql.planning.operators import chosen_by_types
from barnabas.sql.planning.session_windows import ELAPSED
from barnabas.sql.planning.values import FieldOf, Kinds

_CALENDAR = re.compile(r"\d *(?:d|w|mon|y|q|c|mil|dec)|^ *[+-]?\d+ +[+-]?\d|\d-\d|P", re.IGNORECASE)
_LONG_UNITS = ("DAY", "WEEK", "MONTH", "YEAR", "QUARTER", "DECADE", "CENTURY", "MILLENNIUM")
_WINDOWS = {"__window": "__zoned_window", "__hops": "__zoned_hops"}


def read_zoned_times(tree: Any, field_of: FieldOf) -> None:
    """Rewrite the tree of a query whose session has another zone than UTC, for DuckDB."""
    kinds = Kinds(field_of)
    for node in reversed(list(tree.walk())):
        made = _made(node, kinds)
        if made is not None:
            node.replace(made)


def _made(node: Any, kinds: Kinds) -> Any:
    match node:
        case exp.Add() | exp.Sub() if node.meta.get(ELAPSED):
            name = "__later" if isinstance(node, exp.Add) else "__earlier"
            return chosen_by_types(name, node.this, node.expression)
        case exp.Add() | exp.Sub():
            return _arithmetic(node, kinds)
        case exp.TimestampTrunc() | exp.DateTrunc() if _is_hour(node) and _may_be_zoned(kinds.of(node.this)):
            return chosen_by_types("__hour_of", node.this)
        case exp.Cast() if str(getattr(node.to.this, "value", "")) == "TIME" and kinds.of(node.this) is None:
            is_value = isinstance(node.this, (exp.Literal, exp.Null, exp.Parameter))
            return None if is_value else chosen_by_types("__time_of", node.this)
        case exp.Anonymous() if str(node.this) in _WINDOWS:
            return exp.Anonymous(this=_WINDOWS[str(node.this)], expressions=[each.copy() for each in node.expressions])
    return None


def _is_hour(node: Any) -> bool:
    unit = node.args.get("unit")
    return unit is not None and unit.name.upper() in ("HOUR", "HOURS", "H", "HR", "HRS") and node.args.get("zone") is None


def _may_be_zoned(kind: pa.DataType | None) -> bool:
    return kind is None or (pt.is_timestamp(kind) and kind.tz is not None)


def _is_temporal(kind: pa.DataType | None) -> bool:
    return kind is None or pt.is_timestamp(kind) or pt.is_date(kind) or pt.is_interval(kind)


def _arithmetic(node: Any, kinds: Kinds) -> Any:
    sides = node.this, node.expression
    if any(isinstance(each.unnest(), (exp.Literal, exp.Null)) for each in sides):
        return None
    found = [kinds.of(each) for each in sides]
    if not all(map(_is_temporal, found)) or not any(map(_may_be_zoned, found)):
        return None
    if any(map(is_short, sides)):
        return None
    return chosen_by_types("__minus" if isinstance(node, exp.Sub) else "__plus", *sides)


def is_short(node: Any) -> bool:
    """Whether an expression is an interval of hours or less, which is the same everywhere."""
    node = node.unnest()
    if isinstance(node, exp.Interval):
        unit = node.args.get("unit")
        if unit is not None:
            return not unit.name.upper().startswith(_LONG_UNITS)
        return isinstance(node.this, exp.Literal) and not _CALENDAR.search(node.this.name)
    if isinstance(node, exp.Cast) and isinstance(node.this, exp.Literal):
        return isinstance(node.to.this, exp.Interval) and not _CALENDAR.search(node.this.name)
    return False
