"""Rows of a live table as Arrow, for queries of one row.

Decoding one record costs as much as decoding some hundreds at once. So the rows after it are decoded with it, and a query for one of them
finds it ready.

Rules
  1. A decoded row counts only as long as its record is the newest of its key: `Row` objects are compared by identity.
  2. Together they take at most as much memory as the rows of the table; beyond that all are forgotten. `LiveTables` forgets them too if the
     decoded rows of all tables take more than the rows of all tables leave free.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import pyarrow as pa

from barnabas.sql.live.rows import LivePartition, LiveRows, Row, records_of

AHEAD = 256  # rows that are looked at to be decoded too; writes begin the walk anew, and it then meets decoded rows
ENTRY_BYTES = 250  # of memory for a decoded row, besides its values
LEAST_BYTES = 1 << 20
Decode = Callable[[pa.RecordBatch], pa.Table]


class _Place(NamedTuple):
    """Where the decoded form of a row is."""

    row: Row
    table: pa.Table
    at: int


class DecodedRows:
    """The decoded rows of one table, for each list of columns. Used by one thread at a time."""

    def __init__(self) -> None:
        self._definition: object = None
        self._places: dict[tuple[str, ...], dict[bytes, _Place]] = {}
        self._walks: dict[int, Iterator[tuple[bytes, Row]]] = {}
        self.size = 0  # bytes of memory, about

    def of_key(self, live: LiveRows, key: bytes, definition: object, names: Sequence[str], decode: Decode) -> pa.Table:
        """The row of a key, or none.

        Args:
            live: the rows, always the same.
            definition: of the table; another one forgets all.
            names: of the columns.
            decode: makes rows of records, one of each, and raises nothing.
        """
        found = [(number, each, each.rows[key]) for number, each in live.partitions.items() if key in each.rows]
        if len(found) != 1:
            return decode(live.of_key(key))
        ((number, partition, row),) = found
        if definition is not self._definition and definition != self._definition:
            self._forget()
            self._definition = definition
        places = self._places.setdefault(tuple(names), {})
        place = places.get(key)
        if place is None or place.row is not row:
            place = self._decoded(live, (number, partition, key, row), tuple(names), decode)
        return place.table.slice(place.at, 1)

    def _decoded(
        self, live: LiveRows, wanted: tuple[int, LivePartition, bytes, Row], names: tuple[str, ...], decode: Decode
    ) -> _Place:
        number, partition, key, row = wanted
        places = self._places[names]
        if self.size > max(LEAST_BYTES, live.size):
            self._forget()
            places = self._places.setdefault(names, {})
        chosen = [(key, row), *self._ahead(number, partition, key, places)]
        table = decode(records_of((number, each, row) for each, row in chosen))
        self.size += table.nbytes + len(chosen) * ENTRY_BYTES
        for at, (each, made) in enumerate(chosen):
            places[each] = _Place(made, table, at)
        return _Place(row, table, 0)

    def _forget(self) -> None:
        self._places.clear()
        self.size = 0

    def _ahead(self, number: int, partition: LivePartition, key: bytes, places: dict[bytes, _Place]) -> list[tuple[bytes, Row]]:
        """Rows that are not decoded, further on in the walk through the rows of a partition."""
        try:
            looked_at = list(itertools.islice(self._walks.get(number, ()), AHEAD))
        except RuntimeError:  # rows came or went
            looked_at = []
        if not looked_at:
            walk = self._walks[number] = iter(partition.rows.items())
            looked_at = list(itertools.islice(walk, AHEAD))
        return [each for each in looked_at if each[0] not in places and each[0] != key]
