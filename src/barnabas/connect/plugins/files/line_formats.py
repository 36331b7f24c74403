"""Formats of files that are read line by line: plain lines, CSV, JSON lines.

A part of a file is some whole lines as bytes. A line that is no record does not hinder the others.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable, Mapping
from typing import IO, Any, Literal, NamedTuple, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.json as pajson

from barnabas.connect.converters.json_converter import JsonConverter
from barnabas.connect.errors import ConnectError
from barnabas.connect.plugins.file_stream import line_ends, lines_of

SAMPLE_BYTES = 1 << 20  # from which the types of a CSV file are inferred
BOM = b"\xef\xbb\xbf"
LINE_FEED = 10
_VALUE = re.compile(r"(: invalid value|; |: Row #|, got \d+: ).*", re.DOTALL)


class Parsed(NamedTuple):
    """Rows of a part.

    Args:
        records: with the column `value`.
        bad: the lines that are no records: where they begin in the part, their bytes, and why.
    """

    records: pa.Table
    bad: list[tuple[int, bytes, str]]


class LineFormat(Protocol):
    """A format of lines."""

    def begin(self, file: IO[bytes]) -> int:
        """Look at the beginning of a file; returns where its rows begin. Raises ConnectError."""

    def ends(self, data: bytes) -> Any:
        """Where the lines of some bytes end that begin with a line, as an array."""

    def parse(self, data: bytes, ends: Any) -> Parsed:
        """The rows of a part whose lines end there."""


class Lines:
    """Each line is a string."""

    def begin(self, file: IO[bytes]) -> int:
        return _behind_bom(file)

    def ends(self, data: bytes) -> Any:
        return line_ends(data)

    def parse(self, data: bytes, ends: Any) -> Parsed:
        return Parsed(pa.table({"value": lines_of(data)}), [])


class JsonLines:
    """Each line is a JSON value.

    Args:
        fields: that were declared; None: the types are those of the values.
    """

    def __init__(self, fields: list[pa.Field[Any]] | None) -> None:
        self._schema = None if fields is None else pa.schema(fields)
        self._converter = JsonConverter({"schemas.enable": "false"}, is_key=False)

    def begin(self, file: IO[bytes]) -> int:
        return _behind_bom(file)

    def ends(self, data: bytes) -> Any:
        return _line_feeds(data)

    def parse(self, data: bytes, ends: Any) -> Parsed:
        if self._schema is not None:
            return split_parse(data, ends, self._typed)
        starts = np.concatenate(([0], ends[:-1]))
        rows = [(int(start), data[start:end].strip()) for start, end in zip(starts, ends, strict=True)]
        rows = [each for each in rows if each[1]]
        found = self._converter.decode(pa.array([each for _, each in rows], pa.binary()))
        bad = [(*rows[row], reason.rpartition("error: ")[2]) for row, reason in found.bad.items()]
        column: Any = found.column
        if bad:
            column = column.filter(pa.array([row not in found.bad for row in range(len(rows))]))
        return Parsed(pa.table({"value": column}), bad)

    def _typed(self, data: bytes) -> pa.Table:
        options = pajson.ParseOptions(explicit_schema=self._schema, unexpected_field_behavior="ignore")
        read = pajson.ReadOptions(block_size=max(len(data) + 1, 1 << 16))
        return _as_values(pajson.read_json(io.BytesIO(data), read_options=read, parse_options=options))


class Csv:
    """Each row is a record; fields in quotation marks may have line feeds.

    Args:
        fields: that were declared.
        infers: whether the types of undeclared fields are inferred from the first rows of a file; otherwise they are strings.
        skipped: lines before the header.
    """

    def __init__(
        self, fields: list[pa.Field[Any]] | None, *, has_header: bool, separator: str, quote: str, skipped: int, infers: bool
    ) -> None:  # fmt: skip
        self._declared = None if fields is None else {each.name: each.type for each in fields}
        self._has_header, self._separator, self._quote = has_header, separator, quote
        self._skipped, self._infers = skipped, infers
        self._names: list[str] = []
        self._types: Mapping[str, pa.DataType] = {}

    def begin(self, file: IO[bytes]) -> int:
        begin = _behind_bom(file)
        sample = file.read(SAMPLE_BYTES)
        ends = self.ends(sample)
        for _ in range(self._skipped):
            end = sample.find(b"\n") + 1
            if not end:
                return begin
            begin, sample = begin + end, sample[end:]
        ends = self.ends(sample)
        first = sample[: ends[0]] if len(ends) else sample
        names = next(
            csv.reader([first.decode("utf-8", "replace").strip("\r\n")], delimiter=self._separator, quotechar=self._quote), []
        )
        if self._has_header:
            begin, sample = begin + len(first), sample[len(first) :]
        elif self._declared is not None:
            names = list(self._declared)
        else:
            names = [f"column{number:02d}" for number in range(1, len(names) + 1)]
        if twice := {each for each in names if names.count(each) > 1}:
            raise ConnectError(f"the header names the field {min(twice)} twice")
        if self._declared is not None and (missing := self._declared.keys() - set(names)):
            raise ConnectError(f"the header has no field {min(missing)}, which value.schema declares")
        self._names = names
        self._types = dict.fromkeys(names, pa.string()) | (self._declared or (self._inferred(sample) if self._infers else {}))
        return begin

    def _inferred(self, sample: bytes) -> dict[str, pa.DataType]:
        ends = self.ends(sample)
        whole = sample[: ends[-1]] if len(ends) else sample
        try:
            found = self._table(whole, {}, lambda _row: "skip").schema
        except pa.ArrowInvalid:  # the rows themselves will say what is wrong
            return {}
        kept = (pa.bool_(), pa.int64(), pa.float64())
        return {each.name: each.type for each in found if each.type in kept}

    def ends(self, data: bytes) -> Any:
        ends = _line_feeds(data)
        if self._quote and self._quote.encode() in data:
            quotes = np.cumsum(np.frombuffer(data, np.uint8) == ord(self._quote), dtype=np.int64)
            ends = ends[quotes[ends - 1] % 2 == 0]
        return ends

    def parse(self, data: bytes, ends: Any) -> Parsed:
        return split_parse(data, ends, self._records)

    def _records(self, data: bytes) -> pa.Table:
        found = self._table(data, self._types, None)
        return _as_values(found.select(list(self._declared)) if self._declared is not None else found)

    def _table(
        self, data: bytes, types: Mapping[str, pa.DataType], handler: Callable[[Any], Literal["skip", "error"]] | None
    ) -> pa.Table:
        if not data.strip():
            return pa.table({name: pa.array([], types.get(name, pa.string())) for name in self._names})
        return pacsv.read_csv(
            io.BytesIO(data),
            read_options=pacsv.ReadOptions(column_names=self._names, block_size=max(len(data) + 1, 1 << 16)),
            parse_options=pacsv.ParseOptions(
                delimiter=self._separator, quote_char=self._quote or False, newlines_in_values=bool(self._quote),
                invalid_row_handler=handler,
            ),
            convert_options=pacsv.ConvertOptions(column_types=dict(types), null_values=[""], strings_can_be_null=False),
        )  # fmt: skip


def split_parse(data: bytes, ends: Any, parse: Callable[[bytes], pa.Table]) -> Parsed:
    """Parse a part at once; if it fails, by halves, until the bad lines are alone."""
    tables: list[pa.Table] = []
    bad: list[tuple[int, bytes, str]] = []
    waiting = [(0, len(ends))]
    while waiting:
        first, last = waiting.pop()
        begin, end = int(ends[first - 1]) if first else 0, int(ends[last - 1])
        try:
            tables.append(parse(data[begin:end]))
        except pa.ArrowInvalid as error:
            if last - first == 1:
                bad.append((begin, data[begin:end].rstrip(b"\r\n"), _reason(error)))
            else:
                middle = (first + last) // 2
                waiting += [(middle, last), (first, middle)]
    whole = pa.concat_tables(tables, promote_options="permissive") if tables else pa.table({"value": pa.nulls(0)})
    return Parsed(whole, bad)


def _reason(error: Exception) -> str:
    """Why a line is no record, without its values: the log may not show them."""
    text = str(error).split("\n", 1)[0]
    if match := re.search(r"Expected (\d+) columns, got (\d+)", text):
        return f"{match[1]} columns were expected, and {match[2]} are there"
    return _VALUE.sub("", text)


def _as_values(rows: pa.Table) -> pa.Table:
    """A table whose column `value` is a struct of the columns."""
    whole = rows.combine_chunks()
    value: Any = whole.to_struct_array() if whole.num_columns else pa.nulls(whole.num_rows, pa.struct([]))
    return pa.table({"value": value})


def _line_feeds(data: bytes) -> Any:
    return np.flatnonzero(np.frombuffer(data, np.uint8) == LINE_FEED) + 1


def _behind_bom(file: IO[bytes]) -> int:
    begin = len(BOM) if file.read(len(BOM)) == BOM else 0
    file.seek(begin)
    return begin
