"""Kafka Connect's schemas in JSON, and the types of Arrow that stand for them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from barnabas.connect.errors import ConnectError

LOGICAL = "org.apache.kafka.connect.data."
DECIMAL = f"{LOGICAL}Decimal".encode()
PRECISION = 38
NAME = b"connect.name"  # metadata of a field: the name of its schema in Kafka Connect
_SIMPLE: Mapping[str, pa.DataType] = {
    "boolean": pa.bool_(), "int8": pa.int8(), "int16": pa.int16(), "int32": pa.int32(), "int64": pa.int64(),
    "float": pa.float32(), "double": pa.float64(), "string": pa.string(), "bytes": pa.binary(),
}  # fmt: skip
_NAMES: Mapping[pa.DataType, str] = {kind: name for name, kind in _SIMPLE.items()} | {
    pa.large_string(): "string", pa.large_binary(): "bytes", pa.uint8(): "int16", pa.uint16(): "int32", pa.uint32(): "int64",
    pa.uint64(): "int64", pa.null(): "string",
}  # fmt: skip
_LOGICAL: Mapping[str, pa.DataType] = {
    "Date": pa.date32(),
    "Time": pa.time32("ms"),
    "Timestamp": pa.timestamp("ms", "UTC"),
}


def arrow_type(schema: Mapping[str, Any]) -> pa.DataType:
    """The type of a schema. Raises ConnectError."""
    kind, name = str(schema.get("type")), str(schema.get("name") or "").removeprefix(LOGICAL)
    if name in _LOGICAL and kind in {"int32", "int64"}:
        return _LOGICAL[name]
    if name == "Decimal" and kind == "bytes":
        return pa.decimal128(PRECISION, int(schema.get("parameters", {}).get("scale", "0")))
    if kind == "struct":
        return pa.struct([pa.field(each["field"], arrow_type(each), each.get("optional", False)) for each in schema["fields"]])
    if kind == "array":
        return pa.list_(arrow_type(schema["items"]))
    if kind == "map":
        return pa.map_(arrow_type(schema["keys"]), arrow_type(schema["values"]))
    if kind not in _SIMPLE:
        raise ConnectError(f"Unknown schema type: {kind}")
    return _SIMPLE[kind]


def schema_of(kind: pa.DataType, *, optional: bool = False) -> dict[str, Any]:
    """The schema of a type. Raises ConnectError for one that Kafka Connect lacks."""
    if pa.types.is_struct(kind):
        fields = [{**schema_of(each.type, optional=each.nullable), **_named(each), "field": each.name} for each in kind]
        return {"type": "struct", "fields": fields, "optional": optional}
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return {"type": "array", "items": schema_of(kind.value_type, optional=kind.value_field.nullable), "optional": optional}
    if pa.types.is_map(kind):
        keys, values = schema_of(kind.key_type), schema_of(kind.item_type, optional=kind.item_field.nullable)
        return {"type": "map", "keys": keys, "values": values, "optional": optional}
    if pa.types.is_decimal(kind):
        return _logical("bytes", "Decimal", optional) | {"parameters": {"scale": str(kind.scale)}}
    if pa.types.is_timestamp(kind):
        return _logical("int64", "Timestamp", optional)
    if pa.types.is_date(kind):
        return _logical("int32", "Date", optional)
    if pa.types.is_time(kind):
        return _logical("int32", "Time", optional)
    if kind not in _NAMES:
        raise ConnectError(f"Kafka Connect has no schema for the type {kind}")
    return {"type": _NAMES[kind], "optional": optional}


def _named(field: Any) -> dict[str, Any]:
    """The name of a field's schema, which a source has given it."""
    name = (field.metadata or {}).get(NAME)
    return {} if name is None else {"name": name.decode(), "version": 1}


def _logical(kind: str, name: str, optional: bool) -> dict[str, Any]:
    return {"type": kind, "optional": optional, "name": LOGICAL + name, "version": 1}
