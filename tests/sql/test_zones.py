"""The names of time zones: what SET takes, what SHOW tells, and what DuckDB gets. The names are those of PostgreSQL 15."""

from __future__ import annotations

import zoneinfo
from datetime import UTC, datetime, timedelta

import duckdb
import pytest

from barnabas.sql.zones import zone_of, zone_of_interval


@pytest.mark.parametrize(
    ("given", "name", "duckdb_name", "hours"),
    [
        ("utc", "UTC", "UTC", 0), ("europe/zurich", "Europe/Zurich", "Europe/Zurich", 2), ("GMT0", "GMT0", "GMT0", 0),
        ("5.5", "<+05:30>-05:30", "GMT+05:30", 5.5), ("-7", "<-07>+07", "GMT-07:00", -7), ("1e1", "<+10>-10", "GMT+10:00", 10),
        ("15.9", "<+15:54>-15:54", "GMT+15:54", 15.9), ("GMT+2", "GMT+2", "GMT-02:00", -2), ("Etc/GMT+2", "Etc/GMT+2", "Etc/GMT+2", -2),
        ("gmt-02:00", "GMT-02:00", "GMT+02:00", 2), ("+05:30", "+05:30", "GMT-05:30", -5.5), ("ab+5", "AB+5", "GMT-05:00", -5),
        ("<foo>-3:30", "<FOO>-3:30", "GMT+03:30", 3.5), ("0", "<+00>-00", "UTC", 0),
    ],
)  # fmt: skip
def test_a_name_means_a_zone(given: str, name: str, duckdb_name: str, hours: float) -> None:
    zone = zone_of(given)
    assert zone[:2] == (name, duckdb_name)
    assert zone_of(zone.name) == zone
    assert datetime(2026, 7, 1, tzinfo=UTC).astimezone(zone.info).utcoffset() == timedelta(hours=hours)
    assert zone.is_utc == (duckdb_name == "UTC")


@pytest.mark.parametrize(
    "name", ["", "Nowhere", "CEST", "168", "+1530", "abc", "24", "5:60", "localtime", "FOO5BAR", "1e400", "'"]
)
def test_other_names_mean_none(name: str) -> None:
    with pytest.raises((ValueError, OverflowError)):
        zone_of(name)


@pytest.mark.parametrize(
    ("text", "unit", "name"),
    [
        ("+02:00", "HOUR", "<+02>-02"), ("-05:30", "", "<-05:30>+05:30"), ("2 hours", "", "<+02>-02"), ("3", "HOUR", "<+03>-03"),
        ("-1:30:15", "", "<-01:30:15>+01:30:15"),
    ],
)  # fmt: skip
def test_an_interval_means_a_zone(text: str, unit: str, name: str) -> None:
    assert zone_of_interval(text, unit).name == name


@pytest.mark.parametrize("text", ["1 month", "2", "1 day", "", "25:00"])
def test_other_intervals_mean_none(text: str) -> None:
    with pytest.raises(ValueError, match="no time zone"):
        zone_of_interval(text, "")


def test_a_time_that_comes_twice_is_the_second_one_and_one_left_out_counts_from_before() -> None:
    zurich = zone_of("Europe/Zurich")
    found = [
        zurich.moment(datetime.fromisoformat(each)).isoformat()
        for each in ("2026-03-29 02:30", "2026-10-25 02:30", "2026-07-01 02:30")
    ]
    assert found == ["2026-03-29T01:30:00+00:00", "2026-10-25T01:30:00+00:00", "2026-07-01T00:30:00+00:00"]


def test_duckdb_knows_each_zone_with_the_same_clock() -> None:
    names = sorted(zoneinfo.available_timezones() - {"localtime", "Factory"})
    with duckdb.connect() as connection:
        for name in names:
            connection.execute(f"SET TimeZone = '{zone_of(name).duckdb}'")
    at = [datetime(2026, month, 1, tzinfo=UTC) for month in (1, 7)]
    with duckdb.connect() as connection:
        for name in ("Europe/Zurich", "America/New_York", "Asia/Kolkata", "5.5", "GMT+2", "+05:30"):
            zone = zone_of(name)
            connection.execute(f"SET TimeZone = '{zone.duckdb}'")
            found = connection.execute("SELECT ?::timestamptz::timestamp, ?::timestamptz::timestamp", at).fetchall()
            assert found == [tuple(each.astimezone(zone.info).replace(tzinfo=None) for each in at)]
