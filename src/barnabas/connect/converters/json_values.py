"""Values of JSON in the types of a schema of Kafka Connect."""

from __future__ import annotations

import base64
from decimal import Context, Decimal, InvalidOperation
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from barnabas.connect.converters.json_schema import PRECISION
from barnabas.connect.errors import ConnectError

if TYPE_CHECKING:
    from barnabas.connect.converters.interface import Array

_DIGITS = Context(prec=PRECISION)
MISFITS = (
    ConnectError,
    pa.ArrowException,
    ValueError,
    TypeError,
    AttributeError,
    LookupError,
    OverflowError,
)  # of schema and payload


def filled(value: Any, schema: Any) -> Any:
    """A value of JSON with the defaults of its schema in place of nulls."""
    if value is None:
        return schema.get("default")
    match schema.get("type"):
        case "struct" if isinstance(value, dict):
            return {each["field"]: filled(value.get(each["field"]), each) for each in schema["fields"]}
        case "array" if isinstance(value, list):
            return [filled(each, schema["items"]) for each in value]
        case "map" if isinstance(value, dict):
            return {key: filled(each, schema["values"]) for key, each in value.items()}
        case "map" if isinstance(value, list):  # keys that are no texts
            return [[key, filled(each, schema["values"])] for key, each in value]
    return value


def fitting(rows: list[int], values: list[Any], field: Any, bad: dict[int, str]) -> tuple[list[int], Array]:
    """The column of the values that fit to a field, with their rows. The rows of the others go to `bad`."""
    try:
        return rows, _column(values, field)
    except MISFITS:  # of some of them
        pass
    kept = {}
    for row, value in zip(rows, values, strict=True):
        try:
            kept[row] = _shaped(value, field.type)
            _checked(pa.array([kept[row]], field.type), field)
        except MISFITS as error:
            bad[row] = str(error)
            kept.pop(row, None)
    return list(kept), pa.array(list(kept.values()), field.type)


def _column(values: list[Any], field: Any) -> Array:
    """Raises one of MISFITS."""
    kind = field.type
    return _checked(pa.array(values if _are_plain(values, kind) else [_shaped(each, kind) for each in values], kind), field)


def _checked(column: Array, field: Any) -> Array:
    """Raises ConnectError."""
    name = field.name if column.null_count and not field.nullable else lacking(column)
    if name is not None:
        raise ConnectError(f"Invalid null value for required field {name}")
    return column


def lacking(column: Any) -> str | None:
    """The name of a required field that is null in a value of a column; None if there is none."""
    kind = column.type
    there = column.drop_null() if column.null_count else column
    parts: list[tuple[Any, Any]] = []
    if pa.types.is_struct(kind):
        parts = [(each, there.field(at)) for at, each in enumerate(kind)]
    elif pa.types.is_list(kind):
        parts = [(kind.value_field, there.flatten())]
    elif pa.types.is_map(kind):
        parts = [(kind.item_field, there.items)]
    for field, values in parts:
        name: str | None = field.name if values.null_count and not field.nullable else lacking(values)
        if name is not None:
            return name
    return None


def _are_plain(values: list[Any], kind: Any) -> bool:
    """Whether Arrow takes values of JSON for a type as they are. It would take an empty list or text for a struct or a list, too."""
    if pa.types.is_struct(kind):
        return all(_is_scalar(each.type) for each in kind) and all(each is None or isinstance(each, dict) for each in values)
    return _is_scalar(kind)


def _is_scalar(kind: Any) -> bool:
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_boolean(kind) or pa.types.is_string(kind))


def _shaped(value: Any, kind: Any) -> Any:
    """A value of JSON as Arrow takes it for a type. Raises one of MISFITS."""
    if value is None:
        return None
    if pa.types.is_struct(kind):
        members = _expected(value, dict, kind)
        return {each.name: _shaped(members.get(each.name), each.type) for each in kind}
    if pa.types.is_list(kind):
        return [_shaped(each, kind.value_type) for each in _expected(value, list, kind)]
    if pa.types.is_map(kind):
        pairs = value.items() if isinstance(value, dict) else _expected(value, list, kind)
        return [(_shaped(name, kind.key_type), _shaped(each, kind.item_type)) for name, each in pairs]
    if pa.types.is_binary(kind):
        return base64.b64decode(value, validate=True)
    if pa.types.is_decimal(kind):
        return _decimal(value, kind)
    return float(value) if isinstance(value, Decimal) or (isinstance(value, int) and pa.types.is_floating(kind)) else value


def _expected(value: Any, form: type, kind: Any) -> Any:
    if not isinstance(value, form):
        raise ConnectError(f"a value of the type {kind} is no {type(value).__name__}")
    return value


def _decimal(value: Any, kind: Any) -> Decimal:
    """A decimal: bytes in base64, or a number, which is rounded to the scale."""
    if isinstance(value, str):
        return Decimal(f"{int.from_bytes(base64.b64decode(value), 'big', signed=True)}E{-kind.scale}")
    try:
        return Decimal(value).quantize(Decimal(f"1E{-kind.scale}"), context=_DIGITS)
    except InvalidOperation:
        raise ConnectError(f"{value} has more than {PRECISION} digits with the scale {kind.scale}") from None
