"""The formats of rows: a table, a line for each value, CSV, JSON, JSON lines.

A printer is asked for the text before the first row, of each batch, and of the end. It holds one batch at most.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, tzinfo
from typing import Protocol

from msgspec import Struct

from barnabas.cli.sql.aligned import Aligned, Row, Vertical
from barnabas.cli.sql.cells import Batch, Schema, Texts, is_numeric, texts_of

BLOCK_ROWS, BLOCK_BYTES = 1_000, 1 << 20  # rows that are aligned together
FORMATS = ("table", "csv", "json", "jsonl", "vertical")


class Style(Struct):
    """How rows are shown.

    Args:
        header: whether names of columns and counts of rows are shown.
        null: the text for null in a table.
    """

    format: str = "table"
    header: bool = True
    null: str = ""


class Printer(Protocol):
    """Writes one result. `zone` is that of timestamps with a time zone."""

    def begin(self, schema: Schema, zone: tzinfo = UTC) -> str: ...

    def rows(self, batch: Batch) -> Iterator[str]: ...

    def pending(self) -> str:
        """The rows that were held back, to be aligned with those that follow."""

    def end(self, count: int) -> str: ...


def columns_of(schema: Schema, zone: tzinfo) -> list[Texts]:
    """For each column the function that makes texts of it."""
    return [texts_of(each, zone) for each in schema]


def rows_of(batch: Batch, columns: Sequence[Texts]) -> list[Row]:
    """The rows of a batch as text."""
    if not columns:
        return [()] * batch.num_rows
    return list(zip(*(texts(column) for texts, column in zip(columns, batch.columns, strict=True)), strict=True))


def blocks(batch: Batch) -> Iterator[Batch]:
    """A batch in parts of at most BLOCK_ROWS rows, and of about BLOCK_BYTES."""
    step = BLOCK_ROWS if batch.nbytes <= BLOCK_BYTES else min(BLOCK_ROWS, max(1, batch.num_rows * BLOCK_BYTES // batch.nbytes))
    for at in range(0, batch.num_rows, step):
        yield batch.slice(at, step)


class BlockPrinter:
    """Rows that are aligned in blocks: a block is as large as BLOCK_ROWS or BLOCK_BYTES allow, however small the batches are."""

    def __init__(self, style: Style) -> None:
        self._style = style
        self._pending: list[Row] = []
        self._bytes = 0

    def _table(self, schema: Schema) -> Aligned | Vertical:
        raise NotImplementedError

    def begin(self, schema: Schema, zone: tzinfo = UTC) -> str:
        self._columns = columns_of(schema, zone)
        self._shown = self._table(schema)
        return ""

    def rows(self, batch: Batch) -> Iterator[str]:
        for part in blocks(batch):
            self._pending += rows_of(part, self._columns)
            self._bytes += part.nbytes
            if len(self._pending) >= BLOCK_ROWS or self._bytes >= BLOCK_BYTES:
                yield self._taken()

    def pending(self) -> str:
        return self._taken() if self._pending else ""

    def _taken(self) -> str:
        rows, self._pending, self._bytes = self._pending, [], 0
        return self._shown.block(rows)


class TablePrinter(BlockPrinter):
    """Aligned columns and the count of rows, as psql prints them."""

    def _table(self, schema: Schema) -> Aligned:
        numeric = [is_numeric(each.type) for each in schema]
        return Aligned(schema.names, numeric, header=self._style.header, null=self._style.null)

    def end(self, count: int) -> str:
        return self._taken() + (f"({count} row{'' if count == 1 else 's'})\n\n" if self._style.header else "")


class VerticalPrinter(BlockPrinter):
    """A line for each value."""

    def _table(self, schema: Schema) -> Vertical:
        return Vertical(schema.names, header=self._style.header, null=self._style.null)

    def end(self, count: int) -> str:
        return self._taken() + (("\n" if count else "(0 rows)\n\n") if self._style.header else "")


class CsvPrinter:
    """Lines of values; null is an empty field, an empty text is `""`."""

    def __init__(self, style: Style) -> None:
        self._style = style

    def begin(self, schema: Schema, zone: tzinfo = UTC) -> str:
        self._columns = columns_of(schema, zone)
        return _csv_line(schema.names) if self._style.header else ""

    def rows(self, batch: Batch) -> Iterator[str]:
        for part in blocks(batch):
            yield "".join(map(_csv_line, rows_of(part, self._columns)))

    def pending(self) -> str:
        return ""

    def end(self, count: int) -> str:
        return ""


def _csv_line(row: Row) -> str:
    return ",".join(map(_csv_field, row)) + "\n"


def _csv_field(text: str | None) -> str:
    if text is None:
        return ""
    if text and not any(each in text for each in ',"\n\r') and text != "\\." and text == text.strip():
        return text
    return '"' + text.replace('"', '""') + '"'


class JsonLinesPrinter:
    """An object for each row, on a line of its own."""

    def __init__(self, _style: Style) -> None:
        from barnabas.sql.http.formats import JsonLines

        self._writer = JsonLines()

    def begin(self, schema: Schema, zone: tzinfo = UTC) -> str:
        return self._writer.begin(schema).decode()

    def rows(self, batch: Batch) -> Iterator[str]:
        for part in blocks(batch):
            yield self._writer.rows(part).decode()

    def pending(self) -> str:
        return ""

    def end(self, count: int) -> str:
        return ""


class JsonPrinter(JsonLinesPrinter):
    """A list with an object for each row."""

    def begin(self, schema: Schema, zone: tzinfo = UTC) -> str:
        super().begin(schema, zone)
        self._is_first = True
        return "["

    def rows(self, batch: Batch) -> Iterator[str]:
        for lines in super().rows(batch):
            yield ("" if self._is_first else ",\n ") + lines.rstrip("\n").replace("\n", ",\n ")
            self._is_first = False

    def end(self, count: int) -> str:
        return "]\n"


_PRINTERS: dict[str, Callable[[Style], Printer]] = {
    "table": TablePrinter, "vertical": VerticalPrinter, "csv": CsvPrinter, "json": JsonPrinter, "jsonl": JsonLinesPrinter,
}  # fmt: skip


def printer_for(style: Style) -> Printer:
    """The printer of a format."""
    return _PRINTERS[style.format](style)


def names(items: Sequence[str]) -> str:
    """Names in a sentence."""
    return f"{', '.join(items[:-1])} or {items[-1]}"
