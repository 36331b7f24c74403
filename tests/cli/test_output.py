"""Tables as text and on a terminal."""

from __future__ import annotations

import sys

import pytest

from barnabas.cli.output import Output, cell, print_table

ROWS: list[dict[str, object]] = [{"name": "a", "count": 5, "flag": True}, {"name": "long name", "count": None, "flag": False}]
COLUMNS = {"name": "NAME", "count": "COUNT", "flag": "FLAG"}


def test_plain_text_lines_up(capsys: pytest.CaptureFixture[str]) -> None:
    print_table(ROWS, COLUMNS)
    assert capsys.readouterr().out == "NAME       COUNT  FLAG\na              5   yes\nlong name      -    no\n"


def test_a_terminal_gets_every_cell(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
    print_table([{"name": "[bold]not markup[/bold]", "count": 1, "flag": None}], COLUMNS, title="things")
    out = capsys.readouterr().out
    assert "[bold]not markup[/bold]" in out
    assert "things" in out


def test_json_has_all_fields(capsys: pytest.CaptureFixture[str]) -> None:
    Output(as_json=True).table(ROWS, {"name": "NAME"})
    assert '"count": 5' in capsys.readouterr().out


def test_no_rows_are_said_on_standard_error(capsys: pytest.CaptureFixture[str]) -> None:
    Output(as_json=False).table([], COLUMNS, empty="no things")
    assert capsys.readouterr() == ("", "no things\n")


@pytest.mark.parametrize(("value", "text"), [(None, "-"), (True, "yes"), (1.234, "1.23"), ([], "-"), ([1, 2], "1,2"), ("x", "x")])
def test_cells(value: object, text: str) -> None:
    assert cell(value) == text
