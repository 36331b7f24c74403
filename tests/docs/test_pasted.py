"""The runner of pages finds pages at fault."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.docs.pasted import Pasted, blocks_of, first_missing


def page(folder: Path, text: str) -> Path:
    path = folder / "page.md"
    path.write_text(text)
    return path


def test_what_is_printed_is_compared(tmp_path: Path) -> None:
    text = page(tmp_path, "```shell\necho one two three\necho four\n```\n\n```text\none … three\nfive\n```\n")
    with Pasted(tmp_path / "reader") as reader, pytest.raises(AssertionError, match=r"page.md:1 was to print 'five'"):
        reader.run_page(text)


def test_a_command_that_fails_ends_the_page(tmp_path: Path) -> None:
    text = page(tmp_path, "```shell\nfalse | cat\n```\n")
    with Pasted(tmp_path / "reader") as reader, pytest.raises(AssertionError, match="exit code 1"):
        reader.run_page(text)


def test_what_is_not_run_is_left_out(tmp_path: Path) -> None:
    text = page(tmp_path, "<!-- not run: for a reason -->\n```shell\nfalse\n```\n\n```\nfalse\n```\n\n```python\nprint(1)\n```\n")
    assert [(block.language, block.line) for block in blocks_of(text)] == [("python", 10)]


def test_lines_stand_in_order() -> None:
    assert first_missing("a\nc\n", "a\nb\nc\n") is None
    assert first_missing("c\na\n", "a\nb\nc\n") == "a"


def test_the_columns_of_a_table_may_have_another_width() -> None:
    assert first_missing("COMMON  END\n9  …\n", "COMMON   END\n9  1004  4\n") is None
    assert first_missing("COMMON END", "COMMONEND") == "COMMON END"


def test_places_are_exchanged_and_nothing_else(tmp_path: Path) -> None:
    with Pasted(tmp_path / "reader") as reader:
        text = reader.placed("start 127.0.0.1:9092 kafka1:9092 /tmp/x /opt/tmp/y")
        port = reader.port("9092")
    assert text == f"start 127.0.0.1:{port} kafka1:9092 {tmp_path}/reader/tmp/x /opt/tmp/y"
