"""The types of `$1`, `$2`, …: a cast tells them, or a column or value beside them.

Postgres asks the operator. DuckDB tells no types of parameters, so here the other side of an operator decides. A parameter that nothing
tells about stays unknown: its value is then written into the statement as a literal, which takes any type.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pyarrow as pa
from sqlglot import exp

from barnabas.sql.duck.types import JSONB, declared, duckdb_of
from barnabas.sql.interface import SqlError
from barnabas.sql.states import UNDEFINED_PARAMETER

ColumnType = Callable[[exp.Column], pa.DataType | None]
MOST_PARAMETERS = 65_535  # as in Postgres' protocol
_TEXT = (
    exp.Like,
    exp.ILike,
    exp.RegexpLike,
    exp.RegexpILike,
    exp.SimilarTo,
    exp.DPipe,
    exp.Lower,
    exp.Upper,
    exp.Trim,
    exp.StrPosition,
)
_PATHS = (
    exp.JSONBExtract,
    exp.JSONBExtractScalar,
    exp.JSONBContainsAnyTopKeys,
    exp.JSONBContainsAllTopKeys,
    exp.JSONBDeleteAtPath,
)
_OF_CASTS = {"UUID": pa.uuid(), "JSON": pa.json_(), "JSONB": JSONB}  # texts for DuckDB, and types of their own for clients
_NUMBERS = (exp.Add, exp.Sub, exp.Mul, exp.Div, exp.Mod, exp.IntDiv)
_BOOLS = (exp.And, exp.Or, exp.Not, exp.Where, exp.Having)


def parameters_of(tree: exp.Expression) -> dict[int, list[Any]]:
    """The places of each parameter. Raises SqlError."""
    found: dict[int, list[Any]] = {}
    for node in tree.find_all(exp.Parameter, exp.Placeholder):
        name = node.name
        if isinstance(node, exp.Placeholder) or not name.isdigit() or not 1 <= int(name) <= MOST_PARAMETERS:
            raise SqlError(UNDEFINED_PARAMETER, f"there is no parameter {node.sql()}", hint="parameters are written $1, $2, …")
        found.setdefault(int(name), []).append(node)
    return found


def infer(
    places: Mapping[int, Sequence[Any]],
    given: Sequence[pa.DataType | None],
    type_of_column: ColumnType,
) -> list[pa.DataType]:
    """A type for each number up to the highest; pa.null() where nothing tells it.

    Args:
        given: by the client.
    """
    types: list[pa.DataType] = []
    for number in range(1, max([*places, len(given)], default=0) + 1):
        told = given[number - 1] if number <= len(given) else None
        if told is not None and pa.types.is_null(told):
            told = None
        for place in places.get(number, ()) if told is None else ():
            told = _beside(place, type_of_column)
            if told is not None:
                break
        types.append(pa.null() if told is None else told)
    return types


def _beside(place: exp.Expression, type_of_column: ColumnType) -> pa.DataType | None:
    node, parent = place, place.parent
    while isinstance(parent, (exp.Paren, exp.Tuple, exp.Neg)):
        node, parent = parent, parent.parent
    match parent:
        case exp.Cast():
            return _OF_CASTS.get(str(getattr(parent.to.this, "value", ""))) or _declared(parent.to)
        case exp.Any() | exp.All():
            other = compared_with(parent, type_of_column)
            return None if other is None else pa.list_(other)
        case exp.Limit() | exp.Offset() | exp.Fetch():
            return pa.int64()
        case exp.If() if parent.this is node and not (isinstance(parent.parent, exp.Case) and parent.parent.this is not None):
            return pa.bool_()
        case exp.If() if isinstance(parent.parent, exp.Case):
            return _first(_parts(parent.parent), node, type_of_column)
        case exp.Between() | exp.Case() | exp.Coalesce() | exp.In() | exp.If():
            return _first(_parts(parent), node, type_of_column)
    fixed = _fixed(parent, node)
    if fixed is None and isinstance(parent, exp.Binary):
        other = parent.expression if parent.this is node else parent.this
        told = type_of(other, type_of_column)
        if told is None or not isinstance(parent, _NUMBERS):
            return told
        return told if _is_number(told) else pa.month_day_nano_interval() if pa.types.is_temporal(told) else None
    return fixed


def _fixed(parent: Any, node: Any) -> pa.DataType | None:
    """The type of an operator's side that takes one type alone."""
    if isinstance(parent, _PATHS) and parent.expression is node:
        return pa.list_(pa.string())
    if isinstance(parent, _TEXT):
        return pa.string()
    return pa.bool_() if isinstance(parent, _BOOLS) else None


def compared_with(quantified: Any, type_of_column: ColumnType) -> pa.DataType | None:
    """The type of `x` in `x = ANY (…)` and `x = ALL (…)`."""
    parent = quantified.parent
    return type_of(parent.this, type_of_column) if isinstance(parent, exp.Binary) and parent.this is not quantified else None


def _parts(parent: Any) -> list[Any]:
    if isinstance(parent, exp.Case):
        return [*(each.args.get("true") for each in parent.args["ifs"]), parent.args.get("default"), parent.this]
    values = (each for value in parent.args.values() for each in (value if isinstance(value, list) else [value]))
    return [each for each in values if isinstance(each, exp.Expression)]


def _first(parts: Sequence[Any], node: Any, type_of_column: ColumnType) -> pa.DataType | None:
    for part in parts:
        told = type_of(part, type_of_column) if part is not None and part is not node else None
        if told is not None:
            return told
    return None


def type_of(node: Any, type_of_column: ColumnType) -> pa.DataType | None:
    """The type of a simple expression; None if it is not simple."""
    match node:
        case exp.Column():
            return type_of_column(node)
        case exp.Cast():
            return _declared(node.to)
        case exp.Literal():
            return pa.string() if node.is_string else _of_number(node.name)
        case exp.Boolean():
            return pa.bool_()
        case exp.Paren() | exp.Neg() | exp.Alias() | exp.Max() | exp.Min():
            return type_of(node.this, type_of_column)
        case exp.Count() | exp.Length():
            return pa.int64()
        case exp.CurrentTimestamp():
            return pa.timestamp("us", tz="UTC")
        case exp.CurrentDate():
            return pa.date32()
        case exp.Lower() | exp.Upper() | exp.Trim() | exp.DPipe() | exp.Concat() | exp.Substring():
            return pa.string()
    if isinstance(node, _NUMBERS):
        return type_of(node.this, type_of_column) or type_of(node.expression, type_of_column)
    return None


def _of_number(text: str) -> pa.DataType:
    if text.isdigit():
        return pa.int32() if int(text) < 1 << 31 else pa.int64()
    return pa.float64()


def _is_number(kind: pa.DataType) -> bool:
    return pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)


def _declared(kind: Any) -> pa.DataType | None:
    try:
        return declared(kind)
    except SqlError:
        return None


def typed(places: Mapping[int, Sequence[Any]], types: Sequence[pa.DataType]) -> None:
    """Write the known types into the tree as casts."""
    for number, nodes in places.items():
        kind = types[number - 1]
        if pa.types.is_null(kind):
            continue
        for node in nodes:
            if not isinstance(node.parent, exp.Cast):
                node.replace(exp.cast(node.copy(), duckdb_of(kind), dialect="duckdb"))


def literal(value: Any) -> Any:
    """A value as a literal, for a parameter of an unknown type."""
    if value is None:
        return exp.Null()
    if isinstance(value, bool):
        return exp.Boolean(this=value)
    if isinstance(value, (int, float)):
        return (
            exp.Literal.number(repr(value)) if value == value and abs(value) != float("inf") else exp.Literal.string(str(value))
        )
    if isinstance(value, (bytes, bytearray, memoryview)):
        return exp.func("UNHEX", exp.Literal.string(bytes(value).hex()))
    return exp.Literal.string(str(value))
