"""A filter that a library pushes into a table gives the same rows as the filter applied to the whole table."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import duckdb
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from barnabas.tables import Table
from barnabas.tables.formats import Raw
from barnabas.tables.scan import Columns
from tests.tables.memory_source import MemorySource

START = 1_600_000_000_000  # milliseconds
COLUMNS = Columns(Raw("_key"), Raw("value", pa.string()))


def made_source() -> MemorySource:
    """Three partitions; timestamps that go back and forth; nulls, an aborted transaction and a removed batch."""
    source = MemorySource("orders", partitions=3)
    for number in range(24):
        key = None if number % 7 == 0 else b"k%d" % (number % 4)
        value = None if number % 5 == 0 else f"v{number % 3}".encode()
        time = START + 1_000 * (number if number % 6 else number - 5)
        source.append(number % 2, [(key, value), (b"other", b"w")], timestamp_ms=time)
    source.append(0, [(b"k1", b"aborted")], producer_id=7)
    source.end_transaction(7, commit=False)
    source.append(0, [(b"k1", b"last")], timestamp_ms=START)
    source.remove_batch(1, 6)
    source.delete_records(0, before=3)
    return source


SOURCE = made_source()
TABLE = Table(SOURCE, COLUMNS)
WHOLE = TABLE.arrow()
FRAME = TABLE.to_polars()

OFFSETS = st.integers(-2, 30) | st.sampled_from([2**31, 2**40, -(2**63), 2**63 - 1])
TIMES = st.integers(-2, 26).map(lambda seconds: datetime.fromtimestamp(START / 1000 + seconds, UTC))
KEYS = st.sampled_from([b"k0", b"k1", b"other", b"none"])
VALUES = st.sampled_from(["v0", "v1", "w", ""])
OPERATORS = st.sampled_from(["=", "!=", "<", "<=", ">", ">="])


# pyarrow


def constant(value: Any) -> pc.Expression:
    return pc.scalar(value)


def _compare(left: Any, op: str, right: Any) -> Any:
    functions = {"=": pc.equal, "!=": pc.not_equal, "<": pc.less, "<=": pc.less_equal, ">": pc.greater, ">=": pc.greater_equal}
    left, right = (each if isinstance(each, pc.Expression) else constant(each) for each in (left, right))
    return functions[op](left, right)


def arrow_times() -> st.SearchStrategy[Any]:
    units = {"s": 1, "ms": 1_000, "us": 1_000_000, "ns": 1_000_000_000}

    def scalar(seconds: int, more: int, unit: str, zone: str) -> Any:
        return pa.scalar((START // 1000 + seconds) * units[unit] + more, pa.timestamp(unit, zone))  # type: ignore[call-overload]  # the stubs want literal units

    zones = st.sampled_from(["UTC", "Europe/Berlin", "+03:00"])
    return st.builds(scalar, st.integers(-2, 26), st.integers(-1, 1), st.sampled_from(list(units)), zones)


def arrow_leaves() -> st.SearchStrategy[Any]:
    integers = OFFSETS.map(lambda value: pa.scalar(value, pa.int64())) | st.just(pa.scalar(None, pa.int64()))
    floats = st.sampled_from([0.5, 3.0, -1.0, 1e30]).map(pa.scalar)
    numbers = st.sampled_from(["_offset", "_partition"]).map(pc.field)
    pairs = (
        st.tuples(numbers, integers | floats)
        | st.tuples(numbers.map(lambda each: each.cast(pa.float64())), floats)
        | st.tuples(numbers.map(lambda each: pc.add(each, pc.scalar(1))), integers)
        | st.tuples(st.just(pc.field("_timestamp")), arrow_times())
        | st.tuples(st.just(pc.field("_key")), KEYS.map(pa.scalar))
        | st.tuples(st.just(pc.field("value")), VALUES.map(pa.scalar))
    )
    turned = st.tuples(OPERATORS, pairs, st.booleans()).map(
        lambda each: _compare(*_turned(each[1][0], each[0], each[1][1], each[2]))
    )
    lists = st.lists(st.integers(-1, 30) | st.none(), max_size=5).map(lambda values: pa.array(values, pa.int64()))
    keys = st.lists(KEYS | st.none(), max_size=3).map(lambda values: pa.array(values, pa.binary()))
    within = st.tuples(st.sampled_from(["_offset"]), lists) | st.tuples(st.just("_key"), keys)
    names = st.sampled_from(["_offset", "_timestamp", "_key", "value"]).map(pc.field)
    return (
        turned
        | within.map(lambda each: pc.field(each[0]).isin(each[1]))
        | names.map(lambda each: each.is_null())
        | names.map(lambda each: each.is_valid())
        | st.sampled_from([True, False, None]).map(lambda truth: constant(pa.scalar(truth, pa.bool_())))
    )


def _turned(left: Any, op: str, right: Any, is_turned: bool) -> tuple[Any, str, Any]:
    return (right, op, left) if is_turned else (left, op, right)


def combined(leaves: st.SearchStrategy[Any], choose: Any) -> st.SearchStrategy[Any]:
    return st.recursive(
        leaves,
        lambda parts: (
            st.tuples(parts, parts).map(lambda pair: pair[0] & pair[1])
            | st.tuples(parts, parts).map(lambda pair: pair[0] | pair[1])
            | parts.map(lambda part: ~part)
            | st.tuples(parts, parts, parts).map(lambda three: choose(*three))
        ),
        max_leaves=6,
    )


@given(combined(arrow_leaves(), pc.if_else))
@settings(max_examples=150, deadline=None)
def test_filters_of_pyarrow(expression: pc.Expression) -> None:
    try:
        expected = WHOLE.filter(expression)
    except (pa.ArrowException, NotImplementedError):  # such as a float that is no whole number, compared with an integer column
        return
    reading = TABLE.scan(None, expression)
    assert reading.to_table() == expected, reading.explain()
    assert TABLE.count(expression) == expected.num_rows
    assert TABLE.scan(["_offset"], expression).to_table() == expected.select(["_offset"])


# Polars


def polars_leaves() -> st.SearchStrategy[pl.Expr]:
    numbers = st.sampled_from(["_offset", "_partition"]).map(lambda name: pl.col(name))
    odd = st.sampled_from([2**40, 2.5]).map(lambda value: pl.lit(value)) | st.just(pl.lit(None, pl.Int64))
    integers = odd | st.integers(-2, 30).map(lambda value: pl.lit(value))
    times = TIMES.map(lambda value: pl.lit(value)) | TIMES.map(lambda each: pl.lit(each).dt.cast_time_unit("ns"))
    pairs = (
        st.tuples(numbers, integers)
        | st.tuples(numbers.map(lambda each: each + 1), integers)
        | st.tuples(st.just(pl.col("_timestamp")), times)
        | st.tuples(st.just(pl.col("_key")), KEYS.map(lambda value: pl.lit(value)))
        | st.tuples(st.just(pl.col("value")), VALUES.map(lambda value: pl.lit(value)))
    )

    def compared(op: str, pair: tuple[pl.Expr, pl.Expr], is_turned: bool) -> pl.Expr:
        left, right = reversed(pair) if is_turned else pair
        kinds = {"=": left.eq, "!=": left.ne, "<": left.lt, "<=": left.le, ">": left.gt, ">=": left.ge}
        return kinds[op](right)

    closed = st.sampled_from(["both", "left", "right", "none"])
    between = st.tuples(st.integers(-2, 30), st.integers(-2, 30), closed).map(
        lambda each: pl.col("_offset").is_between(each[0], each[1], closed=each[2])  # type: ignore[arg-type]  # one of four words
    )
    lists = st.lists(st.integers(-1, 30) | st.none(), max_size=4)
    within = st.tuples(lists, st.booleans()).map(
        lambda each: pl.col("_offset").is_in(pl.Series(each[0], dtype=pl.Int64).implode(), nulls_equal=each[1])
    )
    keys = st.lists(KEYS, max_size=3).map(lambda each: pl.col("_key").is_in(pl.Series(each, dtype=pl.Binary).implode()))
    return (
        st.builds(compared, OPERATORS, pairs, st.booleans())
        | between
        | within
        | keys
        | st.sampled_from(["_offset", "_key", "value"]).map(lambda name: pl.col(name).is_null())
        | st.sampled_from([pl.lit(True), pl.lit(False), pl.lit(None, pl.Boolean)])
    )


@given(combined(polars_leaves(), lambda condition, one, other: pl.when(condition).then(one).otherwise(other)))
@settings(max_examples=100, deadline=None)
def test_filters_of_polars(expression: pl.Expr) -> None:
    try:
        expected = FRAME.filter(expression)
    except pl.exceptions.PolarsError:
        return
    lazy = TABLE.scan_polars()
    assert lazy.filter(expression).collect().equals(expected)
    assert lazy.filter(expression).select("value").collect().equals(expected.select("value"))
    assert lazy.head(9).filter(expression).collect().equals(FRAME.head(9).filter(expression))


# DuckDB


def sql_conditions() -> st.SearchStrategy[str]:
    zones = st.sampled_from([UTC, timezone(timedelta(hours=3))])
    times = st.tuples(TIMES, zones).map(lambda each: f"'{each[0].astimezone(each[1]).isoformat()}'::timestamptz")
    integers = st.integers(-2, 30).map(str) | st.sampled_from(["null", "2.5", "4000000000", "'3'"])
    keys, values = KEYS.map(lambda each: f"'{each.decode()}'::blob"), VALUES.map(lambda each: f"'{each}'")
    numbers = st.sampled_from(["_offset", "_partition", "_offset + 1", "_partition::double"])
    pairs = (
        st.tuples(numbers, integers)
        | st.tuples(st.just("_timestamp"), times)
        | st.tuples(st.just("_key"), keys)
        | st.tuples(st.just("value"), values)
    )
    operators = OPERATORS | st.sampled_from(["is distinct from", "is not distinct from"])
    compared = st.tuples(pairs, operators).map(lambda each: f"{each[0][0]} {each[1]} {each[0][1]}")
    lists = st.lists(integers, min_size=1, max_size=4).map(", ".join)
    within = st.tuples(st.sampled_from(["_offset", "_partition"]), lists).map(lambda each: f"{each[0]} in ({each[1]})")
    by_key = st.lists(keys, min_size=1, max_size=3).map(lambda each: f"_key in ({', '.join(each)})")
    between = st.tuples(times, times).map(lambda each: f"_timestamp between {each[0]} and {each[1]}")
    names = st.sampled_from(["_offset", "_timestamp", "_key", "value"])
    nulls = st.tuples(names, st.sampled_from(["is null", "is not null"])).map(" ".join)
    leaves = compared | within | by_key | between | nulls | st.sampled_from(["true", "false", "null"])
    return st.recursive(
        leaves,
        lambda parts: (
            st.tuples(parts, st.sampled_from(["and", "or"]), parts).map(lambda each: f"({each[0]} {each[1]} {each[2]})")
            | parts.map(lambda part: f"not ({part})")
        ),
        max_leaves=6,
    )


@pytest.fixture(scope="module")
def connection() -> Any:
    with duckdb.connect() as made:
        made.execute("set timezone = 'UTC'")
        made.register("topic", TABLE)
        made.register("whole", WHOLE)
        yield made


@given(condition=sql_conditions())
@settings(max_examples=150, deadline=None)
def test_conditions_of_duckdb(connection: duckdb.DuckDBPyConnection, condition: str) -> None:
    query = "select * from {} where {} order by _partition, _offset"
    found, expected = (connection.execute(query.format(name, condition)).fetchall() for name in ("topic", "whole"))
    assert found == expected
