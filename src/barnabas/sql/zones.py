"""The time zone of a session: the names that Postgres takes, and what DuckDB calls them.

| name | example | DuckDB's name |
|---|---|---|
| of the IANA's list, in any case | `europe/zurich` | `Europe/Zurich` |
| hours east of UTC | `5.5` | `GMT+05:30` |
| POSIX: any name, and hours **west** of UTC | `GMT-2`, `<+05:30>-05:30`, `+05:30` | `GMT+02:00`, `GMT+05:30`, `GMT-05:30` |

DuckDB reads `GMT+2` as east of UTC, and Postgres as west. So a name goes to DuckDB only as `Zone.duckdb`.
"""

from __future__ import annotations

import re
import zoneinfo
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from functools import cache, lru_cache
from typing import NamedTuple

from barnabas.sql.postgres.text_format import shown_offset

DAY_S = 86_400
_NUMBER = re.compile(r"\s*[+-]?(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?\s*\Z", re.IGNORECASE | re.ASCII)
_POSIX = re.compile(r"(?:<([A-Za-z0-9+:-]+)>|([A-Za-z]{2,}))?([+-]?)(\d{1,2})(?::(\d\d))?(?::(\d\d))?\Z", re.ASCII)
_INTERVAL = re.compile(r"\s*([+-]?)(\d{1,2})(?::(\d\d)(?::(\d\d))?| *(?:hours?|hrs?|h)?)\s*\Z", re.IGNORECASE | re.ASCII)


class Zone(NamedTuple):
    """A time zone.

    Args:
        name: as SHOW tells it; it means the same zone when it is set again.
        duckdb: DuckDB's name.
        info: Python's.
    """

    name: str
    duckdb: str
    info: tzinfo

    @property
    def is_utc(self) -> bool:
        """Whether the clock of UTC is that of the zone, at all times."""
        return self.info is UTC

    def moment(self, local: datetime) -> datetime:
        """The moment of a time of the zone's clock, in UTC. As in Postgres, a time that comes twice is the second one, and a time that
        the clock leaves out counts from before."""
        offsets = [local.replace(tzinfo=self.info, fold=fold).utcoffset() or timedelta() for fold in (0, 1)]
        return (local - min(offsets)).replace(tzinfo=UTC)


UTC_ZONE = Zone("UTC", "UTC", UTC)
_OF_UTC = frozenset(("UTC", "Etc/UTC", "UCT", "Etc/UCT", "Zulu", "Etc/Zulu", "Universal", "Etc/Universal", "GMT", "Etc/GMT"))


@lru_cache(512)
def zone_of(name: str) -> Zone:
    """The zone of a name. Raises ValueError for an unknown one."""
    if name == "UTC":
        return UTC_ZONE
    if _NUMBER.match(name):
        return zone_east(int(float(name) * 3600))
    known = _names().get(name.lower())
    if known is not None:
        return Zone(known, "UTC", UTC) if known in _OF_UTC else Zone(known, known, zoneinfo.ZoneInfo(known))
    found = _POSIX.match(name)
    if found is None:
        raise ValueError(f"no time zone: {name!r}")
    west_s = _seconds(found[3], found[4], found[5], found[6])
    marked = f"<{found[1].upper()}>" if found[1] else (found[2] or "").upper()
    return _fixed(marked + name[found.start(3) :], -west_s)


def zone_east(seconds: int) -> Zone:
    """The zone that is so far east of UTC. Raises ValueError for a day or more."""
    return _fixed(f"<{shown_offset(seconds)}>{'-' if seconds >= 0 else '+'}{shown_offset(abs(seconds))[1:]}", seconds)


def zone_of_interval(text: str, unit: str) -> Zone:
    """The zone of `SET TIME ZONE INTERVAL 'text' unit`. Raises ValueError.

    Args:
        unit: the first word behind the text, in upper case; empty if there is none.
    """
    found = _INTERVAL.match(text)
    if found is None or (text.strip().lstrip("+-").isdigit() and unit != "HOUR"):
        raise ValueError(f"no time zone: {text!r}")
    return zone_east(_seconds(*found.groups()))


def _seconds(sign: str, *parts: str | None) -> int:
    hours, minutes, seconds = (int(each or 0) for each in parts)
    if minutes > 59 or seconds > 59:
        raise ValueError(f"no time zone: {parts!r}")
    return (-1 if sign == "-" else 1) * (hours * 3600 + minutes * 60 + seconds)


def _fixed(name: str, east_s: int) -> Zone:
    if abs(east_s) >= DAY_S:
        raise ValueError(f"no time zone: {name!r}")
    if not east_s:
        return Zone(name, "UTC", UTC)
    return Zone(name, f"GMT{_long_offset(east_s)}", timezone(timedelta(seconds=east_s)))


def _long_offset(seconds: int) -> str:
    shown = shown_offset(seconds)
    return shown if ":" in shown else f"{shown}:00"


@cache
def _names() -> Mapping[str, str]:
    """The names of the IANA's list, by themselves in lower case."""
    return {each.lower(): each for each in zoneinfo.available_timezones() - {"localtime", "Factory"}}
