"""Input is cut where the engine ends its statements."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas import limits
from barnabas.cli.sql.scanner import Command, Item, Kind, Splitter, Statement, TooLong, tokens

PIECES = (
    "select 1",
    "'a;b'",
    "''",
    '"x;y"',
    "`b;`",
    "--;\n",
    "/* ; /* ; */ */",
    "$$;$$",
    "$t$ $$;$t$",
    ";",
    "\n",
    " ",
    "E'\\';'",
    "::",
    ":v",
    "(",
)


def cut(text: str) -> list[Item]:
    splitter = Splitter()
    rest = [*splitter.feed(text), splitter.take()]
    return [each for each in rest if each is not None]


def texts(text: str) -> list[str]:
    return [each.text for each in cut(text) if isinstance(each, Statement)]


@pytest.mark.parametrize(
    ("text", "statements"),
    [
        ("select 1; select 2", ["select 1", "select 2"]),
        (";;; select 1;;", ["select 1"]),
        ("select ';'", ["select ';'"]),
        ("select 'it''s;'; x", ["select 'it''s;'", "x"]),
        ("select E'\\';'; x", ["select E'\\';'", "x"]),
        ("select '\\'; x", ["select '\\'", "x"]),
        ('select ";"; x', ['select ";"', "x"]),
        ("select `a;`; x", ["select `a;`", "x"]),
        ("select 1 -- ;\n + 1; x", ["select 1 -- ;\n + 1", "x"]),
        ("/* ; /* ; */ ; */ select 1; x", ["select 1", "x"]),
        ("select $$;$$; x", ["select $$;$$", "x"]),
        ("select $a$;$$;$a$; x", ["select $a$;$$;$a$", "x"]),
        ("select $1; x", ["select $1", "x"]),
        ("select 'open ; x", ["select 'open ; x"]),
        ("-- nothing\n", []),
        ("  \n select 1", ["select 1"]),
    ],
)
def test_a_semicolon_ends_a_statement_outside_of_quotes(text: str, statements: list[str]) -> None:
    assert texts(text) == statements


def test_a_statement_knows_its_line() -> None:
    assert cut("\n-- a\nselect 1;\n\nselect\n2;\n\\x\nx") == [
        Statement("select 1", 3),
        Statement("select\n2", 5),
        Command("x", "", 7),
        Statement("x", 8),
    ]


def test_a_command_reaches_to_the_end_of_its_line_and_leaves_the_statement_before_it() -> None:
    splitter = Splitter()
    assert list(splitter.feed("select 1 \\g a.txt\n")) == [Command("g", "a.txt", 1)]
    assert splitter.pending == "select 1"
    assert splitter.take() == Statement("select 1", 1)
    assert cut("\\d+ orders\n\\?\n\\\n") == [Command("d+", "orders", 1), Command("?", "", 2), Command("", "", 3)]


@pytest.mark.parametrize(
    ("text", "mark"),
    [("", "="), ("select 1\n", "-"), ("select 'a\n", "'"), ('select "a\n', '"'), ("select 1 /* a\n", "*"), ("select $$ a\n", "$"),
     ("select 1;\n", "="), ("select E'a\n", "'"), ("select `a\n", "`")],
)  # fmt: skip
def test_the_mark_says_what_is_open(text: str, mark: str) -> None:
    splitter = Splitter()
    list(splitter.feed(text))
    assert splitter.mark == mark
    splitter.reset()
    assert splitter.mark == "="


@pytest.mark.parametrize(
    ("pending", "text", "complete"),
    [("", "select 1;", True), ("", "select 1", False), ("", "  ", True), ("", "\\d", True), ("", "select ';", False),
     ("select '", "a'; ", True), ("select 1", "\\g", True), ("", "-- a", True), ("", "/* a", False), ("", "select 1; select", False)],
)  # fmt: skip
def test_enter_ends_what_is_complete(pending: str, text: str, complete: bool) -> None:
    splitter = Splitter()
    list(splitter.feed(pending))
    assert splitter.would_complete(text) is complete


@given(st.lists(st.sampled_from(PIECES)).map("".join))
def test_input_by_lines_is_cut_as_input_at_once(text: str) -> None:
    whole = Splitter()
    at_once = [*whole.feed(text), whole.take()]
    splitter = Splitter()
    by_line = [each for line in text.splitlines(keepends=True) for each in splitter.feed(line)]
    assert [*by_line, splitter.take()] == at_once


@given(st.text(max_size=60))
def test_tokens_cover_every_text(text: str) -> None:
    found = list(tokens(text))
    assert [each.start for each in found] == [0, *(each.end for each in found)][: len(found)]
    assert (found[-1].end if found else 0) == len(text)


def test_variables_are_no_casts() -> None:
    kinds = [(text[each.start : each.end], each.kind) for text in ["a::int :b :'c'"] for each in tokens(text)]
    assert (":b", Kind.VARIABLE) in kinds
    assert (":'c'", Kind.VARIABLE) in kinds
    assert ("::", Kind.SYMBOL) in kinds


def test_a_statement_has_at_most_max_sql_characters(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "MAX_SQL_CHARACTERS", 100)
    splitter = Splitter()
    list(splitter.feed("select '" + "x" * 80))
    with pytest.raises(TooLong, match="128 characters; allowed are 100"):
        list(splitter.feed("x" * 40))
    assert list(splitter.feed("select 1;")) == [Statement("select 1", 1)]
