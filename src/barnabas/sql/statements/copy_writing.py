"""Rows as the lines of COPY TO, with values as Postgres writes them."""

from __future__ import annotations

import datetime
import json
import re
from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa

from barnabas.sql.statements.copy_options import CopyOptions

PIECE_ROWS = 1_000
_SPECIAL = re.compile(r"[\\\b\f\n\r\t\v]")
_ESCAPES = {"\\": "\\\\", "\b": "\\b", "\f": "\\f", "\n": "\\n", "\r": "\\r", "\t": "\\t", "\v": "\\v"}
_PLAIN_ITEM = re.compile(r'[^{},"\\\s]+\Z')


def lines_of(schema: pa.Schema, batches: Iterator[pa.RecordBatch], options: CopyOptions) -> Iterator[bytes]:
    """The lines, some at a time."""
    render = _csv(schema, options) if options.is_csv else _text(options)
    if options.header:
        yield render(list(schema.names), is_header=True)
    writers = [writer_of(each.type) for each in schema]
    for batch in batches:
        for start in range(0, batch.num_rows, PIECE_ROWS):
            columns = [column.to_pylist() for column in batch.slice(start, PIECE_ROWS).columns]
            rows = zip(*columns, strict=True) if columns else ()
            yield b"".join(
                render([None if cell is None else write(cell) for write, cell in zip(writers, row, strict=True)]) for row in rows
            )


def _text(options: CopyOptions) -> Callable[..., bytes]:
    delimiter = options.delimiter

    def escape(text: str) -> str:
        made = _SPECIAL.sub(lambda found: _ESCAPES[found[0]], text)
        return made if delimiter in "\t" else made.replace(delimiter, "\\" + delimiter)

    def render(cells: list[str | None], *, is_header: bool = False) -> bytes:
        return (delimiter.join(options.null if cell is None else escape(cell) for cell in cells) + "\n").encode()

    return render


def _csv(schema: pa.Schema, options: CopyOptions) -> Callable[..., bytes]:
    forced = [options.force_quote is None or each.name in options.force_quote for each in schema]
    special = re.compile("[" + re.escape(options.delimiter + options.quote + "\r\n") + "]")

    def cell_of(cell: str | None, is_forced: bool, is_only: bool) -> str:
        if cell is None:
            return options.null
        if is_forced or cell == options.null or special.search(cell) or (is_only and cell == "\\."):
            made = cell.replace(options.escape, options.escape * 2) if options.escape != options.quote else cell
            return options.quote + made.replace(options.quote, options.escape + options.quote) + options.quote
        return cell

    def render(cells: list[str | None], *, is_header: bool = False) -> bytes:
        parts = [
            cell_of(cell, is_forced and not is_header, len(cells) == 1) for cell, is_forced in zip(cells, forced, strict=True)
        ]
        return (options.delimiter.join(parts) + "\n").encode()

    return render


def writer_of(kind: pa.DataType) -> Callable[[Any], str]:
    """Makes the text of a value that is not null."""
    given: Any = kind
    if pa.types.is_boolean(kind):
        return lambda value: "t" if value else "f"
    if pa.types.is_binary(kind):
        return lambda value: "\\x" + value.hex()
    if pa.types.is_floating(kind):
        return _float
    if pa.types.is_timestamp(kind):
        return _moment
    if pa.types.is_list(kind):
        inner = writer_of(given.value_type)
        return lambda value: "{" + ",".join("NULL" if each is None else _item(inner(each), each) for each in value) + "}"
    if pa.types.is_struct(kind) or pa.types.is_map(kind):
        return lambda value: json.dumps(dict(value) if isinstance(value, list) else value, default=str, ensure_ascii=False)
    if pa.types.is_interval(kind):
        return _interval
    return str


def _float(value: float) -> str:
    if value != value:
        return "NaN"
    if value in (float("inf"), float("-inf")):
        return "Infinity" if value > 0 else "-Infinity"
    text = repr(value)
    return text.removesuffix(".0")


def _moment(value: datetime.datetime) -> str:
    text = value.isoformat(" ")
    return text.removesuffix(":00") if value.tzinfo is not None else text


def _item(text: str, value: Any) -> str:
    if isinstance(value, list) or (_PLAIN_ITEM.match(text) and text.upper() != "NULL"):
        return text
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _interval(value: Any) -> str:
    months, days, nanoseconds = value
    years, months = divmod(months, 12)
    parts = [
        f"{count} {word}{'' if count == 1 else 's'}" for count, word in ((years, "year"), (months, "mon"), (days, "day")) if count
    ]
    seconds, fraction = divmod(abs(nanoseconds) // 1_000, 1_000_000)
    if seconds or fraction or not parts:
        sign = "-" if nanoseconds < 0 else ""
        clock = f"{sign}{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}"
        parts.append(clock + (f".{fraction:06}".rstrip("0") if fraction else ""))
    return " ".join(parts)
