"""Functions of Spark SQL that DuckDB has by another name, with other arguments, or not at all.

They are rewritten here, and not when they are read, because a query may run on Spark as well. The others are macros
(`incremental/macros.sql`).
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from typing import Any

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from barnabas.sql.interface import SqlError
from barnabas.sql.planning.literals import whole_number
from barnabas.sql.states import INVALID_PARAMETER, WRONG_COUNT, not_supported

_UNITS = {
    **dict.fromkeys(("YEAR", "YYYY", "YY"), "year"), **dict.fromkeys(("MONTH", "MON", "MM"), "month"), "QUARTER": "quarter", "WEEK": "week",
    **dict.fromkeys(("DAY", "DD"), "day"),
}  # fmt: skip
_OUTPUTS = (exp.Select, exp.Alias, exp.Having)
_SPECIAL = frozenset(".\\+*?[^]$(){}|")  # characters of a regular expression
_PAIR, _ENTRY = "__pair", "__entry"  # names of a lambda's argument


def read_spark_calls(tree: Any, *, is_spark: bool) -> None:
    """Rewrite a tree. Raises SqlError.

    Args:
        is_spark: whether functions of both dialects mean what they mean in Spark.
    """
    for node in reversed(list(tree.walk())):
        made = _made(node) or (_of_spark(node) if is_spark else None)
        if made is not None:
            made.meta.update(node.meta)
            node.replace(made)


def _made(node: Any) -> Any:
    if isinstance(node, exp.Anonymous):
        make = _CALLS.get(str(node.this).lower())
        is_operator = str(node.this).lower() == "some" and not isinstance(node.parent, _OUTPUTS)  # x = SOME (array)
        return None if make is None or is_operator else make(node.expressions)
    return _of_lists(node) or _of_others(node)


def _of_lists(node: Any) -> Any:
    match node:
        case exp.Exists() if isinstance(node.expression, exp.Lambda):
            return exp.Paren(
                this=exp.GT(this=_call("len", _call("list_filter", node.this, node.expression)), expression=exp.convert(0))
            )
        case exp.ArrayFilter() if isinstance(node.expression, exp.Lambda):
            return _call("list_filter", node.this, _from_zero(node.expression))
        case exp.ArraySize() if isinstance(node.this, (exp.Map, exp.VarMap, exp.ToMap)):
            return _call("len", _call("map_keys", node.this))
        case exp.Any() if isinstance(node.parent, _OUTPUTS):
            return _call("bool_or", node.this.unnest())
    return None


def _of_others(node: Any) -> Any:
    match node:
        case exp.TimestampTrunc() if _unit_of(node) in _UNITS:
            node.set("unit", exp.var(_UNITS[_unit_of(node)].upper()))
        case exp.Replace() if node.args.get("replacement") is None:
            node.set("replacement", exp.Literal.string(""))
        case exp.Negative():
            return exp.Paren(this=exp.Neg(this=node.this.copy()))
        case exp.Rint():
            return _call("round_even", node.this, exp.convert(0))
        case exp.Kurtosis():
            return _call("kurtosis_pop", node.this)
        case exp.Skewness() if not isinstance(node.parent, (exp.Window, exp.Filter, exp.Mul)):
            return _skewness(node)
    return None


def _of_spark(node: Any) -> Any:
    """Functions that mean something else in Postgres."""
    match node:
        case exp.Concat() if type(node) is exp.Concat and node.expressions:  # null if an argument is; lists are joined
            first, *others = (each.copy() for each in node.expressions)
            for each in others:
                first = exp.DPipe(this=first, expression=each)
            return exp.Paren(this=first) if others else first
        case exp.RegexpReplace() if node.args.get("modifiers") is None:  # every match, and $1 is a group
            node.set("modifiers", exp.Literal.string("g"))
            replacement: Any = node.args.get("replacement")
            if _is_text(replacement):
                replacement.set("this", re.sub(r"\$(\d)", r"\\\1", replacement.name))
    return None


def _skewness(node: Any) -> Any:
    """DuckDB's is of a sample, and Spark's of all values."""
    count = exp.cast(exp.Count(this=node.this.copy()), "double")
    one, two = (exp.Paren(this=exp.Sub(this=count.copy(), expression=exp.convert(number))) for number in (1, 2))
    root = exp.Nullif(this=_call("sqrt", exp.Mul(this=count, expression=one)), expression=exp.convert(0))
    return exp.Paren(this=exp.Div(this=exp.Mul(this=node.copy(), expression=two), expression=root))


def _unit_of(node: Any) -> str:
    return str(node.args["unit"].name).upper() if node.args.get("unit") is not None else ""


def _truncated(arguments: Sequence[Any]) -> Any:
    """`trunc(date, 'MM')`: the first day. With a number, or alone, it is the function of numbers."""
    if len(arguments) != 2 or not _is_text(arguments[1]):
        return None
    unit = exp.Literal.string(_UNITS.get(arguments[1].name.upper(), arguments[1].name))
    return exp.cast(_call("date_trunc", unit, exp.cast(arguments[0].copy(), "date")), "date")


def _difference(arguments: Sequence[Any]) -> Any:
    """`datediff(end, start)` in days; `datediff(MONTH, a, b)` in whole units. A unit in quotes is DuckDB's, which counts bounds between."""
    if len(arguments) == 2:
        end, start = (exp.cast(each.copy(), "date") for each in arguments)
        return exp.cast(exp.Paren(this=exp.Sub(this=end, expression=start)), "int")
    if len(arguments) != 3:
        raise SqlError(WRONG_COUNT, "datediff has two dates, or a unit and two times")
    is_plain = _is_text(arguments[0])
    unit = exp.Literal.string(arguments[0].name.lower())
    times = [exp.cast(each.copy(), "timestamp") if _is_text(each) else each for each in arguments[1:]]
    return _call("date_diff" if is_plain else "date_sub", unit, *times)


def _of_document(arguments: Sequence[Any]) -> Any:
    """`from_json(text, 'a INT, b ARRAY<STRING>')`: a value of that type; a field that does not fit is null."""
    shape: Any = arguments[1] if len(arguments) > 1 else None
    if not _is_text(shape) or shape.name.lstrip()[:1] in ("{", "[", '"'):
        return None
    if len(arguments) > 2:
        raise not_supported("from_json with options is not supported", hint="from_json(text, 'name TYPE, …')")
    document = exp.TryCast(this=arguments[0].copy(), to=exp.DataType.build("json"))  # a text that is no document is null
    return _call("json_transform", document, exp.Literal.string(json.dumps(_structure(_kind(shape.name)))))


def _kind(text: str) -> Any:
    """The type that a text of Spark describes: a type, or the columns of a struct. Raises SqlError."""
    for wanted in (f"struct<{text}>", text):
        try:
            tree: Any = sqlglot.parse_one(f"CAST(NULL AS {wanted})", read="spark", error_level=sqlglot.ErrorLevel.IMMEDIATE)
        except (SqlglotError, ValueError, AttributeError):
            continue
        if wanted is text or all(isinstance(each, exp.ColumnDef) and each.kind is not None for each in tree.to.expressions):
            return tree.to
    raise SqlError(INVALID_PARAMETER, f'from_json cannot read the type "{text}"', hint="from_json(text, 'name TYPE, …')")


def _structure(kind: Any) -> Any:
    """DuckDB's description of a type: an object for a struct, a list of one type for a list."""
    word = str(getattr(kind.this, "value", kind.this))
    if word == "STRUCT":
        return {each.name: _structure(each.kind) for each in kind.expressions}
    if word == "ARRAY":
        return [_structure(kind.expressions[0])]
    return kind.sql("duckdb")


def _with_function(form: Callable[..., Any], count: int) -> Callable[[Sequence[Any]], Any]:
    """A function of `count` arguments, the last of which is a lambda."""

    def make(arguments: Sequence[Any]) -> Any:
        if len(arguments) != count or not isinstance(arguments[-1], exp.Lambda):
            raise SqlError(WRONG_COUNT, f"{count} arguments are needed, the last of which is a function such as x -> x + 1")
        return form(*arguments)

    return make


def _from_zero(function: Any) -> Any:
    """A lambda of an element and its index, which begins at 0 in Spark and at 1 in DuckDB."""
    if len(function.expressions) != 2:
        return function
    index = function.expressions[1]
    before = exp.Paren(this=exp.Sub(this=index.copy(), expression=exp.convert(1)))
    names = [each.copy() for each in function.expressions]
    return exp.Lambda(this=_placed(function.this, {index.name: before}), expressions=names)


def _placed(body: Any, by_name: dict[str, Any]) -> Any:
    """A body of a lambda with expressions in place of its names."""

    def place(node: Any) -> Any:
        is_name = isinstance(node, (exp.Identifier, exp.Column)) and not isinstance(node.parent, (exp.Column, exp.Lambda))
        is_field = isinstance(node.parent, exp.Dot) and node.arg_key == "expression"
        return by_name[node.name].copy() if is_name and not is_field and node.name in by_name else node

    return body.copy().transform(place)


def _over(function: Any, values: Sequence[Any], name: str) -> Any:
    """A lambda of several arguments as one of a single one, whose parts they are. Raises SqlError."""
    names = [each.name for each in function.expressions]
    if len(names) != len(values):
        raise SqlError(WRONG_COUNT, f"the function has {len(names)} arguments, and needs {len(values)}")
    return exp.Lambda(this=_placed(function.this, dict(zip(names, values, strict=True))), expressions=[exp.to_identifier(name)])


def _all(array: Any, function: Any) -> Any:
    return exp.Paren(this=exp.EQ(this=_call("len", _call("list_filter", array, function)), expression=_call("len", array)))


def _zipped(one: Any, other: Any, function: Any) -> Any:
    values = [_call("struct_extract", exp.column(_PAIR), exp.convert(place)) for place in (1, 2)]
    return _call("list_transform", _call("list_zip", one, other), _over(function, values, _PAIR))


def _entries(change: str) -> Callable[..., Any]:
    """A function of a map and a lambda of key and value. Its result replaces the key or the value, or it is a filter."""

    def make(mapping: Any, function: Any) -> Any:
        parts = [exp.column(each, table=_ENTRY) for each in ("key", "value")]
        changed = _over(function, parts, _ENTRY)
        entries = _call("map_entries", mapping)
        if change == "filter":
            return _call("map_from_entries", _call("list_filter", entries, changed))
        key, value = (changed.this, parts[1]) if change == "key" else (parts[0], changed.this)
        pair = exp.Lambda(this=_call("row", key, value), expressions=[exp.to_identifier(_ENTRY)])
        return _call("map_from_entries", _call("list_transform", entries, pair))

    return make


def _present(name: str) -> Callable[[Sequence[Any]], Any]:
    """`first(x, true)`: of the values that are not null."""

    def make(arguments: Sequence[Any]) -> Any:
        if len(arguments) != 2 or not isinstance(arguments[1], exp.Boolean):
            return None
        call = _call(name, arguments[0])
        if not arguments[1].this:
            return call
        return exp.Filter(
            this=call, expression=exp.Where(this=exp.Not(this=exp.Is(this=arguments[0].copy(), expression=exp.Null())))
        )

    return make


def _pieces(arguments: Sequence[Any]) -> Any:
    """`split(text, pattern [, limit])`: the pattern is a regular expression."""
    if len(arguments) not in (2, 3):
        raise SqlError(WRONG_COUNT, "split has a text, a pattern and perhaps a limit")
    is_plain = _is_text(arguments[1]) and not _SPECIAL & set(arguments[1].name)
    if len(arguments) == 3 and (whole_number(arguments[2]) or 0) > 0:
        if not is_plain:
            raise not_supported("split with a regular expression and a limit is not supported", hint="leave the limit out")
        return _call("__split_most", *arguments)
    return _call("string_split" if is_plain else "string_split_regex", *arguments[:2])


def _chosen(arguments: Sequence[Any]) -> Any:
    """`elt(n, a, b, …)`."""
    if len(arguments) < 2:
        raise SqlError(WRONG_COUNT, "elt has a number and texts")
    return _call("list_extract", exp.Array(expressions=[each.copy() for each in arguments[1:]]), arguments[0])


def _named(name: str, most: int | None = None) -> Callable[[Sequence[Any]], Any]:
    """The same function by another name; arguments behind `most` have no effect."""
    return lambda arguments: _call(name, *arguments[:most])


def _is_text(node: Any) -> bool:
    return isinstance(node, exp.Literal) and bool(node.is_string)


def _call(name: str, *arguments: Any) -> Any:
    return exp.Anonymous(this=name, expressions=[each.copy() for each in arguments])


_CALLS: dict[str, Callable[[Sequence[Any]], Any]] = {
    "trunc": _truncated,
    "datediff": _difference,
    "date_diff": _difference,
    "from_json": _of_document,
    "transform": _with_function(lambda array, function: _call("list_transform", array, _from_zero(function)), 2),
    "forall": _with_function(_all, 2),
    "zip_with": _with_function(_zipped, 3),
    "map_filter": _with_function(_entries("filter"), 2),
    "transform_keys": _with_function(_entries("key"), 2),
    "transform_values": _with_function(_entries("value"), 2),
    "first": _present("first"),
    "last": _present("last"),
    "split": _pieces,
    "elt": _chosen,
    "date_add": _named("__date_add"),
    "date_sub": _named("__date_sub"),
    "last_day": _named("__last_day"),
    "sequence": _named("__sequence"),
    "map_contains_key": _named("map_contains"),
    "format_string": _named("printf"),
    "percentile": _named("quantile_cont", 2),
    "percentile_approx": _named("quantile_disc", 2),
    "approx_percentile": _named("quantile_disc", 2),
    "some": _named("bool_or"),
    "binary": _named("encode"),
    "isnull": lambda arguments: exp.Paren(this=exp.Is(this=arguments[0].copy(), expression=exp.Null())) if arguments else None,
    "str_to_map": lambda arguments: _call("__str_to_map", *arguments, *map(exp.Literal.string, (",", ":")[len(arguments) - 1 :])),
    "try_sum": lambda arguments: exp.Sum(this=arguments[0].copy()) if len(arguments) == 1 else None,
    "try_avg": lambda arguments: exp.Avg(this=arguments[0].copy()) if len(arguments) == 1 else None,
    "raise_error": _named("error"),
    "listagg": lambda arguments: _call("string_agg", *arguments, *([exp.Literal.string("")] if len(arguments) == 1 else [])),
    "bround": lambda arguments: _call("round_even", *arguments, *([exp.convert(0)] if len(arguments) == 1 else [])),
    "array_union": _named("__union"),
    "arrays_overlap": _named("list_has_any"),
}
