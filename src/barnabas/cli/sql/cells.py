"""The values of a column as text, as Postgres writes them.

Columns are Arrow's; this module knows their types by name, so that it need not import pyarrow.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, time, tzinfo
from typing import Any

NUMERIC = ("int", "uint", "float", "double", "halffloat", "decimal")


def is_numeric(kind: Any) -> bool:
    """Whether values of an Arrow type stand at the right."""
    return str(kind).startswith(NUMERIC)


def texts(column: Any, zone: tzinfo = UTC) -> Sequence[str | None]:
    """The values of an Arrow column; null is None.

    Args:
        zone: of timestamps with a time zone.
    """
    kind = str(column.type)
    if kind.startswith(("string", "large_string")):
        found: list[str | None] = column.to_pylist()
        return found
    if kind.startswith(("int", "uint")):
        return [None if each is None else str(each) for each in column.to_pylist()]
    write = _writer(kind, zone)
    try:
        values = column.to_pylist()
    except (ValueError, OverflowError):  # a date that Python does not have
        fallback: list[str | None] = column.cast("string").to_pylist()
        return fallback
    return [None if each is None else write(each) for each in values]


def _writer(kind: str, zone: tzinfo) -> Callable[[Any], str]:
    if kind == "bool":
        return lambda value: "t" if value else "f"
    if kind.startswith("timestamp"):
        return lambda value: timestamp(value, zone)
    if kind.startswith(("binary", "large_binary", "fixed_size_binary")):
        return lambda value: "\\x" + value.hex()
    if kind.startswith("map"):
        return lambda value: _json(dict(value))
    if kind.startswith("month_day_nano"):
        return lambda value: interval(*value)
    return text_of


def text_of(value: Any) -> str:
    """A value whose Python type says what it is."""
    if isinstance(value, bool):
        return "t" if value else "f"
    if isinstance(value, float):
        return _float(value)
    if isinstance(value, datetime):
        return timestamp(value, UTC)
    if isinstance(value, time):
        return _trimmed(value.isoformat())
    if isinstance(value, bytes):
        return "\\x" + value.hex()
    if isinstance(value, list | dict):
        return _json(value)
    return format(value, "f") if type(value).__name__ == "Decimal" else str(value)


def _float(value: float) -> str:
    if value != value:
        return "NaN"
    if value in (float("inf"), float("-inf")):
        return "Infinity" if value > 0 else "-Infinity"
    return repr(value).removesuffix(".0")


def timestamp(value: datetime, zone: tzinfo) -> str:
    """A time; one with a zone is shown in `zone`, with the offset from UTC."""
    if value.tzinfo is None:
        return _trimmed(value.isoformat(" "))
    local = value.astimezone(zone)
    offset = local.strftime("%z")
    shown = offset[:3] + (f":{offset[3:5]}" if offset[3:5] != "00" else "")
    return _trimmed(local.replace(tzinfo=None).isoformat(" ")) + shown


def _trimmed(shown: str) -> str:
    return shown.rstrip("0") if "." in shown else shown


def interval(months: int, days: int, nanoseconds: int) -> str:
    """Years, months, days, and hours:minutes:seconds."""
    years, months = int(months / 12), months - 12 * int(months / 12)
    parts = [f"{n} {unit}{'' if n == 1 else 's'}" for n, unit in ((years, "year"), (months, "mon"), (days, "day")) if n]
    if nanoseconds or not parts:
        seconds, rest = divmod(abs(nanoseconds) // 1000, 1_000_000)
        clock = f"{seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}" + (
            f".{rest:06d}".rstrip("0") if rest else ""
        )
        parts.append(("-" if nanoseconds < 0 else "") + clock)
    return " ".join(parts)


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, default=text_of)
