"""Names of rows that have no key: the partition and the offset of the record that brought the row.

Owns the form of a name, as a record's key and as the text in the column ROW.

Rules
  1. A record with a key of this form is about the row of that name, if the name has the record's own partition and an earlier offset
     than the record. With a value it is the newest row; without one it deletes the row.
  2. Every other record brings a row of its own, whatever its key is. A record without a key and a value, or with a key of another
     program and without a value, brings none.
  3. The name of a row depends on the key, the partition and the offset of a record alone. So no other record is needed to tell it, also
     when the record that brought the row is gone.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from barnabas.tables.errors import TableError
from barnabas.tables.expression import OFFSET, PARTITION
from barnabas.tables.formats import Array, Decoded, binary_parts, columns_for, without_deleted
from barnabas.tables.predicate import Among, Comparison, Every, Predicate, Some, Unknown

ROW = "_row"
KEY_WORD = "row"  # of `columns_of`: the table has rows with names
MAGIC = b"\xffbarnabasrow"  # no UTF-8, and no beginning of a registered schema's key
_FORM = struct.Struct(f">{len(MAGIC)}siq")
SIZE = _FORM.size
_PLACE, _OFFSET = len(MAGIC), len(MAGIC) + 4  # of the partition and the offset in a name
_TEXT = r"^(?P<partition>0|[1-9][0-9]{0,9}):(?P<offset>0|[1-9][0-9]{0,17})$"
_MOST_PARTITION = 2**31 - 1

Bytes = npt.NDArray[np.uint8]
Ints = npt.NDArray[np.int32]
Longs = npt.NDArray[np.int64]


def name_of(key: bytes | None, partition: int, offset: int) -> bytes:
    """The name of the row that a record is about."""
    if key is not None and len(key) == SIZE:
        magic, of_partition, named = _FORM.unpack(key)
        if magic == MAGIC and of_partition == partition and 0 <= named < offset:
            return key
    return _FORM.pack(MAGIC, partition, offset)


def named_offsets(keys: Array, partitions: Ints, offsets: Longs) -> Longs:
    """For each record the offset in the name of its row: another one than its own for a record that changes a row.

    Args:
        keys: `pa.binary()`.
    """
    data, ends = binary_parts(keys)
    candidates = np.flatnonzero(np.diff(ends) == SIZE)
    if len(candidates) and keys.null_count:
        candidates = candidates[keys.is_valid().to_numpy(zero_copy_only=False)[candidates]]
    if not len(candidates):
        return offsets
    is_name, of_partition, named = _parsed(data[ends[candidates][:, None] + np.arange(SIZE)])
    is_name &= (of_partition == partitions[candidates]) & (named >= 0) & (named < offsets[candidates])
    if not is_name.any():
        return offsets
    found = offsets.copy()
    found[candidates[is_name]] = named[is_name]
    return found


def _parsed(names: Bytes) -> tuple[npt.NDArray[np.bool_], Ints, Longs]:
    """Which of these payloads begin as names do, and their partitions and offsets."""
    is_name = (names[:, :_PLACE] == np.frombuffer(MAGIC, np.uint8)).all(axis=1)
    partitions = np.ascontiguousarray(names[:, _PLACE:_OFFSET]).view(">i4")[:, 0]
    offsets = np.ascontiguousarray(names[:, _OFFSET:]).view(">i8")[:, 0]
    return is_name, partitions.astype(np.int32), offsets.astype(np.int64)


def names_from(partitions: Ints, offsets: Longs) -> Array:
    """Names as keys of records have them, `pa.binary()`."""
    made = np.empty((len(offsets), SIZE), np.uint8)
    made[:, :_PLACE] = np.frombuffer(MAGIC, np.uint8)
    made[:, _PLACE:_OFFSET] = partitions.astype(">i4").view(np.uint8).reshape(-1, 4)
    made[:, _OFFSET:] = offsets.astype(">i8").view(np.uint8).reshape(-1, 8)
    ends = np.arange(len(offsets) + 1, dtype=np.int32) * SIZE
    buffers: list[Any] = [None, pa.py_buffer(ends), pa.py_buffer(made)]  # type: ignore[arg-type]  # numpy arrays are buffers
    return pa.Array.from_buffers(pa.binary(), len(offsets), buffers, 0)


def names_of(records: pa.RecordBatch) -> Array:
    """The names of the rows that records are about.

    Args:
        records: with `key`, `partition` and `offset`, as `columnar.decode` has them.
    """
    partitions, offsets = _places(records)
    return names_from(partitions, named_offsets(records.column("key"), partitions, offsets))


def are_own(records: pa.RecordBatch) -> Array:
    """Which records bring a row of their own, `pa.bool_()`; the others change a row or delete it."""
    partitions, offsets = _places(records)
    return pa.array(named_offsets(records.column("key"), partitions, offsets) == offsets)


def own_keys(records: pa.RecordBatch) -> Array:
    """The keys of records, null where the key is a name."""
    keys: Any = records.column("key")
    return pc.if_else(are_own(records), keys, pa.scalar(None, keys.type))


def located(predicate: Predicate) -> Predicate:
    """The predicate with the places where records about a row may be, in place of conditions on its name."""
    match predicate:
        case Comparison(column, op, value) if column == ROW:
            return _place_of(value) if op == "=" else Unknown()
        case Among(column, values) if column == ROW:
            return Some(tuple(_place_of(each) for each in values))
        case Every(parts):
            return Every(tuple(located(part) for part in parts))
        case Some(parts):
            return Some(tuple(located(part) for part in parts))
        case _:
            return predicate


def _place_of(text: Any) -> Predicate:
    if not isinstance(text, str):
        return Unknown()
    partition, offset = (each[0].as_py() for each in places_in(pa.array([text], pa.string())))
    if partition is None:
        return Some()
    return Every((Comparison(PARTITION, "=", partition), Comparison(OFFSET, ">=", offset)))


def _places(records: pa.RecordBatch) -> tuple[Ints, Longs]:
    partitions: Any = records.column("partition")
    offsets: Any = records.column("offset")
    return partitions.to_numpy(), offsets.to_numpy()


def places_in(texts: Array) -> tuple[Array, Array]:
    """The partitions and the offsets in texts of the column ROW; null for a text that names no row."""
    found = pc.extract_regex(texts, _TEXT)
    partitions, offsets = (pc.struct_field(found, [name]).cast(pa.int64()) for name in ("partition", "offset"))
    is_name = pc.fill_null(pc.less_equal(partitions, pa.scalar(_MOST_PARTITION, pa.int64())), False)
    none = pa.scalar(None, pa.int64())
    return pc.if_else(is_name, partitions, none).cast(pa.int32()), pc.if_else(is_name, offsets, none)


class RowNames:
    """The format of the keys of a topic whose rows have names. It takes names as `names_of` makes them, not the keys of records."""

    uses_headers = False
    fields: Sequence[pa.Field[Any]] = (pa.field(ROW, pa.string(), nullable=False),)

    def decode(self, payloads: Array, headers: Array | None, wanted: Sequence[str]) -> Decoded:
        if not wanted:
            return Decoded([])
        data, ends = binary_parts(payloads)
        if len(payloads) and (payloads.null_count or (np.diff(ends) != SIZE).any()):
            raise TableError("keys of records are no names of rows")
        begin = int(ends[0]) if len(ends) else 0
        _, partitions, offsets = _parsed(data[begin : begin + len(payloads) * SIZE].reshape(-1, SIZE))
        texts: list[Any] = [*(pa.array(each).cast(pa.string()) for each in (partitions, offsets)), pa.scalar(":")]
        return Decoded([pc.binary_join_element_wise(*texts)])

    def payload_of(self, column: str, value: Any) -> bytes | None:
        """Of a text that names no row, the text: no row has such a payload."""
        if not isinstance(value, str):
            return None
        found: bytes = _payloads(pa.array([value], pa.string()))[0].as_py()
        return found

    def encode(self, batch: pa.RecordBatch, deleted: Array | None = None) -> Array:
        """Of a text that names no row, the text: so rows that have no place in the log yet are told apart."""
        (texts,) = columns_for(self.fields, batch)
        return without_deleted(_payloads(texts), deleted)


def _payloads(texts: Array) -> Array:
    partitions, offsets = places_in(texts)
    made = names_from(*(pc.fill_null(each, 0).to_numpy() for each in (partitions, offsets)))
    return made if not partitions.null_count else pc.if_else(partitions.is_valid(), made, texts.cast(pa.binary()))
