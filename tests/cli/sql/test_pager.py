"""Long results go to a pager, and short ones to the terminal."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from barnabas.cli.sql.pager import FileOutput, OutputClosed, Paged, pager_command

SIZE = os.terminal_size((20, 5))


def keeps(path: Path) -> list[str]:
    """A pager that writes what it gets into a file."""
    return [sys.executable, "-c", f"import sys; open({str(path)!r}, 'w').write(sys.stdin.read())"]


def test_a_short_text_needs_no_pager(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    sink = Paged(keeps(tmp_path / "paged"), SIZE)
    sink.write("a\nb\n")
    sink.close()
    assert capsys.readouterr().out == "a\nb\n"
    assert not (tmp_path / "paged").exists()


@pytest.mark.parametrize("text", ["a\n" * 4, "x" * 21 + "\n"])
def test_a_text_that_does_not_fit_is_paged_with_all_that_follows(
    text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    sink = Paged(keeps(tmp_path / "paged"), SIZE)
    for part in ("first\n", text, "last é\n"):
        sink.write(part)
    sink.close()
    assert (tmp_path / "paged").read_text() == f"first\n{text}last é\n"
    assert capsys.readouterr().out == ""


def test_a_pager_that_the_user_left_ends_the_result() -> None:
    sink = Paged([sys.executable, "-c", ""], SIZE)

    def write_on() -> None:
        while True:
            sink.write("x" * 10_000 + "\n")

    with pytest.raises(OutputClosed):
        write_on()
    sink.close()


def test_without_a_pager_nothing_is_held(capsys: pytest.CaptureFixture[str]) -> None:
    sink = Paged(None, SIZE)
    for _ in range(20):
        sink.write("a\n")
    assert capsys.readouterr().out == "a\n" * 20
    sink.close()


def test_the_user_chooses_the_pager(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PAGER", f"{sys.executable} -u")
    assert pager_command() == [sys.executable, "-u"]
    for text in ("", "no-such-pager-here", "'open"):
        monkeypatch.setenv("PAGER", text)
        assert pager_command() is None


def test_a_file_takes_several_results(tmp_path: Path) -> None:
    sink = FileOutput(str(tmp_path / "out"))
    for text in ("a\n", "b\n"):
        sink.write(text)
        sink.close()
    sink.finish()
    assert (tmp_path / "out").read_text() == "a\nb\n"
