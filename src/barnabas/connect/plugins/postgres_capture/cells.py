"""The rows of changes as columns of texts, without a Python object for each value."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from barnabas.lazy_module import LazyModule

if TYPE_CHECKING:
    from barnabas.connect.plugins.postgres_capture import kernels
else:
    kernels = LazyModule("barnabas.connect.plugins.postgres_capture.kernels")

Bytes = npt.NDArray[np.uint8]
Longs = npt.NDArray[np.int64]
Ints = npt.NDArray[np.int32]
Flags = npt.NDArray[np.bool_]


def load_kernels() -> None:
    """Load the compiled loops, and what pyarrow loads when it first converts values of Python."""
    assert kernels.WIDTH > 0
    pa.array([0])


class Rows(Protocol):
    """Rows of a table, some of which may be absent."""

    @property
    def absent(self) -> Flags: ...

    def texts(self, place: int, placeholder: str | None) -> Any:
        """The values of a column as an array of texts; null where there is none. Raises pyarrow.ArrowInvalid for what is no UTF-8.

        Args:
            placeholder: stands for a large value that was not sent; None: null.
        """


class Cells(NamedTuple):
    """Rows of messages.

    Args:
        data: the bytes of the messages.
        begins: places of values in it, by column and row; int64 [columns, rows].
        lengths: of the values, or what there is instead (`kernels.py`); int32 [columns, rows].
        absent: the rows that are not there; bool [rows].
    """

    data: Bytes
    begins: Longs
    lengths: Ints
    absent: Flags

    def take(self, rows: Longs, present: Flags) -> Cells:
        """Some rows; those that are not marked as present are absent."""
        lengths = self.lengths.take(rows, axis=1)  # `[:, rows]` gives an array that is not contiguous by rows
        lengths[:, ~present] = kernels.ABSENT
        return Cells(self.data, self.begins.take(rows, axis=1), lengths, self.absent[rows] | ~present)

    def or_else(self, other: Cells, is_other: Flags) -> Cells:
        """These rows, but those of another table of the same bytes where a mark says so."""
        return Cells(
            self.data, np.where(is_other, other.begins, self.begins), np.where(is_other, other.lengths, self.lengths),
            np.where(is_other, other.absent, self.absent),
        )  # fmt: skip

    def texts(self, place: int, placeholder: str | None) -> Any:
        lengths, count = self.lengths[place], self.lengths.shape[1]
        is_valid = lengths >= 0
        missing = count - int(np.count_nonzero(is_valid))
        if missing == count and not np.any(lengths == kernels.UNCHANGED):
            return pa.nulls(count, pa.string())
        ends = np.zeros(count + 1, np.int32)
        np.cumsum(np.maximum(lengths, 0) if missing else lengths, out=ends[1:])
        data = np.empty(int(ends[-1]), np.uint8)
        kernels.gather(self.data, self.begins[place], lengths, ends, data)
        bits = _buffer(np.packbits(is_valid, bitorder="little")) if missing else None
        found: Any = pa.Array.from_buffers(pa.binary(), count, [bits, _buffer(ends), _buffer(data)], missing)
        found = found.cast(pa.string())
        if placeholder is not None and missing:
            is_unchanged = lengths == kernels.UNCHANGED
            if np.any(is_unchanged):
                found = pc.if_else(pa.array(is_unchanged), pa.scalar(placeholder), found)
        return found


class TableRows(NamedTuple):
    """Rows of a table of texts in bytes, none of which is absent."""

    table: pa.Table

    @property
    def absent(self) -> Flags:
        """The rows that are not there."""
        return np.zeros(self.table.num_rows, np.bool_)

    def texts(self, place: int, placeholder: str | None) -> Any:
        del placeholder
        return self.table.column(place).combine_chunks().cast(pa.string())


class NoRows(NamedTuple):
    """Absent rows alone."""

    size: int

    @property
    def absent(self) -> Flags:
        """The rows that are not there."""
        return np.ones(self.size, np.bool_)

    def texts(self, place: int, placeholder: str | None) -> Any:
        del place, placeholder
        return pa.nulls(self.size, pa.string())


def _buffer(values: Any) -> pa.Buffer:
    return pa.py_buffer(values)


def cells_of(data: Bytes, ats: Longs, columns: int) -> Cells | int:
    """The rows at places in messages, 0 for an absent one; or the number of the first row that has another number of columns."""
    begins, lengths = np.empty((columns, len(ats)), np.int64), np.empty((columns, len(ats)), np.int32)
    odd = kernels.read_cells(data, ats, begins, lengths)
    return Cells(data, begins, lengths, ats == 0) if odd < 0 else int(odd)
