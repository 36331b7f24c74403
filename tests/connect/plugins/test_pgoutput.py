"""Messages of pgoutput, and PostgreSQL's texts of values."""

from __future__ import annotations

import datetime
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.connect.errors import ConnectError
from barnabas.connect.plugins.postgres_capture import texts, times
from barnabas.connect.plugins.postgres_capture.pgoutput import (
    Begin,
    Change,
    Column,
    Commit,
    Relation,
    Toast,
    Truncate,
    message_of,
)

ROW = st.lists(st.none() | st.binary(max_size=20) | st.just(Toast.UNCHANGED), max_size=5).map(tuple)


def row(values: tuple[bytes | Toast | None, ...]) -> bytes:
    """A row as the server sends it."""
    return struct.pack(">h", len(values)) + b"".join(map(value, values))


def value(each: bytes | Toast | None) -> bytes:
    """A value as the server sends it."""
    if each is None:
        return b"n"
    return b"u" if isinstance(each, Toast) else b"t" + struct.pack(">i", len(each)) + each


@given(old=ROW, new=ROW, oid=st.integers(0, 2**32 - 1))
def test_changes_come_back(old: tuple[bytes, ...], new: tuple[bytes, ...], oid: int) -> None:
    number = struct.pack(">I", oid)
    assert message_of(b"I" + number + b"N" + row(new)) == Change(oid, "c", None, new)
    assert message_of(b"U" + number + b"N" + row(new)) == Change(oid, "u", None, new)
    assert message_of(b"U" + number + b"K" + row(old) + b"N" + row(new)) == Change(oid, "u", old, new, True)
    assert message_of(b"U" + number + b"O" + row(old) + b"N" + row(new)) == Change(oid, "u", old, new, False)
    assert message_of(b"D" + number + b"O" + row(old)) == Change(oid, "d", old, None, False)


def test_other_messages() -> None:
    assert message_of(b"B" + struct.pack(">qqI", 7, 1_000_000, 9)) == Begin(7, 946_684_801_000_000, 9)
    assert message_of(b"C" + struct.pack(">bqqq", 0, 7, 8, 0)) == Commit(7, 8)
    assert message_of(b"T" + struct.pack(">iBII", 2, 1, 3, 4)) == Truncate((3, 4))
    relation = b"R" + struct.pack(">I", 5) + b"s\0t\0d" + struct.pack(">h", 1) + b"\1id\0" + struct.pack(">Ii", 23, -1)
    assert message_of(relation) == Relation(5, "s", "t", "d", (Column("id", 23, -1, True),))


@given(cut=st.integers(1, 20))
def test_a_message_that_is_cut_off_is_an_error(cut: int) -> None:
    whole = b"I" + struct.pack(">I", 1) + b"N" + row((b"abc", None, b"defgh"))
    with pytest.raises(ConnectError, match="a message of pgoutput"):
        message_of(whole[:-cut])


@pytest.mark.parametrize("data", [b"", b"?", b"I"])
def test_bytes_that_are_no_message_are_an_error(data: bytes) -> None:
    with pytest.raises(ConnectError, match="pgoutput"):
        message_of(data)


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
