"""The formats of rows: a table, a line for each value, CSV, JSON, JSON lines.

A printer is asked for the text before the first row, of each batch, and of the end. It holds one batch at most.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, tzinfo
from typing import TYPE_CHECKING, Any, Protocol

from msgspec import Struct

from barnabas.cli.sql.aligned import Aligned, Row, Vertical
from barnabas.cli.sql.cells import is_numeric, texts

if TYPE_CHECKING:
    import pyarrow as pa

BLOCK_ROWS = 1_000  # rows that are aligned together
FORMATS = ("table", "csv", "json", "jsonl", "vertical")


class Style(Struct):
    """How rows are shown.

    Args:
        header: whether names of columns and counts of rows are shown.
        null: the text for null in a table.
        zone: of timestamps with a time zone.
    """

    format: str = "table"
    header: bool = True
    null: str = ""
    zone: tzinfo = UTC


class Printer(Protocol):
    """Writes one result."""

    def begin(self, schema: pa.Schema) -> str: ...

    def rows(self, batch: pa.RecordBatch) -> Iterator[str]: ...

    def end(self, count: int) -> str: ...


def rows_of(batch: Any, zone: tzinfo) -> list[Row]:
    """The rows of a batch as text."""
    if not batch.num_columns:
        return [()] * batch.num_rows
    return list(zip(*(texts(column, zone) for column in batch.columns), strict=True))


def blocks(batch: Any) -> Iterator[Any]:
    """A batch in parts of BLOCK_ROWS."""
    for at in range(0, batch.num_rows, BLOCK_ROWS):
        yield batch.slice(at, BLOCK_ROWS)


class TablePrinter:
    """Aligned columns and the count of rows, as psql prints them."""

    def __init__(self, style: Style) -> None:
        self._style = style

    def begin(self, schema: pa.Schema) -> str:
        numeric = [is_numeric(each.type) for each in schema]
        self._table = Aligned(schema.names, numeric, header=self._style.header, null=self._style.null)
        return ""

    def rows(self, batch: pa.RecordBatch) -> Iterator[str]:
        for part in blocks(batch):
            yield self._table.block(rows_of(part, self._style.zone))

    def end(self, count: int) -> str:
        head = "" if count else self._table.block([])
        return head + (f"({count} row{'' if count == 1 else 's'})\n\n" if self._style.header else "")


class VerticalPrinter:
    """A line for each value."""

    def __init__(self, style: Style) -> None:
        self._style = style

    def begin(self, schema: pa.Schema) -> str:
        self._table = Vertical(schema.names, header=self._style.header, null=self._style.null)
        return ""

    def rows(self, batch: pa.RecordBatch) -> Iterator[str]:
        for part in blocks(batch):
            yield self._table.block(rows_of(part, self._style.zone))

    def end(self, count: int) -> str:
        return ("\n" if count else "(0 rows)\n\n") if self._style.header else ""


class CsvPrinter:
    """Lines of values; null is an empty field, an empty text is `""`."""

    def __init__(self, style: Style) -> None:
        self._style = style

    def begin(self, schema: pa.Schema) -> str:
        return _csv_line(schema.names) if self._style.header else ""

    def rows(self, batch: pa.RecordBatch) -> Iterator[str]:
        for part in blocks(batch):
            yield "".join(map(_csv_line, rows_of(part, self._style.zone)))

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

    def begin(self, schema: pa.Schema) -> str:
        return self._writer.begin(schema).decode()

    def rows(self, batch: pa.RecordBatch) -> Iterator[str]:
        for part in blocks(batch):
            yield self._writer.rows(part).decode()

    def end(self, count: int) -> str:
        return ""


class JsonPrinter(JsonLinesPrinter):
    """A list with an object for each row."""

    def begin(self, schema: pa.Schema) -> str:
        super().begin(schema)
        self._is_first = True
        return "["

    def rows(self, batch: pa.RecordBatch) -> Iterator[str]:
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
