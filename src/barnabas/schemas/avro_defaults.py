"""Defaults of Avro fields as values. A schema writes bytes as text and dates as numbers, and fastavro gives them to readers so."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from typing import Any

from fastavro.read import LOGICAL_READERS

from barnabas.schemas.avro_names import NAMED

RECORDS = ("record", "error")


def set_defaults(parsed: Any) -> None:
    """Replace the defaults in a schema that fastavro has parsed by their values. A default that does not fit its type stays as it is."""
    names: dict[str, Any] = {}
    found = []
    for field in [each for each in _fields(parsed, names) if "default" in each]:
        with suppress(ValueError, TypeError, KeyError, AttributeError, IndexError, ArithmeticError):
            found.append((field, _value(field["type"], field["default"], names)))
    for field, value in found:
        field["default"] = value


def _fields(schema: Any, names: dict[str, Any]) -> Iterator[Any]:
    """The fields of all records in a schema; `names` gets its named types."""
    if isinstance(schema, list):
        for each in schema:
            yield from _fields(each, names)
    elif isinstance(schema, dict):
        if schema["type"] in NAMED:
            names[schema["name"]] = schema
        for part in ("items", "values"):
            yield from _fields(schema.get(part), names)
        for field in schema.get("fields") or ():
            yield field
            yield from _fields(field["type"], names)


def _value(schema: Any, default: Any, names: dict[str, Any]) -> Any:
    """The value of a default; that of a union is of its first type."""
    schema = schema[0] if isinstance(schema, list) else schema
    if isinstance(schema, str):
        schema = names.get(schema, {"type": schema})
    kind = schema["type"]
    if default is None or kind == "enum":
        return default
    if kind in RECORDS:
        return {
            field["name"]: _value(field["type"], default[field["name"]] if field["name"] in default else field["default"], names)
            for field in schema["fields"]
        }
    if kind == "array":
        return [_value(schema["items"], each, names) for each in default]
    if kind == "map":
        return {name: _value(schema["values"], each, names) for name, each in default.items()}
    if kind in ("bytes", "fixed"):
        default = default.encode("latin-1")
    elif kind in ("float", "double"):
        default = float(default)
    convert = LOGICAL_READERS.get(f"{kind}-{schema.get('logicalType')}")
    return default if convert is None else convert(default, schema, None)
