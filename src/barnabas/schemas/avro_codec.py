"""Avro data by fastavro."""

from __future__ import annotations

import json
from collections.abc import Sequence
from io import BytesIO
from typing import Any

import fastavro

# the reader in Python: deep recursion raises an error instead of a stack overflow
from fastavro._read_py import schemaless_reader as _careful_reader
from fastavro.read import SchemaResolutionError

from barnabas import limits
from barnabas.schemas.avro_bounds import has_weightless_items, is_recursive
from barnabas.schemas.avro_defaults import set_defaults
from barnabas.schemas.avro_json import from_json
from barnabas.schemas.avro_names import whole_schema
from barnabas.schemas.errors import CannotDecode, CannotEncode
from barnabas.schemas.plain import is_too_deep, plain
from barnabas.schemas.registered import RegisteredSchema

MOST_QUICK_BYTES = (
    500  # bytes of a recursive type: each byte may nest one level, for which fastavro's C decoder takes 1.6 KB of the stack
)
TOO_DEEP = f"the {{}} is nested deeper than {limits.MAX_VALUE_DEPTH} objects and arrays"
# Exceptions of fastavro if data or values do not fit: they have no common base class.
_FAILURES = (
    ValueError,
    TypeError,
    KeyError,
    IndexError,
    AttributeError,
    EOFError,
    OverflowError,
    ArithmeticError,
    RecursionError,
    SchemaResolutionError,
)


class AvroCodec:
    """Values are those of fastavro: dicts, lists, numbers, text, bytes, Decimal, UUID, and the types of datetime."""

    path: Sequence[int] | None = None

    def __init__(self, written: Any, read: Any = None) -> None:
        self.schema = written
        self._parsed = fastavro.parse_schema(written)
        self._reader = None
        if read is not None:
            self._reader = fastavro.parse_schema(read)
            set_defaults(self._reader)
        self._is_raw = written in ("bytes", {"type": "bytes"})  # Confluent's serialisers write bytes without their length
        self._is_recursive = is_recursive(written)
        self._is_unbounded = has_weightless_items(written)
        self.record_name: str | None = self._parsed["name"] if isinstance(self._parsed, dict) and "name" in self._parsed else None

    def encode(self, value: Any) -> bytes:
        if self._is_raw and isinstance(value, bytes):
            return value
        if self._is_recursive and is_too_deep(value):
            raise CannotEncode(TOO_DEEP.format("value"))
        out = BytesIO()
        try:
            fastavro.schemaless_writer(out, self._parsed, value)
        except _FAILURES as error:
            raise CannotEncode(f"the value does not fit the Avro schema: {_first_line(error)}") from error
        return out.getvalue()

    def decode(self, data: bytes, path: Sequence[int] | None = None) -> Any:
        if self._is_raw:
            return data
        if self._is_unbounded:
            raise CannotDecode("the Avro schema has an array of items without bytes, whose length has no bound")
        stream = BytesIO(data)
        read = _careful_reader if self._is_recursive and len(data) > MOST_QUICK_BYTES else fastavro.schemaless_reader
        try:
            value = read(stream, self._parsed, self._reader)
        except _FAILURES as error:
            raise CannotDecode(f"the data does not fit the Avro schema: {_first_line(error)}") from error
        if stream.tell() != len(data):
            raise CannotDecode(f"{len(data) - stream.tell()} bytes follow the Avro data")
        if self._is_recursive and is_too_deep(value):
            raise CannotDecode(TOO_DEEP.format("data"))
        return value

    def from_json(self, value: Any) -> Any:
        if self._is_recursive and is_too_deep(value):
            raise CannotEncode(TOO_DEEP.format("value"))
        try:
            return from_json(self.schema, value)
        except CannotEncode as error:
            raise CannotEncode(f"the value does not fit the Avro schema: {error}") from None
        except RecursionError:  # the error message contains the value, whose text is nested too deep
            raise CannotEncode("the value does not fit the Avro schema, and nests deeper") from None

    def to_json(self, value: Any) -> Any:
        return plain(value)


def parse(schema: RegisteredSchema) -> Any:
    """The schema with its references as one JSON value. Raises CannotDecode."""
    try:
        return whole_schema(_json_of(schema.text), [_json_of(each.text) for each in schema.needed])
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise CannotDecode(f"the Avro schema cannot be used: {_first_line(error)}") from error


def make(schema: RegisteredSchema, reader: RegisteredSchema | None, message: str | None) -> AvroCodec:
    try:
        return AvroCodec(parse(schema), None if reader is None or reader.is_same(schema) else parse(reader))
    except (
        fastavro.schema.SchemaParseException,
        fastavro.schema.UnknownType,
        ValueError,
        TypeError,
        KeyError,
        RecursionError,
    ) as error:
        raise CannotDecode(f"the Avro schema cannot be used: {_first_line(error)}") from error


def _json_of(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text.strip()  # a registry may return a type's name without quotation marks


def _first_line(error: BaseException) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0][:500]
