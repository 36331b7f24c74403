"""Which filters become bounds, and which are left to Spark."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from pyspark.sql import datasource as spark

from barnabas.pipelines.bounds import EVERYTHING, NO_END
from barnabas.pipelines.pushdown import bounds_of

AT = datetime(2024, 5, 1, 12, tzinfo=UTC)
AT_MS = int(AT.timestamp() * 1000)


@pytest.mark.parametrize(
    ("filters", "expected"),
    [
        ([spark.GreaterThan(("offset",), 5)], (6, NO_END)),
        ([spark.GreaterThanOrEqual(("offset",), 5), spark.LessThan(("offset",), 9)], (5, 9)),
        ([spark.LessThanOrEqual(("offset",), 9), spark.LessThan(("offset",), 20)], (0, 10)),
        ([spark.EqualTo(("offset",), 7)], (7, 8)),
    ],
)
def test_offsets_are_taken_over_whole(filters: list[spark.Filter], expected: tuple[int, int]) -> None:
    bounds, left = bounds_of(filters)
    assert (bounds.first_offset, bounds.end_offset) == expected
    assert left == []


def test_a_list_of_offsets_leaves_its_gaps_to_spark() -> None:
    item = spark.In(("offset",), (3, 9))
    bounds, left = bounds_of([item])
    assert (bounds.first_offset, bounds.end_offset, left) == (3, 10, [item])


def test_topics_and_partitions() -> None:
    bounds, left = bounds_of(
        [
            spark.In(("topic",), ("a", "b")),
            spark.EqualTo(("topic",), "a"),
            spark.In(("partition",), (1, 2, 3)),
            spark.GreaterThan(("partition",), 1),
        ]
    )
    assert left == []
    assert [(t, p) for t in "ab" for p in range(5) if bounds.has(t, p)] == [("a", 2), ("a", 3)]
    assert EVERYTHING.has("any", 7)


def test_a_time_moves_the_beginning_and_is_checked_again() -> None:
    filters: list[spark.Filter] = [
        spark.GreaterThanOrEqual(("timestamp",), AT + timedelta(microseconds=999)),
        spark.LessThan(("timestamp",), AT + timedelta(days=1)),
        spark.IsNotNull(("timestamp",)),
    ]
    bounds, left = bounds_of(filters)
    assert (bounds.first_time_ms, left) == (AT_MS, filters[:2])
    assert bounds_of([spark.EqualTo(("timestamp",), AT.replace(tzinfo=None).astimezone().replace(tzinfo=None))])[0].first_time_ms


def test_what_is_left_to_spark() -> None:
    filters: list[spark.Filter] = [
        spark.Not(spark.EqualTo(("offset",), 5)),
        spark.EqualTo(("offset",), None),
        spark.EqualTo(("value",), b"x"),
        spark.IsNotNull(("key",)),
        spark.EqualTo(("headers", "key"), "x"),
    ]
    assert bounds_of(filters) == (EVERYTHING, filters)
