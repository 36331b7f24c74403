"""Converts an Avro schema with references to one schema: the first use of another schema's name is replaced by its definition."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

PRIMITIVES = {"null", "boolean", "int", "long", "float", "double", "bytes", "string"}
CONTAINERS = {"array", "map"}
NAMED = {"record", "error", "enum", "fixed"}


def full_name(schema: dict[str, Any], namespace: str) -> str:
    """The full name of a named type inside `namespace`."""
    name: str = schema["name"]
    inside = schema.get("namespace", namespace)
    return name if "." in name or not inside else f"{inside}.{name}"


def whole_schema(schema: Any, needed: Sequence[Any]) -> Any:
    """`schema` with the definitions of `needed` inside: each type once, with its full name."""
    known: dict[str, Any] = {}
    for each in needed:
        _collect(each, "", known)
    return _inline(schema, "", known, set())


def _collect(schema: Any, namespace: str, known: dict[str, Any]) -> None:
    if isinstance(schema, list):
        for each in schema:
            _collect(each, namespace, known)
    elif isinstance(schema, dict):
        inside = namespace
        if schema.get("type") in NAMED:
            name = full_name(schema, namespace)
            inside = name.rpartition(".")[0]
            known[name] = {**schema, "name": name, "namespace": inside}
        for part in ("type", "items", "values"):
            if not isinstance(schema.get(part), str):
                _collect(schema.get(part), inside, known)
        for field in schema.get("fields") or ():
            _collect(field["type"], inside, known)


def _inline(schema: Any, namespace: str, known: dict[str, Any], defined: set[str]) -> Any:
    if isinstance(schema, list):
        return [_inline(each, namespace, known, defined) for each in schema]
    if isinstance(schema, str):
        if schema in PRIMITIVES or schema in CONTAINERS:
            return schema
        name = schema if "." in schema or not namespace else f"{namespace}.{schema}"
        if name not in defined and name not in known and schema in known:
            name = schema
        return _inline(known[name], "", known, defined) if name in known and name not in defined else name
    if schema.get("type") not in NAMED:
        return {
            key: _inline(value, namespace, known, defined) if key in ("type", "items", "values") else value
            for key, value in schema.items()
        }
    name = full_name(schema, namespace)
    if name in defined:
        return name
    defined.add(name)
    inside = name.rpartition(".")[0]
    made = {**schema, "name": name}
    made.pop("namespace", None)
    if "fields" in schema:
        made["fields"] = [{**field, "type": _inline(field["type"], inside, known, defined)} for field in schema["fields"]]
    return made
