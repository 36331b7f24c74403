"""COPY in the binary format, for any engine: its rows are those of a query, and rows that come in go on as text.

    PGCOPY\\n\\377\\r\\n\\0, flags, length of an extension; for each row the count of its fields, and each with its length; -1 at the end

A row has the layout of a DataRow, so `rows.py` writes both.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from struct import Struct, pack
from typing import Any, NamedTuple

import pyarrow as pa

from barnabas import limits
from barnabas.sql.duck.enums import labelled_type
from barnabas.sql.interface import SqlError
from barnabas.sql.postgres.messages import BINARY
from barnabas.sql.postgres.parameters import value_of
from barnabas.sql.postgres.rows import RowWriter
from barnabas.sql.postgres.types import describe

SIGNATURE = b"PGCOPY\n\xff\r\n\0"
HEAD = SIGNATURE + bytes(8)
TRAILER = b"\xff\xff"
_NAME = r'(?:"(?:[^"]|"")+"|[\w$]+)'
_BINARY_COPY = re.compile(
    rf"\s*copy\s+(?P<what>\(.*\)|{_NAME}(?:\s*\.\s*{_NAME})*)\s*(?P<columns>\([^()]*\))?\s*"
    r"(?:(?P<into>from\s+stdin)|to\s+stdout)\s*(?:with\s*)?(?:\(\s*format\s+'?binary'?\s*\)|binary)\s*;?\s*$",
    re.IGNORECASE | re.DOTALL,
)
_COUNT, _LENGTH = Struct(">h"), Struct(">i")
_ESCAPES = {ord(char): f"\\{code}" for char, code in zip("\\\b\f\n\r\t\v", "\\bfnrtv", strict=True)}


class BinaryCopy(NamedTuple):
    """A COPY in the binary format: in as a COPY in the text format, or out as the rows of a query."""

    text: str
    is_in: bool


def binary_copy_of(text: str) -> BinaryCopy | None:
    """The statement to run for a COPY in the binary format; None for another statement."""
    if text.lstrip()[:4].lower() != "copy" or (found := _BINARY_COPY.match(text)) is None:
        return None
    what, columns = found["what"], found["columns"] or ""
    if found["into"]:
        return BinaryCopy(f"COPY {what} {columns} FROM STDIN", is_in=True)
    if what.startswith("("):
        return BinaryCopy(what[1:-1], is_in=False)
    return BinaryCopy(f"SELECT {columns[1:-1] or '*'} FROM {what}", is_in=False)


def rows_out(schema: pa.Schema, batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[bytes | memoryview, int]]:
    """CopyData messages, and how many rows each portion has."""
    writer = RowWriter(schema, (BINARY,), kind=b"d")
    first = True
    for batch in batches:
        start = 0
        if first and batch.num_rows:
            (row,) = writer.pieces(batch.slice(0, 1))
            yield b"d" + pack(">I", len(row) - 1 + len(HEAD)) + HEAD + bytes(row[5:]), 1  # clients take the head for a part of it
            first, start = False, 1
        for piece in writer.pieces(batch.slice(start)):
            yield piece, 0
        yield b"", batch.num_rows - start
    end = HEAD + TRAILER if first else TRAILER
    yield b"d" + pack(">I", 4 + len(end)) + end, 0


def lines_in(schema: pa.Schema, data: Iterable[bytes]) -> Iterator[bytes]:
    """The rows as lines of the text format. Raises SqlError 22P04 for data that is not in the format."""
    oids = [describe(field).oid for field in schema]
    kinds = [labelled_type(field) for field in schema]
    for row in _rows(data):
        if len(row) != len(oids):
            raise SqlError("22P04", f"row field count is {len(row)}, expected {len(oids)}")
        values = (value_of(cell, oid, BINARY, kind) for cell, oid, kind in zip(row, oids, kinds, strict=True))
        yield ("\t".join("\\N" if each is None else _shown(each).translate(_ESCAPES) for each in values) + "\n").encode()


def _shown(value: Any) -> str:
    if isinstance(value, bool):
        return "t" if value else "f"
    if isinstance(value, bytes):
        return "\\x" + value.hex()
    if isinstance(value, list):
        return "{" + ",".join("NULL" if each is None else _quoted(each) for each in value) + "}"
    return str(value)


def _quoted(value: Any) -> str:
    if isinstance(value, list):
        return _shown(value)
    return '"' + _shown(value).replace("\\", "\\\\").replace('"', '\\"') + '"'


def _rows(data: Iterable[bytes]) -> Iterator[Sequence[bytes | None]]:
    reader = _Reader(data)
    if reader.take(len(SIGNATURE)) != SIGNATURE:
        raise SqlError("22P04", "COPY file signature not recognized")
    flags, extension = Struct(">Ii").unpack(reader.take(8))
    if flags & 0xFFFF0000 or extension < 0:
        raise SqlError(
            "22P04", "unrecognized critical flags in COPY file header" if extension >= 0 else "invalid COPY file header"
        )
    reader.take(extension)
    while (count := _number(_COUNT, reader.take(2))) != -1:
        if count < 0:
            raise SqlError("22P04", f"row field count is {count}")
        row: list[bytes | None] = []
        for _ in range(count):
            size = _number(_LENGTH, reader.take(4))
            row.append(None if size == -1 else reader.take(size))
        yield row


def _number(kind: Struct, data: bytes) -> int:
    (found,) = kind.unpack(data)
    return int(found)


class _Reader:
    """Bytes of any length from pieces of any length."""

    def __init__(self, pieces: Iterable[bytes]) -> None:
        self._pieces, self._buffer, self._at = iter(pieces), b"", 0

    def take(self, size: int) -> bytes:
        if not 0 <= size <= limits.MAX_POSTGRES_MESSAGE_BYTES:
            raise SqlError("22P04", f"invalid field size {size} in COPY data")
        while len(self._buffer) - self._at < size:
            piece = next(self._pieces, None)
            if piece is None:
                raise SqlError("22P04", "unexpected EOF in COPY data")
            self._buffer, self._at = self._buffer[self._at :] + piece, 0
        found = self._buffer[self._at : self._at + size]
        self._at += size
        return found
