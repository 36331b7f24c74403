"""Which of several functions of one name a call means. No I/O.

The number of arguments decides, and then the types of those arguments that tell one: columns, literals, casts. A number fits a wider
number better than a narrower one, and a text without a cast fits everything, text best.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pyarrow as pa
from sqlglot import exp

from barnabas.functions.definition import Argument, Function
from barnabas.sql.duck.types import duckdb_of
from barnabas.sql.interface import SqlError
from barnabas.sql.planning.parameters import type_of
from barnabas.sql.states import UNDEFINED_FUNCTION

ColumnType = Callable[[exp.Column], pa.DataType | None]
AMBIGUOUS = "42725"
_NUMBERS = ("SMALLINT", "INTEGER", "BIGINT", "DECIMAL", "REAL", "DOUBLE")
_NARROWING, _OTHER = 10, 100


def chosen(name: str, functions: Sequence[Function], node: Any, type_of_column: ColumnType) -> Function:
    """The function that a call means. Raises SqlError."""
    start = node.meta.get("start")
    position = None if start is None else int(start) + 1
    count = len(node.expressions)
    fitting = [each for each in functions if each.takes(count)]
    if not fitting:
        there = ", ".join(each.signature for each in functions)
        raise SqlError(
            UNDEFINED_FUNCTION,
            f"function {name} with {count} arguments does not exist",
            position=position,
            hint=f"there is {there}",
        )
    if len(fitting) == 1:
        return fitting[0]
    costs = [_cost(each, node.expressions, type_of_column) for each in fitting]
    best = min(costs)
    if costs.count(best) > 1 or best >= _OTHER:
        there = ", ".join(each.signature for each in fitting)
        raise SqlError(
            AMBIGUOUS, f"function {name} is not unique", position=position, hint=f"cast the arguments: there is {there}"
        )
    return fitting[costs.index(best)]


def _cost(function: Function, given: Sequence[Any], type_of_column: ColumnType) -> int:
    return sum(_distance(one, value, type_of_column) for one, value in zip(function.arguments, given, strict=False))


def _distance(argument: Argument, value: Any, type_of_column: ColumnType) -> int:
    wanted = argument.kind.partition("(")[0]
    if isinstance(value, exp.Literal) and value.is_string:
        return 0 if wanted == "VARCHAR" else 1
    if isinstance(value, exp.Cast) and str(value.to.sql("postgres")).upper() in ("JSON", "JSONB", "UUID"):
        return 0 if str(value.to.sql("postgres")).upper().rstrip("B") == wanted else _OTHER
    found = type_of(value, type_of_column)
    if found is None:
        return 0
    kind = duckdb_of(found).partition("(")[0]
    if kind == wanted:
        return 0
    if kind in _NUMBERS and wanted in _NUMBERS:
        steps = _NUMBERS.index(wanted) - _NUMBERS.index(kind)
        return steps if steps > 0 else _NARROWING - steps
    return _OTHER
