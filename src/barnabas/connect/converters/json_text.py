"""Values as JSON texts."""

from __future__ import annotations

import base64
import datetime
import math
from decimal import Decimal
from typing import Any

import msgspec

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
