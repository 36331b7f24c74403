"""Values for an Avro schema from JSON.

A union accepts the plain value (`"x"`), or the form of Avro's own JSON with the name of the branch around it (`{"string":
"x"}`). Bytes are base64; a decimal is a number or text; dates and times are ISO 8601, or the number that Avro stores. Python's
own bytes, Decimal, UUID, dates and times stay unchanged.
"""

from __future__ import annotations

import datetime
import math
from base64 import b64decode
from collections.abc import Callable
from decimal import Decimal, InvalidOperation
from typing import Any
from uuid import UUID

from barnabas.schemas.avro_names import NAMED, full_name
from barnabas.schemas.errors import CannotEncode

_INT, _LONG = 2**31, 2**63
_NUMBERS = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}


def from_json(schema: Any, value: Any) -> Any:
    """A value for fastavro. Raises CannotEncode; its text names the field.

    Args:
        schema: the whole schema, with the full name of every type.
    """
    return _convert(schema, value, "", {})


def _convert(schema: Any, value: Any, place: str, names: dict[str, Any]) -> Any:
    if isinstance(schema, list):
        return _union(schema, value, place, names)
    kind = schema if isinstance(schema, str) else schema["type"]
    if isinstance(kind, dict | list):
        return _convert(kind, value, place, names)
    if isinstance(schema, str) and schema in names:
        return _convert(names[schema], value, place, names)
    if kind in NAMED:
        names[full_name(schema, "")] = schema
    logical = None if isinstance(schema, str) else schema.get("logicalType")
    if logical in _NATIVE and isinstance(value, _NATIVE[logical]):
        return value
    if logical in _LOGICAL and isinstance(value, str):
        return _try(_LOGICAL[logical], value, place, logical)
    if logical == "decimal" and isinstance(value, int | float) and not isinstance(value, bool):
        return Decimal(str(value))
    if kind in _CONVERT:
        return _CONVERT[kind](schema, value, place, names)
    if _IS.get(kind, lambda _: False)(value):
        return float(value) if kind in ("float", "double") else value
    if kind in ("float", "double") and isinstance(value, str) and value in _NUMBERS:
        return _NUMBERS[value]
    raise _wrong(place, f"{kind} ({logical})" if logical else kind, value)


def _array(schema: Any, value: Any, place: str, names: dict[str, Any]) -> Any:
    if not isinstance(value, list):
        raise _wrong(place, "an array", value)
    return [_convert(schema["items"], each, f"{place}[{number}]", names) for number, each in enumerate(value)]


def _map(schema: Any, value: Any, place: str, names: dict[str, Any]) -> Any:
    if not isinstance(value, dict):
        raise _wrong(place, "an object", value)
    return {key: _convert(schema["values"], each, f"{place}.{key}", names) for key, each in value.items()}


def _bytes(schema: Any, value: Any, place: str, names: dict[str, Any]) -> Any:
    if not isinstance(value, str | bytes):
        raise _wrong(place, "base64", value)
    found = value if isinstance(value, bytes) else _try(lambda text: b64decode(text, validate=True), value, place, "base64")
    if isinstance(schema, dict) and len(found) != schema.get("size", len(found)):
        raise _wrong(place, f"{schema['size']} bytes{' in base64' if isinstance(value, str) else ''}", value)
    return found


def _enum(schema: Any, value: Any, place: str, names: dict[str, Any]) -> Any:
    if value not in schema["symbols"]:
        raise _wrong(place, f"one of {', '.join(schema['symbols'])}", value)
    return value


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_whole(bound: int) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, int) and not isinstance(value, bool) and -bound <= value < bound


_IS: dict[str, Callable[[Any], bool]] = {
    "null": lambda value: value is None,
    "boolean": lambda value: isinstance(value, bool),
    "int": _is_whole(_INT),
    "long": _is_whole(_LONG),
    "float": _is_number,
    "double": _is_number,
    "string": lambda value: isinstance(value, str),
}


def _moment(text: str) -> datetime.datetime:
    found = datetime.datetime.fromisoformat(text)
    return found if found.tzinfo else found.replace(tzinfo=datetime.UTC)


_NATIVE: dict[str, type] = {
    "decimal": Decimal,
    "uuid": UUID,
    "date": datetime.date,
    "time-millis": datetime.time,
    "time-micros": datetime.time,
    "timestamp-millis": datetime.datetime,
    "timestamp-micros": datetime.datetime,
    "local-timestamp-millis": datetime.datetime,
    "local-timestamp-micros": datetime.datetime,
}
_LOGICAL: dict[str, Callable[[str], Any]] = {
    "decimal": Decimal,
    "uuid": UUID,
    "date": datetime.date.fromisoformat,
    "time-millis": datetime.time.fromisoformat,
    "time-micros": datetime.time.fromisoformat,
    "timestamp-millis": _moment,
    "timestamp-micros": _moment,
    "local-timestamp-millis": datetime.datetime.fromisoformat,
    "local-timestamp-micros": datetime.datetime.fromisoformat,
}


def _try(convert: Callable[[str], Any], value: str, place: str, wanted: str) -> Any:
    try:
        return convert(value)
    except (ValueError, InvalidOperation):
        raise _wrong(place, wanted, value) from None


def _record(schema: Any, value: Any, place: str, names: dict[str, Any]) -> Any:
    if not isinstance(value, dict):
        raise _wrong(place, f"an object of {schema['name']}", value)
    fields = {field["name"]: field for field in schema["fields"]}
    for name in value:
        if name not in fields:
            raise CannotEncode(f"{_at(place)}: {schema['name']} has no field {name!r}")
    made = {}
    for name, field in fields.items():
        if name in value:
            made[name] = _convert(field["type"], value[name], f"{place}.{name}", names)
        elif "default" not in field:
            raise CannotEncode(f"{_at(place)}: {schema['name']} wants the field {name!r}")
        else:
            _learn(field["type"], names)
    return made


_CONVERT: dict[str, Callable[[Any, Any, str, dict[str, Any]], Any]] = {
    "record": _record, "error": _record, "array": _array, "map": _map, "bytes": _bytes, "fixed": _bytes, "enum": _enum,
}  # fmt: skip


def _learn(schema: Any, names: dict[str, Any]) -> None:
    """Add all named types of `schema` to `names`; needed for a field that the value leaves out."""
    if isinstance(schema, list):
        for each in schema:
            _learn(each, names)
    elif isinstance(schema, dict):
        if schema["type"] in NAMED:
            names[full_name(schema, "")] = schema
        for each in (schema["type"], schema.get("items"), schema.get("values"), *(f["type"] for f in schema.get("fields") or ())):
            _learn(each, names)


def _union(branches: list[Any], value: Any, place: str, names: dict[str, Any]) -> Any:
    _learn(branches, names)
    if isinstance(value, dict) and len(value) == 1:
        (name, inner), *_ = value.items()
        for branch in branches:
            if name in _branch_names(branch):
                try:
                    return _in_branch(branch, inner, place, names)
                except CannotEncode:
                    break  # the key may be a field with the same name as a branch
    failures = []
    for branch in branches:
        try:
            return _in_branch(branch, value, place, names)
        except CannotEncode as error:
            if not (branch == "null" and len(branches) > 1):
                failures.append(str(error))
    raise CannotEncode("; ".join(failures))


def _in_branch(branch: Any, value: Any, place: str, names: dict[str, Any]) -> Any:
    made = _convert(branch, value, place, names)
    schema = names.get(branch, branch) if isinstance(branch, str) else branch
    if isinstance(schema, dict) and schema["type"] == "record":
        return (full_name(schema, ""), made)  # the name selects the branch in fastavro
    return made


def _branch_names(branch: Any) -> set[str]:
    if isinstance(branch, str):
        return {branch}
    if branch["type"] in NAMED:
        return {full_name(branch, ""), branch["name"].rpartition(".")[2]}
    return {branch["type"]} if isinstance(branch["type"], str) else set()


def _wrong(place: str, wanted: str, value: Any) -> CannotEncode:
    text = repr(value)
    return CannotEncode(f"{_at(place)}: {text if len(text) <= 60 else text[:57] + '...'} is not {wanted}")


def _at(place: str) -> str:
    return place.removeprefix(".") or "the value"
