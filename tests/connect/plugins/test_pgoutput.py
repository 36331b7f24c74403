"""Messages of pgoutput, and PostgreSQL's texts of values."""

from __future__ import annotations

import datetime
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.connect.errors import ConnectError
from barnabas.connect.plugins.postgres_capture import texts, times
from barnabas.connect.plugins.postgres_capture.pgoutput import Column, Relation, relation_of, truncated_of


def test_the_messages_of_tables() -> None:
    assert truncated_of(b"T" + struct.pack(">iBII", 2, 1, 3, 4)) == (3, 4)
    relation = b"R" + struct.pack(">I", 5) + b"s\0t\0d" + struct.pack(">h", 1) + b"\1id\0" + struct.pack(">Ii", 23, -1)
    assert relation_of(relation) == Relation(5, "s", "t", "d", (Column("id", 23, -1, True),))
    for end in range(1, len(relation)):
        with pytest.raises(ConnectError, match="a message of pgoutput cannot be read"):
            relation_of(relation[:end])


@given(st.datetimes(timezones=st.just(datetime.UTC)))
def test_timestamps_have_the_microseconds_of_python(moment: datetime.datetime) -> None:
    expected = (moment - datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)) // datetime.timedelta(microseconds=1)
    assert times.date_us(moment.replace(tzinfo=None).isoformat(" ")) == expected


@pytest.mark.parametrize(
    ("text", "micros"),
    [
        ("PT0S", 0),
        ("P1D", 86_400_000_000),
        ("PT-1.5S", -1_500_000),
        ("P1Y", 31_557_600_000_000),
        ("P-1M1DT2H", -2_536_200_000_000),
    ],
)
def test_intervals(text: str, micros: int) -> None:
    assert times.interval_us(text) == micros


@pytest.mark.parametrize(
    ("text", "elements"),
    [
        ("{}", []),
        ('{1,NULL,"NULL",""}', ["1", None, "NULL", ""]),
        ('{"a,b","c\\"d","e\\\\f"}', ["a,b", 'c"d', "e\\f"]),
        ("{{1,2},{3,4}}", ["1", "2", "3", "4"]),
        ("[0:1]={5,6}", ["5", "6"]),
    ],
)
def test_arrays(text: str, elements: list[str | None]) -> None:
    assert texts.elements(text) == elements


def test_pairs() -> None:
    assert texts.pairs('"a"=>"1", "b\\"c"=>NULL') == {"a": "1", 'b"c': None}
