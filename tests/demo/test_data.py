"""The input as the package has it."""

from __future__ import annotations

import pandas as pd
import pytest

from demo import data
from demo.data import Slice

YEAR = Slice()


def test_the_year_is_whole() -> None:
    assert len(data.flights(YEAR)) == 336_776
    assert len(data.weather(YEAR)) == 26_115


@pytest.mark.parametrize("read", [data.flights, data.weather])
def test_records_come_in_the_order_of_their_time(read: object) -> None:
    assert callable(read)
    frame = read(Slice(30))
    assert frame["scheduled"].is_monotonic_increasing
    days = [day for day, _ in data.by_day(frame)]
    assert days == sorted(days)
    assert sum(len(rows) for _, rows in data.by_day(frame)) == len(frame)


def test_an_airport_has_one_report_an_hour_also_when_the_clocks_go_back() -> None:
    assert not data.weather(YEAR).duplicated(["origin", "time_hour"]).any()


def test_the_hour_of_a_flight_is_its_wall_clock_hour_in_new_york() -> None:
    flights = data.table("flights")
    assert (flights["time_hour"].dt.tz_convert("America/New_York").dt.hour == flights["hour"]).all()


def test_a_slice_ends_before_the_closing_markers() -> None:
    part = Slice(2)
    assert data.flights(part)["time_hour"].max() < part.end < part.closing
    assert part.end == pd.Timestamp("2013-01-03", tz="UTC")


def test_nothing_is_lost_between_two_slices() -> None:
    both = Slice(3, YEAR.start), Slice(4, YEAR.start + pd.Timedelta(days=3))
    assert sum(len(data.flights(part)) for part in both) == len(data.flights(Slice(7)))
