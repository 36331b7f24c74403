"""Finds properties of an Avro schema that let small data use too much memory or stack of a reader.

If a type contains itself, each byte can nest values one level deeper, and a decoder in C overflows its stack after some thousand levels.
If the items of an array take no bytes, a few bytes can claim any number of items.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from barnabas.schemas.avro_names import NAMED, full_name


def is_recursive(schema: Any) -> bool:
    """Whether a type of a whole schema contains itself. The first type of a cycle is defined before the others, so they are all
    inside it."""
    return _contains_itself(schema, ())


def has_weightless_items(schema: Any) -> bool:
    """Whether the schema has an array with items of no bytes."""
    names = _names(schema)
    return any(_is_weightless(each["items"], names, ()) for each in _types(schema) if each.get("type") == "array")


def _types(schema: Any) -> Iterator[dict[str, Any]]:
    """All types that are defined in the schema."""
    if isinstance(schema, list):
        for each in schema:
            yield from _types(each)
    elif isinstance(schema, dict):
        yield schema
        for part in (schema["type"], schema.get("items"), schema.get("values"), *(f["type"] for f in schema.get("fields") or ())):
            yield from _types(part)


def _names(schema: Any) -> dict[str, Any]:
    return {full_name(each, ""): each for each in _types(schema) if each.get("type") in NAMED}


def _contains_itself(schema: Any, inside: tuple[str, ...]) -> bool:
    if isinstance(schema, list):
        return any(_contains_itself(each, inside) for each in schema)
    if isinstance(schema, str):
        return schema in inside
    if schema["type"] in NAMED:
        inside = (*inside, full_name(schema, ""))
    parts = (schema["type"], schema.get("items"), schema.get("values"), *(field["type"] for field in schema.get("fields") or ()))
    return any(_contains_itself(each, inside) for each in parts if each is not None)


def _is_weightless(schema: Any, names: dict[str, Any], inside: tuple[str, ...]) -> bool:
    if isinstance(schema, list):
        return False  # a union always takes bytes: the index of its branch
    if isinstance(schema, str):
        if schema not in names:
            return schema == "null"
        if schema in inside:
            return True  # a recursive reference adds no bytes, so only the other fields decide
        return _is_weightless(names[schema], names, (*inside, schema))
    kind = schema["type"]
    if kind in ("record", "error"):
        inside = (*inside, full_name(schema, ""))
        return all(_is_weightless(field["type"], names, inside) for field in schema["fields"])
    if kind == "fixed":
        return bool(schema["size"] == 0)
    return _is_weightless(kind, names, inside)
