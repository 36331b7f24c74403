"""Arrow arrays as lists of Python values, as `text_format` and `binary_format` take them.

| kind | value |
|---|---|
| date | days since 1970 |
| time, timestamp | microseconds since midnight, since 1970 |
| interval | months, days, microseconds |
| float4 | numpy.float32, which has its own shortest digits |
| list | a list of the values of its elements |
| struct | as its writer has it, or JSON in a map |
| map, union, json | JSON, a text |
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pyarrow.types as kinds

from barnabas.sql.interface import SqlError
from barnabas.sql.postgres.arrays import Array, compute, keep

Values = Callable[[Any], list[Any]]
_PER_US = {"s": 1_000_000, "ms": 1_000}


def values_of(kind: Any, of_struct: Callable[[Any], Values] | None = None) -> Values:
    """The function that makes the values of arrays of this type.

    Args:
        of_struct: makes the function for structs, also within lists; None: their values are JSON.
    """
    if kinds.is_date32(kind):
        return lambda array: array.view(pa.int32()).to_pylist()
    if kinds.is_date64(kind):
        return lambda array: array.cast(pa.date32()).view(pa.int32()).to_pylist()
    if kinds.is_timestamp(kind) or kinds.is_time(kind):
        return lambda array: microseconds(array).to_pylist()
    if kinds.is_duration(kind):
        return lambda array: [None if each is None else (0, 0, each) for each in microseconds(array).to_pylist()]
    if kinds.is_interval(kind):
        return lambda array: [None if each is None else (each[0], each[1], each[2] // 1000) for each in array.to_pylist()]
    if kinds.is_float16(kind) or kinds.is_float32(kind):
        return _float4
    if kinds.is_dictionary(kind):
        inner = values_of(kind.value_type)
        return lambda array: inner(array.dictionary_decode())
    if isinstance(kind, pa.UuidType):
        return lambda array: array.storage.to_pylist()
    if isinstance(kind, pa.JsonType):
        return lambda array: array.storage.to_pylist()
    if kinds.is_nested(kind):
        return _nested(kind, of_struct)
    return lambda array: array.to_pylist()


def microseconds(array: Any) -> Array:
    """Of times, timestamps and durations, as int64; nanoseconds are cut."""
    unit = array.type.unit
    numbers = array.view(pa.int32()).cast(pa.int64()) if kinds.is_time32(array.type) else array.view(pa.int64())
    if unit == "us":
        return keep(numbers)
    if unit == "ns":
        return keep(compute.divide(compute.subtract(numbers, compute.if_else(compute.less(numbers, 0), 999, 0)), 1000))
    try:
        return keep(compute.multiply_checked(numbers, _PER_US[unit]))
    except pa.ArrowInvalid:
        raise SqlError("22008", "timestamp out of range") from None


def _float4(array: Any) -> list[Any]:
    floats = array.cast(pa.float32())
    numbers = floats.fill_null(0).to_numpy(zero_copy_only=False)
    return [each if valid else None for each, valid in zip(numbers, floats.is_valid().to_pylist(), strict=True)]


def _nested(kind: Any, of_struct: Callable[[Any], Values] | None) -> Values:
    if kinds.is_list(kind) or kinds.is_large_list(kind) or kinds.is_fixed_size_list(kind):
        return _lists(kind, of_struct)
    if kinds.is_list_view(kind) or kinds.is_large_list_view(kind):
        plain = pa.list_(kind.value_type)
        inner = _lists(plain, of_struct)
        return lambda array: inner(array.cast(plain))
    if of_struct is not None and kinds.is_struct(kind):
        return of_struct(kind)
    return lambda array: [None if each is None else _json(each, kind) for each in array.to_pylist()]


def _lists(kind: Any, of_struct: Callable[[Any], Values] | None) -> Values:
    elements = values_of(kind.value_type, of_struct)

    def values(array: Any) -> list[Any]:
        flat = elements(array.flatten())  # without those of null lists
        found, at = list[Any](), 0
        for size in compute.list_value_length(array).to_pylist():
            if size is None:
                found.append(None)
            else:
                found.append(flat[at : at + size])
                at += size
        return found

    return values


def _json(value: Any, kind: Any) -> str:
    return json.dumps(_plain(value, kind), ensure_ascii=False, separators=(",", ":"), default=str)


def _plain(value: Any, kind: Any) -> Any:
    """As JSON has it; a map is an object."""
    if value is None:
        return None
    if kinds.is_struct(kind):
        return {field.name: _plain(value[field.name], field.type) for field in kind}
    if kinds.is_map(kind):
        return {_key(key): _plain(item, kind.item_type) for key, item in value}
    if isinstance(value, list):
        return [_plain(each, kind.value_type) for each in value]
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if isinstance(value, bytes):
        return "\\x" + value.hex()
    return value


def _key(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, default=str)
