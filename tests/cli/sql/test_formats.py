"""How rows and errors look."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Sequence
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any
from zoneinfo import ZoneInfo

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.cli.sql.aligned import Aligned
from barnabas.cli.sql.cells import texts_of
from barnabas.cli.sql.printers import BLOCK_BYTES, BLOCK_ROWS, FORMATS, Style, printer_for
from barnabas.cli.sql.reports import report
from barnabas.sql.interface import SqlError


def printed(batches: Sequence[pa.RecordBatch], **style: Any) -> str:
    printer = printer_for(Style(**style))
    parts = [printer.begin(batches[0].schema)]
    for batch in batches:
        parts += printer.rows(batch)
    return "".join([*parts, printer.end(sum(batch.num_rows for batch in batches))])


def batch(**columns: Any) -> pa.RecordBatch:
    return pa.RecordBatch.from_pydict(columns)


PLAIN = batch(id=pa.array([1, 20], pa.int64()), name=["a", None])


def test_a_table_looks_as_in_psql() -> None:
    assert printed([PLAIN]) == " id | name \n----+------\n  1 | a\n 20 | \n(2 rows)\n\n"


def test_one_row_and_no_row() -> None:
    assert printed([PLAIN.slice(0, 1)]).endswith("(1 row)\n\n")
    assert printed([PLAIN.slice(0, 0)]) == " id | name \n----+------\n(0 rows)\n\n"


def test_without_names_there_are_rows_alone() -> None:
    assert printed([PLAIN], header=False, null="?") == "  1 | a\n 20 | ?\n"
    assert printed([PLAIN], format="csv", header=False) == "1,a\n20,\n"


def test_lines_of_a_value_stand_below_each_other_and_wide_characters_take_two_places() -> None:
    assert printed([batch(t=["x\nyy", "日本"], n=[1, 2])]) == (
        "  t   | n \n------+---\n x   +| 1\n yy   |  \n 日本 | 2\n(2 rows)\n\n"
    )


def test_control_characters_do_not_reach_the_terminal() -> None:
    shown = printed([batch(**{"\x1b[31m": ["\x1b]0;a\x07", "\x9b", "a\tb\r"]})])
    assert not {each for each in shown if not each.isprintable() and each != "\n"}
    assert "\\x1B]0;a\\x07" in shown
    assert "\\x1B" in printed([batch(**{"\x1b": ["\x1b"]})], format="vertical")


def test_vertical() -> None:
    assert printed([PLAIN], format="vertical", null="-") == (
        "-[ RECORD 1 ]\nid   | 1\nname | a\n-[ RECORD 2 ]\nid   | 20\nname | -\n\n"
    )
    assert printed([PLAIN.slice(0, 0)], format="vertical") == "(0 rows)\n\n"


def test_json_is_a_list_and_json_lines_are_objects() -> None:
    rows = [{"id": 1, "name": "a"}, {"id": 20, "name": None}]
    assert json.loads(printed([PLAIN], format="json")) == rows
    assert json.loads(printed([PLAIN.slice(0, 1), PLAIN.slice(1)], format="json")) == rows
    assert json.loads(printed([PLAIN.slice(0, 0)], format="json")) == []
    assert [json.loads(line) for line in printed([PLAIN], format="jsonl").splitlines()] == rows


@given(st.lists(st.tuples(st.text(), st.text()), min_size=1))
def test_csv_is_read_back(rows: list[tuple[str, str]]) -> None:
    text = printed([batch(a=[row[0] for row in rows], b=[row[1] for row in rows])], format="csv")
    found = list(csv.reader(io.StringIO(text, newline=""), strict=True))
    assert found == [["a", "b"], *([*row] for row in rows)]


def test_csv_tells_null_from_an_empty_text() -> None:
    assert printed([batch(a=[None, ""], b=[" x", 'a"b'])], format="csv") == 'a,b\n," x"\n"","a""b"\n'


def test_small_batches_are_aligned_together_and_large_ones_come_in_blocks() -> None:
    assert printed([batch(a=["x"]), batch(a=["long"])]) == "  a   \n------\n x\n long\n(2 rows)\n\n"
    printer = printer_for(Style())
    many = batch(a=[str(number) for number in range(BLOCK_ROWS * 3)])
    printer.begin(many.schema)
    assert len(list(printer.rows(many))) == 3
    printer.begin(many.schema)
    wide = batch(a=["x" * (BLOCK_BYTES // 4)] * 16)
    assert len(list(printer.rows(wide))) > 2


def test_the_widths_of_a_later_block_only_grow() -> None:
    table = Aligned(["a", "b"], [False, False])
    assert table.block([("xxx", "1")]).splitlines()[-1] == " xxx | 1"
    assert table.block([("x", "1")]) == " x   | 1\n"
    assert table.block([("xxxxx", "1")]) == " xxxxx | 1\n"


@given(st.lists(st.tuples(st.one_of(st.none(), st.text("ab ", max_size=5)), st.text("xyz", max_size=3)), min_size=1, max_size=5))
def test_plain_rows_are_aligned_as_others(rows: list[tuple[str | None, str]]) -> None:
    quick, slow = (Aligned(["a", "b"], [True, False], null="N") for _ in range(2))
    marked = [*rows, (" " * 7, "é")]  # a character outside of ASCII takes the general way
    lines = slow.block(marked).splitlines()
    assert quick.block([*rows, (" " * 7, "e")]).splitlines()[:-1] == lines[:-1]


@pytest.mark.parametrize(
    ("values", "shown"),
    [
        (pa.array([True, None]), ["t", None]),
        (pa.array([1.5, float("nan")]), ["1.5", "NaN"]),
        (pa.array([Decimal("12.50")]), ["12.50"]),
        (pa.array([b"\x01\xff"]), ["\\x01ff"]),
        (pa.array([date(2013, 1, 1)]), ["2013-01-01"]),
        (pa.array([datetime(2013, 1, 1, 10)]), ["2013-01-01 10:00:00"]),  # noqa: DTZ001 - a timestamp without a zone
        (pa.array([datetime(2013, 1, 1, 10, tzinfo=UTC)], pa.timestamp("us", "UTC")), ["2013-01-01 11:00:00+01"]),
        (pa.array([[1, None]]), ["{1,NULL}"]),
        (pa.array([{"a": 1, "b": "x y"}]), ['(1,"x y")']),
    ],
)  # fmt: skip
def test_values_look_as_over_the_postgres_port(values: pa.Array[Any], shown: list[str | None]) -> None:
    assert list(texts_of(pa.field("x", values.type), ZoneInfo("Europe/Berlin"))(values)) == shown


def test_an_error_has_its_line_a_caret_detail_and_hint() -> None:
    error = SqlError("42703", 'column "b" does not exist', position=12, detail="a detail", hint="a hint")
    assert report(error, "select a,\n\tb from t") == (
        'ERROR:  column "b" does not exist\nLINE 2:  b from t\n         ^\nDETAIL:  a detail\nHINT:  a hint\n'
    )
    assert report(SqlError("XX000", "gone"), "select", "a.sql:3") == "a.sql:3: ERROR:  gone\n"


def test_a_long_line_is_cut_around_the_fault() -> None:
    text = "select " + "a, " * 100 + "nope" + ", b" * 100
    line, caret = report(SqlError("42703", "no", position=text.index("nope") + 1), text).splitlines()[1:3]
    assert line.startswith("LINE 1: ...")
    assert line.endswith("...")
    assert line[len(caret) - 1 :].startswith("nope")
    assert len(line) < 150


def test_a_position_behind_the_end_is_the_end() -> None:
    assert report(SqlError("42601", "no", position=99), "select").splitlines()[2] == " " * len("LINE 1: select") + "^"


def test_all_formats_have_printers() -> None:
    for name in FORMATS:
        assert printed([PLAIN], format=name)
