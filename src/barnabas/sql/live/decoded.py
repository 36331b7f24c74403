"""Rows of a live table in a form that a query of one row needs: as Arrow, or as bytes of a protocol.

Making the form of one record costs as much as that of some hundreds at once. So that of the rows around it is made with it, and a query for
one of them finds it ready. Before the kernels are loaded, only that of the one record is made.

Rules
  1. A form counts only as long as its record is the newest of its key: it has the slot of that record.
  2. Together they take at most SHARE times the memory of the rows of the table; beyond that the kind is forgotten that was made least
     recently. `LiveTables` forgets all if the forms of all tables take more than the rows of all tables leave free.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Hashable, Iterator, Sequence
from typing import Any, NamedTuple

import pyarrow as pa

from barnabas.lazy_module import is_loaded
from barnabas.sql.live.rows import LivePartition, LiveRows
from barnabas.tables.json_columns import KERNELS

AHEAD, AHEAD_BYTES = 256, 1 << 20  # rows that are looked at to be made too, and about their bytes
ENTRY_BYTES = 250  # of memory for a row, besides its values
LEAST_BYTES = 1 << 20
SHARE = 4
Places = dict[bytes, "_Place"]


class _Place(NamedTuple):
    """Where the form of a row is."""

    slot: int
    made: Sequence[Any]
    at: int


class Made(NamedTuple):
    """The forms of some records, one of each, and the bytes that they take."""

    forms: Sequence[Any]
    size: int


class Slices(Sequence[Any]):
    """The rows of a table as tables of one row."""

    def __init__(self, table: pa.Table) -> None:
        self._table = table

    def __len__(self) -> int:
        return self._table.num_rows

    def __getitem__(self, at: Any) -> Any:
        return self._table.slice(at, 1)


class _Walk:
    """A walk through the rows of one partition, the newest first; it begins anew when there are newer ones."""

    def __init__(self) -> None:
        self._position = -1
        self._newest: Iterator[tuple[bytes, int]] = iter(())
        self._others: Iterator[tuple[bytes, int]] = iter(())

    def next(self, partition: LivePartition, places: Places) -> list[tuple[bytes, int]]:
        """Rows without a form."""
        if partition.position != self._position:
            self._position = partition.position
            self._newest = reversed(partition.rows.items())
        found = _lacking(_taken(self._newest), places)
        if found:
            return found
        looked_at = _taken(self._others)
        if not looked_at:
            self._others = iter(partition.rows.items())
            looked_at = _taken(self._others)
        return _lacking(looked_at, places)


def _taken(walk: Iterator[tuple[bytes, int]]) -> list[tuple[bytes, int]]:
    try:
        return list(itertools.islice(walk, AHEAD))
    except RuntimeError:  # rows came or went
        return []


def _lacking(rows: list[tuple[bytes, int]], places: Places) -> list[tuple[bytes, int]]:
    return [(key, slot) for key, slot in rows if (place := places.get(key)) is None or place.slot != slot]


class _Forms:
    """The forms of one kind."""

    def __init__(self) -> None:
        self.places: Places = {}
        self.walks: dict[int, _Walk] = {}
        self.size = 0


class DecodedRows:
    """The forms of the rows of one table. Used by one thread at a time."""

    def __init__(self) -> None:
        self._definition: object = None
        self._kinds: dict[Hashable, _Forms] = {}  # the one that was made most recently is the last
        self.size = 0  # bytes of memory, about

    def of_key(
        self, live: LiveRows, key: bytes, definition: object, kind: Hashable, make: Callable[[pa.RecordBatch], Made]
    ) -> Any:
        """The form of a key's row; None unless exactly one partition has one.

        Args:
            live: the rows, always the same.
            definition: of the table; another one forgets all.
            kind: of the form.
            make: makes the forms of records.
        """
        found = [(number, each, each.rows[key]) for number, each in live.partitions.items() if key in each.rows]
        if len(found) != 1:
            return None
        ((number, partition, slot),) = found
        if definition is not self._definition and definition != self._definition:
            self._kinds.clear()
            self.size = 0
            self._definition = definition
        forms = self._kinds.get(kind)
        place = None if forms is None else forms.places.get(key)
        if place is None or place.slot != slot:
            place = self._made(live, (number, partition, key, slot), kind, make)
        return place.made[place.at]

    def _made(
        self,
        live: LiveRows,
        wanted: tuple[int, LivePartition, bytes, int],
        kind: Hashable,
        make: Callable[[pa.RecordBatch], Made],
    ) -> _Place:
        number, partition, key, slot = wanted
        forms = self._kinds.pop(kind, None) or _Forms()
        while self._kinds and self.size > max(LEAST_BYTES, SHARE * live.size):
            self.size -= self._kinds.pop(next(iter(self._kinds))).size
        if self.size > max(LEAST_BYTES, SHARE * live.size):
            forms, self.size = _Forms(), 0
        self._kinds[kind] = forms
        walk = forms.walks.setdefault(number, _Walk())
        most = AHEAD_BYTES * len(partition.rows) // max(1, partition.size) if is_loaded(KERNELS) else 0
        chosen = [(key, slot), *(each for each in walk.next(partition, forms.places)[:most] if each[0] != key)]
        made = make(partition.records(number, [each for _, each in chosen]))
        size = made.size + len(chosen) * ENTRY_BYTES
        forms.size += size
        self.size += size
        for at, (each, of_record) in enumerate(chosen):
            forms.places[each] = _Place(of_record, made.forms, at)
        return _Place(slot, made.forms, 0)
