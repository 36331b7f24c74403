"""Rows as the bytes of an answer: JSON, JSON lines, CSV an Arrow stream, or server-sent events.

A writer is asked for the bytes before the first batch, of each batch, and of the end. An error after the first bytes is written into the
stream where the format has a place for it. CSV and Arrow have none, and a part of such a stream looks whole,
so the answer breaks off.
"""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import msgspec
import pyarrow as pa
import pyarrow.csv

from barnabas.sql.http.errors import error_body
from barnabas.sql.interface import SqlError


class RowWriter(Protocol):
    """Writes one result."""

    content_type: bytes

    def begin(self, schema: pa.Schema | None) -> bytes:
        """Before the first batch; None for a statement without rows."""

    def rows(self, batch: pa.RecordBatch) -> bytes:
        """One batch."""

    def end(self, tag: str) -> bytes:
        """After the last batch."""

    def failed(self, error: SqlError) -> bytes | None:
        """In the place of the end; None if the format has no place for an error."""


_json = msgspec.json.Encoder(decimal_format="string")


def columns_of(schema: pa.Schema | None) -> list[dict[str, str]]:
    return [{"name": each.name, "type": str(each.type)} for each in schema or ()]


def lists_of(batch: pa.RecordBatch) -> list[list[Any]]:
    """The rows as lists of values that JSON has."""
    columns = [_jsonable(column) for column in batch.columns]
    return [list(row) for row in zip(*columns, strict=True)] if columns else [[] for _ in range(batch.num_rows)]


def _jsonable(column: Any) -> list[Any]:
    kind = column.type
    values: list[Any] = column.to_pylist()
    if pa.types.is_map(kind):
        return [None if each is None else dict(each) for each in values]
    if pa.types.is_floating(kind):
        return [each if each is None or abs(each) < float("inf") else str(each) for each in values]  # JSON has no NaN
    if pa.types.is_interval(kind):
        return [None if each is None else duration_text(*each) for each in values]
    return values


def duration_text(months: int, days: int, nanoseconds: int) -> str:
    """An interval as ISO 8601 has it, such as `P1M2DT3.5S`."""
    seconds = f"{nanoseconds / 1e9:f}".rstrip("0").rstrip(".")
    parts = [f"{months}M" if months else "", f"{days}D" if days else "", f"T{seconds}S" if nanoseconds else ""]
    return "P" + ("".join(parts) or "T0S")


class Json:
    """One object: `columns`, `rows` as lists of values, and `tag`. A late error takes the place of the tag."""

    content_type = b"application/json"

    def __init__(self) -> None:
        self._is_first = True

    def begin(self, schema: pa.Schema | None) -> bytes:
        return b'{"columns":' + _json.encode(columns_of(schema)) + b',"rows":['

    @staticmethod
    def each(batch: pa.RecordBatch) -> list[bytes]:
        """The rows, one by one."""
        return [*map(_json.encode, lists_of(batch))]

    def rows(self, batch: pa.RecordBatch) -> bytes:
        lines = b",\n".join(self.each(batch))
        text = lines if self._is_first or not lines else b",\n" + lines
        self._is_first = self._is_first and not lines
        return text

    def end(self, tag: str) -> bytes:
        return b'],"tag":' + _json.encode(tag) + b"}\n"

    def failed(self, error: SqlError) -> bytes:
        return b'],"error":' + _json.encode(error_body(error)) + b"}\n"


class JsonLines:
    """A line for each row, an object; a late error is a last line with the one key `error`."""

    content_type = b"application/x-ndjson"

    def begin(self, schema: pa.Schema | None) -> bytes:
        self._names: Sequence[str] = schema.names if schema is not None else ()
        return b""

    def rows(self, batch: pa.RecordBatch) -> bytes:
        return b"".join(_json.encode(dict(zip(self._names, row, strict=True))) + b"\n" for row in lists_of(batch))

    def end(self, tag: str) -> bytes:
        return b""

    def failed(self, error: SqlError) -> bytes:
        return _json.encode({"error": error_body(error)}) + b"\n"


class Csv:
    """Lines of values with a head; null is an empty field, an empty text is `""`."""

    content_type = b"text/csv; charset=utf-8"

    def begin(self, schema: pa.Schema | None) -> bytes:
        return b"" if schema is None else self._written(schema.empty_table(), with_head=True)

    def rows(self, batch: pa.RecordBatch) -> bytes:
        return self._written(pa.Table.from_batches([batch]), with_head=False)

    def _written(self, rows: pa.Table, *, with_head: bool) -> bytes:
        columns = [each if _is_plain(each.type) else _as_json(each) for each in rows.columns]
        sink = io.BytesIO()
        table = pa.table(columns, names=rows.schema.names)
        pyarrow.csv.write_csv(table, sink, pyarrow.csv.WriteOptions(include_header=with_head))
        return sink.getvalue()

    def end(self, tag: str) -> bytes:
        return b""

    def failed(self, error: SqlError) -> None:
        return None


def _is_plain(kind: pa.DataType) -> bool:
    return not (
        pa.types.is_nested(kind) or pa.types.is_interval(kind) or pa.types.is_binary(kind) or pa.types.is_large_binary(kind)
    )


def _as_json(column: Any) -> Any:
    encoded = [None if each is None else _json.encode(each).decode().strip('"') for each in _jsonable(column.combine_chunks())]
    return pa.array(encoded, pa.string())


class Arrow:
    """Arrow's streaming format."""

    content_type = b"application/vnd.apache.arrow.stream"

    def begin(self, schema: pa.Schema | None) -> bytes:
        self._sink = io.BytesIO()
        self._writer = pa.ipc.new_stream(self._sink, schema if schema is not None else pa.schema([]))
        return self._taken()

    def rows(self, batch: pa.RecordBatch) -> bytes:
        self._writer.write_batch(batch)
        return self._taken()

    def end(self, tag: str) -> bytes:
        self._writer.close()
        return self._taken()

    def failed(self, error: SqlError) -> None:
        return None

    def _taken(self) -> bytes:
        data = self._sink.getvalue()
        self._sink.seek(0)
        self._sink.truncate()
        return data


class Events:
    """Server-sent events: one for each row, an object. The event's id is the column `_offset`, if there is one; an error is an event
    `error`. A comment while there are no rows shows that the connection lives."""

    content_type = b"text/event-stream"

    def begin(self, schema: pa.Schema | None) -> bytes:
        self._names: Sequence[str] = schema.names if schema is not None else ()
        return b": begin\n\n"

    def rows(self, batch: pa.RecordBatch) -> bytes:
        return b"".join(map(self._event, lists_of(batch))) or b":\n\n"

    def _event(self, row: Sequence[Any]) -> bytes:
        made = dict(zip(self._names, row, strict=True))
        offset = made.get("_offset")
        head = b"" if offset is None else b"id: " + str(offset).encode() + b"\n"
        return head + b"data: " + _json.encode(made) + b"\n\n"

    def end(self, tag: str) -> bytes:
        return b"event: end\ndata: " + _json.encode(tag) + b"\n\n"

    def failed(self, error: SqlError) -> bytes:
        return b"event: error\ndata: " + _json.encode(error_body(error)) + b"\n\n"


WRITERS: Mapping[str, type[Json | JsonLines | Csv | Arrow | Events]] = {
    "json": Json, "jsonl": JsonLines, "csv": Csv, "arrow": Arrow, "sse": Events,
}  # fmt: skip
_NAMES = {writer.content_type.split(b";")[0].decode(): name for name, writer in WRITERS.items()}


def chosen(name: str | None, accept: str) -> str | None:
    """The name of the format that a request asks for; None if there is no such format.

    Args:
        name: of the parameter `format`, which counts first.
        accept: the header.
    """
    if name is not None:
        return name if name in WRITERS else None
    for wanted in (part.split(";")[0].strip().lower() for part in accept.split(",")):
        if wanted in _NAMES:
            return _NAMES[wanted]
        if wanted in {"", "*/*", "application/*"}:
            return "json"
    return None
