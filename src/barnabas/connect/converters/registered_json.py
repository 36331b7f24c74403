"""Schemas in JSON Schema as Confluent's converter writes them: an integer that is a date or a time says so in its title."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from barnabas.connect.converters.json_schema import LOGICAL, extras_of
from barnabas.connect.converters.logical_numbers import LOGICAL_OF
from barnabas.tables.schema_texts import schema_text

types: Any = pa.types
INTEGERS = {"Date": "int32", "Time": "int32", "Timestamp": "int64"}  # `connect.type` by Kafka Connect's name
TITLE = "title"


def json_schema_text(kind: Any, name: str) -> str:
    """The schema of a struct. Raises TableError for a type that JSON Schema lacks."""
    made = json.loads(schema_text("json_schema", name, list(_plain(kind))))
    _annotate(made, kind)
    return json.dumps(made)


def _logical(kind: Any) -> str | None:
    if types.is_date(kind):
        return "Date"
    if types.is_time(kind):
        return "Time"
    return "Timestamp" if types.is_timestamp(kind) else None


def _plain(kind: Any) -> Any:
    """The type with integers in place of dates and times, and without what is known of fields beside their types."""
    if types.is_struct(kind):
        return pa.struct([pa.field(each.name, _plain(each.type), each.nullable) for each in kind])
    if types.is_list(kind):
        return pa.list_(kind.value_field.with_type(_plain(kind.value_type)))
    if types.is_map(kind):
        return pa.map_(kind.key_type, kind.item_field.with_type(_plain(kind.item_type)))
    return kind if _logical(kind) is None else pa.int64()


def _annotate(schema: dict[str, Any], kind: Any) -> None:
    if types.is_struct(kind):
        for each in kind:
            inner = schema["properties"][each.name]
            _annotate(inner, each.type)
            default = extras_of(each.metadata).get("default")
            if default is not None:
                inner["default"] = default
        required = [each.name for each in kind if not each.nullable]
        if required:
            schema["required"] = required
    elif types.is_list(kind):
        _annotate(schema["items"], kind.value_type)
    elif types.is_map(kind):
        _annotate(schema["additionalProperties"], kind.item_type)
    elif (logical := _logical(kind)) is not None:
        schema |= {TITLE: LOGICAL + logical, "connect.version": 1, "connect.type": INTEGERS[logical]}


def with_times(text: str, fields: Sequence[pa.Field[Any]]) -> list[pa.Field[Any]]:
    """The fields of an object with dates and times in place of the integers whose titles say so."""
    properties = json.loads(text).get("properties", {})
    return [each.with_type(_typed(properties.get(each.name, {}), each.type)) for each in fields]


def _typed(schema: Any, kind: Any) -> Any:
    if not isinstance(schema, dict):
        return kind
    if types.is_struct(kind):
        own = schema.get("properties", {})
        return pa.struct([each.with_type(_typed(own.get(each.name, {}), each.type)) for each in kind])
    if types.is_list(kind):
        return pa.list_(kind.value_field.with_type(_typed(schema.get("items", {}), kind.value_type)))
    if types.is_map(kind):
        return pa.map_(kind.key_field, kind.item_field.with_type(_typed(schema.get("additionalProperties", {}), kind.item_type)))
    if not types.is_integer(kind):
        return kind
    return LOGICAL_OF.get(str(schema.get(TITLE)).removeprefix(LOGICAL), kind)
