"""Schemas in JSON Schema as Confluent's converter writes them: `title` and `connect.*` say what a number or a text stands for."""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any, NamedTuple

import pyarrow as pa

from barnabas.connect.converters.json_schema import LOGICAL, NAME, VERSION, extras_of, name_of, version_of
from barnabas.connect.converters.leaves import along, converted, decimal_type, decimals, exact_decimal
from barnabas.connect.converters.logical_numbers import LOGICAL_OF, json_numbers
from barnabas.schemas.arrow.shapes import MARK
from barnabas.tables.column_types import JSON
from barnabas.tables.errors import TableError
from barnabas.tables.schema_texts import schema_text

types: Any = pa.types
INTEGERS = {"Date": "int32", "Time": "int32", "Timestamp": "int64"}  # `connect.type` by Kafka Connect's name
TITLE, TYPE, OF_VERSION, PARAMETERS = "title", "connect.type", "connect.version", "connect.parameters"
BYTES, MAP = "bytes", "map"
SCALE, DIGITS = "scale", "connect.decimal.precision"  # parameters of a decimal
_INTEGERS: Mapping[str, Any] = {"int8": pa.int8(), "int16": pa.int16(), "int32": pa.int32(), "int64": pa.int64()}
_PLAIN = {kind: name for name, kind in _INTEGERS.items()} | {pa.float32(): "float32", pa.float64(): "float64"}
_MOST_INTEGER = 2**63
_SEVERAL = ("oneOf", "anyOf")
_TEXTS = (TITLE, "description", "default", "$schema", "$id", "id", "$comment")
_SAID = (*_TEXTS, *_SEVERAL, "type", "properties", "required", "additionalProperties", "items")  # what `takes` knows of
_JSON_TYPES: Mapping[str, Any] = {"boolean": pa.bool_(), "integer": pa.int64(), "number": pa.float64(), "string": pa.string()}


def json_schema_text(kind: Any, name: str, *, numeric: bool = False) -> str:
    """The schema of a struct. Raises TableError for a type that JSON Schema lacks.

    Args:
        numeric: whether decimals are numbers, not bytes in base64. The type of both is a number, as Confluent has it.
    """
    made = json.loads(schema_text("json_schema", name, list(_plain(kind))))
    _annotate_fields(made, kind, numeric=numeric)
    return json.dumps(made)


def _logical(kind: Any) -> str | None:
    if types.is_date(kind):
        return "Date"
    if types.is_time(kind):
        return "Time"
    return "Timestamp" if types.is_timestamp(kind) else None


def _plain(kind: Any) -> Any:
    """The type with what JSON has in place of dates, times, decimals and bytes, and without what is known of fields beside their types."""
    if types.is_struct(kind):
        return pa.struct([pa.field(each.name, _plain(each.type), each.nullable) for each in kind])
    if types.is_list(kind):
        return pa.list_(pa.field("item", _plain(kind.value_type), kind.value_field.nullable))
    if types.is_map(kind):
        made: Any = pa.field("value", _plain(kind.item_type), kind.item_field.nullable)
        return pa.map_(kind.key_type, made)
    if types.is_decimal(kind):
        return pa.float64()
    if types.is_binary(kind):
        return pa.string()
    return kind if _logical(kind) is None else pa.int64()


def _annotate_fields(schema: dict[str, Any], kind: Any, *, numeric: bool) -> None:
    for each in kind:
        schema["properties"][each.name] = _annotated(schema["properties"][each.name], each, numeric=numeric)
    required = [each.name for each in kind if not each.nullable]
    if required:
        schema["required"] = required


def _annotated(schema: dict[str, Any], field: Any, *, numeric: bool) -> dict[str, Any]:
    """The schema of a field with what says which type it stands for.

    What may be null and stands for another type is one of null and this type, because Confluent's converter reads a list of types without
    what stands beside it.
    """
    kind = field.type
    parts, name = _parts(field), _logical(kind)
    default = extras_of(field.metadata).get("default")
    if types.is_struct(kind):
        _annotate_fields(schema, kind, numeric=numeric)
    elif types.is_list(kind):
        schema["items"] = _annotated(schema["items"], kind.value_field, numeric=numeric)
    elif types.is_map(kind):
        schema["additionalProperties"] = _annotated(schema["additionalProperties"], kind.item_field, numeric=numeric)
        parts[TYPE] = MAP
    elif types.is_decimal(kind):
        parts |= _of_decimal(kind, parts)
        default = _number(default, kind.scale) if numeric and isinstance(default, str) else default
    elif types.is_binary(kind):
        parts[TYPE] = BYTES
    elif name is not None:
        parts |= {TITLE: LOGICAL + name, OF_VERSION: 1, TYPE: INTEGERS[name]}
    elif kind in _PLAIN:
        parts[TYPE] = _PLAIN[kind]
    if default is not None:
        parts["default"] = default
    own = schema.get("type")
    stands = types.is_decimal(kind) or types.is_binary(kind) or name is not None
    if not stands or not isinstance(own, list):
        return {**schema, **parts}
    return {"oneOf": [{"type": "null"}, {**schema, "type": own[-1], **parts}]}


def _parts(field: Any) -> dict[str, Any]:
    """Name, version and parameters of the schema of a field."""
    found = {TITLE: name_of(field.metadata), OF_VERSION: version_of(field.metadata)}
    found[PARAMETERS] = extras_of(field.metadata).get("parameters")
    return {part: value for part, value in found.items() if value is not None}


def _of_decimal(kind: Any, parts: Mapping[str, Any]) -> dict[str, Any]:
    digits = {} if kind.precision == decimal_type(None, 0).precision else {DIGITS: str(kind.precision)}
    parameters = {SCALE: str(kind.scale), **digits, **parts.get(PARAMETERS, {})}
    return {TITLE: f"{LOGICAL}Decimal", OF_VERSION: 1, TYPE: BYTES, PARAMETERS: parameters}


def _number(default: str, scale: int) -> int | float:
    found = _of_base64(default, scale)
    return int(found) if found == found.to_integral_value() else float(found)


def _of_base64(text: str, scale: int) -> Decimal:
    """Raises ValueError."""
    try:
        data = base64.b64decode(text, validate=True)
    except binascii.Error:
        raise ValueError(f"{text[:100]} is no decimal: bytes in base64, or a number") from None
    return exact_decimal(int.from_bytes(data, "big", signed=True), scale)


def with_types(text: str, fields: Sequence[pa.Field[Any]]) -> list[pa.Field[Any]]:
    """The fields of an object with the types and the names that `title` and `connect.*` say."""
    return _typed_fields(json.loads(text), fields)


def _typed_fields(schema: Any, fields: Sequence[Any]) -> list[Any]:
    properties = schema.get("properties", {})
    return [_typed(properties.get(each.name), each) for each in fields]


def _inner(schema: Any) -> Any:
    """What a schema says of values that are not null."""
    several = next((schema[name] for name in _SEVERAL if name in schema), None) if isinstance(schema, dict) else None
    others = [] if several is None else [each for each in several if each != {"type": "null"}]
    return others[0] if len(others) == 1 else schema


def _typed(schema: Any, field: Any) -> Any:
    schema, kind = _inner(schema), field.type
    if not isinstance(schema, dict):
        return field
    title = str(schema.get(TITLE, ""))
    if types.is_struct(kind):
        field = field.with_type(pa.struct(_typed_fields(schema, list(kind))))
    elif types.is_list(kind):
        field = field.with_type(pa.list_(_typed(schema.get("items"), kind.value_field)))
    elif types.is_map(kind):
        made: Any = _typed(schema.get("additionalProperties"), kind.item_field)
        field = field.with_type(pa.map_(kind.key_field, made))
    else:
        field = field.with_type(_scalar(schema, kind, title.removeprefix(LOGICAL)))
    if not title or title.startswith(LOGICAL):
        return field
    known = {NAME: title.encode(), VERSION: str(schema.get(OF_VERSION, "")).encode()}
    return field.with_metadata({**(field.metadata or {}), **known})


def _scalar(schema: Mapping[str, Any], kind: Any, logical: str) -> Any:
    """The type that values of a type stand for; None for None."""
    if kind is None:
        return None
    own = schema.get(TYPE)
    if types.is_integer(kind):
        return LOGICAL_OF.get(logical) or _INTEGERS.get(str(own), kind)
    if types.is_floating(kind) and own == BYTES and logical == "Decimal":
        parameters = schema.get(PARAMETERS, {})
        digits = parameters.get(DIGITS)
        return decimal_type(None if digits is None else int(digits), int(parameters.get(SCALE, "0")))
    if types.is_floating(kind) and own == "float32":
        return pa.float32()
    return pa.binary() if types.is_string(kind) and own == BYTES else kind


def in_rows(column: Any, target: Any) -> Any:
    """Values for a schema that demands more than types: bytes in base64; decimals, dates and times as the numbers that it has.

    Raises:
        TableError: a decimal has more digits than such a number.
    """
    return converted(column, along(column.type, target, _is_changed), _in_row, {})


def _is_changed(kind: Any, target: Any) -> bool:
    is_number = types.is_decimal(kind) and (types.is_floating(target) or types.is_integer(target))
    return bool(is_number or (types.is_binary(kind) and types.is_string(target)) or json_numbers(kind, target))


def _in_row(column: Any, target: Any) -> tuple[Any, dict[int, str]]:
    if types.is_string(target):
        texts = [None if each is None else base64.b64encode(each).decode() for each in column.to_pylist()]
        return pa.array(texts, target), {}
    if types.is_decimal(column.type):
        return _exact(column.to_pylist(), target), {}
    for kind in json_numbers(column.type, target):
        column = column.cast(kind, safe=False)
    return column, {}


def _exact(values: Sequence[Decimal | None], target: Any) -> Any:
    """Raises TableError."""
    made: Any = int if types.is_integer(target) else float
    found: list[Any] = [None if each is None else made(each) for each in values]
    for value, number in zip(values, found, strict=True):
        if value is not None and (Decimal(str(number)) != value or (made is int and abs(number) >= _MOST_INTEGER)):
            raise TableError(f"{value} has no exact form in a schema that demands more of a number than its type")
    return pa.array(found, target)


def in_json(field: Any) -> Any:
    """The field as JSON has its values: decimals as JSON of any kind, dates and times as integers."""
    kind = field.type
    if types.is_struct(kind):
        return field.with_type(pa.struct([in_json(each) for each in kind]))
    if types.is_list(kind):
        return field.with_type(pa.list_(in_json(kind.value_field)))
    if types.is_map(kind):
        made: Any = in_json(kind.item_field)
        return field.with_type(pa.map_(kind.key_field, made))
    if types.is_decimal(kind):
        return pa.field(field.name, pa.string(), metadata={MARK: JSON.encode()})
    name = _logical(kind)
    return field if name is None else field.with_type(_INTEGERS[INTEGERS[name]])


def of_json(column: Any, target: Any) -> tuple[Any, dict[int, str]]:
    """Values that JSON has for a type as values of this type, and reasons by place."""
    if not types.is_decimal(target):
        return column.cast(target, safe=False), {}
    found: list[Decimal | None] = []
    bad: dict[int, str] = {}
    for at, each in enumerate(column.to_pylist()):
        try:
            found.append(None if each is None else _decimal(each, target.scale))
        except (ValueError, ArithmeticError) as error:
            found.append(None)
            bad[at] = str(error) if isinstance(error, ValueError) else f"{each[:100]} is no decimal"
    column, more = decimals(found, target)
    return column, bad | more


def _decimal(text: str, scale: int) -> Decimal:
    return _of_base64(json.loads(text), scale) if text.startswith('"') else Decimal(text)


def takes(schema: Any, field: Any) -> bool:
    """Whether all values of a field fit to a schema as they are written by columns.

    A schema that demands more of values than their types is not for this, nor one that lacks a field or does not allow a null.
    """
    found = _of_values(schema)
    if found is None or (field.nullable and not found.is_null):
        return False
    schema, own, kind = found.schema, found.type, field.type
    if types.is_struct(kind):
        properties = schema.get("properties", {})
        names = {each.name for each in kind}
        return (
            own == "object"
            and names.issuperset(schema.get("required", ()))
            and all(each.name in properties and takes(properties[each.name], each) for each in kind)
        )
    if types.is_list(kind):
        return own == "array" and takes(schema.get("items"), kind.value_field)
    if types.is_map(kind):
        is_map = own == "object" and "properties" not in schema and types.is_string(kind.key_type)
        return is_map and takes(schema.get("additionalProperties"), kind.item_field)
    return _takes_scalar(schema, own, kind)


class _OfValues(NamedTuple):
    """What a schema says of values.

    Args:
        schema: of those that are not null.
        type: the name of their type in JSON.
        is_null: whether there may be nulls.
    """

    schema: Mapping[str, Any]
    type: str
    is_null: bool


def _of_values(schema: Any) -> _OfValues | None:
    """None for a schema that has another form."""
    inner = _inner(schema)
    if not isinstance(inner, dict) or not all(key in _SAID or key.startswith("connect.") for key in (*schema, *inner)):
        return None
    if inner is not schema and not all(key in _SEVERAL or key in _TEXTS or key.startswith("connect.") for key in schema):
        return None
    own = inner.get("type")
    named = [own] if isinstance(own, str) else own if isinstance(own, list) else []
    others = [each for each in named if each != "null"]
    if len(others) != 1 or any(each in inner for each in _SEVERAL):
        return None
    return _OfValues(inner, others[0], len(others) < len(named) or inner is not schema)


def _takes_scalar(schema: Mapping[str, Any], own: str, kind: Any) -> bool:
    stands = _scalar(schema, _JSON_TYPES.get(own), str(schema.get(TITLE, "")).removeprefix(LOGICAL))
    if types.is_decimal(kind):
        return bool(types.is_decimal(stands) and stands.scale == kind.scale and stands.precision >= kind.precision)
    name = _logical(kind)
    if name is not None:
        return stands is not None and _logical(stands) == name
    if types.is_integer(kind):
        return own == "number" or (types.is_integer(stands) and stands.bit_width >= kind.bit_width)
    if types.is_floating(kind):
        return own == "number" and types.is_floating(stands)
    return stands is not None and kind == stands
