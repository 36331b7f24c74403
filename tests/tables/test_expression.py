"""The part of a filter that a scan can use, case by case; `test_push_down.py` compares rows."""

from __future__ import annotations

from datetime import UTC, date, datetime
from functools import reduce
from typing import Any

import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from barnabas.tables import arrow_filter, polars_filter
from barnabas.tables.expression import ALWAYS, MAX_DEPTH, NEVER, columns_in, predicate_of
from barnabas.tables.predicate import Among, Comparison, Every, Predicate, Some, Unknown, regions_of
from barnabas.tables.scan import META_FIELDS

FIELDS = [*META_FIELDS, pa.field("_key", pa.binary()), pa.field("id", pa.int64())]
offset, partition, timestamp, key, number = (pc.field(name) for name in ("_offset", "_partition", "_timestamp", "_key", "id"))
NULL: Any = pa.scalar(None, pa.bool_())
NOT_ONE = Comparison("_partition", "<", 1), Comparison("_partition", ">", 1)
ONE, NINE = Comparison("_offset", "=", 1), Comparison("_offset", "=", 9)
BELOW, ABOVE = Comparison("_offset", "<", 5), Comparison("_offset", ">", 5)


def of_arrow(expression: pc.Expression) -> Predicate:
    node = arrow_filter.node_of(expression)
    assert node is not None
    return predicate_of(node, FIELDS)


def of_polars(expression: pl.Expr) -> Predicate:
    return predicate_of(polars_filter.node_of(expression), FIELDS)


def time(value: int, unit: Any = "us", zone: Any = "UTC") -> Any:
    return pa.scalar(value, pa.timestamp(unit, zone))


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        (offset == 5, Comparison("_offset", "=", 5)),
        (pc.scalar(5) < offset, ABOVE),
        (offset != 5, Some((BELOW, ABOVE))),
        (~(offset < 5), Comparison("_offset", ">=", 5)),
        (~(offset <= 5), ABOVE),
        (~(offset > 5), Comparison("_offset", "<=", 5)),
        (~(offset == 5), Some((BELOW, ABOVE))),
        (~((offset < 5) & (partition == 1)), Some((Comparison("_offset", ">=", 5), *NOT_ONE))),
        (~((offset >= 5) | (offset == 9)), Every((BELOW, Some((Comparison("_offset", "<", 9), Comparison("_offset", ">", 9)))))),
        ((offset == 5) & (pc.field("value") == "x"), Every((Comparison("_offset", "=", 5), Unknown()))),
        ((offset == 5) | (pc.field("value") == "x"), Unknown()),
        (offset == 5.5, Unknown()),
        (offset.cast(pa.int32()) == 5, Unknown()),
        (offset == pa.scalar(None, pa.int64()), NEVER),
        (pc.scalar(NULL), NEVER),
        (~pc.scalar(NULL), NEVER),
        (~pc.scalar(False), ALWAYS),
        (offset.is_null(), NEVER),
        (offset.is_valid(), ALWAYS),
        (timestamp.is_null(), Unknown()),
        (key == b"a", Comparison("_key", "=", b"a")),
        (key > b"a", Unknown()),
        (key == "a", Unknown()),
        (number == 3, Comparison("id", "=", 3)),
        (number > 3, Unknown()),
        (number == 3.0, Unknown()),
        (key.isin([b"a", b"b"]), Among("_key", (b"a", b"b"))),
        (key.isin([b"a", None]), Unknown()),
        (~key.isin([b"a"]), Unknown()),
        (offset.isin([1, None]), Among("_offset", (1,))),
        (offset.isin(pa.array([], pa.int64())), NEVER),
        (~offset.isin([5]), Some((BELOW, ABOVE))),
        (~timestamp.isin([time(5)]), Unknown()),  # null is not in the list
        (pc.if_else(key.is_valid(), key.isin([b"a"]), pc.scalar(NULL)), Every((Unknown(), Among("_key", (b"a",))))),
        (pc.if_else(offset < 5, offset == 1, offset == 9), Some((Every((BELOW, ONE)), Every((Comparison("_offset", ">=", 5), NINE))))),
        (timestamp >= time(7), Comparison("_timestamp", ">=", 7)),
        (timestamp >= time(7, "ms", "Europe/Berlin"), Comparison("_timestamp", ">=", 7_000)),
        (timestamp > time(7, "s"), Comparison("_timestamp", ">", 7_000_000)),
        (timestamp > time(6_999, "ns"), Comparison("_timestamp", ">", 6)),
        (timestamp < time(7_001, "ns"), Comparison("_timestamp", "<", 8)),
        (timestamp <= time(-1, "ns"), Comparison("_timestamp", "<=", 0)),
        (timestamp >= time(-1, "ns"), Comparison("_timestamp", ">=", -1)),
        (timestamp == time(7_001, "ns"), Unknown()),
        (timestamp == time(7_000, "ns"), Comparison("_timestamp", "=", 7)),
        (timestamp > time(7, "us", None), Unknown()),
        (timestamp > pa.scalar(date(2026, 1, 1)), Unknown()),
    ],
)  # fmt: skip
def test_expressions_of_pyarrow(expression: pc.Expression, expected: Predicate) -> None:
    assert of_arrow(expression) == expected


START, END = datetime.fromtimestamp(0, UTC), datetime.fromtimestamp(1, UTC)


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        (pl.col("_offset") == 5, Comparison("_offset", "=", 5)),
        (pl.col("_offset") > 5, ABOVE),
        (~(pl.col("_offset") < 5), Comparison("_offset", ">=", 5)),
        (pl.col("_offset").eq_missing(5), Unknown()),
        (pl.col("_offset") > 5.5, Unknown()),
        (pl.col("_offset") > 2**63, Unknown()),
        (pl.col("_key") == b"a", Comparison("_key", "=", b"a")),
        (pl.col("_key").is_in([b"a", b"b"]), Among("_key", (b"a", b"b"))),
        (pl.col("_key").is_in([b"a", None]), Among("_key", (b"a",))),
        (pl.col("_key").is_in([b"a", None], nulls_equal=True), Unknown()),
        (pl.col("_key").is_in(pl.col("others")), Unknown()),
        (pl.any_horizontal(pl.col("_offset") < 5, pl.col("_offset") > 5), Some((BELOW, ABOVE))),
        (
            pl.when(pl.col("x")).then(pl.col("_offset") < 5).otherwise(pl.col("_offset") > 5),
            Some((Every((Unknown(), BELOW)), ABOVE)),
        ),
        (
            ~pl.when(pl.col("_offset") < 5).then(pl.lit(True)).otherwise(pl.col("_partition") == 1),
            Some((Comparison("_partition", "<", 1), Comparison("_partition", ">", 1))),
        ),
        (pl.col("_offset") == pl.lit(None, pl.Int64), NEVER),
        (pl.lit(False), NEVER),
        (pl.col("_offset").is_null(), NEVER),
        (pl.col("_timestamp") > START.replace(tzinfo=None), Unknown()),
        (pl.col("_timestamp").dt.year() == 2026, Unknown()),
    ],
)
def test_expressions_of_polars(expression: pl.Expr, expected: Predicate) -> None:
    assert of_polars(expression) == expected


@pytest.mark.parametrize(
    ("closed", "low", "high"), [("both", ">=", "<="), ("left", ">=", "<"), ("right", ">", "<="), ("none", ">", "<")]
)
def test_between_of_polars(closed: Any, low: str, high: str) -> None:
    found = of_polars(pl.col("_timestamp").is_between(START, END, closed=closed))
    assert found == Every((Comparison("_timestamp", low, 0), Comparison("_timestamp", high, 1_000_000)))


def test_a_filter_tells_its_columns() -> None:
    node = arrow_filter.node_of(
        pc.if_else(key.is_valid(), pc.field("person", "name") == "x", pc.starts_with(pc.field("odd and (name)"), "a"))
    )
    assert node is not None
    assert columns_in(node) == {"_key", "person", "odd and (name)"}


def test_columns_by_position_cannot_be_read() -> None:
    assert arrow_filter.node_of(pc.field(0) == 1) is None


def test_deep_filters_are_unknown_and_no_error() -> None:
    deep = reduce(lambda found, each: found | (offset == each), range(5 * MAX_DEPTH), offset == -1)
    assert isinstance(of_arrow(deep), Unknown)
    nested = reduce(lambda found, each: found | (pl.col("_offset") == each), range(5 * MAX_DEPTH), pl.col("_offset") == -1)
    assert isinstance(of_polars(nested), Unknown)
    assert regions_of(of_arrow(deep & (partition == 1)))[0].partitions == (1, 1)
