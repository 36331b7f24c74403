"""Operators and casts whose meaning depends on the types of their sides: of arrays, times, bytes and rows.

DuckDB decides types later, so the sides are looked at here: a cast, a constructor, or a column of a table tells its type. Anything else has
none, and stays as it is.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
from sqlglot import exp

from barnabas.sql.dialect import WRITTEN
from barnabas.sql.duck.types import declared, duckdb_of
from barnabas.sql.interface import SqlError
from barnabas.sql.planning.literals import whole_number

_MOST_INT = 1 << 31
_MOST_DIMENSIONS = 6  # of an array of Postgres
ZONED = pa.timestamp("us", "UTC")
_ZONED_CALLS = ("now", "make_timestamptz", "__to_timestamp")
FieldOf = Callable[[exp.Column], "pa.Field[Any] | None"]


def read_values(tree: Any, field_of: FieldOf, *, is_spark: bool) -> None:
    """Rewrite a tree.

    Args:
        field_of: the column that a name means, None if it is not of a table.
        is_spark: whether an array can be read from its end by negative places, and lists of lists are not made flat.
    """
    kinds = Kinds(field_of)
    for node in reversed(list(tree.walk())):
        made = _made(node, kinds, is_spark=is_spark)
        if made is not None:
            node.replace(made)


class Kinds:
    """The types of expressions, as far as they can be told."""

    def __init__(self, field_of: FieldOf) -> None:
        self._field_of = field_of

    def of(self, node: Any) -> pa.DataType | None:
        match node:
            case exp.Paren() | exp.Neg() | exp.Order() | exp.Filter() | exp.Max() | exp.Min():
                return self.of(node.this)
            case exp.Subquery():
                outputs = node.selects
                return self.of(outputs[0].unalias()) if len(outputs) == 1 else None
            case exp.Cast():
                try:
                    return declared(node.to)
                except SqlError:
                    return None
            case exp.Column():
                field = self._field_of(node)
                return None if field is None else field.type
            case exp.Array():
                inner = self.of(node.expressions[0]) if node.expressions else None
                return pa.list_(pa.null() if inner is None else inner)
            case exp.ArrayAgg():
                inner = self.of(node.this)
                return pa.list_(pa.null() if inner is None else inner)
            case exp.Interval():
                return pa.month_day_nano_interval()
            case exp.Sub() if all(_is_moment(self.of(each)) for each in (node.this, node.expression)):
                return pa.month_day_nano_interval()
            case exp.Add() | exp.Sub() | exp.Mul() | exp.Div():
                return self._wider(self.of(node.this), self.of(node.expression))
            case exp.Literal():
                return self._of_literal(node)
        return _of_call(node)

    @staticmethod
    def _of_literal(node: Any) -> pa.DataType:
        if node.is_string:
            return pa.string()
        number = whole_number(node)
        if number is None:
            return pa.decimal128(38, 9)
        return pa.int32() if number < _MOST_INT else pa.int64()

    @staticmethod
    def _wider(one: pa.DataType | None, other: pa.DataType | None) -> pa.DataType | None:
        """The type of arithmetic: known if a side is floating, or both are equal."""
        if one is not None and one == other and _is_numeric(one):
            return one
        return pa.float64() if any(each is not None and pa.types.is_floating(each) for each in (one, other)) else None

    def depth(self, node: Any) -> int | None:
        """How many lists are inside of each other; None if the type is not known."""
        kind: Any = self.of(node)
        depth = 0
        while kind is not None and pa.types.is_list(kind):
            kind, depth = kind.value_type, depth + 1
        return None if kind is None else depth


def _of_call(node: Any) -> pa.DataType | None:
    is_call = isinstance(node, exp.Anonymous) and str(node.this).lower() in _ZONED_CALLS
    return ZONED if is_call or isinstance(node, exp.CurrentTimestamp) else None


def _made(node: Any, kinds: Kinds, *, is_spark: bool) -> Any:
    found = _of_arrays(node, kinds)
    if found is None and not is_spark:
        found = _of_postgres(node, kinds)
    if found is not None:
        return found
    match node:
        case exp.TimestampTrunc() if node.args.get("zone") is not None:
            return _truncated(node)
        case exp.Sub() if _is_time(node.this, kinds) and _is_time(node.expression, kinds):
            return _call("to_microseconds", exp.Sub(this=_micros(node.this), expression=_micros(node.expression)))
        case exp.Add() | exp.Sub() | exp.Mul() | exp.Div() | exp.Mod():
            return _text_beside_number(node, kinds)
        case exp.Cast():
            return _cast(node, kinds)
        case exp.Sum() | exp.Avg() if _is_interval(node.this, kinds):
            return _of_intervals(node)
        case exp.Substring() | exp.Length() if kinds.of(node.this) == pa.binary():
            return _of_bytes(node)
        case exp.Hex() if kinds.of(node.this) in (pa.int32(), pa.int16()) and node.meta.get(WRITTEN) == "to_hex":
            return _call("__hex32", node.this)
        case exp.Dot() if isinstance(node.expression, exp.Identifier):
            return _field(node)
        case exp.Func() if _is_part_of_text(node, kinds):
            return _with_time(node)
    return None


def _of_bytes(node: Any) -> Any:
    if isinstance(node, exp.Length):
        return _call("octet_length", node.this)
    return _call("__bytes_part", *(each for each in (node.this, node.args.get("start"), node.args.get("length")) if each))


_PARTS = (
    exp.Year, exp.Month, exp.Day, exp.DayOfMonth, exp.DayOfYear, exp.DayOfWeek, exp.Week, exp.WeekOfYear, exp.Quarter, exp.Hour, exp.Minute,
    exp.Second, exp.NextDay,
)  # fmt: skip


def _is_part_of_text(node: Any, kinds: Kinds) -> bool:
    """Whether a function such as `year` has a text, which Spark reads as a time."""
    if isinstance(node, exp.Anonymous):
        return str(node.this).lower() == "weekday" and len(node.expressions) == 1 and kinds.of(node.expressions[0]) == pa.string()
    return isinstance(node, _PARTS) and kinds.of(node.this) == pa.string()


def _with_time(node: Any) -> Any:
    if isinstance(node, exp.Anonymous):  # Monday is 0
        days = _call("isodow", exp.cast(node.expressions[0].copy(), "date"))
        return exp.Paren(this=exp.Sub(this=days, expression=exp.convert(1)))
    made = node.copy()
    made.set("this", exp.cast(node.this.copy(), "timestamp"))
    return made


def _of_arrays(node: Any, kinds: Kinds) -> Any:
    """Functions and operators of arrays."""
    match node:
        case exp.Reverse() if (kinds.depth(node.this) or 0) > 0:
            return _call("list_reverse", node.this)
        case exp.DPipe():
            return _joined(node.this, node.expression, kinds)
        case exp.ArrayConcat() if len(node.expressions) == 1:
            return _joined(node.this, node.expressions[0], kinds)
        case exp.Anonymous() if str(node.this).lower() == "array_cat" and len(node.expressions) == 2:
            return _joined(node.expressions[0], node.expressions[1], kinds)
        case exp.ArraySize() if (dimension := whole_number(node.expression)) is not None:
            return _length(node.this, dimension, kinds)
        case exp.Anonymous(expressions=[array]) if str(node.this).lower() == "cardinality" and (kinds.depth(array) or 1) > 1:
            return _call("len", _flat(array, kinds))
    return None


def _of_postgres(node: Any, kinds: Kinds) -> Any:
    """Functions that mean something else in Spark: rounding, sums, and arrays of arrays."""
    match node:
        case exp.Round() if node.args.get("decimals") is None and _is_real(node.this, kinds):
            return _call("round_even", node.this, exp.convert(0))
        case exp.Sum() | exp.Filter() | exp.Window() if _is_sum_of_bigints(node, kinds):
            return exp.cast(node.copy(), "decimal(38, 0)")
        case exp.Bracket() if len(node.expressions) == 1 and isinstance(node.expressions[0], exp.Neg):
            return exp.Null()  # arrays begin at 1
        case exp.Unnest() if len(node.expressions) == 1:
            flat = _flat(node.expressions[0], kinds)
            return None if flat is None else _with_argument(node, "expressions", [flat])
        case exp.Explode():
            flat = _flat(node.this, kinds)
            return None if flat is None else _with_argument(node, "this", flat)
    return None


def _text_beside_number(node: Any, kinds: Kinds) -> Any:
    """Arithmetic of a number and a text literal, which is read as a number of the same type; None for anything else."""
    for name, side, other in (("this", node.this, node.expression), ("expression", node.expression, node.this)):
        kind = kinds.of(other)
        if isinstance(side, exp.Literal) and side.is_string and kind is not None and _is_numeric(kind):
            return _with_argument(node, name, exp.cast(side.copy(), duckdb_of(kind), dialect="duckdb"))
    return None


def _is_numeric(kind: pa.DataType) -> bool:
    return bool(pa.types.is_integer(kind) or pa.types.is_decimal(kind) or pa.types.is_floating(kind))


def _is_real(node: Any, kinds: Kinds) -> bool:
    kind = kinds.of(node)
    return kind is not None and bool(pa.types.is_floating(kind))


def _is_sum_of_bigints(node: Any, kinds: Kinds) -> bool:
    """Whether an aggregate with all that belongs to it is a sum of `bigint`: a `numeric`, as in Postgres. DuckDB's sum has 128 bits."""
    inner = node
    while isinstance(inner, (exp.Filter, exp.Window)):
        inner = inner.this
    if not isinstance(inner, exp.Sum) or (isinstance(node.parent, (exp.Filter, exp.Window)) and node.arg_key == "this"):
        return False
    value = inner.this
    if isinstance(value, exp.Distinct) and len(value.expressions) == 1:
        value = value.expressions[0]
    return kinds.of(value) == pa.int64()


def _length(array: Any, number: int, kinds: Kinds) -> Any:
    """`array_length(a, n)`: null where an array has no elements, or not so many dimensions."""
    depth = kinds.depth(array)
    if not 0 < number <= (_MOST_DIMENSIONS if depth is None else depth):
        return exp.cast(exp.Null(), "bigint")
    for _ in range(number - 1):
        array = exp.Bracket(this=array.copy(), expressions=[exp.convert(1)], offset=1)
    return exp.Nullif(this=_call("len", array), expression=exp.convert(0))


def _flat(array: Any, kinds: Kinds) -> Any:
    """The elements of lists of lists; None for a plain list."""
    depth = kinds.depth(array)
    made = array
    for _ in range((depth or 1) - 1):
        made = _call("flatten", made)
    return None if made is array else made


def _with_argument(node: Any, name: str, value: Any) -> Any:
    made = node.copy()
    made.set(name, value)
    return made


def _joined(left: Any, right: Any, kinds: Kinds) -> Any:
    """Two arrays, or an array and an element, which may be an array too; None for other sides."""
    depths = kinds.depth(left), kinds.depth(right)
    if depths[0] == depths[1] and depths[0]:
        return _call("__concat", left, right)
    if None in depths or depths[0] == depths[1]:
        return None
    one, other = depths[0] or 0, depths[1] or 0
    if (one == other + 1 and not isinstance(right, exp.Literal | exp.Null)) or (one == 1 and _is_number(right)):
        return _call("list_append", left, right)
    if (other == one + 1 and not isinstance(left, exp.Literal | exp.Null)) or (other == 1 and _is_number(left)):
        return _call("list_prepend", left, right)
    return None


def _is_number(node: Any) -> bool:
    return isinstance(node, exp.Literal) and not node.is_string


def _is_time(node: Any, kinds: Kinds) -> bool:
    kind = kinds.of(node)
    return kind is not None and pa.types.is_time(kind)


def _is_interval(node: Any, kinds: Kinds) -> bool:
    kind = kinds.of(node)
    return kind is not None and pa.types.is_interval(kind)


def _is_moment(kind: pa.DataType | None) -> bool:
    return kind is not None and bool(pa.types.is_timestamp(kind))


def _of_intervals(node: Any) -> Any:
    if isinstance(node, exp.Sum):
        return _sum_of_intervals(node.this)
    return exp.Paren(this=exp.Div(this=_sum_of_intervals(node.this), expression=exp.Count(this=node.this.copy())))


def _sum_of_intervals(node: Any) -> Any:
    """DuckDB has no sum of intervals: months, days and microseconds are added by themselves."""
    parts = [
        _call(f"to_{unit}", exp.cast(exp.Sum(this=_call(f"__{unit}_of", node)), "bigint"))
        for unit in ("months", "days", "microseconds")
    ]
    return exp.Paren(this=exp.Add(this=exp.Add(this=parts[0], expression=parts[1]), expression=parts[2]))


def _micros(node: Any) -> Any:
    return _call("epoch_us", node)


def _truncated(node: Any) -> Any:
    """`date_trunc(unit, t, zone)`: by the clock of the zone. An hour keeps its offset, since it may come twice."""
    zone, unit = node.args["zone"], exp.Literal.string(node.args["unit"].name.lower())
    local = _call("timezone", zone, exp.cast(node.this.copy(), "timestamptz"))
    begin = _call("date_trunc", unit, local)
    if unit.name not in ("hour", "minute", "second", "milliseconds", "microseconds"):
        return _call("timezone", zone, begin)
    rest = exp.Paren(this=exp.Sub(this=local, expression=begin))
    return exp.Paren(this=exp.Sub(this=exp.cast(node.this.copy(), "timestamptz"), expression=rest))


def _cast(node: Any, kinds: Kinds) -> Any:
    word = str(getattr(node.to.this, "value", ""))
    inner = kinds.of(node.this)
    if word == "TIME" and inner == ZONED:
        return exp.cast(exp.cast(node.this.copy(), "timestamp"), "time")
    if isinstance(node.to.this, exp.Interval):
        word = "INTERVAL"
    if word == "INTERVAL" and _is_time(node.this, kinds):
        return _call("to_microseconds", _micros(node.this))
    if word == "BOOLEAN" and inner == pa.string() and not isinstance(node.this, exp.Literal):
        return exp.cast(_call("trim", node.this), "boolean")
    if word in ("TEXT", "VARCHAR") and inner == pa.binary() and not node.to.expressions:
        return _call("__bytes_text", node.this)
    if word in ("TEXT", "VARCHAR") and inner is not None and pa.types.is_list(inner) and not node.to.expressions:
        return _call("__array_text", node.this)
    if word == "ARRAY" and (inner is None or inner == pa.string()) and isinstance(node.this, exp.Column):
        return _read_array(node)
    return None


def _read_array(node: Any) -> Any:
    """A text with an array in braces, as DuckDB reads it; what is no text stays as it is."""
    is_text = exp.EQ(this=_call("typeof", node.this), expression=exp.Literal.string("VARCHAR"))
    braces = [exp.Literal.string("{}"), exp.Literal.string("[]")]
    text = _call("translate", exp.cast(node.this.copy(), "text"), *braces)
    read = exp.Cast(this=text, to=node.to.copy())
    plain = exp.Cast(this=node.this.copy(), to=node.to.copy())
    return exp.Case(ifs=[exp.If(this=is_text, true=read)], default=plain)


def _field(node: Any) -> Any:
    """`(ROW(a, b)).f1`: the fields of a row have no names of their own."""
    row, name = node.this.unnest(), node.expression.name.lower()
    if not (isinstance(row, exp.Anonymous) and str(row.this).lower() == "row") and not isinstance(row, exp.Tuple):
        return None
    if not (name[:1] == "f" and name[1:].isdigit()):
        return None
    return _call("struct_extract", row, exp.convert(int(name[1:])))


def _call(name: str, *arguments: Any) -> exp.Anonymous:
    return exp.Anonymous(this=name, expressions=[each.copy() for each in arguments])
