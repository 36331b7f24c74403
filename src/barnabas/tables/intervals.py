"""Intervals as text: ISO 8601's durations, such as `P1Y2M3DT4H5M6.5S`. Each part has a sign of its own."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import pyarrow as pa

INTERVAL = pa.month_day_nano_interval()
NANOS = 1_000_000_000
_TEXT = re.compile(
    r"P(?:(?P<years>[+-]?\d{1,9})Y)?(?:(?P<months>[+-]?\d{1,9})M)?(?:(?P<weeks>[+-]?\d{1,9})W)?(?:(?P<days>[+-]?\d{1,9})D)?"
    r"(?:T(?:(?P<hours>[+-]?\d{1,9})H)?(?:(?P<minutes>[+-]?\d{1,9})M)?(?:(?P<seconds>[+-]?\d{1,12}(?:\.\d{1,9})?)S)?)?",
    re.ASCII,
)


def interval_of_text(text: str) -> Any:
    """The interval that a text means; None if it is none, or too long."""
    found = _TEXT.fullmatch(text)
    if found is None or text in ("P", "PT") or text.endswith("T"):
        return None
    whole = {name: int(value or 0) for name, value in found.groupdict().items() if name != "seconds"}
    months, days = whole["years"] * 12 + whole["months"], whole["weeks"] * 7 + whole["days"]
    nanos = (whole["hours"] * 3600 + whole["minutes"] * 60) * NANOS + _nanos(found["seconds"] or "0")
    if max(abs(months), abs(days)) >= 2**31 or abs(nanos) >= 2**63:
        return None
    make: Any = pa.MonthDayNano
    return make([months, days, nanos])


def _nanos(seconds: str) -> int:
    whole, _, fraction = seconds.lstrip("+-").partition(".")
    nanos = int(whole) * NANOS + int(fraction.ljust(9, "0") or 0)
    return -nanos if seconds.startswith("-") else nanos


def text_of_interval(value: Sequence[int]) -> str:
    """The text of months, days and nanoseconds."""
    months, days, nanos = value
    years, months = _parts(months, 12)
    minutes, rest = _parts(nanos, 60 * NANOS)
    hours, minutes = _parts(minutes, 60)
    seconds, fraction = _parts(rest, NANOS)
    date = "".join(f"{count}{unit}" for count, unit in ((years, "Y"), (months, "M"), (days, "D")) if count)
    time = "".join(f"{count}{unit}" for count, unit in ((hours, "H"), (minutes, "M")) if count)
    if rest:
        shown = f"{abs(seconds)}.{abs(fraction):09d}".rstrip("0").rstrip(".")
        time += f"{'-' if rest < 0 else ''}{shown}S"
    return f"P{date}{'T' + time if time else ''}" if date or time else "PT0S"


def _parts(value: int, size: int) -> tuple[int, int]:
    """Quotient and remainder, both with the sign of the value."""
    sign = -1 if value < 0 else 1
    whole, rest = divmod(abs(value), size)
    return sign * whole, sign * rest


def intervals(values: Sequence[Any]) -> Any:
    """A column of intervals."""
    return pa.array(values, INTERVAL)
