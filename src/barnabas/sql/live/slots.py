"""Records by number, as columns: a hundred bytes of memory less for each than as Python objects, and many are taken at once. No I/O.

Rules
  1. Each record gets the next number, its slot. Slots are never used twice, so an equal slot is the same record.
  2. Records come in the order of their offsets, so slots and offsets rise together.
  3. Few records wait in lists, and become columns when there are enough.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from barnabas.columnar.decode import SCHEMA

FEW, SEALED = 1_000, 4_096  # fewer records than FEW at once go into the lists; so many in the lists become columns
OFFSET_AND_TIME = 16  # bytes of a record, besides its key and value
CREATE_TIME = 0


class _Chunk(NamedTuple):
    """The records from one slot on. Times are in microseconds since 1970."""

    start: int
    keys: Any
    values: Any
    offsets: Any
    times: Any

    @property
    def size(self) -> int:
        return int(self.keys.nbytes + self.values.nbytes) + OFFSET_AND_TIME * len(self.keys)


class Slots:
    """The records of one partition, those that are no longer wanted among them."""

    def __init__(self) -> None:
        self._chunks: list[_Chunk] = []
        self._starts: list[int] = []
        self._tail: list[tuple[bytes | None, bytes | None, int, int]] = []
        self._tail_start = self._tail_size = 0
        self.size = 0  # bytes of memory, about

    @property
    def next(self) -> int:
        """The slot of the next record."""
        return self._tail_start + len(self._tail)

    @property
    def first(self) -> int:
        """The slot of the first record."""
        return self._starts[0] if self._starts else self._tail_start

    def add_few(
        self, keys: Sequence[bytes | None], values: Sequence[bytes | None], offsets: Sequence[int], times: Sequence[int]
    ) -> None:
        """Records as Python values."""
        self._tail += zip(keys, values, offsets, times, strict=True)
        size = sum(len(key or b"") + len(value or b"") for key, value in zip(keys, values, strict=True)) + OFFSET_AND_TIME * len(
            keys
        )
        self._tail_size += size
        self.size += size
        if len(self._tail) >= SEALED:
            self._seal()

    def add(self, keys: Any, values: Any, offsets: Any, times: Any) -> None:
        """Records as Arrow columns."""
        if len(keys) < FEW:
            self.add_few(keys.to_pylist(), values.to_pylist(), offsets.to_pylist(), times.to_pylist())
            return
        self._seal()
        self._append(_Chunk(self._tail_start, keys, values, offsets, times))

    def _seal(self) -> None:
        if self._tail:
            keys, values, offsets, times = zip(*self._tail, strict=True)
            self._tail.clear()
            self.size -= self._tail_size
            self._tail_size = 0
            self._append(
                _Chunk(
                    self._tail_start, pa.array(keys, pa.binary()), pa.array(values, pa.binary()), pa.array(offsets, pa.int64()),
                    pa.array(times, pa.int64()),
                )
            )  # fmt: skip

    def _append(self, chunk: _Chunk) -> None:
        self._chunks.append(chunk)
        self._starts.append(chunk.start)
        self._tail_start = chunk.start + len(chunk.keys)
        self.size += chunk.size

    def offset(self, slot: int) -> int:
        """Of a record."""
        if slot >= self._tail_start:
            return self._tail[slot - self._tail_start][2]
        chunk = self._chunks[bisect_right(self._starts, slot) - 1]
        found: int = chunk.offsets[slot - chunk.start].as_py()
        return found

    def records(self, partition: int, slots: Any) -> pa.RecordBatch:
        """Records in the order of their slots here, as `columnar.decode` has them.

        Args:
            slots: int64.
        """
        pieces = list(self._pieces(slots))
        columns = [
            pieces[0][place] if len(pieces) == 1 else pa.concat_arrays([each[place] for each in pieces]) for place in range(4)
        ]
        keys, values, offsets, times = columns
        count = len(keys)
        made: list[Any] = [
            keys, values, pa.nulls(count, pa.string()), pa.array(np.full(count, partition, np.int32)), offsets,
            times.cast(pa.timestamp("us", tz="UTC")), pa.array(np.full(count, CREATE_TIME, np.int32)),
        ]  # fmt: skip
        return pa.RecordBatch.from_arrays(made, schema=SCHEMA)

    def _pieces(self, slots: Any) -> Iterator[list[Any]]:
        """Keys, values, offsets and times of slots, in pieces."""
        of_chunk = np.searchsorted(self._starts, slots, side="right") - 1
        of_chunk[slots >= self._tail_start] = len(self._starts)
        for run in np.split(np.arange(len(slots)), np.flatnonzero(np.diff(of_chunk)) + 1):
            number = int(of_chunk[run[0]]) if len(run) else len(self._starts)
            if number == len(self._starts):
                rows = [self._tail[slot - self._tail_start] for slot in slots[run].tolist()]
                kinds = (pa.binary(), pa.binary(), pa.int64(), pa.int64())
                yield [pa.array([row[place] for row in rows], kind) for place, kind in enumerate(kinds)]
                continue
            chunk = self._chunks[number]
            places = slots[run] - chunk.start
            columns: list[Any] = [chunk.keys, chunk.values, chunk.offsets, chunk.times]
            if len(places) == len(chunk.keys) and (np.diff(places) == 1).all():
                yield columns
            else:
                yield [each.take(pa.array(places)) for each in columns]

    def only(self, slots: Any) -> Slots:
        """Records alone, in their order here, from the next slot on."""
        made = Slots()
        made._tail_start = self.next
        if len(slots):
            batch = self.records(0, slots)
            times = batch.column("timestamp").cast(pa.int64())
            made._append(_Chunk(self.next, batch.column("key"), batch.column("value"), batch.column("offset"), times))
        return made
