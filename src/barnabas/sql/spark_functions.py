"""Functions of Spark SQL whose arguments sqlglot would read as those of another dialect's function of the same name."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from sqlglot import exp
from sqlglot.dialects.spark import Spark
from sqlglot.parsers.postgres import PostgresParser

_SPARK, _OWN = Spark(), Spark.Parser.FUNCTIONS
_MINUTES = re.compile(r"H:mm|h:mm")  # in a format of Postgres, the minutes are MI, and mm is the month


def _formatted(name: str) -> Callable[[list[Any]], Any]:
    """A function with a format such as `yyyy-MM-dd HH:mm:ss`."""
    return lambda args: _OWN[name](args, _SPARK)


def _either(name: str) -> Callable[[list[Any], Any], Any]:
    """A function of both dialects: its format tells which one is meant."""

    def make(args: list[Any], dialect: Any) -> Any:
        if len(args) == 2 and isinstance(args[1], exp.Literal) and _MINUTES.search(args[1].name):
            return _OWN[name](args, _SPARK)
        return PostgresParser.FUNCTIONS[name](args, dialect)

    return make


def _to_date(args: list[Any], dialect: Any) -> Any:
    return exp.cast(args[0], "date") if len(args) == 1 else _either("TO_DATE")(args, dialect)


def _to_timestamp(args: list[Any], dialect: Any) -> Any:
    """A number is seconds since 1970, as in Postgres; a text is a time, as in Spark."""
    if len(args) == 1 and isinstance(args[0], exp.Literal) and args[0].is_string:
        return exp.cast(args[0], "timestamp")
    return _either("TO_TIMESTAMP")(args, dialect)


def _from_utc(args: list[Any]) -> Any:
    """`from_utc_timestamp(time, zone)`: the clock of a zone at a time of UTC."""
    if len(args) != 2:
        return exp.Anonymous(this="from_utc_timestamp", expressions=args)
    moment = exp.AtTimeZone(this=exp.cast(args[0], "timestamp"), zone=exp.Literal.string("UTC"))
    return exp.AtTimeZone(this=moment, zone=args[1])


def _map(args: list[Any]) -> Any:
    """`map(key, value, …)`; two lists are the keys and the values, as in DuckDB."""
    if len(args) % 2 or (len(args) == 2 and all(isinstance(each, exp.Array) for each in args)):
        return PostgresParser.FUNCTIONS["MAP"](args)
    return _OWN["MAP"](args)


def _extracted(args: list[Any]) -> Any:
    """`regexp_extract(text, pattern)` has the first group, or the whole match of a pattern without groups."""
    if len(args) == 2 and isinstance(args[1], exp.Literal) and "(" not in args[1].name:
        args = [*args, exp.Literal.number(0)]
    return _OWN["REGEXP_EXTRACT"](args, _SPARK)


def _by_offset(aggregate: Any) -> Callable[..., Any]:
    """`latest_by_offset(v)` of ksqlDB: the value of the record that came last and has one. Offsets of two partitions do not compare, so
    the time of the record is first."""

    def make(args: list[Any]) -> Any:
        order = exp.Tuple(expressions=[exp.column(name) for name in ("_timestamp", "_offset", "_partition")])
        return aggregate(this=args[0], expression=order) if len(args) == 1 else exp.Anonymous(this="by_offset", expressions=args)

    return make


def _plain(name: str) -> Callable[[list[Any]], Any]:
    """A function whose arguments stay as they are written."""
    return lambda args: exp.Anonymous(this=name, expressions=args)


SPARK_CALLS = (
    "add_months", "approx_percentile", "array_insert", "array_union", "arrays_overlap", "bround", "date_add", "date_diff",
    "date_from_unix_date", "date_sub", "datediff", "elt", "first", "forall", "format_string", "from_json", "isnull", "last", "last_day",
    "map_contains_key", "map_filter", "mask", "months_between", "parse_url", "percentile", "percentile_approx", "sequence",
    "soundex", "split", "str_to_map", "timestamp_micros", "timestamp_millis", "timestamp_seconds", "transform", "transform_keys",
    "transform_values", "trunc", "try_add", "try_multiply", "try_subtract", "zip_with",
)  # fmt: skip
"""Functions that stay as they are written: `planning/spark_calls.py` and macros make DuckDB's of them, and Spark knows them."""

FUNCTIONS: dict[str, Callable[..., Any]] = {
    **{name: make for name, make in _OWN.items() if name not in PostgresParser.FUNCTIONS},
    "TO_CHAR": _plain("to_char"),
    "MAP": _map,
    "TIMESTAMPDIFF": _OWN["TIMESTAMPDIFF"],
    "REGEXP_EXTRACT": _extracted,
    **{name: _formatted(name) for name in ("DATE_FORMAT", "FROM_UNIXTIME", "UNIX_TIMESTAMP", "REGEXP_EXTRACT_ALL")},
    "LATEST_BY_OFFSET": _by_offset(exp.ArgMax),
    "EARLIEST_BY_OFFSET": _by_offset(exp.ArgMin),
    "TO_UNIX_TIMESTAMP": _formatted("UNIX_TIMESTAMP"),
    "TO_DATE": _to_date,
    "TO_TIMESTAMP": _to_timestamp,
    "FROM_UTC_TIMESTAMP": _from_utc,
    "LIKE": lambda args: exp.Like(this=args[0], expression=args[1]),
    **{name.upper(): _plain(name) for name in SPARK_CALLS},
}
