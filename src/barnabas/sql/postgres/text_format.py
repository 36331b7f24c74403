"""Values in Postgres' text format.

Values come as `values.py` makes them: integers for days, for microseconds, for dates and times; so dates of any year can be shown.
Each writer has the same output as Postgres with its settings `DateStyle = ISO`, `IntervalStyle = postgres`, `bytea_output = hex`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta, tzinfo
from decimal import Decimal
from typing import Any

Write = Callable[[Any], bytes]
Interval = tuple[int, int, int]  # months, days, microseconds
DAY_US = 86_400_000_000
INFINITE_DAYS, INFINITE_US = 2**31 - 1, 2**63 - 1  # DuckDB's infinity
FLOAT8_DIGITS, FLOAT4_DIGITS = 15, 6  # from ten to this power on floats have an exponent
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_IN_RECORDS = frozenset('(),"\\ \t\n\r\v\f')
_QUOTED = frozenset('{}",\\ \t\n\r\v\f')


def boolean(value: bool) -> bytes:
    """t or f."""
    return b"t" if value else b"f"


def integer(value: int) -> bytes:
    """Digits."""
    return b"%d" % value


def string(value: str) -> bytes:
    """As it is."""
    return value.encode(errors="surrogatepass")


def padded(size: int) -> Write:
    """With spaces up to a number of characters."""
    return lambda value: string(value.ljust(size))


def bytea(value: bytes) -> bytes:
    r"""Hexadecimal, after \x."""
    return b"\\x" + value.hex().encode()


def float8(value: float) -> bytes:
    """The shortest digits that give the same float."""
    return _shortest(repr(value), FLOAT8_DIGITS)


def float4(value: Any) -> bytes:
    """The same, of a numpy.float32."""
    return _shortest(str(value), FLOAT4_DIGITS)


def _shortest(shown: str, limit: int) -> bytes:
    """From Python's digits: fixed below ten to the power of `limit`, else with an exponent of at least two digits."""
    if "n" in shown:
        return b"NaN" if "a" in shown else b"-Infinity" if shown[0] == "-" else b"Infinity"
    mantissa, _, exponent = shown.partition("e")
    whole, _, fraction = mantissa.lstrip("-").partition(".")
    if not exponent and len(whole) <= limit and (whole != "0" or not fraction.startswith("0000") or not fraction.strip("0")):
        return shown.removesuffix(".0").encode()
    sign = "-" if mantissa[0] == "-" else ""
    digits = (whole + fraction).lstrip("0")
    power = int(exponent or 0) + len(whole) - 1 - (len(whole + fraction) - len(digits))
    digits = digits.rstrip("0") or "0"
    if -4 <= power < limit:
        if power < 0:
            return f"{sign}0.{'0' * (-power - 1)}{digits}".encode()
        digits = digits.ljust(power + 1, "0")
        return f"{sign}{digits[: power + 1]}.{digits[power + 1 :]}".rstrip(".").encode()
    return f"{sign}{digits[0]}{'.' if digits[1:] else ''}{digits[1:]}e{power:+03d}".encode()


def numeric(value: Decimal | int) -> bytes:
    """All digits, no exponent."""
    return format(value, "f").encode() if isinstance(value, Decimal) else b"%d" % value


def unbound_numeric(value: Decimal) -> bytes:
    """The digits of a numeric without sizes: without zeros at its end, which its type added."""
    shown = format(value, "f")
    return (shown.rstrip("0").rstrip(".") if "." in shown else shown).encode()


def civil(days: int) -> tuple[int, int, int]:
    """Year, month and day of the proleptic Gregorian calendar, of days since 1970; year 0 is 1 BC.

    By counting from March, so that the leap day is the last of its year.
    """
    era, day = divmod(days + 719_468, 146_097)
    year = (day - day // 1_460 + day // 36_524 - day // 146_096) // 365
    of_year = day - (365 * year + year // 4 - year // 100)
    month = (5 * of_year + 2) // 153
    return year + era * 400 + (month >= 10), (month + 2) % 12 + 1, of_year - (153 * month + 2) // 5 + 1


def _date(days: int) -> tuple[str, str]:
    year, month, day = civil(days)
    return f"{year if year > 0 else 1 - year:04d}-{month:02d}-{day:02d}", "" if year > 0 else " BC"


def date(days: int) -> bytes:
    """Year-month-day."""
    if abs(days) == INFINITE_DAYS:
        return b"infinity" if days > 0 else b"-infinity"
    return "".join(_date(days)).encode()


def _time(us: int) -> str:
    seconds, fraction = divmod(us, 1_000_000)
    minutes, second = divmod(seconds, 60)
    hour, minute = divmod(minutes, 60)
    shown = f"{hour:02d}:{minute:02d}:{second:02d}"
    return f"{shown}.{fraction:06d}".rstrip("0") if fraction else shown


def time(us: int) -> bytes:
    """Hours:minutes:seconds, with a fraction if there is one."""
    return _time(us).encode()


def timestamp(us: int) -> bytes:
    """A date and a time."""
    if abs(us) == INFINITE_US:
        return b"infinity" if us > 0 else b"-infinity"
    days, rest = divmod(us, DAY_US)
    shown, era = _date(days)
    return f"{shown} {_time(rest)}{era}".encode()


def timestamptz(zone: tzinfo) -> Write:
    """A date and a time of a zone, with its offset from UTC."""

    def write(us: int) -> bytes:
        if abs(us) == INFINITE_US:
            return timestamp(us)
        offset = offset_s(us, zone)
        days, rest = divmod(us + offset * 1_000_000, DAY_US)
        shown, era = _date(days)
        return f"{shown} {_time(rest)}{shown_offset(offset)}{era}".encode()

    return write


def offset_s(us: int, zone: tzinfo) -> int:
    """Of a zone at a time, in seconds east of UTC; 0 for years that Python does not have."""
    try:
        found = (_EPOCH + timedelta(microseconds=us)).astimezone(zone).utcoffset()
    except (OverflowError, ValueError):
        return 0
    return 0 if found is None else int(found.total_seconds())


def shown_offset(seconds: int) -> str:
    """An offset as short as Postgres shows it: +02, +05:30."""
    minutes, second = divmod(abs(seconds), 60)
    hour, minute = divmod(minutes, 60)
    sign = "-" if seconds < 0 else "+"
    return f"{sign}{hour:02d}" + (f":{minute:02d}" if minute or second else "") + (f":{second:02d}" if second else "")


def interval(value: Interval) -> bytes:
    """Years, months, days, and hours:minutes:seconds; a part after a negative one has a sign."""
    months, days, us = value
    years, months = int(months / 12), months - 12 * int(months / 12)
    shown, negative = [], False
    for count, unit in ((years, "year"), (months, "mon"), (days, "day")):
        if count:
            shown.append(f"{'+' if negative and count > 0 else ''}{count} {unit}{'' if count == 1 else 's'}")
            negative = count < 0
    if us or not shown:
        shown.append(f"{'-' if us < 0 else '+' if negative else ''}{_time(abs(us))}")
    return " ".join(shown).encode()


def array(write: Write) -> Write:
    """Elements in braces; quoted where they would be read as something else."""

    def write_array(values: Sequence[Any]) -> bytes:
        return b"{" + b",".join(map(element, values)) + b"}"

    def element(value: Any) -> bytes:
        if value is None:
            return b"NULL"
        return write_array(value) if isinstance(value, list) else quoted(write(value))

    return write_array


def record(writes: Sequence[Write]) -> Write:
    """Values in brackets: nothing for a null, and quotation marks where a value would be read as something else."""

    def write_record(values: Sequence[Any]) -> bytes:
        return b"(" + b",".join(part(write, value) for write, value in zip(writes, values, strict=True)) + b")"

    def part(write: Write, value: Any) -> bytes:
        if value is None:
            return b""
        shown = write(value)
        if shown and not _IN_RECORDS.intersection(shown.decode(errors="surrogateescape")):
            return shown
        return b'"' + shown.replace(b"\\", b"\\\\").replace(b'"', b'""') + b'"'

    return write_record


def quoted(shown: bytes) -> bytes:
    """An element of an array."""
    text = shown.decode(errors="surrogateescape")
    if text and not _QUOTED.intersection(text) and text.upper() != "NULL":
        return shown
    return b'"' + shown.replace(b"\\", b"\\\\").replace(b'"', b'\\"') + b'"'


def vector(values: Sequence[int]) -> bytes:
    """Numbers with spaces between them (int2vector, oidvector)."""
    return b" ".join(b"%d" % each for each in values)
