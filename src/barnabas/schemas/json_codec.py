"""JSON data, validated by jsonschema-rs. It reads nothing from files or from the network: references come only from the
registry."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import jsonschema_rs

from barnabas import limits
from barnabas.schemas.errors import CannotDecode, CannotEncode
from barnabas.schemas.plain import is_too_deep, plain
from barnabas.schemas.registered import RegisteredSchema

_BACKTRACK_STEPS = 10_000


class JsonCodec:
    """Values are those of the module `json`."""

    path: Sequence[int] | None = None

    def __init__(self, schema: Any, needed: Sequence[tuple[str, Any]]) -> None:
        self.schema = schema
        self.needed = needed
        self.record_name: str | None = schema.get("title") if isinstance(schema, dict) else None
        patterns = jsonschema_rs.FancyRegexOptions(backtrack_limit=_BACKTRACK_STEPS)
        registry = jsonschema_rs.Registry(list(needed)) if needed else None
        self._validator = jsonschema_rs.validator_for(schema, registry=registry, pattern_options=patterns, offline=True)

    def encode(self, value: Any) -> bytes:
        try:
            self._validator.validate(value)
            data = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode()
            _check_depth(value, data)
        except (jsonschema_rs.ValidationError, ValueError, TypeError, RecursionError) as error:
            raise CannotEncode(f"the value does not fit the JSON Schema: {_reason(error)}") from error
        return data

    def decode(self, data: bytes, path: Sequence[int] | None = None) -> Any:
        try:
            value = json.loads(data)
            _check_depth(value, data)
            self._validator.validate(value)
        except (jsonschema_rs.ValidationError, ValueError, RecursionError) as error:
            raise CannotDecode(f"the data does not fit the JSON Schema: {_reason(error)}") from error
        return value

    def from_json(self, value: Any) -> Any:
        return value

    def to_json(self, value: Any) -> Any:
        return plain(value)


def make(schema: RegisteredSchema, reader: RegisteredSchema | None, message: str | None) -> JsonCodec:
    """The codec of a schema. A reader's schema has no effect: JSON data has the names of its fields."""
    try:
        return JsonCodec(json.loads(schema.text), [(each.name, json.loads(each.text)) for each in schema.needed])
    except (jsonschema_rs.ValidationError, jsonschema_rs.ReferencingError, ValueError, RecursionError) as error:
        raise CannotDecode(f"the JSON Schema cannot be used: {_reason(error)}") from error


def _check_depth(value: Any, data: bytes) -> None:
    """Raises ValueError for a value that is too deep. A text with few brackets needs no further check."""
    if data.count(b"[") + data.count(b"{") > limits.MAX_VALUE_DEPTH and is_too_deep(value):
        raise ValueError(f"it is nested deeper than {limits.MAX_VALUE_DEPTH} objects and arrays")


def _reason(error: Exception) -> str:
    if isinstance(error, jsonschema_rs.ValidationError):
        place = "".join(f"/{step}" for step in error.instance_path)
        return f"{place[:200]}: {error.message[:500]}" if place else error.message[:500]
    return (str(error).splitlines() or [type(error).__name__])[0][:500]
