"""Whole columns in Postgres' text format, by Arrow's kernels. Nulls stay null."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, tzinfo
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
import pyarrow as pa
import pyarrow.types as kinds

from barnabas.sql.postgres import text_format
from barnabas.sql.postgres.arrays import Array, compute, join, keep, nulls_of, numbers_of, offsets_of, variable
from barnabas.sql.postgres.values import microseconds

YEAR_1_US, YEAR_10000_US = -62_135_596_800_000_000, 253_402_300_800_000_000
YEAR_1_DAYS, YEAR_10000_DAYS = -719_162, 2_932_897
YEAR_2037_US = 2_114_380_800_000_000  # Arrow knows no daylight saving after it
ARROWS_EXPONENT = 1e10  # from here on Arrow writes an exponent
_HEX = np.array([f"{byte:02x}".encode() for byte in range(256)], dtype="S2")


def plain(array: Array) -> Array:
    """Integers."""
    return array.cast(pa.string()).cast(pa.binary())


def string(array: Array) -> Array:
    """Text and bytes as they are."""
    return array.cast(pa.binary())


def padded(size: int) -> Callable[[Any], Array]:
    """Texts with spaces up to a number of characters."""
    return lambda array: keep(compute.utf8_rpad(array, size, " ")).cast(pa.binary())


def dictionary(kind: Any) -> Callable[[Any], Array] | None:
    """Of texts; None for other types."""
    if kinds.is_dictionary(kind) and kinds.is_string(kind.value_type):
        return lambda array: array.dictionary_decode().cast(pa.binary())
    return None


def boolean(array: Array) -> Array:
    """t and f."""
    return keep(compute.if_else(array, pa.scalar(b"t", pa.binary()), pa.scalar(b"f", pa.binary())))


def bytea(array: Array) -> Array:
    r"""Hexadecimal, after \x."""
    flat = keep(pa.concat_arrays([array.cast(pa.large_binary())]))
    offsets = offsets_of(flat, np.int64)
    held: Any = flat.buffers()[2]
    data = np.frombuffer(held if held is not None else b"", np.uint8)[offsets[0] : offsets[-1]]
    digits = variable((offsets - offsets[0]) * 2, _HEX[data], pa.large_binary())
    return nulls_of(join(pa.scalar(b"\\x", pa.binary()), digits.cast(pa.binary())), array)


def _floats(kind: pa.DataType, limit: float, write: Callable[[Any], bytes]) -> Callable[[Array], Array]:
    def bulk(array: Array) -> Array:
        array = array.cast(kind)
        shown = array.cast(pa.string()).cast(pa.binary())
        numbers = numbers_of(array)
        size = np.abs(numbers)
        other = ~(size < limit) | ((size < 1e-4) & (size != 0))  # these have an exponent, or are no numbers
        if not other.any():
            return shown
        return keep(
            compute.replace_with_mask(shown, pa.array(other), pa.array([write(each) for each in numbers[other]], pa.binary()))
        )

    return bulk


def _float8(value: Any) -> bytes:
    return text_format.float8(float(value))


float8 = _floats(pa.float64(), ARROWS_EXPONENT, _float8)
float4 = _floats(pa.float32(), 10.0**text_format.FLOAT4_DIGITS, text_format.float4)


def numeric(array: Any) -> Array:
    """Decimals, and integers of 64 bits without a sign."""
    shown = array.cast(pa.string())
    if not kinds.is_decimal(array.type):
        return keep(shown.cast(pa.binary()))
    other = compute.fill_null(compute.match_substring(shown, "E"), False)
    if compute.any(other).as_py():
        written = pa.array([text_format.numeric(each).decode() for each in array.filter(other).to_pylist()], pa.string())
        shown = compute.replace_with_mask(shown, other, written)
    return keep(shown.cast(pa.binary()))


def unbound_numeric(array: Any) -> Array:
    """Decimals without zeros at their end."""
    return _trimmed(numeric(array).cast(pa.string())).cast(pa.binary())


def _within(numbers: Array, low: int, high: int) -> bool:
    found = compute.min_max(numbers)
    least, most = found["min"].as_py(), found["max"].as_py()
    return least is None or (low <= least and most < high)


def _trimmed(shown: Array) -> Array:
    return keep(compute.utf8_rtrim(compute.utf8_rtrim(shown, "0"), "."))


def date(array: Array) -> Array | None:
    """Dates of the years 1 to 9999."""
    days = array.cast(pa.date32())
    return days.cast(pa.string()).cast(pa.binary()) if _within(days.view(pa.int32()), YEAR_1_DAYS, YEAR_10000_DAYS) else None


def time(array: Array) -> Array | None:
    """Times of a day."""
    us = microseconds(array)
    if not _within(us, 0, text_format.DAY_US):
        return None
    return _trimmed(us.cast(pa.time64("us")).cast(pa.string())).cast(pa.binary())


def timestamp(array: Array) -> Array | None:
    """Timestamps of the years 1 to 9999."""
    us = microseconds(array)
    if not _within(us, YEAR_1_US, YEAR_10000_US):
        return None
    return _trimmed(us.cast(pa.timestamp("us")).cast(pa.string())).cast(pa.binary())


def timestamptz(zone: tzinfo) -> Callable[[Array], Array | None]:
    """Timestamps in a zone; other zones than UTC only from 1970 to 2036."""
    name = "UTC" if zone is UTC else zone.key if isinstance(zone, ZoneInfo) else ""
    if not name:
        return lambda _array: None

    def bulk(array: Array) -> Array | None:
        us = microseconds(array)
        if not (_within(us, YEAR_1_US, YEAR_10000_US) if zone is UTC else _within(us, 0, YEAR_2037_US)):
            return None
        local = compute.local_timestamp(us.cast(pa.timestamp("us", name)))
        offsets = compute.dictionary_encode(compute.subtract(local.view(pa.int64()), us))
        shown = [text_format.shown_offset(each // 1_000_000) for each in offsets.dictionary.fill_null(0).to_pylist()]
        ends = pa.array(shown, pa.string()).take(offsets.indices)
        return join(_trimmed(local.cast(pa.string())).cast(pa.binary()), ends.cast(pa.binary()))

    return bulk
