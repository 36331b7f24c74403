"""Rows as literals of SQL: texts cannot end their quotes, and lists have limits."""

from __future__ import annotations

import datetime
from decimal import Decimal

import pyarrow as pa
import pytest

from barnabas.connect.plugins.databases.literals import value_lists


def test_each_sort_of_column_has_its_literals() -> None:
    rows = pa.table({
        "number": pa.array([1, None]), "real": [1.5, -0.25], "exact": [Decimal("1.50"), None], "yes": [True, None],
        "text": ["it's \\ 'quoted'", None], "bytes": [b"\x00'", None], "day": [datetime.date(2024, 2, 29), None],
        "time": pa.array([1_709_168_523_000_004, None], pa.timestamp("us")),
    })  # fmt: skip
    assert list(value_lists(rows, 10, 1000)) == [
        rb"(1,1.5,1.50,1,'it''s \ ''quoted''',x'0027','2024-02-29','2024-02-29 01:02:03.000004'),"
        b"(NULL,-0.25,NULL,NULL,NULL,NULL,NULL,NULL)"
    ]


def test_numbers_keep_their_digits() -> None:
    small = Decimal("0.0000000000123456789012345678901")
    rows = pa.table({"exact": [small, -small, None], "real": [0.1, 1e300, 5e-324], "large": [Decimal(10**37), None, Decimal(-1)]})
    assert list(value_lists(rows, 10, 1000)) == [
        b"(0.0000000000123456789012345678901,0.1,1%s),(-0.0000000000123456789012345678901,1e+300,NULL),(NULL,5e-324,-1)"
        % (b"0" * 37)
    ]


def test_a_list_has_so_many_rows_and_bytes_and_one_row_at_least() -> None:
    rows = pa.table({"n": ["a", "b", "c" * 20, "d", "e", "f"]})
    assert list(value_lists(rows, 2, 15)) == [b"('a'),('b')", b"('" + b"c" * 20 + b"')", b"('d'),('e')", b"('f')"]
    assert list(value_lists(rows.slice(0, 0), 2, 15)) == []


def test_a_number_that_is_not_finite_has_no_literal() -> None:
    with pytest.raises(ValueError, match="not finite"):
        list(value_lists(pa.table({"n": [1.0, float("nan"), None]}), 10, 100))
