"""The data of COPY FROM as tables of text, a piece at a time."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.csv

from barnabas import limits
from barnabas.sql.interface import SqlError
from barnabas.sql.statements.copy_options import CopyOptions
from barnabas.sql.states import BAD_COPY

PIECE_ROWS = 20_000
BLOCK_BYTES = 1 << 20
_END = re.compile(rb"\n\\\.\r?\n")
_ESCAPE = re.compile(rb"\\(x[0-9a-fA-F]{1,2}|[0-7]{1,3}|.)", re.DOTALL)
_LETTERS = {b"b": b"\b", b"f": b"\f", b"n": b"\n", b"r": b"\r", b"t": b"\t", b"v": b"\v"}


def tables_of(data: Iterator[bytes], names: Sequence[str], options: CopyOptions) -> Iterator[pa.Table]:
    """Pieces with columns of text. Raises SqlError 22P04."""
    return _csv(data, names, options) if options.is_csv else _text(data, names, options)


class _Stream(io.RawIOBase):
    """The data as a file."""

    def __init__(self, data: Iterator[bytes]) -> None:
        self._data, self._rest = data, b""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        while not self._rest:
            piece = next(self._data, None)
            if piece is None:
                return 0
            self._rest = piece
        count = min(len(buffer), len(self._rest))
        buffer[:count] = self._rest[:count]
        self._rest = self._rest[count:]
        return count


def _before_end(data: Iterator[bytes]) -> Iterator[bytes]:
    """The data before a line `\\.`, which psql sends behind data in a script."""
    held, begins_line = b"", True
    for piece in data:
        text = held + piece
        found = _END.search(b"\n" + text if begins_line else text)
        if found is not None:
            yield text[: found.start() + (not begins_line)]
            for _ in data:  # the client sends the rest all the same
                pass
            return
        last = text[text.rfind(b"\n") + 1 :]
        held = last if len(last) < len(b"\\.\r\n") and (begins_line or len(last) < len(text)) else b""
        given = text[: len(text) - len(held)]
        begins_line = given.endswith(b"\n") or (begins_line and not given)
        yield given
    if held.rstrip(b"\r") != b"\\.":
        yield held


def _csv(data: Iterator[bytes], names: Sequence[str], options: CopyOptions) -> Iterator[pa.Table]:
    stream = io.BufferedReader(_Stream(_before_end(data)), BLOCK_BYTES)
    if not stream.peek(1):
        return
    try:
        reader = pyarrow.csv.open_csv(
            stream,
            pyarrow.csv.ReadOptions(
                use_threads=False, block_size=BLOCK_BYTES * 4, skip_rows=int(options.header), column_names=list(names)
            ),
            pyarrow.csv.ParseOptions(
                delimiter=options.delimiter,
                quote_char=options.quote,
                double_quote=options.escape == options.quote,
                escape_char=options.escape if options.escape != options.quote else False,
                newlines_in_values=True,
                ignore_empty_lines=False,
            ),
            pyarrow.csv.ConvertOptions(
                column_types={name: pa.string() for name in names},
                null_values=[options.null],
                strings_can_be_null=True,
                quoted_strings_can_be_null=False,
            ),
        )
        for batch in reader:
            if batch.num_rows:
                yield pa.Table.from_batches([batch])
    except pa.ArrowInvalid as error:
        text = str(error).splitlines()[0]
        if text.startswith("Empty CSV"):
            return
        raise SqlError(BAD_COPY, f"the CSV data does not fit: {text}") from None


def _text(data: Iterator[bytes], names: Sequence[str], options: CopyOptions) -> Iterator[pa.Table]:
    delimiter, null = options.delimiter.encode(), options.null.encode()
    rows: list[list[str | None]] = []
    for number, line in enumerate(_lines(data), 1):
        if number == 1 and options.header:
            continue
        if line == b"\\.":
            break
        parts = _split(line, delimiter)
        if len(parts) != len(names):
            word = (
                f'missing data for column "{names[len(parts)]}"'
                if len(parts) < len(names)
                else "extra data after last expected column"
            )
            raise SqlError(BAD_COPY, word, detail=f"COPY, line {number}: {line[:100].decode('utf-8', 'replace')}")
        rows.append([None if part == null else _unescaped(part, number) for part in parts])
        if len(rows) >= PIECE_ROWS:
            yield _table(rows, names)
            rows = []
    for _ in data:  # bytes after the end are taken and ignored
        pass
    if rows:
        yield _table(rows, names)


def _lines(data: Iterator[bytes]) -> Iterator[bytes]:
    rest = b""
    for piece in data:
        *lines, rest = (rest + piece).split(b"\n")
        for line in lines:
            yield line.removesuffix(b"\r")
        if len(rest) > limits.MAX_SQL_COPY_LINE_BYTES:
            raise SqlError(BAD_COPY, f"a line of COPY has more than {limits.MAX_SQL_COPY_LINE_BYTES} bytes")
    if rest:
        yield rest.removesuffix(b"\r")


def _split(line: bytes, delimiter: bytes) -> list[bytes]:
    """The parts between delimiters that no backslash hides."""
    parts = line.split(delimiter)
    if b"\\" + delimiter not in line:
        return parts
    found: list[bytes] = []
    for part in parts:
        if found and (len(found[-1]) - len(found[-1].rstrip(b"\\"))) % 2:
            found[-1] += delimiter + part
        else:
            found.append(part)
    return found


def _unescaped(part: bytes, number: int) -> str:
    if b"\\" in part:
        part = _ESCAPE.sub(_meant, part)
    try:
        text = part.decode()
    except UnicodeDecodeError as error:
        raise SqlError("22021", f"COPY, line {number}: byte {error.start + 1} of a value is no UTF-8") from None
    if "\x00" in text:
        raise SqlError("22021", f"COPY, line {number}: a value has a zero byte")
    return text


def _meant(found: re.Match[bytes]) -> bytes:
    code = found[1]
    if code[:1] == b"x" and len(code) > 1:
        return bytes([int(code[1:], 16)])
    if code[:1].isdigit() and code[:1] < b"8":
        return bytes([int(code, 8) & 255])
    return _LETTERS.get(code, code)


def _table(rows: list[list[str | None]], names: Sequence[str]) -> pa.Table:
    columns = zip(*rows, strict=True)
    return pa.table({name: pa.array(column, pa.string()) for name, column in zip(names, columns, strict=True)})
