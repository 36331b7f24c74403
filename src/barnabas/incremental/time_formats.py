"""Times as text by a pattern, as Postgres' `to_char` has it. No I/O."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from typing import NamedTuple
from zoneinfo import ZoneInfo

from barnabas.incremental.number_formats import ordinal_suffix, roman

_MONTHS = (
    "January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November", "December",
)  # fmt: skip
_DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_MOMENT = re.compile(
    r"(?:(\d{1,6})-(\d\d)-(\d\d)(?: \(BC\))?)?[ T]?(?:(\d\d):(\d\d):(\d\d)(?:\.(\d{1,9}))?)?(?P<offset>[+-]\d\d(?::?\d\d)*)?\Z"
)
_FIXED = "GMT"  # the beginning of DuckDB's name of a zone without a name of its own


class Moment(NamedTuple):
    """A date with a time, or the parts of an interval.

    Args:
        days: since 0001-01-01, which is 1; 0 for an interval.
        offset: from UTC, such as `+05:30`.
        zone: the name of that offset, such as `CEST`; empty for a time without a zone.
    """

    year: int
    month: int
    day: int
    hour: int
    minute: int
    second: int
    micros: int
    days: int
    offset: str = "+00"
    zone: str = ""


def _ordinal(year: int, month: int, day: int) -> int:
    """Days of the calendar up to a date; 0001-01-01 is 1. Python's dates end with the year 9999."""
    before = year - 1
    months = (0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334)
    leap = month > 2 and (year % 4 == 0 and (year % 100 != 0 or year % 400 == 0))
    return before * 365 + before // 4 - before // 100 + before // 400 + months[month - 1] + leap + day


def moment_of(text: str, zone: str = "") -> Moment:
    """The parts of a date or a time, as DuckDB writes them. Raises ValueError.

    Args:
        zone: of a time with a time zone, by DuckDB's name.
    """
    found = _MOMENT.match(text)
    if found is None:
        raise ValueError(f"to_char cannot read the time {text!r}")
    year, month, day = (int(each or 1) for each in found.groups()[:3])
    hour, minute, second = (int(each or 0) for each in found.groups()[3:6])
    micros = int((found[7] or "0").ljust(6, "0")[:6])
    made = Moment(year, month, day, hour, minute, second, micros, _ordinal(year, month, day))
    return _zoned(made, found["offset"] or "+00", zone) if zone else made


def _zoned(local: Moment, offset: str, zone: str) -> Moment:
    """A time with the name of its offset."""
    parts = zip(offset[1:].split(":"), (3600, 60, 1), strict=False)
    east = timedelta(seconds=sum(int(offset[0] + part) * size for part, size in parts))
    if zone.startswith(_FIXED) and len(zone) > len(_FIXED):
        return local._replace(offset=offset, zone=offset)
    year = min(max(local.year, 2), 9998)  # of Python's; the names of offsets do not change far away
    day = min(local.day, 28) if year != local.year else local.day
    at = datetime(year, local.month, day, local.hour, local.minute, local.second, tzinfo=UTC) - east
    return local._replace(offset=offset, zone=at.astimezone(ZoneInfo(zone)).tzname() or "")


def _iso(at: Moment) -> tuple[int, int]:
    """The year and the week by ISO 8601."""
    thursday = at.days - (at.days - 1) % 7 + 3
    year = next(each for each in (at.year + 1, at.year, at.year - 1) if _ordinal(each, 1, 1) <= thursday)
    return year, (thursday - _ordinal(year, 1, 1)) // 7 + 1


def _day_of_year(at: Moment) -> int:
    return at.days - _ordinal(at.year, 1, 1) + 1


def _hour12(at: Moment) -> int:
    return at.hour % 12 or 12


def _weekday(at: Moment) -> int:
    """Monday is 1."""
    return (at.days - 1) % 7 + 1


_NUMBERS: Mapping[str, tuple[int, Callable[[Moment], int]]] = {
    "YYYY": (4, lambda at: at.year), "YYY": (3, lambda at: at.year % 1000), "YY": (2, lambda at: at.year % 100),
    "Y": (1, lambda at: at.year % 10), "IYYY": (4, lambda at: _iso(at)[0]), "IYY": (3, lambda at: _iso(at)[0] % 1000),
    "IY": (2, lambda at: _iso(at)[0] % 100), "I": (1, lambda at: _iso(at)[0] % 10), "MM": (2, lambda at: at.month),
    "DDD": (3, _day_of_year), "DD": (2, lambda at: at.day), "D": (1, lambda at: at.days % 7 + 1),
    "IDDD": (3, lambda at: (_iso(at)[1] - 1) * 7 + _weekday(at)), "ID": (1, _weekday), "W": (1, lambda at: (at.day - 1) // 7 + 1),
    "WW": (2, lambda at: (_day_of_year(at) - 1) // 7 + 1), "IW": (2, lambda at: _iso(at)[1]), "CC": (2, lambda at: (at.year + 99) // 100),
    "J": (1, lambda at: at.days + 1721425), "Q": (1, lambda at: (at.month + 2) // 3), "HH24": (2, lambda at: at.hour),
    "HH12": (2, _hour12), "HH": (2, _hour12), "MI": (2, lambda at: at.minute), "SS": (2, lambda at: at.second),
    "MS": (3, lambda at: at.micros // 1000), "US": (6, lambda at: at.micros), "FF1": (1, lambda at: at.micros // 100_000),
    "FF2": (2, lambda at: at.micros // 10_000), "FF3": (3, lambda at: at.micros // 1000), "FF4": (4, lambda at: at.micros // 100),
    "FF5": (5, lambda at: at.micros // 10), "FF6": (6, lambda at: at.micros), "SSSSS": (1, lambda at: _of_day(at)),
    "SSSS": (1, lambda at: _of_day(at)),
}  # fmt: skip


def _of_day(at: Moment) -> int:
    """Seconds since midnight."""
    return at.hour * 3600 + at.minute * 60 + at.second


_TEXTS: Mapping[str, tuple[int, Callable[[Moment], str]]] = {  # with the width that they are filled up to
    "MONTH": (9, lambda at: _MONTHS[at.month - 1]), "MON": (0, lambda at: _MONTHS[at.month - 1][:3]),
    "DAY": (9, lambda at: _DAYS[(at.days - 1) % 7]), "DY": (0, lambda at: _DAYS[(at.days - 1) % 7][:3]),
    "RM": (4, lambda at: roman(at.month)),
}  # fmt: skip
_ZONES: Mapping[str, Callable[[Moment], str]] = {
    "TZH": lambda at: at.offset[:3], "TZM": lambda at: at.offset[4:6] or "00", "TZ": lambda at: at.zone, "OF": lambda at: at.offset[:6],
}  # fmt: skip
_HALVES = ("A.M.", "P.M.", "AM", "PM")
_ERAS = ("A.D.", "B.C.", "AD", "BC")
_WORDS = sorted((*_NUMBERS, *_TEXTS, *_ZONES, *_HALVES, *_ERAS, "Y,YYY"), key=len, reverse=True)
_PART = re.compile(
    r'"((?:[^"\\]|\\.)*)"|\\(.)|(FM)?(' + "|".join(map(re.escape, _WORDS)) + r")(TH)?|(.)", re.IGNORECASE | re.DOTALL
)


def time_text(value: str, pattern: str, zone: str = "") -> str:
    """A time as text. Raises ValueError.

    Args:
        zone: of a time with a time zone, by DuckDB's name.
    """
    return moment_text(moment_of(value, zone), pattern)


def moment_text(at: Moment, pattern: str) -> str:
    """A time as text; words that are no parts of a time stay."""
    made = []
    for quoted, plain, fill, word, suffix, other in _PART.findall(pattern):
        if word:
            made.append(_part(at, word, suffix, is_plain=bool(fill)))
        else:
            made.append(quoted or plain or other)
    return "".join(made)


def _part(at: Moment, word: str, suffix: str, *, is_plain: bool) -> str:
    upper = word.upper()
    if upper in _NUMBERS:
        width, number = _NUMBERS[upper]
        text = str(number(at)) if is_plain else str(number(at)).rjust(width, "0")
        return text + (ordinal_suffix(number(at), suffix) if suffix else "")
    if upper == "Y,YYY":
        return f"{at.year // 1000},{at.year % 1000:03}" + suffix
    if upper in _TEXTS:
        width, of = _TEXTS[upper]
        text = of(at)
        text = text.upper() if word.isupper() else text if word[0].isupper() and upper != "RM" else text.lower()
        return (text if is_plain else text.ljust(width)) + suffix
    if upper in _ZONES:
        text = _ZONES[upper](at)
        return (text if word.isupper() else text.lower()) + suffix
    is_half = upper in _HALVES
    text = ("P" if is_half and at.hour >= 12 else "A") + ("M" if is_half else "D")
    text = f"{text[0]}.{text[1]}." if "." in word else text
    return (text if word[0].isupper() else text.lower()) + suffix
