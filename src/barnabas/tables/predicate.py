"""Conditions on columns, as far as a scan can use them to read less.

A predicate is made of the filter of a library (DuckDB, pyarrow, Polars). A part that no scan can use is `Unknown`. The scan reads the
rows for which the predicate may hold, and the whole filter is applied to them afterwards. So a predicate may let through too
many rows, and never too few.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from msgspec import Struct

LOWEST, HIGHEST = -(2**63), 2**63 - 1
MAX_ALTERNATIVES = 64  # of a filter with `or`; beyond them one range covers all


class Comparison(Struct, frozen=True):
    """`column op value`; `op` is `=`, `<`, `<=`, `>` or `>=`.

    Offsets and partitions are ints, timestamps are microseconds since 1970. Keys are values of the format of keys.
    """

    column: str
    op: str
    value: Any


class Among(Struct, frozen=True):
    """`column in values`."""

    column: str
    values: tuple[Any, ...]


class Every(Struct, frozen=True):
    """All parts hold; without parts it holds for every row."""

    parts: tuple[Predicate, ...] = ()


class Some(Struct, frozen=True):
    """At least one part holds; without parts it holds for no row."""

    parts: tuple[Predicate, ...] = ()


class Unknown(Struct, frozen=True):
    """A condition that a scan cannot use: it may hold for any row."""


Predicate = Comparison | Among | Every | Some | Unknown


class Range(NamedTuple):
    """Whole numbers from `low` to `high`, both included."""

    low: int = LOWEST
    high: int = HIGHEST

    def meet(self, other: Range) -> Range:
        return Range(max(self.low, other.low), min(self.high, other.high))

    def cover(self, other: Range) -> Range:
        return Range(min(self.low, other.low), max(self.high, other.high))

    @property
    def is_empty(self) -> bool:
        return self.low > self.high


class Region(NamedTuple):
    """The rows that a scan reads: those within all of these.

    Args:
        timestamps: in microseconds since 1970.
        keys: values of columns of the key, as pairs of column and value, of which a row has at least one; None: any key.
    """

    partitions: Range = Range()
    offsets: Range = Range()
    timestamps: Range = Range()
    keys: frozenset[tuple[str, Any]] | None = None

    @property
    def is_empty(self) -> bool:
        return self.partitions.is_empty or self.offsets.is_empty or self.timestamps.is_empty or self.keys == frozenset()

    def meet(self, other: Region) -> Region:
        keys = self.keys if other.keys is None else other.keys if self.keys is None else _fewer(self.keys, other.keys)
        return Region(
            self.partitions.meet(other.partitions), self.offsets.meet(other.offsets), self.timestamps.meet(other.timestamps), keys
        )

    def cover(self, other: Region) -> Region:
        keys = None if self.keys is None or other.keys is None else self.keys | other.keys
        return Region(
            self.partitions.cover(other.partitions),
            self.offsets.cover(other.offsets),
            self.timestamps.cover(other.timestamps),
            keys,
        )


EVERYTHING = Region()
_WITHIN: dict[str, Callable[[Range], Region]] = {
    "_partition": lambda values: Region(partitions=values),
    "_offset": lambda values: Region(offsets=values),
    "_timestamp": lambda values: Region(timestamps=values),
}


def regions_of(predicate: Predicate, key_columns: Iterable[str] = ("_key",)) -> tuple[Region, ...]:
    """The regions outside of which the predicate holds for no row; none if it never holds. They may overlap."""
    found = _regions(predicate, frozenset(key_columns))
    return tuple(each for each in found if not each.is_empty)


def _regions(predicate: Predicate, key_columns: frozenset[str]) -> list[Region]:
    match predicate:
        case Comparison(column, op, value):
            return [_compared(column, op, value, key_columns)]
        case Among(column, values):
            if column in key_columns:
                return [Region(keys=frozenset((column, each) for each in values))]
            return _limited([_compared(column, "=", each, key_columns) for each in values])
        case Every(parts):
            found = [EVERYTHING]
            for part in parts:
                others = _regions(part, key_columns)
                found = _limited([one.meet(other) for one in found for other in others])
            return found
        case Some(parts):
            return _limited([each for part in parts for each in _regions(part, key_columns)])
        case _:
            return [EVERYTHING]


def _compared(column: str, op: str, value: Any, key_columns: frozenset[str]) -> Region:
    if column in key_columns:
        return Region(keys=frozenset([(column, value)])) if op == "=" else EVERYTHING
    if column not in _WITHIN or not isinstance(value, int):
        return EVERYTHING
    ranges = {
        "=": Range(value, value),
        "<": Range(high=value - 1),
        "<=": Range(high=value),
        ">": Range(low=value + 1),
        ">=": Range(low=value),
    }
    return _WITHIN[column](ranges[op]) if op in ranges else EVERYTHING


def _fewer(one: frozenset[Any], other: frozenset[Any]) -> frozenset[Any]:
    """Both hold. Pairs of one column meet; of different columns the smaller set is enough to look for."""
    columns = {column for column, _ in one | other}
    return one & other if len(columns) == 1 else min(one, other, key=len)


def _limited(found: list[Region]) -> list[Region]:
    kept = [each for each in dict.fromkeys(found) if not each.is_empty]
    if len(kept) <= MAX_ALTERNATIVES:
        return kept
    whole = kept[0]
    for each in kept[1:]:
        whole = whole.cover(each)
    return [whole]
