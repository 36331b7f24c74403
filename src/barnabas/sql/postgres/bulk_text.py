"""Whole columns in Postgres' text format, by Arrow's kernels. Nulls stay null."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, tzinfo
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as kinds

from barnabas.sql.postgres import text_format
from barnabas.sql.postgres.values import microseconds

YEAR_1_US, YEAR_10000_US = -62_135_596_800_000_000, 253_402_300_800_000_000
YEAR_1_DAYS, YEAR_10000_DAYS = -719_162, 2_932_897
_HEX = np.array([f"{byte:02x}".encode() for byte in range(256)], dtype="S2")


def plain(array: pa.Array) -> pa.Array:
    """Integers."""
    return array.cast(pa.string()).cast(pa.binary())


def string(array: pa.Array) -> pa.Array:
    """Text and bytes as they are."""
    return array.cast(pa.binary())


def dictionary(kind: pa.DataType) -> Callable[[pa.Array], pa.Array] | None:
    """Of texts; None for other types."""
    if kinds.is_dictionary(kind) and kinds.is_string(kind.value_type):
        return lambda array: array.dictionary_decode().cast(pa.binary())
    return None


def boolean(array: pa.Array) -> pa.Array:
    """t and f."""
    return pc.if_else(array, pa.scalar(b"t", pa.binary()), pa.scalar(b"f", pa.binary()))


def bytea(array: pa.Array) -> pa.Array:
    r"""Hexadecimal, after \x."""
    flat = pa.concat_arrays([array.cast(pa.large_binary())])
    offsets = np.frombuffer(flat.buffers()[1], np.int64)[flat.offset : flat.offset + len(flat) + 1]
    data = flat.buffers()[2]
    taken = np.frombuffer(data, np.uint8)[offsets[0] : offsets[-1]] if data else np.empty(0, np.uint8)
    shown = pa.py_buffer(_HEX[taken])
    doubled = pa.py_buffer((offsets - offsets[0]) * 2)
    digits = pa.Array.from_buffers(pa.large_binary(), len(flat), [None, doubled, shown]).cast(pa.binary())
    empty = pa.scalar(b"", pa.binary())
    return _keeping_nulls(pc.binary_join_element_wise(pa.scalar(b"\\x", pa.binary()), digits, empty), array)


def _keeping_nulls(shown: pa.Array, array: pa.Array) -> pa.Array:
    return shown if not array.null_count else pc.if_else(array.is_valid(), shown, pa.scalar(None, pa.binary()))


def _floats(kind: pa.DataType, limit: float, write: Callable[[Any], bytes]) -> Callable[[pa.Array], pa.Array]:
    def bulk(array: pa.Array) -> pa.Array:
        array = array.cast(kind)
        shown = array.cast(pa.string()).cast(pa.binary())
        numbers = array.fill_null(0).to_numpy(zero_copy_only=False)
        size = np.abs(numbers)
        other = ~(size < limit) | ((size < 1e-4) & (size != 0))  # these have an exponent, or are no numbers
        if not other.any():
            return shown
        return pc.replace_with_mask(shown, pa.array(other), pa.array([write(each) for each in numbers[other]], pa.binary()))

    return bulk


def _float8(value: Any) -> bytes:
    return text_format.float8(float(value))


float8 = _floats(pa.float64(), 10.0**text_format.FLOAT8_DIGITS, _float8)
float4 = _floats(pa.float32(), 10.0**text_format.FLOAT4_DIGITS, text_format.float4)


def numeric(array: pa.Array) -> pa.Array:
    """Decimals, and integers of 64 bits without a sign."""
    shown = array.cast(pa.string())
    if not kinds.is_decimal(array.type):
        return shown.cast(pa.binary())
    other = pc.fill_null(pc.match_substring(shown, "E"), False)
    if pc.any(other).as_py():
        written = pa.array([text_format.numeric(each).decode() for each in array.filter(other).to_pylist()], pa.string())
        shown = pc.replace_with_mask(shown, other, written)
    return shown.cast(pa.binary())


def _within(numbers: pa.Array, low: int, high: int) -> bool:
    found = pc.min_max(numbers)
    least, most = found["min"].as_py(), found["max"].as_py()
    return least is None or (low <= least and most < high)


def _trimmed(shown: pa.Array) -> pa.Array:
    return pc.utf8_rtrim(pc.utf8_rtrim(shown, "0"), ".")


def date(array: pa.Array) -> pa.Array | None:
    """Dates of the years 1 to 9999."""
    days = array.cast(pa.date32())
    return days.cast(pa.string()).cast(pa.binary()) if _within(days.view(pa.int32()), YEAR_1_DAYS, YEAR_10000_DAYS) else None


def time(array: pa.Array) -> pa.Array | None:
    """Times of a day."""
    us = microseconds(array)
    if not _within(us, 0, text_format.DAY_US):
        return None
    return _trimmed(us.cast(pa.time64("us")).cast(pa.string())).cast(pa.binary())


def timestamp(array: pa.Array) -> pa.Array | None:
    """Timestamps of the years 1 to 9999."""
    us = microseconds(array)
    if not _within(us, YEAR_1_US, YEAR_10000_US):
        return None
    return _trimmed(us.cast(pa.timestamp("us")).cast(pa.string())).cast(pa.binary())


def timestamptz(zone: tzinfo) -> Callable[[pa.Array], pa.Array | None]:
    """Timestamps of the years 2 to 9998 in a zone."""
    name = zone.key if isinstance(zone, ZoneInfo) else "UTC"
    if zone is not UTC and name == "UTC" and not isinstance(zone, ZoneInfo):
        return lambda _array: None

    def bulk(array: pa.Array) -> pa.Array | None:
        us = microseconds(array)
        if not _within(us, YEAR_1_US + 10**15 // 2, YEAR_10000_US - 10**15 // 2):
            return None
        local = pc.local_timestamp(us.cast(pa.timestamp("us", name)))
        offsets = pc.dictionary_encode(pc.subtract(local.view(pa.int64()), us))
        shown = [text_format.shown_offset(each // 1_000_000) for each in offsets.dictionary.fill_null(0).to_pylist()]
        ends = pa.array(shown, pa.string()).take(offsets.indices)
        return pc.binary_join_element_wise(_trimmed(local.cast(pa.string())), ends, "").cast(pa.binary())

    return bulk
