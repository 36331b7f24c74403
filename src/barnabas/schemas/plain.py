"""Decoded values as JSON: bytes in base64, decimals and UUIDs as text, dates and times in ISO 8601."""

from __future__ import annotations

import datetime
import math
from base64 import b64encode
from collections.abc import Iterable, Iterator, Mapping
from decimal import Decimal
from typing import Any
from uuid import UUID

from barnabas import limits


def plain(value: Any) -> Any:
    """The same value with types that `json.dumps` can write."""
    if isinstance(value, str | bool | int) or value is None:
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else _named(value)
    if isinstance(value, Mapping):
        return {str(key): plain(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [plain(each) for each in value]
    if isinstance(value, bytes):
        return b64encode(value).decode()
    if isinstance(value, Decimal):
        return format(value, "f")
    if isinstance(value, datetime.datetime):
        return value.isoformat().replace("+00:00", "Z")
    if isinstance(value, datetime.date | datetime.time):
        return value.isoformat()
    if isinstance(value, UUID):
        return str(value)
    raise TypeError(f"a {type(value).__name__} has no form in JSON")


def is_too_deep(value: Any) -> bool:
    """Whether objects and arrays are nested deeper than `MAX_VALUE_DEPTH`."""
    level = list(_containers([value]))
    for _ in range(limits.MAX_VALUE_DEPTH):
        level = [inner for each in level for inner in _containers(each.values() if isinstance(each, dict) else each)]
        if not level:
            return False
    return True


def _containers(values: Iterable[Any]) -> Iterator[Any]:
    """The objects and arrays in some values. fastavro names the branch of a union by a pair; this pair is not a level of
    nesting."""
    for each in values:
        found = each[1] if isinstance(each, tuple) and len(each) == 2 else each
        if isinstance(found, dict | list | tuple):
            yield found


def _named(value: float) -> str:
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
