"""The reader of files of the format sqllogictest."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.sql.logictest.parsing import records_of
from tests.sql.logictest.running import compared


def test_records_have_their_outcome() -> None:
    found = list(
        records_of(
            "# a comment\n\nstatement ok\nSELECT 1;\n\nstatement count 3\nINSERT x\n\nstatement error no .* found\nSELECT 2\n\n"
            "statement error\nSELECT 3\n----\nsome text\n\nquery IT rowsort,colnames label\nSELECT a,\n# within\nb\n----\na b\n1 x\n"
        )
    )
    assert [(each.sql, each.wants_error, each.error, each.count) for each in found[:4]] == [
        ("SELECT 1", False, "", None), ("INSERT x", False, "", 3), ("SELECT 2", True, "no .* found", None),
        ("SELECT 3", True, "some text", None),
    ]  # fmt: skip
    assert (found[4].sql, found[4].types, found[4].sort, found[4].has_names) == ("SELECT a,\nb", "IT", "rowsort", True)
    assert found[4].expected == ["a b", "1 x"]


def test_lines_about_the_next_record() -> None:
    text = (
        "skipif postgresql\nstatement ok\nA\n\nonlyif other\nstatement ok\nB\n\nonlyif postgresql\nstatement ok\nC\n\n"
        "connection two\nstatement ok\nD\n\nstatement ok\nE\n\ncontrol sortmode rowsort\n\n"
        "query I\nF\n----\n1\n\nsleep 2s\nhalt\n\nstatement ok\nG\n"
    )
    found = [(each.sql, each.connection, each.sort) for each in records_of(text)]
    assert found == [("C", "", "nosort"), ("D", "two", "nosort"), ("E", "", "nosort"), ("F", "", "rowsort")]


def test_loops_and_other_files(tmp_path: Path) -> None:
    (tmp_path / "part.slt.part").write_text("statement ok\nP\n")
    loops = "loop i 0 2\n\nforeach k a b\n\nstatement ok\nS ${i} ${k}\n\nendloop\n\nendloop\n\n"
    text = f"{loops}include ./part.slt.part\n\nsystem ok\nrm x\n\nstatement ok\nT\n"
    main = tmp_path / "main.slt"
    main.write_text(text)
    assert [each.sql for each in records_of(text, main)] == ["S 0 a", "S 0 b", "S 1 a", "S 1 b", "P", "T"]


def test_an_unknown_line_is_refused() -> None:
    with pytest.raises(ValueError, match="line 1"):
        list(records_of("stament ok\nSELECT 1\n"))


@pytest.mark.parametrize(("text", "rows", "passes"), [
    ("query IR\nx\n----\n1 2.000", [("1", "2")], True),
    ("query IR\nx\n----\n1 2.5", [("1", "2.50")], False),
    ("query TB\nx\n----\na true", [("a", "t")], True),
    ("query T valuesort\nx\n----\na\nb", [("b",), ("a",)], True),
    ("query T\nx\n----\na\nb", [("b",), ("a",)], False),
    ("query TT rowsort\nx\n----\n2 b\n1 a", [("1", "a"), ("2", "b")], True),
    ("query T\nx\n----\n(empty)", [("",)], True),
    ("query T\nx\n----\nNULL", [(None,)], True),
    ("query T\nx\n----\nNULL", [], False),
    ("query I\nx\n----\n3 values hashing to 16c7a7eab68b8a8eb40e5baca8b1ae50", [("1",), ("2",), ("3",)], False),
    ("query I\nx\n----\n1 values hashing to b026324c6904b2a9cb4b88d6d61c81d1", [("1",)], True),
    ("query II\nx\n----\n1", [("1",)], False),
])  # fmt: skip
def test_rows_arecompared(text: str, rows: list[tuple[str | None, ...]], passes: bool) -> None:
    (record,) = records_of(text)
    assert (compared(record, rows, ["c"]) is None) == passes
