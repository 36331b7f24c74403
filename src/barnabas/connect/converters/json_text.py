"""Values as JSON texts."""

from __future__ import annotations

import base64
import datetime
import math
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np
import pyarrow as pa

if TYPE_CHECKING:
    Array = pa.Array[Any]

_EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
_DAY_0 = datetime.date(1970, 1, 1)


def plain(value: Any) -> Any:
    """A value of Arrow as JSON has it in Kafka Connect: bytes and decimals in base64, times as numbers since the epoch."""
    match value:
        case None | bool() | int() | str():
            return value
        case float():
            return named(value)
        case bytes():
            return base64.b64encode(value).decode()
        case datetime.datetime():
            moment = value if value.tzinfo is not None else value.replace(tzinfo=datetime.UTC)
            return round((moment - _EPOCH).total_seconds() * 1000)
        case datetime.date():
            return (value - _DAY_0).days
        case datetime.time():
            return (value.hour * 3600 + value.minute * 60 + value.second) * 1000 + value.microsecond // 1000
        case Decimal():
            return base64.b64encode(unscaled(value)).decode()
        case dict():
            return {name: plain(each) for name, each in value.items()}
        case list() | tuple():
            return [plain(each) for each in value]
    return str(value)


def column_values(column: Array) -> list[Any]:
    """The values of a column as JSON has them in Kafka Connect: maps with texts as keys are objects, other ones lists of pairs."""
    kind: Any = column.type
    if _needs_type(kind):
        return [_typed(each, kind) for each in column.to_pylist()]
    return [plain(each) for each in column.to_pylist()]


def _needs_type(kind: Any) -> bool:
    if pa.types.is_map(kind) or pa.types.is_float32(kind):
        return True
    return pa.types.is_nested(kind) and any(_needs_type(kind.field(at).type) for at in range(kind.num_fields))


def _typed(value: Any, kind: Any) -> Any:
    if value is None:
        return None
    if pa.types.is_map(kind):
        pairs = [(_typed(key, kind.key_type), _typed(each, kind.item_type)) for key, each in value]
        return dict(pairs) if pa.types.is_string(kind.key_type) else pairs
    if pa.types.is_struct(kind):
        return {each.name: _typed(value[each.name], each.type) for each in kind}
    if pa.types.is_list(kind):
        return [_typed(each, kind.value_type) for each in value]
    if pa.types.is_float32(kind) and math.isfinite(value):
        return float(str(np.float32(value)))  # the shortest number that is the same one in four bytes
    return plain(value)


def named(value: float) -> float | str:
    """A number of JSON, or the name that Java has for a number that JSON lacks."""
    if math.isfinite(value):
        return value
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"


def unscaled(value: Decimal) -> bytes:
    """The digits of a decimal as a number in two's complement, as Java's BigInteger has it."""
    sign, digits, _ = value.as_tuple()
    return two_complement(int("".join(map(str, digits))) * (-1 if sign else 1))


def two_complement(number: int) -> bytes:
    """A number in as few bytes as hold it, in big endian."""
    return number.to_bytes((number + (number < 0)).bit_length() // 8 + 1, "big", signed=True)


def text_of(value: Any) -> bytes:
    """A value as a text: JSON for a record, a list or a map; the value alone for others."""
    found = str(value) if isinstance(value, Decimal) else plain(value)
    if isinstance(found, str):
        return found.encode()
    return msgspec.json.encode(found)
