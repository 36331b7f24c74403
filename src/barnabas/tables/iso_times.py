"""Dates and times of ISO 8601 as numbers, and back from milliseconds. A function gives None for a text or number that is none.

Years are 1 to 9999. Digits behind microseconds are cut off. A timestamp may have a space instead of the `T`, no time, no seconds and no
zone; without a zone it is taken as UTC. Dates are days since 1970, times and timestamps microseconds.
"""

from __future__ import annotations

import re
from datetime import date
from decimal import ROUND_FLOOR, Context, Decimal, localcontext

DAY_US = 86_400_000_000
_EPOCH = date(1970, 1, 1).toordinal()
FIRST_DAY, LAST_DAY = date.min.toordinal() - _EPOCH, date.max.toordinal() - _EPOCH
FIRST_US, LAST_US = FIRST_DAY * DAY_US, (LAST_DAY + 1) * DAY_US - 1
_DATE = r"([0-9]{4})-([0-9]{2})-([0-9]{2})"
_TIME = r"([0-9]{2}):([0-9]{2})(?::([0-9]{2})(?:\.([0-9]+))?)?"
_ZONE = r"(?:([Zz])|([+-])([0-9]{2})(?::?([0-9]{2}))?)?"
_DATE_TEXT = re.compile(_DATE)
_TIME_TEXT = re.compile(_TIME)
_TIMESTAMP_TEXT = re.compile(f"{_DATE}(?:[Tt ]{_TIME}{_ZONE})?")
_EXACT = Context(prec=60)


def date_of_text(text: str) -> int | None:
    match = _DATE_TEXT.fullmatch(text)
    return None if match is None else _days(match[1], match[2], match[3])


def time_of_text(text: str) -> int | None:
    match = _TIME_TEXT.fullmatch(text)
    return None if match is None else _micros(match[1], match[2], match[3], match[4])


def timestamp_of_text(text: str) -> int | None:
    match = _TIMESTAMP_TEXT.fullmatch(text)
    if match is None:
        return None
    days = _days(match[1], match[2], match[3])
    within = _micros(match[4] or "0", match[5] or "0", match[6], match[7])
    hours, minutes = int(match[10] or 0), int(match[11] or 0)
    if days is None or within is None or hours > 23 or minutes > 59:
        return None
    shift = (hours * 60 + minutes) * 60_000_000
    return _limited(days * DAY_US + within + (shift if match[9] == "-" else -shift))


def timestamp_of_millis(number: Decimal) -> int | None:
    if not number.is_zero() and number.adjusted() > 18:
        return None
    with localcontext(_EXACT):
        return _limited(int((number * 1000).to_integral_value(ROUND_FLOOR)))


def date_of_millis(number: Decimal) -> int | None:
    found = timestamp_of_millis(number)
    return None if found is None else found // DAY_US


def time_of_millis(number: Decimal) -> int | None:
    found = timestamp_of_millis(number)
    return found if found is not None and 0 <= found < DAY_US else None


def _limited(micros: int) -> int | None:
    return micros if FIRST_US <= micros <= LAST_US else None


def _days(year: str, month: str, day: str) -> int | None:
    try:
        return date(int(year), int(month), int(day)).toordinal() - _EPOCH
    except ValueError:
        return None


def _micros(hour: str, minute: str, second: str | None, fraction: str | None) -> int | None:
    hours, minutes, seconds = int(hour), int(minute), int(second or 0)
    if hours > 23 or minutes > 59 or seconds > 59:
        return None
    return ((hours * 60 + minutes) * 60 + seconds) * 1_000_000 + int((fraction or "")[:6].ljust(6, "0"))
