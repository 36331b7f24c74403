"""The formats of the registry; each is loaded when one of its schemas is first parsed."""

from __future__ import annotations

from importlib import import_module

from barnabas.registry.formats.interface import InvalidSchema, SchemaFormat

MODULES = {
    "JSON": "barnabas.registry.formats.json_schema",
    "PROTOBUF": "barnabas.registry.formats.protobuf",
    "AVRO": "barnabas.registry.formats.avro",
}


def format_of(schema_type: str) -> SchemaFormat:
    """The format of this type. Raises InvalidSchema for an unknown type."""
    if schema_type not in MODULES:
        raise InvalidSchema(f"Invalid schema type {schema_type}")
    found: SchemaFormat = import_module(MODULES[schema_type]).FORMAT
    return found
