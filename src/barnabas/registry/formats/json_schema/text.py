"""Reads and prints the text of a schema.

Numbers keep their digits: a fraction is read as a Decimal, and printed as in Java's BigDecimal. The order of keys stays.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from decimal import Decimal, InvalidOperation
from json.encoder import encode_basestring
from typing import NoReturn, TypeAlias

from barnabas.limits import MAX_JSON_SCHEMA_CHARACTERS, MAX_JSON_SCHEMA_DEPTH
from barnabas.registry.formats.interface import InvalidSchema

Json: TypeAlias = "dict[str, Json] | list[Json] | str | int | float | Decimal | bool | None"


def _refuse_constant(name: str) -> NoReturn:
    raise InvalidSchema(f"Invalid JSON: {name} is no number of JSON")


def read(text: str) -> Json:
    """The value of a JSON text. Raises InvalidSchema if the text is not JSON, or exceeds a limit."""
    if len(text) > MAX_JSON_SCHEMA_CHARACTERS:
        raise InvalidSchema(f"The schema has more than {MAX_JSON_SCHEMA_CHARACTERS} characters")
    try:
        value: Json = json.loads(text, parse_float=Decimal, parse_constant=_refuse_constant)
    except InvalidSchema:
        raise
    except RecursionError:
        raise InvalidSchema(f"The schema is nested deeper than {MAX_JSON_SCHEMA_DEPTH} levels") from None
    except (ValueError, InvalidOperation) as error:
        raise InvalidSchema(f"Invalid JSON: {error}") from None
    _check_depth(value)
    try:
        (write(value) if "\\u" in text else text).encode()
    except UnicodeEncodeError:
        raise InvalidSchema("Invalid JSON: half of a surrogate pair is no character") from None
    return value


def _check_depth(value: Json) -> None:
    level: list[Json] = [value]
    for _ in range(MAX_JSON_SCHEMA_DEPTH):
        level = [child for parent in level for child in children(parent)]
        if not level:
            return
    raise InvalidSchema(f"The schema is nested deeper than {MAX_JSON_SCHEMA_DEPTH} levels")


def children(value: Json) -> list[Json]:
    """The values directly inside an object or array; none inside other values."""
    if isinstance(value, dict):
        return list(value.values())
    return value if isinstance(value, list) else []


def write(value: Json) -> str:
    """The text without spaces. `value` must not be deeper than the limit on depth."""
    if isinstance(value, str):
        return encode_basestring(value)
    if isinstance(value, bool):
        return "true" if value else "false"
    if value is None:
        return "null"
    if isinstance(value, dict):
        return "{" + ",".join([f"{encode_basestring(key)}:{write(child)}" for key, child in value.items()]) + "}"
    if isinstance(value, list):
        return "[" + ",".join([write(child) for child in value]) + "]"
    return str(value)


def sorted_keys(value: Json) -> Json:
    """The same value with the keys of every object in the order of their UTF-16 units, which is Java's order of strings."""
    if isinstance(value, dict):
        return {key: sorted_keys(value[key]) for key in sorted(value, key=_utf16)}
    if isinstance(value, list):
        return [sorted_keys(child) for child in value]
    return value


def _utf16(key: str) -> bytes:
    return key.encode("utf-16-be", "surrogatepass")


def copied(value: Json) -> Json:
    """A copy that shares no object or array with `value`."""
    if isinstance(value, dict):
        return {key: copied(child) for key, child in value.items()}
    return [copied(child) for child in value] if isinstance(value, list) else value


class Interner:
    """Gives equal values the same number. It visits each object and array once, so comparing large values is cheap.

    Values must exist as long as the interner, since it knows containers by identity.
    """

    def __init__(self) -> None:
        self._numbers: dict[object, int] = {}
        self._known: dict[int, int] = {}

    def number(self, value: Json) -> int:
        """The number of this value; it must not be deeper than the limit on depth."""
        known = self._known.get(id(value)) if isinstance(value, dict | list) else None
        if known is not None:
            return known
        key: object
        if isinstance(value, dict):
            key = ("object", frozenset((name, self.number(child)) for name, child in value.items()))
        elif isinstance(value, list):
            key = ("array", tuple([self.number(child) for child in value]))
        elif isinstance(value, bool) or value is None:
            key = ("literal", str(value))
        else:
            key = value
        number = self._numbers.setdefault(key, len(self._numbers))
        if isinstance(value, dict | list):
            self._known[id(value)] = number
        return number


def mapping(value: Json) -> Mapping[str, Json]:
    """The value if it is an object, and an empty one otherwise."""
    return value if isinstance(value, dict) else {}
