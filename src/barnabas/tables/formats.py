"""The seam between tables and the bytes of records: a format makes columns of keys or of values.

Rules
  1. A format converts a whole array at once; it never sees single records.
  2. A record that does not fit has null in each column that cannot be made of it, and a reason. The scan decides what becomes of it.
     A column does not depend on the other columns that are asked for.
  3. A null payload is no bad record: all its columns are null, as a deletion in a compacted topic has them.
  4. Encoded rows decode to the same rows.
  5. The modules of formats and their kernels are imported when a table uses them. numba compiles kernels at their first import after an
     installation, which takes seconds, and a reader of raw records needs none.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from barnabas.tables.errors import TableError

Array = Any  # pyarrow.Array of any type
MAX_CELLS = 1 << 20  # rows times columns that kernels decode at once; a cell takes up to 17 bytes besides its value
MIN_ROWS = 256


class Decoded(NamedTuple):
    """Columns of a format.

    Args:
        columns: in the order asked for; each as long as the payloads.
        reasons: a text for each record that does not fit the columns asked for, null for the others; None if all fit.
    """

    columns: Sequence[Array]
    reasons: Array | None = None


class ColumnFormat(Protocol):
    """Makes columns of payloads."""

    @property
    def fields(self) -> Sequence[pa.Field[Any]]:
        """The columns it makes."""

    def decode(self, payloads: Array, headers: Array | None, wanted: Sequence[str]) -> Decoded:
        """Columns of the payloads.

        Args:
            payloads: `pa.binary()`.
            headers: lists of structs of `key` and `value`, for formats with `uses_headers`; None otherwise.
            wanted: the names of the fields to make.
        """

    @property
    def uses_headers(self) -> bool:
        """Whether a record's headers are needed to decode it."""

    def payload_of(self, column: str, value: Any) -> bytes | None:
        """The only payload whose `column` equals `value`; None if several payloads may.

        A scan asks this of the format of keys, to look for a key without decoding the others."""

    def encode(self, batch: pa.RecordBatch, deleted: Array | None = None) -> Array:
        """The payload of each row, `pa.binary()`.

        Args:
            batch: columns with the names of the fields; a field without a column is null in all rows.
            deleted: `pa.bool_()`; rows for which it is true get a null payload. Without it, a payload is null only where a format
                of a single value (`Raw`, `ScalarFormat`) gets a null.

        Raises:
            TableError: a column does not belong to the format, or a value does not fit.
        """


def binary_parts(payloads: Array) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.int32]]:
    """The bytes of an array of binary values, and where each one ends, with the beginning of the first one before."""
    _, ends, data = payloads.buffers()
    if ends is None or not len(payloads):
        return np.zeros(0, np.uint8), np.zeros(len(payloads) + 1, np.int32)
    offsets = np.frombuffer(ends, np.int32)[payloads.offset : payloads.offset + len(payloads) + 1]
    return np.zeros(0, np.uint8) if data is None or not data.size else np.frombuffer(data, np.uint8), offsets


def columns_for(fields: Sequence[pa.Field[Any]], batch: pa.RecordBatch) -> list[Array]:
    """The columns of a batch as a format encodes them: in the order of its fields, with their types. Raises TableError."""
    known = {field.name for field in fields}
    for name in batch.schema.names:
        if name not in known:
            raise TableError(f"there is no column {name} to write; there are {', '.join(sorted(known)) or 'none'}")
    columns = []
    for field in fields:
        if field.name not in batch.schema.names:
            columns.append(pa.nulls(batch.num_rows, field.type))
            continue
        try:
            columns.append(batch.column(field.name).cast(field.type))
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
            reason = str(error).splitlines()[0][:300]
            raise TableError(f"the column {field.name} does not fit {field.type}: {reason}") from None
    return columns


def replaced(columns: Sequence[Array], rows: npt.NDArray[np.intp], others: Decoded) -> Decoded:
    """The columns with the rows of others in place of some of theirs."""
    count = len(columns[0])
    places = np.arange(count)
    places[rows] = np.arange(count, count + len(rows))
    taken = pa.array(places)
    made = [pa.concat_arrays([one, other]).take(taken) for one, other in zip(columns, others.columns, strict=True)]
    if others.reasons is None:
        return Decoded(made)
    return Decoded(made, pa.concat_arrays([pa.nulls(count, pa.string()), others.reasons]).take(taken))


def by_slices(decode: Callable[[Array, Array | None], Decoded], payloads: Array, headers: Array | None, columns: int) -> Decoded:
    """Decode the payloads, so many at a time that rows times columns are at most `MAX_CELLS`."""
    step = max(MAX_CELLS // max(columns, 1), MIN_ROWS)
    if len(payloads) <= step:
        return decode(payloads, headers)
    begins = range(0, len(payloads), step)
    parts = [decode(payloads.slice(at, step), None if headers is None else headers.slice(at, step)) for at in begins]
    return joined(parts, [min(step, len(payloads) - at) for at in begins])


def joined(parts: Sequence[Decoded], rows: Sequence[int]) -> Decoded:
    """The parts behind each other; `rows` has the number of each."""
    columns = [pa.concat_arrays(list(each)) for each in zip(*(part.columns for part in parts), strict=True)]
    if all(part.reasons is None for part in parts):
        return Decoded(columns)
    reasons: list[Array] = [
        pa.nulls(count, pa.string()) if part.reasons is None else part.reasons for part, count in zip(parts, rows, strict=True)
    ]
    return Decoded(columns, pa.concat_arrays(reasons))


def without_deleted(payloads: Array, deleted: Array | None) -> Array:
    """The payloads, null where `deleted` is true."""
    return payloads if deleted is None else pc.if_else(pc.fill_null(deleted, False), pa.scalar(None, payloads.type), payloads)


class Raw:
    """The payload as it is, as one column of bytes or of text.

    Args:
        name: of the column.
        kind: `pa.binary()` or `pa.string()`. Bytes that are no UTF-8 do not fit into text.
    """

    uses_headers = False

    def __init__(self, name: str, kind: pa.DataType | None = None) -> None:
        self._kind = kind or pa.binary()
        self.fields = (pa.field(name, self._kind),)

    def decode(self, payloads: Array, headers: Array | None, wanted: Sequence[str]) -> Decoded:
        if not wanted:
            return Decoded([])
        if self._kind == pa.binary():
            return Decoded([payloads])
        try:
            return Decoded([payloads.cast(self._kind)])
        except pa.ArrowInvalid:
            return self._one_by_one(payloads)

    def _one_by_one(self, payloads: Array) -> Decoded:
        values: list[str | None] = []
        reasons: list[str | None] = []
        for payload in payloads.to_pylist():
            value = reason = None
            try:
                value = None if payload is None else payload.decode()
            except UnicodeDecodeError as error:
                reason = f"byte {error.start} is no UTF-8"
            values.append(value)
            reasons.append(reason)
        return Decoded([pa.array(values, self._kind)], pa.array(reasons, pa.string()))

    def payload_of(self, column: str, value: Any) -> bytes | None:
        if isinstance(value, str):
            return value.encode()
        return bytes(value) if isinstance(value, (bytes, bytearray, memoryview)) else None

    def encode(self, batch: pa.RecordBatch, deleted: Array | None = None) -> Array:
        (column,) = columns_for(self.fields, batch)
        return without_deleted(column.cast(pa.binary()), deleted)
