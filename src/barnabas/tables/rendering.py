"""Rows as JSON and as text, for people and for formats that lack Arrow's types.

Rules
  1. Bytes that are UTF-8 are shown as text. In JSON others are base64 in a field NAME_base64, as `barnabas consume --json` has them; in
     text each byte that is no UTF-8 is `\\xNN`.
  2. Columns of JSON text are JSON within JSON. Lists and structs are JSON within text.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Sequence
from typing import Any

import msgspec
import pyarrow as pa

from barnabas.tables.column_types import JSON, mark_of

ENCODER = msgspec.json.Encoder(enc_hook=str)


def json_lines(batch: pa.RecordBatch) -> bytes:
    """The rows as JSON objects, one on each line."""
    return ENCODER.encode_lines(_rows(batch, raw_json=True))


def json_rows(batch: pa.RecordBatch) -> list[dict[str, Any]]:
    """The rows as values that any encoder of JSON takes."""
    return [msgspec.to_builtins(row, enc_hook=str) for row in _rows(batch, raw_json=False)]


def text_table(batch: pa.RecordBatch) -> pa.RecordBatch:
    """The batch with columns that CSV can hold: bytes, lists, structs and maps become text."""
    made = [_text_column(field, batch.column(place)) for place, field in enumerate(batch.schema)]
    return pa.RecordBatch.from_arrays(made, names=batch.schema.names)


def text_schema(schema: pa.Schema) -> pa.Schema:
    """The schema of `text_table`."""
    return pa.schema([(each.name, pa.string() if _needs_text(each.type) else each.type) for each in schema])


def cells(batch: pa.RecordBatch) -> list[list[str | int | None]]:
    """The values of each row, for people: whole numbers, and everything else as text; None for null."""
    columns = [
        array.to_pylist()
        if pa.types.is_integer(array.type)
        else [None if each is None else _text(each, array.type) for each in array.to_pylist()]
        for array in batch.columns
    ]
    return [list(row) for row in zip(*columns, strict=True)]


def _rows(batch: pa.RecordBatch, *, raw_json: bool) -> list[dict[str, Any]]:
    columns: list[tuple[str, Sequence[Any]]] = []
    for place, field in enumerate(batch.schema):
        array = batch.column(place)
        if _is_bytes(field.type):
            columns += _byte_columns(field.name, array)
        elif mark_of(field) == JSON:
            columns.append((field.name, [_embedded(each, raw_json=raw_json) for each in array.to_pylist()]))
        else:
            columns.append((field.name, [_plain(each, field.type) for each in array.to_pylist()]))
    names = [name for name, _ in columns]
    rows = [dict(zip(names, row, strict=True)) for row in zip(*(values for _, values in columns), strict=True)]
    for name in [each for each in names if each.endswith(_BASE64) and each not in batch.schema.names]:
        for row in rows:
            if row[name] is None:
                del row[name]
            else:
                del row[name.removesuffix(_BASE64)]
    return rows


_BASE64 = "_base64"


def _byte_columns(name: str, array: Any) -> list[tuple[str, Sequence[Any]]]:
    """The column as text; and, if there are bytes that are no UTF-8, a column of their base64."""
    try:
        return [(name, array.cast(pa.string()).to_pylist())]
    except pa.ArrowInvalid:
        plain = [_utf8(each) for each in array.to_pylist()]
        others = [
            base64.b64encode(each).decode() if text is None and each is not None else None
            for each, text in zip(array.to_pylist(), plain, strict=True)
        ]
        return [(name, plain), (name + _BASE64, others)]


def _utf8(data: bytes | None) -> str | None:
    try:
        return None if data is None else data.decode()
    except UnicodeDecodeError:
        return None


def _embedded(text: str | None, *, raw_json: bool) -> Any:
    if text is None:
        return None
    return msgspec.Raw(text.encode()) if raw_json else json.loads(text)


def _plain(value: Any, kind: Any) -> Any:
    """Maps as objects, and bytes within lists and structs as text where they are UTF-8.

    Args:
        kind: the type of the value in Arrow.
    """
    if isinstance(value, bytes):
        text = _utf8(value)
        return base64.b64encode(value).decode() if text is None else text
    if isinstance(value, list):
        if pa.types.is_map(kind):
            return {str(_plain(key, kind.key_type)): _plain(each, kind.item_type) for key, each in value}
        return [_plain(each, kind.value_type) for each in value]
    if isinstance(value, dict):
        return {name: _plain(each, kind.field(name).type) for name, each in value.items()}
    return value


def _is_bytes(kind: pa.DataType) -> bool:
    return pa.types.is_binary(kind) or pa.types.is_large_binary(kind) or pa.types.is_binary_view(kind)


def _needs_text(kind: pa.DataType) -> bool:
    return _is_bytes(kind) or pa.types.is_fixed_size_binary(kind) or pa.types.is_nested(kind)


def _text_column(field: pa.Field[Any], array: Any) -> Any:
    if not _needs_text(field.type):
        return array
    if _is_bytes(field.type):
        try:
            return array.cast(pa.string())
        except pa.ArrowInvalid:
            pass
    return pa.array([None if each is None else _text(each, field.type) for each in array.to_pylist()], pa.string())


def _text(value: Any, kind: pa.DataType) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, bytes):
        return value.decode(errors="backslashreplace")
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list | dict):
        return ENCODER.encode(_plain(value, kind)).decode()
    return value.isoformat() if hasattr(value, "isoformat") else str(value)
