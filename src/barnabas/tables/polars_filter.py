"""Reads Polars' expressions into the tree of `expression`, from the JSON in which Polars serializes them."""

from __future__ import annotations

import json
from typing import Any

import polars as pl
import pyarrow as pa

from barnabas.tables.expression import MAX_DEPTH, Call, Constant, Field, Node, Opaque

OPERATORS = {
    "Eq": "equal",
    "NotEq": "not_equal",
    "Lt": "less",
    "LtEq": "less_equal",
    "Gt": "greater",
    "GtEq": "greater_equal",
    "And": "and_kleene",
    "LogicalAnd": "and_kleene",
    "Or": "or_kleene",
    "LogicalOr": "or_kleene",
}
FUNCTIONS = {
    "Not": "invert",
    "IsNull": "is_null",
    "IsNotNull": "is_valid",
    "AnyHorizontal": "or_kleene",
    "AllHorizontal": "and_kleene",
}
BOUNDS = {
    "Both": ("greater_equal", "less_equal"),
    "Left": ("greater_equal", "less"),
    "Right": ("greater", "less_equal"),
    "None": ("greater", "less"),
}
INTEGERS: dict[str, Any] = {
    f"{sign}{bits}": getattr(pa, f"{sign}{bits}".lower())() for sign in ("Int", "UInt") for bits in (8, 16, 32, 64)
}
UNITS: dict[str, Any] = {"Milliseconds": "ms", "Microseconds": "us", "Nanoseconds": "ns"}
NULL_EQUALS_NULL, NULL_IS_NOWHERE = 0, 1  # Arrow's `null_matching_behavior`


def node_of(expression: pl.Expr) -> Node:
    """The tree of an expression."""
    try:
        return _node(json.loads(expression.meta.serialize(format="json")), MAX_DEPTH)
    except (pl.exceptions.PolarsError, ValueError, RecursionError):
        return Opaque()


def _node(data: Any, depth: int) -> Node:
    match data:
        case _ if not depth:
            return Opaque()
        case {"Column": str(name)}:
            return Field((name,))
        case {"Literal": value}:
            found = _constant(value)
            return Opaque() if found is None else Constant(found)
        case {"BinaryExpr": {"left": left, "op": str(op), "right": right}} if op in OPERATORS:
            return Call(OPERATORS[op], (_node(left, depth - 1), _node(right, depth - 1)))
        case {"Function": {"input": [*inputs], "function": {"Boolean": function}}}:
            return _function(function, inputs, depth)
        case {"Ternary": {"predicate": condition, "truthy": one, "falsy": other}}:
            return Call("if_else", tuple(_node(each, depth - 1) for each in (condition, one, other)), {"null_is_false": True})
        case _:
            return Opaque()


def _function(function: Any, inputs: list[Any], depth: int) -> Node:
    match function, inputs:
        case str(name), _ if name in FUNCTIONS:
            return Call(FUNCTIONS[name], tuple(_node(each, depth - 1) for each in inputs))
        case {"IsBetween": {"closed": str(closed)}}, [value, low, high] if closed in BOUNDS:
            parts = zip(BOUNDS[closed], (low, high), strict=True)
            return Call(
                "and_kleene", tuple(Call(name, (_node(value, depth - 1), _node(bound, depth - 1))) for name, bound in parts)
            )
        case {"IsIn": {"nulls_equal": bool(equal)}}, [value, {"Literal": {"Scalar": {"List": [*data]}}}]:
            options = {"value_set": _listed(data), "null_matching_behavior": NULL_EQUALS_NULL if equal else NULL_IS_NOWHERE}
            return Call("is_in", (_node(value, depth - 1),), options)
        case _:
            return Opaque()


def _listed(data: list[int]) -> list[Any] | None:
    try:
        with pa.ipc.open_stream(bytes(data)) as stream:
            column = stream.read_all().column(0)
    except (pa.ArrowException, ValueError, LookupError):
        return None
    return list(column)


def _constant(value: Any) -> Any:
    """A literal as a scalar of Arrow; None for types that no condition uses."""
    match value:
        case {"Dyn": {"Int": int(number)}} if -(2**63) <= number < 2**63:
            return pa.scalar(number, pa.int64())
        case {"Scalar": {"Null": _}}:
            return pa.scalar(None, pa.null())
        case {"Scalar": {"Boolean": bool(truth)}}:
            return pa.scalar(truth)
        case {"Scalar": {"String": str(text)}}:
            return pa.scalar(text)
        case {"Scalar": {"Binary": [*data]}}:
            return pa.scalar(bytes(data))
        case {"Scalar": {"Datetime": [int(number), str(unit), zone]}} if unit in UNITS:
            name = zone.get("inner") if isinstance(zone, dict) else None
            return pa.scalar(number, pa.timestamp(UNITS[unit], tz=name))
        case {"Scalar": {**kinds}} if len(kinds) == 1 and (kind := next(iter(kinds))) in INTEGERS:
            return pa.scalar(kinds[kind], INTEGERS[kind])
        case _:
            return None
