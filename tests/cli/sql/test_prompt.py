"""The shell as a person types into it, without a terminal."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, cast

import pytest
from prompt_toolkit.completion import CompleteEvent
from prompt_toolkit.document import Document
from prompt_toolkit.history import FileHistory, InMemoryHistory
from prompt_toolkit.input import PipeInput, create_pipe_input
from prompt_toolkit.output import DummyOutput

from barnabas.cli.sql import prompt as prompts
from barnabas.cli.sql.colours import SqlLexer
from barnabas.cli.sql.printers import Style
from barnabas.cli.sql.prompt import Prompt, open_history
from barnabas.cli.sql.shell import Options
from barnabas.cli.sql.suggestions import Suggestions
from barnabas.cli.sql.table_names import HIDDEN, TableNames
from barnabas.sql.interface import Caller, Session
from tests.sql.postgres.fake_engine import FakeEngine, FakePrepared, FakeResult, FakeSession

Typed = Callable[[str], tuple[Prompt, str]]
INTERRUPT, LEAVE = "\x03", "\x04"


class ShowingSession(FakeSession):
    """It knows SHOW TABLES and SHOW ALL."""

    def execute(self, prepared: FakePrepared, values: Any = ()) -> FakeResult:
        if prepared.text in ("SHOW TABLES", "SHOW ALL"):
            found: Any = self.engine.database.cursor().sql(
                "SELECT table_name FROM duckdb_tables()" if prepared.text == "SHOW TABLES" else "SELECT 'TimeZone' AS name"
            )
            return FakeResult("SHOW", None, found.to_arrow_table().to_batches())
        return super().execute(prepared, values)


def showing_session(engine: FakeEngine) -> Session:
    made = ShowingSession(engine, Caller())
    engine.sessions.append(made)
    return cast(Session, made)


@pytest.fixture
def pipe() -> Iterator[PipeInput]:
    with create_pipe_input() as made:
        yield made


@pytest.fixture
def typed(engine: FakeEngine, pipe: PipeInput, capsys: pytest.CaptureFixture[str]) -> Typed:
    """Types keys and leaves; gives the prompt and all that it printed."""

    def run(keys: str) -> tuple[Prompt, str]:
        prompt = Prompt(lambda: showing_session(engine), Options(Style()), InMemoryHistory(), input=pipe, output=DummyOutput())
        pipe.send_text(keys)
        prompt.run()
        prompt.names.close()
        prompt.shell.close()
        captured = capsys.readouterr()
        return prompt, captured.out + captured.err

    return run


def test_enter_goes_on_until_a_semicolon(typed: Typed) -> None:
    assert typed("select 1\ras a;\r" + LEAVE)[1] == " a \n---\n 1\n(1 row)\n\n"


def test_an_error_does_not_end_the_shell(typed: Typed) -> None:
    shown = typed("select nope;\rselect 1 as a;\r\\q\r")[1]
    assert "ERROR:  Binder Error" in shown
    assert shown.startswith(" a \n---\n 1\n(1 row)\n\n")


def test_ctrl_c_forgets_the_line_and_ctrl_d_leaves(typed: Typed) -> None:
    assert typed("select 'open" + INTERRUPT + "select 2 as b;\r" + LEAVE)[1] == " b \n---\n 2\n(1 row)\n\n"


@pytest.mark.parametrize("word", ["exit", "quit;", "\\q"])
def test_words_that_leave(typed: Typed, word: str) -> None:
    assert typed(f"{word}\r")[1] == ""


@pytest.mark.parametrize("word", ["help", "HELP;", "\\?"])
def test_words_that_ask_for_help(typed: Typed, word: str) -> None:
    assert "leave" in typed(f"{word}\rselect 1 as a;\r" + LEAVE)[1]


def test_the_prompt_shows_what_is_open_and_the_transaction(typed: Typed) -> None:
    prompt, _ = typed("begin;\r" + LEAVE)

    def shown(mark: str, state: str) -> str:
        return "".join(text for _, text, *_ in prompts._prompt(mark, state))

    assert [shown("=", "I"), shown("-", "I"), shown("=", "T"), shown("=", "E"), shown("'", "T")] == [
        "barnabas=> ", "barnabas-> ", "barnabas=*> ", "barnabas=!> ", "barnabas'*> ",
    ]  # fmt: skip
    assert prompt.shell.state == "I"


def test_the_state_of_a_transaction_is_in_the_message(typed: Typed, engine: FakeEngine, pipe: PipeInput) -> None:
    prompt = Prompt(lambda: showing_session(engine), Options(Style()), InMemoryHistory(), input=pipe, output=DummyOutput())
    prompt._run("begin;")
    assert prompt._message()[0][1] == "barnabas=*> "
    prompt._run("select nope;")
    assert prompt._message()[0][1] == "barnabas=!> "
    prompt._run("rollback;")
    prompt._run("select 1 \\echo x")
    assert prompt._message()[0][1] == "barnabas-> "
    prompt.shell.close()


def test_the_editor_gives_the_next_input(typed: Typed, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    editor = tmp_path / "editor"
    editor.write_text("#!/bin/sh\nsed -i s/1/7/ $1\n")
    editor.chmod(0o755)
    monkeypatch.setenv("VISUAL", str(editor))
    assert typed("select 1 as a;\r\\e\r\r" + LEAVE)[1].endswith(" a \n---\n 7\n(1 row)\n\n")


def test_the_history_is_the_user_s_alone(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    history = open_history()
    assert isinstance(history, FileHistory)
    history.append_string("select 1;")
    path = tmp_path / "state/barnabas/sql_history"
    assert stat.S_IMODE(os.stat(path).st_mode) == 0o600
    assert list(open_history().load_history_strings()) == ["select 1;"]


def test_without_a_place_for_it_the_history_is_in_memory(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "file"))
    assert isinstance(open_history(), InMemoryHistory)


@pytest.fixture
def names(engine: FakeEngine) -> Iterator[TableNames]:
    engine.database.execute('create table orders (id int, total int); create table offers (id int, "Big" int)')
    made = TableNames(lambda: showing_session(engine))
    yield made
    made.close()


def suggested(names: TableNames, text: str) -> list[str]:
    """The completions at the mark `|`, or at the end."""
    at = text.find("|")
    document = Document(text.replace("|", ""), at if at >= 0 else len(text))
    return [each.text for each in Suggestions(names).get_completions(document, CompleteEvent())]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("sel", ["select"]),
        ("SEL", ["SELECT"]),
        ("select * from o", ["offers", "orders"]),
        ("select * from orders join of", ["offers"]),
        (
            "select t| from orders",
            ["total", "table", "tables", "text", "then", "time", "timestamp", "timestamptz", "to", "true", "truncate"],
        ),
        ("select o.t| from orders o", ["total"]),
        ("select o.t| from orders as o where", ["total"]),
        ("select offers.b| from offers", ['"Big"']),
        ("select _o| from orders", ["_offset"]),
        ("set time", ["TimeZone"]),
        ("show ta", ["TABLES"]),
        ("select 'sel", []),
        ("select -- sel", []),
        ("select * from nothing where nothing.", []),
        ("\\ti", ["\\timing"]),
        ("\\d or", ["orders"]),
        ("\\x o", ["on", "off"]),
        ("\\pset format js", ["json", "jsonl"]),
        ("\\pset n", ["null"]),
    ],
)
def test_completion(names: TableNames, text: str, found: list[str]) -> None:
    assert sorted(suggested(names, text)) == sorted(found)


def test_completion_of_files(names: TableNames, tmp_path: Path) -> None:
    (tmp_path / "report.sql").write_text("")
    (tmp_path / "reports").mkdir()
    assert suggested(names, f"\\i {tmp_path}/rep") == [f"{tmp_path}/report.sql", f"{tmp_path}/reports/"]
    assert suggested(names, "\\i /nowhere/at/all") == []


def test_names_are_kept_until_tables_change(names: TableNames, engine: FakeEngine) -> None:
    assert list(names.tables()) == ["offers", "orders"] or sorted(names.tables()) == ["offers", "orders"]
    engine.database.execute("create table more (a int)")
    assert "more" not in names.tables()
    names.forget()
    assert "more" in names.tables()
    assert list(names.columns("orders")) == ["id", "total", *HIDDEN]
    assert list(names.columns("no such")) == []


def test_a_question_that_fails_gives_no_names() -> None:
    engine = FakeEngine()
    names = TableNames(lambda: cast(Session, FakeSession(engine, Caller())))
    engine.close()
    assert list(names.columns("orders")) == []


def test_colours_follow_the_tokens() -> None:
    line = SqlLexer().lex_document(Document("select 'a\nb' -- c"))
    assert line(0) == [("class:keyword", "select"), ("", " "), ("class:string", "'a")]
    assert line(1) == [("class:string", "b'"), ("", " "), ("class:comment", "-- c")]
    assert line(2) == []
