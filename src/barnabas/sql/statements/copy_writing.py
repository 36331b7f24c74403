"""Rows as the lines of COPY TO, with values as Postgres writes them.

Whole columns become texts by Arrow's kernels, and Arrow joins them to lines. Only values that need escapes or quotes are changed one
by one.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from datetime import UTC, tzinfo
from typing import Any

import pyarrow as pa

from barnabas.sql.postgres.arrays import Array, bytes_of, compute, join, keep
from barnabas.sql.postgres.codecs import codec_of
from barnabas.sql.postgres.messages import TEXT
from barnabas.sql.postgres.rows import fields_of
from barnabas.sql.statements.copy_options import CopyOptions

PIECE_ROWS = 10_000
_ESCAPES = {ord(char): f"\\{code}" for char, code in zip("\\\b\f\n\r\t\v", "\\bfnrtv", strict=True)}
Cells = Callable[[Array, int], Array]  # texts of a column, null where it is, and the column's place


def lines_of(schema: pa.Schema, batches: Iterator[pa.RecordBatch], options: CopyOptions, zone: tzinfo = UTC) -> Iterator[bytes]:
    """The lines, some at a time; timestamps with a zone are shown in `zone`."""
    codecs = [codec_of(field, TEXT, zone) for field in schema]
    cells = _csv(schema, options) if options.is_csv else _text(options)
    if options.header:
        plain = options._replace(force_quote=())
        named = _csv(schema, plain) if options.is_csv else _text(plain)
        yield _lines([named(pa.array([name]), place) for place, name in enumerate(schema.names)], options, 1)
    for batch in batches:
        for start in range(0, batch.num_rows, PIECE_ROWS):
            piece = batch.slice(start, PIECE_ROWS)
            texts = [fields_of(codec, column).cast(pa.string()) for codec, column in zip(codecs, piece.columns, strict=True)]
            yield _lines([cells(each, place) for place, each in enumerate(texts)], options, piece.num_rows)


def _lines(columns: list[Array], options: CopyOptions, rows: int) -> bytes:
    if not columns:
        return b"\n" * rows
    delimiter, end = (pa.scalar(each.encode(), pa.binary()) for each in (options.delimiter, "\n"))
    parts: list[Any] = []
    for column in columns:
        parts += [delimiter, keep(compute.fill_null(column, options.null)).cast(pa.binary())]
    return bytes(bytes_of(join(*parts[1:], end)))


def _changed(texts: Any, those: Any, change: Callable[[str], str]) -> Array:
    """With some texts changed."""
    those = compute.fill_null(those, False)
    if not compute.any(those).as_py():
        return keep(texts)
    changed = pa.array([change(each) for each in texts.filter(those).to_pylist()], pa.string())
    return keep(compute.replace_with_mask(texts, those, changed))


def _text(options: CopyOptions) -> Cells:
    escapes = _ESCAPES | ({} if options.delimiter == "\t" else {ord(options.delimiter): f"\\{options.delimiter}"})
    special = "[" + re.escape("".join(map(chr, escapes))) + "]"

    def cells(texts: Array, _: int) -> Array:
        return _changed(texts, compute.match_substring_regex(texts, special), lambda each: each.translate(escapes))

    return cells


def _csv(schema: pa.Schema, options: CopyOptions) -> Cells:
    forced = [options.force_quote is None or each.name in options.force_quote for each in schema]
    special = "[" + re.escape(options.delimiter + options.quote + "\r\n") + "]"

    def quoted(text: str) -> str:
        made = text.replace(options.escape, options.escape * 2) if options.escape != options.quote else text
        return options.quote + made.replace(options.quote, options.escape + options.quote) + options.quote

    def cells(texts: Array, place: int) -> Array:
        if forced[place]:
            return _changed(texts, texts.is_valid(), quoted)
        those = compute.or_(compute.match_substring_regex(texts, special), compute.equal(texts, options.null))
        if len(schema) == 1:
            those = compute.or_(those, compute.equal(texts, "\\."))
        return _changed(texts, those, quoted)

    return cells
