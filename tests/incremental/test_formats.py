"""`to_char` of numbers, times and intervals: the texts are those of Postgres 15."""

from __future__ import annotations

import pytest

from barnabas.incremental.natives import base64_lines, escaped, shown
from barnabas.incremental.number_formats import MOST_PATTERN

NUMBERS = [
    ("1234.5", "9,999.99", " 1,234.50"),
    ("-12.3", "9,999.99", "   -12.30"),
    ("0", "FM999.99", "0."),
    ("0.5", "0.99", " 0.50"),
    ("12", "000", " 012"),
    ("1000", "000", " ###"),
    ("-12.3", "S99.9", "-12.3"),
    ("-12.3", "9.99S", "#.##-"),
    ("-1", "MI999", "-  1"),
    ("-1", "999PR", "  <1>"),
    ("3.1", "PL99", "+  3"),
    ("485", "RN", "        CDLXXXV"),
    ("4000", "RN", "###############"),
    ("3", "9th", " 3rd"),
    ("12.3", "99V9", " 123"),
    ("1234.5", "9.999EEEE", " 1.235e+03"),
    ("1234567", "FM9,999,999", "1,234,567"),
    ("7", '9" km"', " 7 km"),
    ("1e300", "999", " ###"),
    ("12345678901234567890123456789.123456789", "FM" + "9" * 29 + ".9", "12345678901234567890123456789.1"),
]
TIMES = [
    ("2024-05-06 07:08:09.123456", "HH12:MI:SS.US am", "07:08:09.123456 am"),
    ("2024-05-06 17:08:09", "HH:MI P.M.", "05:08 P.M."),
    ("2024-05-06 00:00:00", "Day, FMDDth FMMonth YYYY", "Monday   , 6th May 2024"),
    ("2023-12-31 23:59:59", "IYYY-IW-ID DDD Q J", "2023-52-7 365 4 2460310"),
    ("2021-01-03", "IYYY IW D CC W", "2020 53 1 21 1"),
    ("0099-01-01", "YYYY YYY YY Y,YYY RM", "0099 099 99 0,099 I   "),
    ("2024-05-06 07:08:09", '"at" HH24h SSSS', "at 07h 25689"),
    ("2024-05-06 07:08:09+00", "MON mon Mon TZH", "MAY may May +00"),
]


CASES = [*(("DECIMAL(18,3)", *each) for each in NUMBERS), *(("TIMESTAMP", *each) for each in TIMES)]


@pytest.mark.parametrize(("kind", "value", "pattern", "expected"), CASES)
def test_a_text(kind: str, value: str, pattern: str, expected: str) -> None:
    assert shown(kind, value, pattern) == expected


def test_an_interval() -> None:
    assert shown("INTERVAL", "2 days 26:05:07.5", "DD HH24:MI:SS MS") == "02 26:05:07 500"
    assert shown("INTERVAL", "1 year 2 months", "YYYY-MM") == "0001-02"


def test_what_is_no_number_or_no_time_is_an_error() -> None:
    with pytest.raises(ValueError, match="cannot read the number 'x'"):
        shown("VARCHAR", "x", "999")
    with pytest.raises(ValueError, match="cannot read the time"):
        shown("DATE", "2024", "YYYY")
    with pytest.raises(ValueError, match="more than 1000 characters"):
        shown("DOUBLE", "1", "9" * (MOST_PATTERN + 1))
    assert shown("DOUBLE", "inf", "9.9") == "#.#"


def test_bytes_as_text() -> None:
    assert escaped(b"a\x00\\\xff") == "a\\000\\\\\\377"
    assert base64_lines(b"x" * 60) == "eHh4" * 19 + "\n" + "eHh4"
