"""Intervals as text by a pattern. No I/O."""

from __future__ import annotations

import re

from barnabas.incremental.time_formats import Moment, moment_text

_PARTS = re.compile(
    r"(?:(-?\d+) years?)?\s*(?:(-?\d+) months?)?\s*(?:(-?\d+) days?)?\s*(?:(-)?(\d+):(\d\d):(\d\d)(?:\.(\d{1,6}))?)?\Z"
)


def interval_of(value: str, pattern: str) -> str:
    """`to_char` of an interval as DuckDB writes it. Raises ValueError."""
    found = _PARTS.match(value)
    if found is None:
        raise ValueError(f"to_char cannot read the interval {value!r}")
    years, months, days = (int(each or 0) for each in found.groups()[:3])
    sign = -1 if found[4] else 1
    hour, minute, second = (sign * int(each or 0) for each in found.groups()[4:7])
    micros = sign * int((found[8] or "0").ljust(6, "0"))
    return moment_text(Moment(years, months, days, hour, minute, second, micros, 0), pattern)
