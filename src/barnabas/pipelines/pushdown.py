"""Converts the filters that Spark offers to a batch query into bounds for its fetches.

Rules
  1. A filter on topic, partition or offset is applied completely: Spark does not apply it again.
  2. A lower bound of the timestamp moves the beginning of each partition. Spark applies it again, because older records may
     follow.
  3. Spark applies all other filters.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable
from datetime import datetime, timedelta
from typing import Any

from pyspark.sql.datasource import (
    EqualTo,
    Filter,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    IsNotNull,
    LessThan,
    LessThanOrEqual,
)

from barnabas.pipelines.bounds import EVERYTHING, NO_END, Bounds

NEVER_NULL = {"topic", "partition", "offset", "timestamp", "timestampType"}
_COMPARISONS: dict[type[Filter], Callable[[Any, Any], bool]] = {
    EqualTo: operator.eq,
    GreaterThan: operator.gt,
    GreaterThanOrEqual: operator.ge,
    LessThan: operator.lt,
    LessThanOrEqual: operator.le,
}


def bounds_of(filters: Iterable[Filter]) -> tuple[Bounds, list[Filter]]:
    """The combined bounds of `filters`, and the filters that Spark must apply itself."""
    bounds, left = EVERYTHING, []
    for item in filters:
        narrowed, exact = _narrow(bounds, item)
        bounds = narrowed
        if not exact:
            left.append(item)
    return bounds, left


def _narrow(bounds: Bounds, item: Any) -> tuple[Bounds, bool]:
    path: tuple[str, ...] = getattr(item, "attribute", ())
    if len(path) != 1:
        return bounds, False
    column, value = path[0], getattr(item, "value", None)
    if isinstance(item, IsNotNull):
        return bounds, column in NEVER_NULL
    if isinstance(item, In):
        return _in(bounds, column, value)
    if value is None or type(item) not in _COMPARISONS:
        return bounds, False
    if column == "topic" and isinstance(item, EqualTo):
        return bounds.of_topics(frozenset([value])), True
    if column == "partition":
        compare = _COMPARISONS[type(item)]
        return bounds.of_partitions(lambda partition: compare(partition, value)), True
    if column == "offset":
        return bounds.of_offsets(*_offsets(item, value)), True
    if column == "timestamp" and isinstance(item, EqualTo | GreaterThan | GreaterThanOrEqual) and isinstance(value, datetime):
        return bounds.since(_milliseconds(value)), False
    return bounds, False


def _in(bounds: Bounds, column: str, values: Any) -> tuple[Bounds, bool]:
    found = frozenset(value for value in values if value is not None)
    if column == "topic":
        return bounds.of_topics(found), True
    if column == "partition":
        return bounds.of_partitions(lambda partition: partition in found), True
    if column == "offset" and found:
        # Spark itself filters out the offsets between the wanted ones
        return bounds.of_offsets(min(found), max(found) + 1), False
    return bounds, False


def _offsets(item: Filter, value: int) -> tuple[int, int]:
    """[first, end) for a comparison with `value`."""
    if isinstance(item, EqualTo):
        return value, value + 1
    if isinstance(item, GreaterThan | GreaterThanOrEqual):
        return value + isinstance(item, GreaterThan), NO_END
    return 0, value + isinstance(item, LessThanOrEqual)


def _milliseconds(value: datetime) -> int:
    """A time in milliseconds since 1970, rounded down like a topic's timestamps. A time without a zone is in this machine's
    zone."""
    return (value.astimezone() - datetime.fromtimestamp(0).astimezone()) // timedelta(milliseconds=1)
