"""Rows that wait for a commit of their table, with the offsets of their records. No I/O."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

Place = tuple[str, int]  # topic and partition
Numbers = npt.NDArray[np.int64]


class Rows(NamedTuple):
    """Rows of one table, in the order of their records.

    Args:
        rows: the columns of the table; of a deletion, those of the key alone say something.
        places: of each row, the number of the topic partition that its record was read from, by `Gathering.number_of`.
        offsets: of each row.
        deletes: of each row, whether it deletes the one with its key.
    """

    rows: pa.Table
    places: Numbers
    offsets: Numbers
    deletes: npt.NDArray[np.bool_]

    def taken(self, which: Any) -> Rows:
        """Some rows."""
        return Rows(self.rows.take(pa.array(which, pa.int64())), self.places[which], self.offsets[which], self.deletes[which])


class Gathering:
    """The rows of a task that wait.

    Attributes:
        tables: parts of the rows by the name of their table.
        ends: the offset behind all records of a topic partition, those without a row too.
        rows: that wait, and their size in memory, `size_bytes`.
    """

    def __init__(self) -> None:
        self.tables: dict[str, list[Rows]] = {}
        self.ends: dict[Place, int] = {}
        self.rows = self.size_bytes = 0
        self._durable: dict[Place, int] = {}
        self._numbers: dict[Place, int] = {}

    def number_of(self, place: Place) -> int:
        """The number of a topic partition."""
        return self._numbers.setdefault(place, len(self._numbers))

    def add(self, parts: Mapping[str, Rows], ranges: Mapping[Place, tuple[int, int]]) -> None:
        """Add the rows of a batch, by table."""
        for name, part in parts.items():
            self.tables.setdefault(name, []).append(part)
            self.rows += part.rows.num_rows
            self.size_bytes += part.rows.nbytes
        for place, (begin, end) in ranges.items():
            self._durable.setdefault(place, begin)
            self.ends[place] = max(end, self.ends.get(place, 0))
        if not self.rows:
            self.settle()

    def durable(self, place: Place, end: int) -> int:
        """The offset before which all records are in their tables.

        Args:
            end: for a place that no batch had.
        """
        return self._durable.get(place, end)

    def whole(self, name: str) -> Rows:
        """All rows of a table."""
        parts = self.tables[name]
        return Rows(
            pa.concat_tables([each.rows for each in parts], promote_options="permissive").combine_chunks(),
            *(np.concatenate([each[at] for each in parts]) for at in (1, 2, 3)),
        )

    def unwritten(self, name: str, known: Mapping[Place, int]) -> Rows:
        """The rows of a table whose records are behind the offsets that it has recorded."""
        whole = self.whole(name)
        bounds = np.zeros(len(self._numbers), np.int64)
        for place, offset in known.items():
            bounds[self._numbers[place]] = offset
        return whole.taken(np.flatnonzero(whole.offsets >= bounds[whole.places])) if known else whole

    def places_of(self, name: str) -> list[Place]:
        """The topic partitions that have rows for a table."""
        found = set(np.unique(np.concatenate([each.places for each in self.tables[name]])).tolist())
        return [place for place, number in self._numbers.items() if number in found]

    def written(self, name: str) -> None:
        """The rows of a table are in it."""
        for each in self.tables.pop(name):
            self.rows -= each.rows.num_rows
            self.size_bytes -= each.rows.nbytes
        if not self.tables:
            self.settle()

    def settle(self) -> None:
        """Nothing waits."""
        self._durable.update(self.ends)
