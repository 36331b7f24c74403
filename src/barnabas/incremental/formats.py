"""Times and numbers as text by a pattern, as Postgres' `to_char` has it. No I/O."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from decimal import ROUND_HALF_UP, Decimal, InvalidOperation
from typing import NamedTuple

_MONTHS = (
    "January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November", "December",
)  # fmt: skip
_DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_MOMENT = re.compile(
    r"(?:(\d{1,6})-(\d\d)-(\d\d)(?: \(BC\))?)?[ T]?(?:(\d\d):(\d\d):(\d\d)(?:\.(\d{1,9}))?)?(?:[+-]\d\d(?::?\d\d)*)?\Z"
)
_ROMAN = tuple(
    zip((1000, 900, 500, 400, 100, 90, 50, 40, 10, 9, 5, 4, 1), "M CM D CD C XC L XL X IX V IV I".split(), strict=True)
)


class Moment(NamedTuple):
    """A date with a time, or the parts of an interval.

    Args:
        days: since 0001-01-01, which is 1; 0 for an interval.
    """

    year: int
    month: int
    day: int
    hour: int
    minute: int
    second: int
    micros: int
    days: int


def _ordinal(year: int, month: int, day: int) -> int:
    """Days of the calendar up to a date; 0001-01-01 is 1. Python's dates end with the year 9999."""
    before = year - 1
    months = (0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334)
    leap = month > 2 and (year % 4 == 0 and (year % 100 != 0 or year % 400 == 0))
    return before * 365 + before // 4 - before // 100 + before // 400 + months[month - 1] + leap + day


def moment_of(text: str) -> Moment:
    """The parts of a date or a time, as DuckDB writes them. Raises ValueError."""
    found = _MOMENT.match(text)
    if found is None:
        raise ValueError(f"to_char cannot read the time {text!r}")
    year, month, day = (int(each or 1) for each in found.groups()[:3])
    hour, minute, second = (int(each or 0) for each in found.groups()[3:6])
    micros = int((found[7] or "0").ljust(6, "0")[:6])
    return Moment(year, month, day, hour, minute, second, micros, _ordinal(year, month, day))


def _iso(at: Moment) -> tuple[int, int]:
    """The year and the week by ISO 8601."""
    thursday = at.days - (at.days - 1) % 7 + 3
    year = next(each for each in (at.year + 1, at.year, at.year - 1) if _ordinal(each, 1, 1) <= thursday)
    return year, (thursday - _ordinal(year, 1, 1)) // 7 + 1


def _day_of_year(at: Moment) -> int:
    return at.days - _ordinal(at.year, 1, 1) + 1


def _hour12(at: Moment) -> int:
    return at.hour % 12 or 12


def _roman(number: int) -> str:
    made = ""
    for value, letters in _ROMAN:
        made += letters * (number // value)
        number %= value
    return made


_NUMBERS: Mapping[str, tuple[int, Callable[[Moment], int]]] = {
    "YYYY": (4, lambda at: at.year), "YYY": (3, lambda at: at.year % 1000), "YY": (2, lambda at: at.year % 100),
    "Y": (1, lambda at: at.year % 10), "IYYY": (4, lambda at: _iso(at)[0]), "IYY": (3, lambda at: _iso(at)[0] % 1000),
    "IY": (2, lambda at: _iso(at)[0] % 100), "I": (1, lambda at: _iso(at)[0] % 10), "MM": (2, lambda at: at.month),
    "DDD": (3, _day_of_year), "DD": (2, lambda at: at.day), "D": (1, lambda at: at.days % 7 + 1), "IDDD": (3, lambda at: (_iso(at)[1] - 1) * 7 + (at.days - 1) % 7 + 1),
    "ID": (1, lambda at: (at.days - 1) % 7 + 1), "W": (1, lambda at: (at.day - 1) // 7 + 1), "WW": (2, lambda at: (_day_of_year(at) - 1) // 7 + 1),
    "IW": (2, lambda at: _iso(at)[1]), "CC": (2, lambda at: (at.year + 99) // 100), "J": (1, lambda at: at.days + 1721425), "Q": (1, lambda at: (at.month + 2) // 3),
    "HH24": (2, lambda at: at.hour), "HH12": (2, _hour12), "HH": (2, _hour12), "MI": (2, lambda at: at.minute), "SS": (2, lambda at: at.second),
    "MS": (3, lambda at: at.micros // 1000), "US": (6, lambda at: at.micros), "FF1": (1, lambda at: at.micros // 100_000), "FF2": (2, lambda at: at.micros // 10_000),
    "FF3": (3, lambda at: at.micros // 1000), "FF4": (4, lambda at: at.micros // 100), "FF5": (5, lambda at: at.micros // 10), "FF6": (6, lambda at: at.micros),
    "SSSSS": (1, lambda at: at.hour * 3600 + at.minute * 60 + at.second), "SSSS": (1, lambda at: at.hour * 3600 + at.minute * 60 + at.second),
}  # fmt: skip
_TEXTS: Mapping[str, tuple[int, Callable[[Moment], str]]] = {  # with the width that they are filled up to
    "MONTH": (9, lambda at: _MONTHS[at.month - 1]), "MON": (0, lambda at: _MONTHS[at.month - 1][:3]),
    "DAY": (9, lambda at: _DAYS[(at.days - 1) % 7]), "DY": (0, lambda at: _DAYS[(at.days - 1) % 7][:3]),
    "RM": (4, lambda at: _roman(at.month)),
}  # fmt: skip
_ZONES = {"TZH": "+00", "TZM": "00", "TZ": "", "OF": "+00"}
_HALVES = ("A.M.", "P.M.", "AM", "PM")
_ERAS = ("A.D.", "B.C.", "AD", "BC")
_WORDS = sorted((*_NUMBERS, *_TEXTS, *_ZONES, *_HALVES, *_ERAS, "Y,YYY"), key=len, reverse=True)
_PART = re.compile(
    r'"((?:[^"\\]|\\.)*)"|\\(.)|(FM)?(' + "|".join(map(re.escape, _WORDS)) + r")(TH)?|(.)", re.IGNORECASE | re.DOTALL
)


def time_text(value: str, pattern: str) -> str:
    """A time as text. Raises ValueError."""
    return moment_text(moment_of(value), pattern)


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
        return text + (_ordinal_suffix(number(at), suffix) if suffix else "")
    if upper == "Y,YYY":
        return f"{at.year // 1000},{at.year % 1000:03}" + suffix
    if upper in _TEXTS:
        width, of = _TEXTS[upper]
        text = of(at)
        text = text.upper() if word.isupper() else text if word[0].isupper() and upper != "RM" else text.lower()
        return (text if is_plain else text.ljust(width)) + suffix
    if upper in _ZONES:
        return (_ZONES[upper] if word.isupper() else _ZONES[upper].lower()) + suffix
    is_half = upper in _HALVES
    text = ("P" if is_half and at.hour >= 12 else "A") + ("M" if is_half else "D")
    text = f"{text[0]}.{text[1]}." if "." in word else text
    return (text if word[0].isupper() else text.lower()) + suffix


def _ordinal_suffix(number: int, suffix: str) -> str:
    """`st`, `nd`, `rd` or `th` behind a number."""
    made = "th" if number % 100 in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return made.upper() if suffix.isupper() else made


def number_text(value: str, pattern: str) -> str:
    """A number as text. Raises ValueError: it is no number."""
    try:
        number = Decimal(value)
    except InvalidOperation:
        raise ValueError(f"to_char cannot read the number {value!r}") from None
    if not number.is_finite():
        return re.sub("[90]", "#", pattern)
    upper = pattern.upper()
    if "RN" in upper:
        whole = int(number.to_integral_value(ROUND_HALF_UP))
        text = _roman(whole) if 0 < whole < 4000 else "#" * 15
        text = text if "RN" in pattern else text.lower()
        return text if upper.startswith("FM") else text.rjust(15)
    if "EEEE" in upper:
        return _scientific(number, upper)
    return _filled(number, _Picture(pattern))


def _scientific(number: Decimal, upper: str) -> str:
    digits = len(re.findall("[90]", upper.partition(".")[2]))
    place = number.adjusted() if number else 0
    mantissa = str(number.scaleb(-place).quantize(Decimal(1).scaleb(-digits), ROUND_HALF_UP))
    exponent = f"{place:+d}"
    sign = "" if number < 0 or upper.startswith("FM") else " "
    return f"{sign}{mantissa}e{exponent[0]}{exponent[1:].rjust(2, '0')}"


class _Picture:
    """A pattern of a number: the places before and behind the point, and the words around them."""

    def __init__(self, pattern: str) -> None:
        upper = pattern.upper()
        self.is_plain = upper.startswith("FM")
        self.body = pattern[2:] if self.is_plain else pattern
        self.words = re.findall(r'"[^"]*"|MI|PL|SG|PR|TH|[90DSGLV.,]|.', self.body, re.IGNORECASE | re.DOTALL)
        known = [each.upper() for each in self.words]
        point = next((at for at, each in enumerate(known) if each in (".", "D")), len(known))
        self.shift = sum(each in "90" for each in known[known.index("V") :]) if "V" in known else 0
        self.before = sum(each in ("9", "0") for each in known[:point])
        self.behind = sum(each in ("9", "0") for each in known[point:])
        self.zero = next((at for at, each in enumerate(known[:point]) if each == "0"), None)
        self.has_sign = bool({"S", "SG", "MI", "PR"} & set(known))
        self.last_zero = max((at for at, each in enumerate(known) if each == "0" and at > point), default=point)


def _filled(number: Decimal, picture: _Picture) -> str:
    """The digits in the places of a pattern."""
    scaled = (number.scaleb(picture.shift)).quantize(Decimal(1).scaleb(-picture.behind), ROUND_HALF_UP)
    is_negative = scaled < 0
    whole, _, fraction = f"{abs(scaled):f}".partition(".")
    whole = "" if whole == "0" and picture.behind else whole
    is_over = len(whole) > picture.before
    digits = ("#" * picture.before) if is_over else whole.rjust(picture.before)
    rest = "#" * picture.behind if is_over else fraction
    made, seen, started, place, is_behind, sign_at = [], 0, False, 0, False, None
    for at, word in enumerate(picture.words):
        upper = word.upper()
        if upper in ("9", "0") and not is_behind:
            digit = digits[seen]
            seen += 1
            if digit == " " and picture.zero is not None and at >= picture.zero:
                digit = "0"
            if digit != " " and not started:
                started, sign_at = True, len(made)
            made.append(digit if digit != " " else ("" if picture.is_plain else " "))
        elif upper in ("9", "0"):
            made.append(rest[place])
            place += 1
        elif upper in (".", "D"):
            sign_at = len(made) if sign_at is None else sign_at
            is_behind = started = True
            made.append(".")
        elif upper in (",", "G"):
            made.append("," if started else ("" if picture.is_plain else " "))
        elif upper == "MI":
            made.append("-" if is_negative else ("" if picture.is_plain else " "))
        elif upper == "PL":
            made.append(("" if picture.is_plain else " ") if is_negative else "+")
        elif upper == "SG":
            made.append("-" if is_negative else "+")
        elif upper in ("S", "V", "PR"):
            made.append("\0" if upper == "S" else "")
        elif upper == "L":
            made.append("" if picture.is_plain else " ")
        elif upper == "TH":
            made.append("" if is_negative or is_over else _ordinal_suffix(int(whole or 0), word))
        else:
            made.append(word.strip('"') if word.startswith('"') else word)
    if picture.is_plain and is_behind and not is_over:
        _without_zeros(made, picture)
        if not any(each.isdigit() for each in made) and picture.before:
            made[next(at for at, each in enumerate(made) if each == ".") - 1] = "0"
    return _signed(made, picture, len(made) if sign_at is None else sign_at, is_negative=is_negative)


def _without_zeros(made: list[str], picture: _Picture) -> None:
    """Drop zeros at the end that the pattern does not ask for."""
    for at in range(len(made) - 1, -1, -1):
        if picture.words[at] not in ("9", "0"):
            if picture.words[at] in (".", "D", "d"):
                break
            continue
        if at <= picture.last_zero or made[at] != "0":
            break
        made[at] = ""


def _signed(made: list[str], picture: _Picture, at: int, *, is_negative: bool) -> str:
    known = [each.upper() for each in picture.words]
    if "S" in known:
        sign, place = "-" if is_negative else "+", known.index("S")
        made[place] = ""
        text = list(made)
        text.insert(at if place < at else place + 1, sign)
        return "".join(text)
    if "PR" in known:
        text = "".join([*made[:at], "<" if is_negative else ("" if picture.is_plain else " "), *made[at:]])
        return text + (">" if is_negative else ("" if picture.is_plain else " "))
    if picture.has_sign:
        return "".join(made)
    sign = "-" if is_negative else "" if picture.is_plain else " "
    return "".join([*made[:at], sign, *made[at:]])
