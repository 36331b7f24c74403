"""Shortens the tests of JSON Schema."""

from __future__ import annotations

import json
from collections.abc import Mapping

from barnabas.registry.formats.json_schema import FORMAT, JsonSchema


def parsed(schema: object, references: Mapping[str, object] | None = None) -> JsonSchema:
    """The parsed schema of a Python value."""
    return FORMAT.parse(json.dumps(schema), {name: json.dumps(other) for name, other in (references or {}).items()})


def changes(original: object, update: object) -> set[str]:
    """All differences, each as its kind and place."""
    return {f"{found.kind} {found.location}" for found in parsed(update).differences(parsed(original))}


def is_compatible(original: object, update: object) -> bool:
    """Whether a reader with `update` reads what `original` allows."""
    return not parsed(update).unreadable(parsed(original))
