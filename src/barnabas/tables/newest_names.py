"""The newest record of each row, where rows have names in place of keys (`row_names.py`).

A row that nothing changed takes eight bytes: most rows are of this kind, and only names that records carry are compared.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from barnabas.tables.row_names import named_offsets
from barnabas.tables.scan import KEY, OFFSET, VALUE

Offsets = npt.NDArray[np.int64]
_NONE = np.empty(0, np.int64)


class NewestNames:
    """The newest mark of each row of a partition, otherwise as `newest.NewestKeys`. A row is the offset in its name."""

    def __init__(self, partition: int) -> None:
        self._partition = partition
        self._own: list[Offsets] = []  # ascending offsets of records with rows of their own
        self._changed: list[tuple[Offsets, Offsets]] = []  # rows and marks of records that change or delete them

    def add(self, batch: pa.RecordBatch) -> None:
        """Records with the columns of KEY, OFFSET and VALUE, in the order of their offsets."""
        offsets: Offsets = batch.column(OFFSET).to_numpy()
        has_value = batch.column(VALUE).is_valid().to_numpy(zero_copy_only=False)
        rows = named_offsets(batch.column(KEY), np.full(len(offsets), self._partition, np.int32), offsets)
        is_own = rows == offsets
        self._own.append(offsets[is_own & has_value])
        if not is_own.all():
            changed = ~is_own
            self._changed.append((rows[changed], offsets[changed] * 2 + has_value[changed]))

    def _merged(self) -> tuple[Offsets, Offsets, Offsets]:
        """The offsets of rows that nothing changed; the others, and their newest marks."""
        own = np.concatenate(self._own) if self._own else _NONE
        if not self._changed:
            return own, _NONE, _NONE
        rows, marks = (np.concatenate(each) for each in zip(*self._changed, strict=True))
        order = np.lexsort((marks, rows))
        rows, marks = rows[order], marks[order]
        is_last = np.append(rows[1:] != rows[:-1], True)
        rows, marks = rows[is_last], marks[is_last]
        self._changed = [(rows, marks)]
        return own[~np.isin(own, rows, assume_unique=True)], rows, marks

    def only(self, rows: Any) -> None:
        """Forget all other rows."""
        own, changed, marks = self._merged()
        is_kept = np.isin(changed, rows)
        self._own, self._changed = [own[np.isin(own, rows)]], [(changed[is_kept], marks[is_kept])]

    def marks(self) -> Offsets:
        """The marks of all rows, ascending."""
        own, _, marks = self._merged()
        return np.sort(np.concatenate((own * 2 + 1, marks)))

    def at(self, offsets: Offsets) -> Offsets:
        """The rows whose newest record is at one of these offsets."""
        own, changed, marks = self._merged()
        return np.concatenate((own[np.isin(own, offsets)], changed[np.isin(marks >> 1, offsets)]))
