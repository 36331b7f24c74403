"""Finds rows of a live table by the values of some columns: UNIQUE asks for them with each row that a statement writes. No I/O.

Rules
  1. An index has the keys of rows by the hash of their values. Some of these rows have other values by now, so the caller compares.
  2. Each look first adds the rows that came since the last one. They are the last ones of `LivePartition.rows`.
  3. When a partition has forgotten records that are no rows, its rows have other slots, and the index takes them again.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from collections.abc import Set as AbstractSet
from itertools import islice, takewhile
from typing import Any

import pyarrow as pa
import pyarrow.types as pt

from barnabas.sql.live.rows import LivePartition, LiveRows, together

ENTRY_BYTES = 120  # of memory for a row in an index
PIECE_ROWS = 10_000  # that are decoded at once
Values = tuple[Any, ...]
Decode = Callable[[pa.RecordBatch], pa.Table]


def values_of(rows: pa.Table, columns: Sequence[str]) -> list[Values]:
    """The values of each row, in a form that sets can have."""
    return list(zip(*(_comparable(rows.column(name)) for name in columns), strict=True))


def _comparable(column: pa.ChunkedArray[Any]) -> list[Any]:
    values = column.to_pylist()
    if not pt.is_nested(column.type):
        return values
    return [repr(each) if isinstance(each, (list, dict)) else each for each in values]


class RowsByValues:
    """The indexes of one table. Used by one thread at a time."""

    def __init__(self) -> None:
        self._definition: object = None
        self._indexes: dict[tuple[str, ...], dict[int, _Part]] = {}

    @property
    def size(self) -> int:
        """Bytes of memory, about."""
        return ENTRY_BYTES * sum(part.entries for index in list(self._indexes.values()) for part in list(index.values()))

    def has(self, columns: Sequence[str]) -> bool:
        """Whether there is an index of these columns."""
        return tuple(columns) in self._indexes

    def records(
        self, live: LiveRows, definition: object, columns: Sequence[str], wanted: Collection[Values], decode: Decode
    ) -> pa.RecordBatch:  # fmt: skip
        """The records of all rows that have one of these values, and perhaps of some others.

        Args:
            live: the rows, always the same.
            definition: of the table; another one forgets all.
            decode: makes the columns of records.
        """
        if definition is not self._definition and definition != self._definition:
            self._indexes.clear()
            self._definition = definition
        index, hashes, found = self._indexes.setdefault(tuple(columns), {}), set(map(hash, wanted)), []
        for number, partition in sorted(live.partitions.items()):
            part = index.setdefault(number, _Part())
            part.follow(number, partition, lambda records: values_of(decode(records), columns))
            slots = sorted({partition.rows[key] for key in part.keys(hashes) if key in partition.rows})
            if slots:
                found.append(partition.records(number, slots))
        return together(found)


class _Part:
    """The index of one partition."""

    def __init__(self) -> None:
        self._keys: dict[int, bytes | set[bytes]] = {}
        self._first = self._next = 0  # slots of the partition, as they were
        self.entries = 0

    def follow(self, number: int, partition: LivePartition, values: Callable[[pa.RecordBatch], list[Values]]) -> None:
        """Add the rows that came since the last look.

        Args:
            number: of the partition.
            values: of the rows of some records.
        """
        if partition.first != self._first:
            self._keys.clear()
            self._first, self._next, self.entries = partition.first, partition.first, 0
        fresh = takewhile(lambda each: each[1] >= self._next, reversed(partition.rows.items()))
        while piece := list(islice(fresh, PIECE_ROWS))[::-1]:
            keys, slots = zip(*piece, strict=True)
            for key, each in zip(keys, values(partition.records(number, slots)), strict=True):
                self._add(hash(each), key)
        self._next = partition.next

    def _add(self, number: int, key: bytes) -> None:
        there = self._keys.setdefault(number, key)
        if isinstance(there, set):
            there.add(key)
        elif there != key:
            self._keys[number] = {there, key}
        self.entries += 1

    def keys(self, hashes: AbstractSet[int]) -> set[bytes]:
        """The keys of rows whose values have one of these hashes."""
        found: set[bytes] = set()
        for each in hashes & self._keys.keys():
            there = self._keys[each]
            found |= there if isinstance(there, set) else {there}
        return found
