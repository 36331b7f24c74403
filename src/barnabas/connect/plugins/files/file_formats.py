"""Formats of the files that the sink writes, by Confluent's class names."""

from __future__ import annotations

import gzip
import io
import json
import zlib
from collections.abc import Mapping
from typing import Any, Protocol

import fastavro
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pacsv
import pyarrow.parquet as pq

from barnabas.connect.converters.json_converter import JsonConverter
from barnabas.connect.converters.json_text import text_of
from barnabas.connect.converters.plain import StringConverter
from barnabas.connect.errors import ConnectError
from barnabas.protocol.records.varint import varint
from barnabas.schemas.arrow.avro_rows import MOST_BYTES, encoded, plan_of
from barnabas.tables.column_types import table_field
from barnabas.tables.errors import TableError
from barnabas.tables.formats import binary_parts
from barnabas.tables.schema_texts import schema_text

RECORD = "ConnectDefault"  # Confluent's name of a record without one
ROW_GROUP = 100_000
MARKER = b"barnabas".ljust(16, b"\0")  # of Avro; the same file has the same bytes
BLOCK = 16_000  # bytes of a block of Avro; the last record may go beyond


class FileFormat(Protocol):
    """A format. `extension` ends the names of its files."""

    extension: str

    def file(self, values: Any) -> bytes:
        """The bytes of a file with these values, always the same for the same ones. Raises ConnectError."""


class ParquetFile:
    """Parquet; a value that is no record is a column `value`."""

    def __init__(self, codec: Any) -> None:
        self._codec = codec
        self.extension = {"none": "", "snappy": ".snappy", "gzip": ".gz", "zstd": ".zstd", "lz4": ".lz4"}[codec] + ".parquet"

    def file(self, values: Any) -> bytes:
        out = pa.BufferOutputStream()
        try:
            pq.write_table(columns_of(values), out, compression=self._codec, row_group_size=ROW_GROUP)
        except pa.ArrowException as error:
            raise ConnectError(f"the records cannot be written as Parquet: {error}") from None
        return out.getvalue().to_pybytes()


class AvroFile:
    """An object container file, with a schema of the columns."""

    extension = ".avro"

    def __init__(self, codec: str) -> None:
        self._codec = codec

    def file(self, values: Any) -> bytes:
        columns = columns_of(values)
        try:
            fields = [table_field(each) for each in columns.schema]
            text = schema_text("avro", RECORD, fields)
            columns = columns.cast(pa.schema(fields))
            schema, in_bulk = fastavro.parse_schema(json.loads(text)), _records(columns, text)
            rows = columns.to_pylist(maps_as_pydicts="strict") if in_bulk is None else []
        except (TableError, pa.ArrowException) as error:
            raise ConnectError(f"the records cannot be written as Avro: {error}") from None
        out = io.BytesIO()
        fastavro.writer(out, schema, rows, codec=self._codec, sync_marker=MARKER, sync_interval=BLOCK)
        if in_bulk is not None:
            _write_blocks(out, in_bulk, is_deflated=self._codec == "deflate")
        return out.getvalue()


def _records(columns: pa.Table, text: str) -> Any:
    """The data of each row; None if they must be written row by row."""
    is_one = 0 < columns.nbytes <= MOST_BYTES  # fits into one array
    rows: Any = pa.concat_arrays(columns.to_struct_array().chunks) if is_one else None
    plan = None if rows is None else plan_of(json.loads(text), rows.type)
    found = None if plan is None else encoded(plan, rows, b"")
    return None if found is None or len(found.later) else found.rows


def _write_blocks(out: io.BytesIO, records: Any, *, is_deflated: bool) -> None:
    """Write the blocks behind a header, each of as many records as it takes to have BLOCK bytes."""
    data, ends = binary_parts(records)
    row = 0
    while row < len(records):
        last = min(int(np.searchsorted(ends, ends[row] + BLOCK)), len(records))
        block = data[ends[row] : ends[last]].tobytes()
        block = zlib.compress(block)[2:-1] if is_deflated else block  # the rest of the checksum is there as fastavro leaves it
        out.write(varint(last - row) + varint(len(block)) + block + MARKER)
        row = last


class _Text:
    """What formats of lines have in common."""

    name = ""

    def __init__(self, compression: str) -> None:
        self._is_compressed = compression == "gzip"
        self.extension = f".{self.name}{'.gz' if self._is_compressed else ''}"

    def file(self, values: Any) -> bytes:
        data = self.text(values)
        return gzip.compress(data, mtime=0) if self._is_compressed else data

    def text(self, values: Any) -> bytes:
        raise NotImplementedError


class JsonFile(_Text):
    """A JSON value on each line."""

    name = "json"

    def __init__(self, compression: str) -> None:
        super().__init__(compression)
        self._converter = JsonConverter({"schemas.enable": "false"}, is_key=False)

    def text(self, values: Any) -> bytes:
        return lines_of(self._converter.encode(values, ""), b"null")


class LinesFile(_Text):
    """The text of a value on each line."""

    name = "txt"

    def text(self, values: Any) -> bytes:
        if pa.types.is_binary(values.type):
            return lines_of(values, b"")
        return lines_of(StringConverter({}, is_key=False).encode(values, ""), b"")


class CsvFile(_Text):
    """A header with the names of the fields, and a row for each record. Lists, maps and records in a field are JSON."""

    name = "csv"

    def text(self, values: Any) -> bytes:
        columns = columns_of(values)
        plain = {name: _as_cell(columns.column(name).combine_chunks()) for name in columns.column_names}
        out = pa.BufferOutputStream()
        pacsv.write_csv(pa.table(plain), out)
        return out.getvalue().to_pybytes()


def lines_of(texts: Any, null: bytes) -> bytes:
    """Texts with a line feed behind each."""
    filled: Any = pc.fill_null(texts, null)
    joined: Any = pc.binary_join(pa.ListArray.from_arrays([0, len(filled)], filled), b"\n")
    return bytes(joined[0].as_buffer()) + b"\n"


def columns_of(values: Any) -> pa.Table:
    """The fields of records as columns; the column `value` for other values. A column of nulls alone is one of texts."""
    if pa.types.is_struct(values.type) and values.type.num_fields:
        found = pa.Table.from_struct_array(values)
    else:
        found = pa.table({"value": values})
    for at, field in enumerate(found.schema):
        if pa.types.is_null(field.type):
            found = found.set_column(at, field.name, pa.nulls(found.num_rows, pa.string()))
    return found


def _as_cell(column: Any) -> Any:
    kind = column.type
    if pa.types.is_nested(kind) or pa.types.is_binary(kind):
        return pa.array([None if each is None else text_of(each).decode() for each in column.to_pylist()], pa.string())
    return column


def format_of(name: str, config: Mapping[str, Any]) -> FileFormat:
    """The format of a short name."""
    match name:
        case "parquet":
            return ParquetFile(config["parquet.codec"])
        case "avro":
            return AvroFile(config["avro.codec"])
        case "csv":
            return CsvFile(config["compression.type"])
        case "lines":
            return LinesFile(config["compression.type"])
    return JsonFile(config["compression.type"])
