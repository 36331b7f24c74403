"""PostgreSQL's dates, times and intervals in the forms of Debezium. The session writes ISO 8601, in UTC."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

if TYPE_CHECKING:
    Array = pa.Array[Any]

NAMES = "io.debezium.time."
MILLIS = 1000
MOST_FRACTION = 6  # digits behind the second
WHOLE_SECONDS = len("2020-01-01T00:00:00")
DAY_US = 86_400_000_000
INFINITE_US, NEVER_US = (
    9_223_372_036_825_200_000,
    -9_223_372_036_832_400_000,
)  # those of PostgreSQL's JDBC driver, which Debezium has
INFINITE_DAYS = 2_147_483_647
MONTH_DAYS = 365.25 / 12
_DATE = re.compile(r"(\d+)-(\d\d)-(\d\d)(?: (\d\d):(\d\d):(\d\d)(?:\.(\d+))?)?(?:[+-]\d\d)?( BC)?")
_TIME = re.compile(r"(\d\d):(\d\d):(\d\d)(?:\.(\d+))?(?:([+-])(\d\d)(?::(\d\d))?(?::(\d\d))?)?")
_INTERVAL = re.compile(r"P(?:(-?\d+)Y)?(?:(-?\d+)M)?(?:(-?\d+)D)?(?:T(?:(-?\d+)H)?(?:(-?\d+)M)?(?:(-?\d+(?:\.\d+)?|-?\.\d+)S)?)?")
Parts = tuple[Any, Callable[[Any], Any], str | None]


def form(name: str, modifier: int, mode: str, intervals: str) -> Parts:
    """Type, conversion and schema name of a type.

    Args:
        modifier: digits behind the second; -1 for six.
        mode: `time.precision.mode`.
        intervals: `interval.handling.mode`.
    """
    is_coarse = 0 <= modifier <= 3
    match name:
        case "timestamptz":
            return pa.string(), partial(_zoned, digits=MOST_FRACTION if modifier < 0 else modifier), f"{NAMES}ZonedTimestamp"
        case "timetz":
            return pa.string(), _zoned_time, f"{NAMES}ZonedTime"
        case "interval" if intervals == "string":
            return pa.string(), _same, f"{NAMES}Interval"
        case "interval":
            return pa.int64(), _each(interval_us), f"{NAMES}MicroDuration"
        case "date" if mode == "connect":
            return pa.date32(), lambda column: _days(column).cast(pa.date32()), None
        case "date":
            return pa.int32(), _days, f"{NAMES}Date"
        case "time" if mode == "connect":
            return pa.time32("ms"), lambda column: pc.divide(_of_day(column), MILLIS).cast(pa.int32()).cast(pa.time32("ms")), None
        case "time" if is_coarse and mode == "adaptive":
            return pa.int32(), lambda column: pc.divide(_of_day(column), MILLIS).cast(pa.int32()), f"{NAMES}Time"
        case "time":
            return pa.int64(), _of_day, f"{NAMES}MicroTime"
    if mode == "connect":
        stamp: Any = pa.timestamp("ms", "UTC")
        return stamp, lambda column: _floor_ms(_micros(column)).cast(stamp), None
    if is_coarse:
        return pa.int64(), lambda column: _floor_ms(_micros(column)), f"{NAMES}Timestamp"
    return pa.int64(), _micros, f"{NAMES}MicroTimestamp"


def _same(column: Any) -> Any:
    return column


def _each(function: Callable[[str], int]) -> Callable[[Any], Any]:
    return lambda column: pa.array([None if each is None else function(each) for each in column.to_pylist()], pa.int64())


def _zoned(column: Any, digits: int) -> Any:
    """In ISO 8601, with all digits of the column behind the second."""
    try:
        moments = column.cast(pa.timestamp("us", "UTC")).cast(pa.timestamp("us")).cast(pa.string())
    except pa.ArrowInvalid:  # years beyond 9999, before Christ, and infinity
        return pa.array([None if each is None else _odd_zoned(each, digits) for each in column.to_pylist()], pa.string())
    with_t = pc.replace_substring(moments, " ", "T", max_replacements=1)
    end = WHOLE_SECONDS + digits + 1 if digits else WHOLE_SECONDS
    return pc.binary_join_element_wise(pc.utf8_slice_codeunits(with_t, 0, end), "Z", "")


def _odd_zoned(text: str, digits: int) -> str:
    """A moment of any year, whose number has a sign if it has not four digits, as in Java; infinity as it is."""
    found = _DATE.fullmatch(text)
    if found is None:
        return text
    year = 1 - int(found[1]) if found[8] else int(found[1])
    shown = f"{year:05}" if year < 0 else f"{year:04}" if year < 10_000 else f"+{year}"
    fraction = f".{(found[7] or '').ljust(digits, '0')}" if digits else ""
    return f"{shown}-{found[2]}-{found[3]}T{found[4]}:{found[5]}:{found[6]}{fraction}Z"


def _zoned_time(column: Any) -> Array:
    return pa.array([None if each is None else _utc(each) for each in column.to_pylist()], pa.string())


def _utc(text: str) -> str:
    micros = time_us(text) % DAY_US
    seconds, fraction = divmod(micros, 1_000_000)
    shown = f"{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}"
    return f"{shown}.{fraction:06}".rstrip("0") + "Z" if fraction else f"{shown}Z"


def _days(column: Any) -> Any:
    try:
        return column.cast(pa.date32()).cast(pa.int32())
    except pa.ArrowInvalid:  # years beyond 9999, before Christ, and infinity
        return pa.array([None if each is None else _day(each) for each in column.to_pylist()], pa.int32())


def _day(text: str) -> int:
    if "infinity" in text:
        return -INFINITE_DAYS if text.startswith("-") else INFINITE_DAYS
    return date_us(text) // DAY_US


def _micros(column: Any) -> Any:
    try:
        return column.cast(pa.timestamp("us")).cast(pa.int64())
    except pa.ArrowInvalid:
        return _each(date_us)(column)


def _floor_ms(column: Any) -> Any:
    """Milliseconds, rounded down also before 1970: the division of Arrow rounds towards zero."""
    towards_zero = pc.divide(column, MILLIS)
    return pc.if_else(pc.less(column, pc.multiply(towards_zero, MILLIS)), pc.subtract(towards_zero, 1), towards_zero)


def _of_day(column: Any) -> Any:
    try:
        joined: Any = pc.binary_join_element_wise(pa.scalar("1970-01-01"), column, pa.scalar(" "))
        return joined.cast(pa.timestamp("us")).cast(pa.int64())
    except pa.ArrowInvalid:  # 24:00:00
        return _each(time_us)(column)


def date_us(text: str) -> int:
    """Microseconds since 1970 of a date or a timestamp, in the calendar that PostgreSQL has, without a zone."""
    if "infinity" in text:
        return NEVER_US if text.startswith("-") else INFINITE_US
    found = _DATE.fullmatch(text)
    if found is None:
        raise ValueError(f"{text} is no timestamp of PostgreSQL")
    year, month, day, hour, minute, second = (int(each or 0) for each in found.groups()[:6])
    if found[8]:
        year = 1 - year
    shifted = year - (month <= 2)
    era, of_era = divmod(shifted, 400)
    of_year = (153 * ((month + 9) % 12) + 2) // 5 + day - 1
    days = era * 146_097 + of_era * 365 + of_era // 4 - of_era // 100 + of_year - 719_468
    return days * DAY_US + (hour * 3600 + minute * 60 + second) * 1_000_000 + int((found[7] or "").ljust(6, "0"))


def time_us(text: str) -> int:
    """Microseconds since midnight, in UTC if the text has a zone."""
    found = _TIME.fullmatch(text)
    if found is None:
        raise ValueError(f"{text} is no time of PostgreSQL")
    hour, minute, second = (int(each) for each in found.groups()[:3])
    micros = (hour * 3600 + minute * 60 + second) * 1_000_000 + int((found[4] or "").ljust(6, "0"))
    if found[5]:
        hours, minutes, seconds = (int(each or 0) for each in found.groups()[5:])
        offset = (hours * 3600 + minutes * 60 + seconds) * 1_000_000
        micros += offset if found[5] == "-" else -offset
    return micros


def interval_us(text: str) -> int:
    """Microseconds of an interval in ISO 8601; a month has 365.25 / 12 days."""
    found = _INTERVAL.fullmatch(text)
    if found is None:
        raise ValueError(f"{text} is no interval of PostgreSQL")
    years, months, days, hours, minutes = (int(each or 0) for each in found.groups()[:5])
    seconds = round(float(found[6] or 0) * 1_000_000)
    return (
        round((years * 12 + months) * MONTH_DAYS * DAY_US) + days * DAY_US + (hours * 3600 + minutes * 60) * 1_000_000 + seconds
    )
