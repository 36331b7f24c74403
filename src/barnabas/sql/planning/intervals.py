"""Text of intervals as SQL writes it: `'1 02:03:04' DAY TO SECOND`, `'1-2' YEAR TO MONTH`, `'1 2:03'`."""

from __future__ import annotations

import re
from typing import Any

from sqlglot import exp

from barnabas.sql.interface import SqlError
from barnabas.sql.states import INVALID_DATETIME

_UNITS = ("DAY", "HOUR", "MINUTE", "SECOND")
_SHORT = {
    **dict.fromkeys(("Y", "YR", "YRS"), "YEAR"), **dict.fromkeys(("MON", "MONS"), "MONTH"), "W": "WEEK", "D": "DAY",
    **dict.fromkeys(("H", "HR", "HRS"), "HOUR"), **dict.fromkeys(("M", "MIN", "MINS"), "MINUTE"),
    **dict.fromkeys(("S", "SEC", "SECS"), "SECOND"), **dict.fromkeys(("MS", "MSEC", "MSECS"), "MILLISECOND"),
    **dict.fromkeys(("US", "USEC", "USECS"), "MICROSECOND"),
}  # fmt: skip
_YEARS = re.compile(r"([+-]?)(\d{1,9})-(\d{1,2})\Z")
_DAYS = re.compile(r"([+-]?)(\d{1,9}) +([+-]?)(\d+)(?::(\d+))?(?::(\d+(?:\.\d+)?))?\Z")
_ISO = re.compile(
    r"P(?:(-?\d+)Y)?(?:(-?\d+)M)?(?:(-?\d+)W)?(?:(-?\d+)D)?(?:T(?:(-?\d+)H)?(?:(-?\d+)M)?(?:(-?\d+(?:\.\d+)?)S)?)?\Z"
)
_TIME = re.compile(r"([+-]?)(\d+)(?::(\d+))?(?::(\d+(?:\.\d+)?))?\Z")


def read_intervals(tree: Any) -> None:
    """Rewrite the intervals of a tree that have two units, or several parts in one text. Raises SqlError 22007."""
    for node in list(tree.find_all(exp.Interval)):
        unit = node.args.get("unit")
        if isinstance(unit, exp.Var) and unit.name.upper() in _SHORT:
            node.set("unit", exp.var(_SHORT[unit.name.upper()]))
        if isinstance(node.args.get("unit"), exp.IntervalSpan):
            _read_span(node, node.args["unit"])
    for node in list(tree.find_all(exp.Cast)):
        literal = node.this
        if str(getattr(node.to.this, "value", "")) == "INTERVAL" and isinstance(literal, exp.Literal) and literal.is_string:
            text = re.sub(r"([+-])\s+(?=\d)", r"\1", literal.name.strip())
            node.set("this", exp.Literal.string(text))
            found = _years(text) or (_days(text) if _DAYS.match(text) else _iso(text))
            if found is not None:
                node.set("this", exp.Literal.string(found))


def _read_span(node: Any, span: Any) -> None:
    value, is_negative = node.this, False
    while isinstance(value, (exp.Neg, exp.Paren)):
        is_negative, value = is_negative != isinstance(value, exp.Neg), value.this
    if not isinstance(value, exp.Literal):
        return
    first, last = span.this.name.upper(), span.expression.name.upper()
    text = value.name.strip()
    found = _years(text) if (first, last) == ("YEAR", "MONTH") else _of_units(text, first, last)
    if found is None:
        raise SqlError(INVALID_DATETIME, f'invalid input syntax for type interval: "{text[:100]}" as {first} TO {last}')
    made: Any = exp.cast(exp.Literal.string(found), "interval")
    node.replace(exp.Paren(this=exp.Neg(this=made)) if is_negative else made)


def _years(text: str) -> str | None:
    found = _YEARS.match(text)
    return None if found is None else f"{found[1]}{found[2]} years {found[1]}{found[3]} months"


def _iso(text: str) -> str | None:
    """`P1Y2M3DT4H5M6S`, as ISO 8601 has it."""
    found = _ISO.match(text)
    if found is None or not any(found.groups()):
        return None
    units = ("years", "months", "weeks", "days", "hours", "minutes", "seconds")
    return " ".join(f"{number} {unit}" for number, unit in zip(found.groups(), units, strict=True) if number)


def _days(text: str) -> str | None:
    found = _DAYS.match(text)
    if found is None:
        return None
    sign = found[3] or found[1]
    return f"{found[1]}{found[2]} days {sign}{int(found[4]):02d}:{int(found[5] or 0):02d}:{found[6] or '00'}"


def _of_units(text: str, first: str, last: str) -> str | None:
    if first not in _UNITS or last not in _UNITS:
        return None
    if first == "DAY":
        return _days(text)
    found = _TIME.match(text)
    if found is None:
        return None
    numbers = [each for each in found.groups()[1:] if each is not None]
    units = _UNITS[_UNITS.index(first) : _UNITS.index(last) + 1]
    if len(numbers) != len(units):
        return None
    return " ".join(f"{found[1]}{number} {unit.lower()}s" for number, unit in zip(numbers, units, strict=True))
