"""Filters of libraries as one small tree, and the part of it that a scan can use.

Owns the translation of a filter into a `Predicate`. Each library has a module of its own that reads its filters into this tree.

Rules
  1. The names of calls, and their results for null, are those of Arrow's compute functions.
  2. A predicate holds for every row for which the filter is true; it may hold for more rows. So `holds` and `fails` each describe a
     superset: the rows for which a node may be true, and those for which it may be false. Null is neither.
  3. Only comparisons of partition, offset, timestamp and columns of the key become conditions. Everything else is `Unknown`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa
from msgspec import Struct

from barnabas.tables.predicate import Among, Comparison, Every, Predicate, Some, Unknown

MAX_DEPTH = 200  # of a filter; deeper parts are unknown. Python's own limit of nested calls is 1,000
MAX_EXCLUDED = 16  # values of a `not in` that become ranges
NULL_MATCHES = 0  # Arrow's `null_matching_behavior` with which null is in a list that has null
MICROSECONDS = {"s": (1_000_000, 1), "ms": (1_000, 1), "us": (1, 1), "ns": (1, 1_000)}

OPERATORS = {"equal": "=", "not_equal": "!=", "less": "<", "less_equal": "<=", "greater": ">", "greater_equal": ">="}
TURNED = {"=": "=", "!=": "!=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}  # for a constant on the left side
OPPOSITES = {"=": "!=", "!=": "=", "<": ">=", "<=": ">", ">": "<=", ">=": "<"}
ALWAYS, NEVER = Every(), Some()
PARTITION, OFFSET, TIMESTAMP = "_partition", "_offset", "_timestamp"
Scalar = Any  # pyarrow.Scalar of any type


class Field(Struct, frozen=True):
    """A column, or a part of one: `path` begins with the column."""

    path: tuple[str, ...]


class Constant(Struct, frozen=True):
    """A value with its type."""

    value: Scalar


class Call(Struct, frozen=True):
    """A function of Arrow with its arguments; `options` as Python values, where it has any.

    `if_else` may have the option `null_is_false`: a condition that is null then chooses the second branch.
    """

    name: str
    arguments: tuple[Node, ...]
    options: Mapping[str, Any] = {}


class Opaque(Struct, frozen=True):
    """A part that nothing here can use."""


Node = Field | Constant | Call | Opaque


def columns_in(node: Node) -> set[str]:
    """The columns that a filter needs."""
    found, pending = set[str](), [node]
    while pending:
        match pending.pop():
            case Field(path):
                found.add(path[0])
            case Call(_, arguments):
                pending += arguments
    return found


def predicate_of(node: Node, fields: Sequence[pa.Field[Any]]) -> Predicate:
    """The condition that a scan can use.

    Args:
        fields: partition, offset, timestamp and the columns of the key.
    """
    return _Translation({each.name: each for each in fields}).holds(node, MAX_DEPTH)


class _Translation:
    def __init__(self, fields: Mapping[str, pa.Field[Any]]) -> None:
        self._fields = fields

    def holds(self, node: Node, depth: int) -> Predicate:
        """The rows for which the node may be true."""
        match node:
            case _ if not depth:
                return Unknown()
            case Constant(value):
                return _constant(value, True)
            case Call("and_kleene" | "and", parts):
                return every(self.holds(part, depth - 1) for part in parts)
            case Call("or_kleene" | "or", parts):
                return some(self.holds(part, depth - 1) for part in parts)
            case Call("invert", (part,)):
                return self.fails(part, depth - 1)
            case Call("if_else", (condition, one, other), options):
                otherwise = ALWAYS if options.get("null_is_false") else self.fails(condition, depth - 1)
                chosen = every([self.holds(condition, depth - 1), self.holds(one, depth - 1)])
                return some([chosen, every([otherwise, self.holds(other, depth - 1)])])
            case Call(name, (one, other)) if name in OPERATORS:
                return self._compared(OPERATORS[name], one, other)
            case Call("is_in", (Field((column,)),), options):
                return self._among(column, options)
            case Call("is_valid" | "is_null" as name, (Field((column,)),)) if self._is_never_null(column):
                return ALWAYS if name == "is_valid" else NEVER
            case _:
                return Unknown()

    def fails(self, node: Node, depth: int) -> Predicate:
        """The rows for which the node may be false."""
        match node:
            case _ if not depth:
                return Unknown()
            case Constant(value):
                return _constant(value, False)
            case Call("and_kleene" | "and", parts):
                return some(self.fails(part, depth - 1) for part in parts)
            case Call("or_kleene" | "or", parts):
                return every(self.fails(part, depth - 1) for part in parts)
            case Call("invert", (part,)):
                return self.holds(part, depth - 1)
            case Call("if_else", (condition, one, other), options):
                otherwise = ALWAYS if options.get("null_is_false") else self.fails(condition, depth - 1)
                chosen = every([self.holds(condition, depth - 1), self.fails(one, depth - 1)])
                return some([chosen, every([otherwise, self.fails(other, depth - 1)])])
            case Call(name, (one, other)) if name in OPERATORS:
                return self._compared(OPPOSITES[OPERATORS[name]], one, other)
            case Call("is_in", (Field((column,)),), options):
                return self._not_among(column, options)
            case Call("is_valid" | "is_null" as name, (Field((column,)),)) if self._is_never_null(column):
                return NEVER if name == "is_valid" else ALWAYS
            case _:
                return Unknown()

    def _is_never_null(self, column: str) -> bool:
        return column in self._fields and not self._fields[column].nullable

    def _compared(self, op: str, one: Node, other: Node) -> Predicate:
        match one, other:
            case Field((column,)), Constant(value):
                return self._condition(column, op, value)
            case Constant(value), Field((column,)):
                return self._condition(column, TURNED[op], value)
            case _:
                return Unknown()

    def _condition(self, column: str, op: str, constant: Scalar) -> Predicate:
        field = self._fields.get(column)
        if field is None:
            return Unknown()
        if not constant.is_valid:
            return NEVER
        if op == "!=":
            return some([self._condition(column, "<", constant), self._condition(column, ">", constant)])
        value = _value(field, op, constant)
        return Unknown() if value is None else Comparison(column, op, value)

    def _among(self, column: str, options: Mapping[str, Any]) -> Predicate:
        field, constants = self._fields.get(column), options.get("value_set")
        if field is None or constants is None:
            return Unknown()
        if (
            field.nullable
            and not all(each.is_valid for each in constants)
            and options.get("null_matching_behavior") == NULL_MATCHES
        ):
            return Unknown()
        values = [_value(field, "=", each) for each in constants if each.is_valid]
        return Unknown() if None in values else Among(column, tuple(values)) if values else NEVER

    def _not_among(self, column: str, options: Mapping[str, Any]) -> Predicate:
        constants = options.get("value_set")
        if constants is None or len(constants) > MAX_EXCLUDED or not self._is_never_null(column):
            return Unknown()
        return every(self._condition(column, "!=", each) for each in constants if each.is_valid)


def _constant(value: Scalar, wanted: bool) -> Predicate:
    if not value.is_valid:
        return NEVER
    return Unknown() if value.type != pa.bool_() else ALWAYS if value.as_py() is wanted else NEVER


def _value(field: pa.Field[Any], op: str, constant: Scalar) -> Any:
    """The constant as a value of the column; None if it cannot be compared exactly."""
    given = constant.type
    if field.name == TIMESTAMP:
        return _microseconds(op, constant) if pa.types.is_timestamp(given) and given.tz is not None else None
    if field.name not in {PARTITION, OFFSET} and op != "=":
        return None
    return (
        constant.as_py() if any(both(field.type) and both(given) for both in (pa.types.is_integer, _is_bytes, _is_text)) else None
    )


def _microseconds(op: str, constant: Scalar) -> int | None:
    """Rounded so that no row is left out; None if no timestamp of the column equals it."""
    factor, divisor = MICROSECONDS[constant.type.unit]
    number = constant.value * factor
    if op == "=" and number % divisor:
        return None
    return int(-(-number // divisor) if op in {"<", "<="} else number // divisor)


def _is_bytes(kind: pa.DataType) -> bool:
    return pa.types.is_binary(kind) or pa.types.is_large_binary(kind) or pa.types.is_binary_view(kind)


def _is_text(kind: pa.DataType) -> bool:
    return pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind)


def every(parts: Collection[Predicate] | Iterator[Predicate]) -> Predicate:
    """All parts hold, in the shortest form."""
    kept = [each for part in parts for each in (part.parts if isinstance(part, Every) else (part,))]
    if NEVER in kept:
        return NEVER
    kept = list(dict.fromkeys(kept))
    return kept[0] if len(kept) == 1 else Every(tuple(kept))


def some(parts: Collection[Predicate] | Iterator[Predicate]) -> Predicate:
    """At least one part holds, in the shortest form."""
    kept = [each for part in parts for each in (part.parts if isinstance(part, Some) else (part,))]
    if ALWAYS in kept or Unknown() in kept:
        return ALWAYS if ALWAYS in kept else Unknown()
    kept = list(dict.fromkeys(kept))
    return kept[0] if len(kept) == 1 else Some(tuple(kept))


def kept_conditions(predicate: Predicate, columns: Sequence[str]) -> Predicate:
    """The predicate with the conditions on these columns alone."""
    match predicate:
        case Comparison(column) | Among(column):
            return predicate if column in columns else Unknown()
        case Every(parts):
            return Every(tuple(kept_conditions(part, columns) for part in parts))
        case Some(parts):
            return Some(tuple(kept_conditions(part, columns) for part in parts))
        case _:
            return predicate
