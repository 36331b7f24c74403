"""Record batches as DataRow messages.

A column becomes an array of binary fields, and Arrow joins the columns: for each row its head, and for each field its length and its
bytes. The joined array's buffer is what the wire takes. Few rows are written value by value, since each kernel costs 15 µs.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, tzinfo
from struct import Struct

import numpy as np
import pyarrow as pa

from barnabas import limits
from barnabas.sql.interface import SqlError
from barnabas.sql.postgres.answers import Described
from barnabas.sql.postgres.arrays import Array, bytes_of, compute, fixed_size, join_all
from barnabas.sql.postgres.binary_format import NULL, with_length
from barnabas.sql.postgres.codecs import Codec, codec_of
from barnabas.sql.postgres.messages import format_of

FEW_ROWS = 40
PIECE_BYTES = 1 << 20  # about so much is written at once
_ROW, _LENGTH = Struct(">cIH"), Struct(">i")
_HEAD = np.dtype([("kind", "S1"), ("length", ">u4"), ("columns", ">u2")])


class RowWriter:
    """Writes the rows of one result. Raises SqlError where a value does not fit its type.

    Args:
        formats: as in Bind.
        zone: for timestamps in text.
        kind: of the messages; rows of a COPY are written alike.
    """

    def __init__(self, schema: pa.Schema, formats: Sequence[int] = (), zone: tzinfo = UTC, *, kind: bytes = b"D") -> None:
        self._kind = kind
        if len(formats) > 1 and len(formats) != len(schema):
            raise SqlError("08P01", f"bind message has {len(formats)} result formats but query has {len(schema)} columns")
        self.schema, self.formats, self.zone = schema, tuple(formats), zone
        self.codecs = [codec_of(field, format_of(formats, index), zone) for index, field in enumerate(schema)]

    def described(self) -> list[Described]:
        """The columns, for a RowDescription."""
        return [
            Described(field.name, each.described.oid, each.described.size, each.described.modifier, each.format)
            for field, each in zip(self.schema, self.codecs, strict=True)
        ]

    def pieces(self, batch: pa.RecordBatch) -> Iterator[bytes | memoryview]:
        """All rows of a batch, about a megabyte at once."""
        rows = batch.num_rows
        step = rows if batch.nbytes <= PIECE_BYTES else max(1, rows * PIECE_BYTES // batch.nbytes)
        for at in range(0, rows, step or 1):
            piece = batch.slice(at, step)
            yield b"".join(self._few(piece)) if piece.num_rows <= FEW_ROWS else self._many(piece)[0]

    def each(self, batch: pa.RecordBatch) -> list[bytes]:
        """The rows of a batch, one by one."""
        if batch.num_rows <= FEW_ROWS:
            return self._few(batch)
        data, ends = self._many(batch)
        return [bytes(data[start:end]) for start, end in zip([0, *ends], ends, strict=False)]

    def _few(self, batch: pa.RecordBatch) -> list[bytes]:
        count = len(self.codecs)
        if not count:
            return [_ROW.pack(self._kind, 6, 0)] * batch.num_rows
        columns = [_fields(codec, column) for codec, column in zip(self.codecs, batch.columns, strict=True)]
        found = []
        for row in zip(*columns, strict=True):
            body = b"".join(row)
            if len(body) > limits.MAX_POSTGRES_ROW_BYTES:
                raise _too_large()
            found.append(_ROW.pack(self._kind, 6 + len(body), count) + body)
        return found

    def _many(self, batch: pa.RecordBatch) -> tuple[bytes | memoryview, list[int]]:
        """The rows, and where each one ends."""
        count, rows = len(self.codecs), batch.num_rows
        parts: list[Array] = []
        total = np.full(rows, 6, np.int64)
        for codec, column in zip(self.codecs, batch.columns, strict=True):
            fields = fields_of(codec, column)
            lengths = compute.binary_length(fields).fill_null(-1).to_numpy(zero_copy_only=False)
            parts += [fixed_size(lengths.astype(">i4")), fields]
            total += 4 + np.maximum(lengths, 0)
        if rows and total.max() > limits.MAX_POSTGRES_ROW_BYTES:
            raise _too_large()
        head = np.empty(rows, _HEAD)
        head["kind"], head["length"], head["columns"] = self._kind, total, count
        ends: list[int] = np.cumsum(total + 1).tolist()
        return bytes_of(join_all(fixed_size(head), *parts)), ends


def _fields(codec: Codec, column: Array) -> list[bytes]:
    write = codec.write
    return [NULL if each is None else with_length(write(each)) for each in codec.values(column)]


def fields_of(codec: Codec, column: Array) -> Array:
    """A column as binary fields; nulls stay null."""
    found = None if codec.bulk is None else codec.bulk(column)
    if found is not None:
        return found
    return pa.array([None if each is None else codec.write(each) for each in codec.values(column)], pa.binary())


def _too_large() -> SqlError:
    return SqlError("54000", f"a row has more than {limits.MAX_POSTGRES_ROW_BYTES} bytes")
