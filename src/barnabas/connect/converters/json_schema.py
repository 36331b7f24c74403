"""Kafka Connect's schemas in JSON, and the types of Arrow that stand for them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from barnabas.connect.errors import ConnectError

if TYPE_CHECKING:
    from barnabas.connect.converters.interface import Metadata

LOGICAL = "org.apache.kafka.connect.data."
DECIMAL = f"{LOGICAL}Decimal".encode()
PRECISION = 38
NAME = b"connect.name"  # metadata of a field: the name of its schema in Kafka Connect
VERSION = b"connect.version"  # of this schema: 1 where there is a name alone; empty for none
OPTIONAL = b"connect.optional"  # of a column of records whose schema may be null
WITHOUT_SCHEMA = b"connect.schemaless"  # of a column of records whose fields are those that the records happen to have
PARAMETERS, DEFAULT = b"connect.parameters", b"connect.default"  # of this schema, as JSON
_PARTS: Mapping[str, bytes] = {"doc": b"connect.doc", "parameters": PARAMETERS, "default": DEFAULT}
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
        return pa.struct([_field(each["field"], each) for each in schema["fields"]])
    if kind == "array":
        return pa.list_(_field("item", schema["items"]))
    if kind == "map":
        values: Any = _field("value", schema["values"])
        made: pa.DataType = pa.map_(arrow_type(schema["keys"]), values)
        return made
    if kind not in _SIMPLE:
        raise ConnectError(f"Unknown schema type: {kind}")
    return _SIMPLE[kind]


def _field(name: str, schema: Mapping[str, Any]) -> pa.Field[Any]:
    return pa.field(name, arrow_type(schema), schema.get("optional", False), metadata_of(schema))


def metadata_of(schema: Mapping[str, Any]) -> dict[bytes, bytes] | None:
    """What a schema has beside its type: name, version, text, parameters, default. None for nothing."""
    made = {key: json.dumps(schema[part]).encode() for part, key in _PARTS.items() if schema.get(part) is not None}
    name, version = schema.get("name"), schema.get("version")
    if name is not None and not str(name).startswith(LOGICAL):
        made[NAME] = str(name).encode()
    if made.keys() & {NAME} or (version is not None and name is None):
        made[VERSION] = b"" if version is None else str(version).encode()
    if str(name) == DECIMAL.decode():
        made.pop(_PARTS["parameters"], None)
    return made or None


def name_of(metadata: Metadata) -> str | None:
    """The name of the schema of a column."""
    found = (metadata or {}).get(NAME)
    return None if found is None else found.decode()


def version_of(metadata: Metadata) -> int | None:
    """The version of the schema of a column."""
    found = (metadata or {}).get(VERSION, b"1" if name_of(metadata) is not None else b"")
    return int(found) if found else None


def extras_of(metadata: Metadata) -> dict[str, Any]:
    """The parts of a schema in JSON that are in metadata."""
    if not metadata:
        return {}
    found = {"name": name_of(metadata), "version": version_of(metadata)}
    found |= {part: json.loads(metadata[key]) for part, key in _PARTS.items() if key in metadata}
    return {part: value for part, value in found.items() if value is not None}


def schema_of(kind: pa.DataType, *, optional: bool = False) -> dict[str, Any]:
    """The schema of a type. Raises ConnectError for one that Kafka Connect lacks."""
    if pa.types.is_struct(kind):
        fields = [
            {**schema_of(each.type, optional=each.nullable), **extras_of(each.metadata), "field": each.name} for each in kind
        ]
        return {"type": "struct", "fields": fields, "optional": optional}
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        items = {**schema_of(kind.value_type, optional=kind.value_field.nullable), **extras_of(kind.value_field.metadata)}
        return {"type": "array", "items": items, "optional": optional}
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


def _logical(kind: str, name: str, optional: bool) -> dict[str, Any]:
    return {"type": kind, "optional": optional, "name": LOGICAL + name, "version": 1}
