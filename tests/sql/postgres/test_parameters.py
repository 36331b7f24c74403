"""Values of a client: those that Postgres takes, and any others, which are errors."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from functools import partial
from struct import pack
from typing import Any
from uuid import UUID

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from barnabas.sql.interface import SqlError
from barnabas.sql.postgres.array_text import split_array
from barnabas.sql.postgres.binary_copy import lines_in
from barnabas.sql.postgres.cursors import action_of
from barnabas.sql.postgres.messages import BINARY, TEXT
from barnabas.sql.postgres.parameters import value_of
from barnabas.sql.postgres.types import BY_OID, ELEMENTS, TYPES, arrow_type

WORDS = [
    b"1", b"-", b"1e999999999", b"{", b"{{1,2},{3}}", b'{"a\\', b"NULL", b"infinity", b"0001-01-01 BC", b"2024-02-30", b"\\x0", b"\\777",
    b"24:00:00", b"NaN",
]  # fmt: skip
TOKENS = [
    "declare", "fetch", "move", "close", "c", '"c"', "1", "all", "from", "cursor", "for", "select", " ", "/*", "*/", "--", "\n", "forward",
    "(", "'",
]  # fmt: skip
OIDS = sorted({*BY_OID, *ELEMENTS, 0, 999_999})


def state_of(action: Callable[[], object]) -> str:
    """The SQLSTATE of its error, or nothing."""
    try:
        action()
    except SqlError as error:
        return error.sqlstate
    return ""


@pytest.mark.parametrize("form", [TEXT, BINARY])
@pytest.mark.parametrize("oid", OIDS)
def test_any_bytes_are_a_value_or_an_error(oid: int, form: int) -> None:
    words = st.sampled_from(WORDS)
    numbers = st.tuples(*[st.integers(-(2**31), 2**31 - 1)] * 5).map(lambda each: pack(">5i", *each))

    @settings(max_examples=15)
    @given(st.binary(max_size=40) | words | numbers | st.integers(-(2**63), 2**63 - 1).map(lambda each: pack(">q", each)))
    def check(data: bytes) -> None:
        assert state_of(lambda: value_of(data, oid, form)) in {"", "22P02", "22P03", "22003", "22021", "0A000"}

    check()


@pytest.mark.parametrize(
    ("kind", "shown", "value"),
    [
        ("bool", "yes", True),
        ("int4", " -5 ", -5),
        ("float8", "-Infinity", float("-inf")),
        ("numeric", "1e3", Decimal("1e3")),
        ("bytea", "a\\\\b\\001", b"a\\b\x01"),
        ("bytea", "\\xAb", b"\xab"),
        ("uuid", "{00000000-0000-0000-0000-000000000005}", UUID(int=5)),
        ("date", "2024-02-29", date(2024, 2, 29)),
        ("date", "2024-02-29 +00", date(2024, 2, 29)),
        ("date", "infinity", "infinity"),
        ("time", "01:02:03.5", time(1, 2, 3, 500_000)),
        ("timestamp", "2024-02-29T01:02:03+05", datetime(2024, 2, 29, 1, 2, 3)),  # noqa: DTZ001 - without a zone
        ("timestamptz", "2024-02-29 01:02:03+00", datetime(2024, 2, 29, 1, 2, 3, tzinfo=UTC)),
        ("timestamptz", "2024-02-29 01:02:03", "2024-02-29 01:02:03"),
        ("timestamp", "Feb 29 2024", "Feb 29 2024"),
        ("oid", "4294967295", 2**32 - 1),
    ],
)
def test_texts(kind: str, shown: str, value: Any) -> None:
    assert value_of(shown.encode(), TYPES[kind].oid, TEXT) == value


@pytest.mark.parametrize(
    ("kind", "data", "value"),
    [
        ("date", pack(">i", 2**31 - 1), "infinity"),
        ("date", pack(">i", 5_000_000), "15689-07-14"),
        ("timestamp", pack(">q", -(2**63)), "-infinity"),
        ("timestamptz", pack(">q", 10**18), "33688-09-26 01:46:40+00"),
        ("time", pack(">q", 86_400_000_000), "24:00:00"),
        ("timetz", pack(">qi", 3_600_000_000, -19_800), "01:00:00+05:30"),
        ("interval", pack(">qii", 1_000_000, 2, 14), "1 year 2 mons 2 days 00:00:01"),
        ("interval", pack(">qii", 1_000_000, 2, 0), timedelta(2, 1)),
        ("numeric", pack(">HhHHH", 1, 0, 0, 0, 7), Decimal(7)),
        ("numeric", pack(">HhHH", 0, 0, 0xC000, 0), Decimal("NaN")),
        ("jsonb", b"\x01{}", "{}"),
        ("json", b"{}", "{}"),
    ],
)
def test_bytes(kind: str, data: bytes, value: Any) -> None:
    found = value_of(data, TYPES[kind].oid, BINARY)
    assert found == value or str(found) == str(value)


@pytest.mark.parametrize(
    ("shown", "found"),
    [
        ("{}", []),
        ("{1,NULL,null}", ["1", None, None]),
        ('{ "a,b" , "NULL", "\\"\\\\" , a b }', ["a,b", "NULL", '"\\', "a b"]),
        ("{{1,2},{3,4}}", [["1", "2"], ["3", "4"]]),
        ("[0:1]={1,2}", ["1", "2"]),
    ],
)
def test_arrays(shown: str, found: Any) -> None:
    assert split_array(shown, str) == found


@pytest.mark.parametrize("shown", ["", "1", "{", "}", "{1", "{1,}", "{,1}", "{1}}", "{1}x", '{"a}', "{1,,2}", "{{{{{{{1}}}}}}}"])
def test_arrays_that_are_none(shown: str) -> None:
    with pytest.raises(SqlError, match="malformed array literal"):
        split_array(shown, str)


def test_types_that_a_client_may_declare() -> None:
    for oid in {*BY_OID, *ELEMENTS}:
        arrow_type(oid)
    with pytest.raises(SqlError, match="type with OID 9999 does not exist"):
        arrow_type(9_999)


@settings(max_examples=200)
@given(st.binary(max_size=80).map(lambda data: b"PGCOPY\n\xff\r\n\0" + bytes(8) + data), st.integers(1, 9))
def test_any_bytes_of_a_binary_copy_are_rows_or_an_error(data: bytes, size: int) -> None:
    pieces = [data[at : at + size] for at in range(0, len(data), size)]
    columns: dict[str, pa.DataType] = {"a": pa.int32(), "b": pa.string()}
    schema = pa.schema(columns)
    assert state_of(lambda: list(lines_in(schema, pieces))) in {"", "22P03", "22P04", "22021"}


@settings(max_examples=150)
@given(st.lists(st.sampled_from(TOKENS), max_size=12))
def test_any_words_are_an_action_or_an_error(words: list[str]) -> None:
    for text in (" ".join(words), "".join(words)):
        assert state_of(partial(action_of, text)) in {"", "42601", "55000"}
