"""Formats of SimpleDateFormat in Python."""

from __future__ import annotations

import datetime
import re

from barnabas.connect.config_types import ConfigError

_PARTS = re.compile(r"'((?:[^']|'')*)'|([A-Za-z])\2*|[^A-Za-z']+")
_MONTHS = (
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
)
_DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")


def date_text(moment: datetime.datetime, form: str) -> str:
    """A time in UTC in a format of SimpleDateFormat. Raises ConfigError for a letter that is unknown."""
    return "".join(_part(moment, match) for match in _PARTS.finditer(form))


def _part(moment: datetime.datetime, match: re.Match[str]) -> str:
    text, letter = match[0], match[2]
    if match[1] is not None:
        return match[1].replace("''", "'") or "'"
    if letter is None:
        return text
    width = len(text)
    hour = moment.hour % 12
    numbers = {
        "y": moment.year, "u": moment.isoweekday(), "M": moment.month, "L": moment.month, "d": moment.day, "H": moment.hour,
        "k": moment.hour or 24, "K": hour, "h": hour or 12, "m": moment.minute, "s": moment.second,
        "S": moment.microsecond // 1000, "D": moment.timetuple().tm_yday, "w": _week(moment)[1], "Y": _week(moment)[0],
    }  # fmt: skip
    match letter:
        case "y" | "Y" if width == 2:
            return f"{numbers[letter] % 100:02d}"
        case "M" | "L" if width >= 3:
            return _MONTHS[moment.month - 1][: 3 if width == 3 else None]
        case "E":
            return _DAYS[moment.weekday()][: 3 if width < 4 else None]
        case "a":
            return "AM" if moment.hour < 12 else "PM"
        case "G":
            return "AD"
        case "z":
            return "UTC" if width < 4 else "Coordinated Universal Time"
        case "Z":
            return "+0000"
        case "X":
            return "Z"
    if letter not in numbers:
        raise ConfigError(f"the format has the letter {letter}, which SimpleDateFormat does not know")
    return f"{numbers[letter]:0{width}d}"


def _week(moment: datetime.datetime) -> tuple[int, int]:
    """The year and number of the week, as in the United States: weeks begin on Sunday, and that of 1 January is the first."""
    last = moment.date() + datetime.timedelta(days=6 - moment.isoweekday() % 7)
    begin = datetime.date(last.year, 1, 1)
    return last.year, ((last - begin).days + 7) // 7


_READ = {
    "yyyy": "%Y", "yy": "%y", "y": "%Y", "MM": "%m", "M": "%m", "MMM": "%b", "MMMM": "%B", "dd": "%d", "d": "%d", "HH": "%H",
    "H": "%H", "hh": "%I", "h": "%I", "mm": "%M", "m": "%M", "ss": "%S", "s": "%S", "SSSSSS": "%f", "a": "%p", "E": "%a",
    "EEE": "%a", "EEEE": "%A", "Z": "%z", "z": "%Z", "zzz": "%Z", "DDD": "%j", "D": "%j",
    **{"S" * width: "%f" for width in (1, 2, 3)}, **{"X" * width: "%z" for width in (1, 2, 3)},
}  # fmt: skip


def strptime_form(form: str) -> str:
    """A format of SimpleDateFormat as Python reads it. Raises ConfigError for a part that cannot be read."""
    made = []
    for match in _PARTS.finditer(form):
        if match[1] is not None:
            made.append((match[1].replace("''", "'") or "'").replace("%", "%%"))
        elif match[2] is None:
            made.append(match[0].replace("%", "%%"))
        elif match[0] in _READ:
            made.append(_READ[match[0]])
        else:
            raise ConfigError(f"the format has {match[0]}, which cannot be read here")
    return "".join(made)
