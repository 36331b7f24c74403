"""The rules by which JSON becomes values of columns, for one value at a time. `json_format` uses them for records that the kernels leave.

| column | takes |
|---|---|
| boolean | `true`, `false` |
| whole numbers | numbers without a fraction, also `1.0` and `1e3`, within the range of the type |
| real, double | numbers within the range; the texts `NaN`, `Infinity`, `-Infinity` |
| decimal | numbers, or texts of numbers, rounded half up to the digits behind the point |
| text | texts; any other value as its JSON text |
| json | any value, as its JSON text |
| uuid | texts of 36 characters |
| binary | base64 |
| date, timestamps | ISO 8601 texts; numbers are milliseconds since 1970 (UTC) |
| time | ISO 8601 texts; numbers are milliseconds since midnight |
| list, struct, map | arrays, objects, objects |

A field that is missing or `null` is null, unless its column says which value a missing one has. A field without a column is ignored, and
of fields with the same name the last one counts.
"""

from __future__ import annotations

import binascii
import json
import math
import re
from base64 import b64decode
from collections.abc import Callable, Sequence
from decimal import ROUND_HALF_UP, Context, Decimal, InvalidOperation
from typing import Any
from uuid import UUID as UuidClass

import pyarrow as pa
import pyarrow.types as pt

from barnabas import limits
from barnabas.tables import iso_times
from barnabas.tables.column_types import JSON, UUID, Field, mark_of, missing_of, type_name
from barnabas.tables.intervals import interval_of_text
from barnabas.tables.json_text import Misfit, Number, items, members, parse

Convert = Callable[[Any, str, str], Any]  # a parsed value, its JSON text, the path to it

_NAMED_FLOATS = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")
UUID_TEXT = re.compile(r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
_WIDE = Context(prec=100)
_SHOWN = 60  # characters of a value in a reason


def row_converter(fields: Sequence[Field]) -> Callable[[bytes | None], tuple[list[Any], str | None]]:
    """A function that makes the values of the fields from a payload that is a JSON object, or null; and a reason if it does not fit."""
    converters = [(field.name, converter(field)) for field in fields]
    absent = {field.name: value for field in fields if (value := absent_value(field)) is not None}
    nothing = [None] * len(converters)

    def convert(payload: bytes | None) -> tuple[list[Any], str | None]:
        if payload is None:
            return nothing, None
        try:
            value, text = parse(payload)
        except Misfit as misfit:
            return nothing, str(misfit)
        if value is None:
            return nothing, None
        if type(value) is not dict:
            return nothing, f"it is {_shown(text)}, not a JSON object"
        found = members(text)
        row: list[Any] = []
        reason = None
        for name, each in converters:
            if name in absent and name not in found:
                row.append(absent[name])
                continue
            try:
                row.append(each(*found.get(name, _MISSING), name))
            except Misfit as misfit:
                row.append(None)
                reason = reason or str(misfit)
        return row, reason

    return convert


_MISSING = (None, "null")


def absent_value(field: Field) -> Any:
    """The value of a record without the field, as `row_converter` makes values; None for null, and for a value that does not fit."""
    text = missing_of(field)
    if text is None:
        return None
    try:
        return converter(field)(*parse(text.encode()), field.name)
    except Misfit:
        return None


def converter(field: Field) -> Convert:
    """A function that makes the value of a field of a type that tables have."""
    inner = _converter(field)

    def convert(value: Any, text: str, path: str) -> Any:
        return None if value is None and field_takes_null else inner(value, text, path)

    field_takes_null = mark_of(field) != JSON
    return convert if field_takes_null else inner


def _converter(field: Field) -> Convert:  # noqa: C901 - one case for each type
    kind, mark, name = field.type, mark_of(field), type_name(field)
    if mark == JSON:
        return lambda value, text, path: None if value is None else text
    if mark == UUID:
        return _uuid
    if pt.is_boolean(kind):
        return lambda value, text, path: value if type(value) is bool else _wrong(path, text, name)
    if pt.is_integer(kind):
        return _integer(kind, name)
    if pt.is_floating(kind):
        return _float(kind, name)
    if pt.is_decimal(kind):
        return _decimal(kind, name)
    if pt.is_string(kind):
        return _text
    if pt.is_binary(kind):
        return _binary
    if pt.is_date(kind):
        return _moment(iso_times.date_of_text, iso_times.date_of_millis, name)
    if pt.is_time(kind):
        return _moment(iso_times.time_of_text, iso_times.time_of_millis, name)
    if pt.is_timestamp(kind):
        return _moment(iso_times.timestamp_of_text, iso_times.timestamp_of_millis, name)
    if pt.is_interval(kind):
        return _interval
    if pt.is_list(kind):
        return _list(kind, name)
    if pt.is_struct(kind):
        return _struct(kind, name)
    assert pt.is_map(kind), kind
    return _map(kind, name)


def _shown(text: str) -> str:
    return text if len(text) <= _SHOWN else text[:_SHOWN] + "…"


def _wrong(path: str, text: str, name: str) -> Any:
    raise Misfit(f"{path} is {_shown(text)}, not {name}")


def _out_of_range(path: str, text: str, name: str) -> Any:
    raise Misfit(f"{path} is {_shown(text)}, out of the range of {name}")


def _number(value: Any, path: str, text: str, name: str) -> Decimal:
    try:
        return Decimal(value)
    except InvalidOperation:  # an exponent of more than 18 digits
        _out_of_range(path, text, name)
        raise AssertionError from None


def _integer(kind: pa.DataType, name: str) -> Convert:
    signed = pt.is_signed_integer(kind)
    high = 2 ** (kind.bit_width - signed) - 1
    low = -high - 1 if signed else 0

    def convert(value: Any, text: str, path: str) -> int:
        if type(value) is not Number:
            _wrong(path, text, name)
        number = _number(value, path, text, name)
        if number.is_zero():
            return 0
        if number.adjusted() > 20:
            _out_of_range(path, text, name)
        if number != number.to_integral_value():
            _wrong(path, text, name)
        if not low <= number <= high:
            _out_of_range(path, text, name)
        return int(number)

    return convert


def _float(kind: pa.DataType, name: str) -> Convert:
    def convert(value: Any, text: str, path: str) -> float:
        if type(value) is Number:
            found = float(value)
            if pt.is_float32(kind):
                found = float(pa.scalar(found, pa.float64()).cast(pa.float32(), safe=False).as_py())
            if math.isinf(found):
                _out_of_range(path, text, name)
            return found
        found_name = _NAMED_FLOATS.get(value) if type(value) is str else None
        return _wrong(path, text, name) if found_name is None else found_name

    return convert


def _decimal(kind: Any, name: str) -> Convert:
    unit = Decimal(1).scaleb(-kind.scale)
    most = Decimal(10).scaleb(kind.precision - kind.scale - 1)

    def convert(value: Any, text: str, path: str) -> Decimal:
        if type(value) is not Number and not (type(value) is str and _NUMBER.fullmatch(value)):
            _wrong(path, text, name)
        number = _number(value, path, text, name)
        if not number.is_zero() and number.adjusted() > kind.precision:
            _out_of_range(path, text, name)
        rounded = number.quantize(unit, ROUND_HALF_UP, context=_WIDE)
        if rounded.copy_abs() >= most:  # `abs` would round to the 28 digits of the context
            _out_of_range(path, text, name)
        return rounded

    return convert


def _text(value: Any, text: str, path: str) -> str:
    if type(value) is not str:
        return text
    if not value.isascii():
        try:
            value.encode()
        except UnicodeEncodeError:
            raise Misfit(f"{path} is {_shown(text)}, which has half of a surrogate pair") from None
    return value


def _interval(value: Any, text: str, path: str) -> Any:
    found = interval_of_text(value) if type(value) is str else None
    return _wrong(path, text, "an interval such as P1DT2H") if found is None else found


def _uuid(value: Any, text: str, path: str) -> str:
    if type(value) is not str or not UUID_TEXT.fullmatch(value):
        _wrong(path, text, UUID)
    return str(UuidClass(value))


def _binary(value: Any, text: str, path: str) -> bytes:
    if type(value) is not str:
        _wrong(path, text, "base64")
    try:
        return b64decode(value, validate=True)
    except (binascii.Error, ValueError):
        _wrong(path, text, "base64")
        raise AssertionError from None


def _moment(of_text: Callable[[str], int | None], of_millis: Callable[[Decimal], int | None], name: str) -> Convert:
    def convert(value: Any, text: str, path: str) -> int:
        if type(value) is Number:
            found = of_millis(_number(value, path, text, name))
            return _out_of_range(path, text, name) if found is None else found
        if type(value) is not str:
            _wrong(path, text, name)
        found = of_text(value)
        return _wrong(path, text, name) if found is None else found

    return convert


def _list(kind: Any, name: str) -> Convert:
    item = converter(kind.value_field)

    def convert(value: Any, text: str, path: str) -> list[Any]:
        if type(value) is not list:
            _wrong(path, text, name)
        _check_items(value, path)
        return [item(each, raw, f"{path}[{number}]") for number, (each, raw) in enumerate(items(text))]

    return convert


def _struct(kind: Any, name: str) -> Convert:
    converters = [(field.name, converter(field)) for field in kind]

    def convert(value: Any, text: str, path: str) -> dict[str, Any]:
        if type(value) is not dict:
            _wrong(path, text, name)
        found = members(text)
        return {each: make(*found.get(each, _MISSING), f"{path}.{each}") for each, make in converters}

    return convert


def _map(kind: Any, name: str) -> Convert:
    item = converter(kind.item_field)
    key = _map_key if pt.is_string(kind.key_type) else _integer(kind.key_type, type_name(kind.key_field))

    def convert(value: Any, text: str, path: str) -> list[tuple[Any, Any]]:
        if type(value) is not dict:
            _wrong(path, text, name)
        _check_items(value, path)
        found = {}
        for each, (value_of, raw) in members(text).items():
            inside = f"{path}.{each}"
            key_text = json.dumps(each)
            known = key(Number(each) if key is not _map_key and _NUMBER.fullmatch(each) else each, key_text, f"a key of {path}")
            found[known] = item(value_of, raw, inside)
        return list(found.items())

    return convert


def _check_items(value: Any, path: str) -> None:
    if len(value) > limits.MAX_TABLE_ITEMS:
        raise Misfit(f"{path} has more than {limits.MAX_TABLE_ITEMS} items")


def _map_key(value: Any, text: str, path: str) -> str:
    return _text(value, text, path)
