"""Statements and commands of input that is not typed."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from pathlib import Path
from typing import cast

import pytest

from barnabas.cli.sql.help_texts import COMMANDS_TEXT, LACKING
from barnabas.cli.sql.printers import Style
from barnabas.cli.sql.shell import Options, zone_of
from barnabas.sql.interface import Notice, SqlError
from tests.cli.sql.conftest import Told
from tests.sql.postgres.fake_engine import FakeEngine, FakeResult, FakeSession

Make = Callable[..., Told]


def test_statements_of_several_lines_and_the_last_without_a_semicolon(told: Told) -> None:
    assert told.run("select 1\n as a; select 2 as b\n") == " a \n---\n 1\n(1 row)\n\n b \n---\n 2\n(1 row)\n\n"


def test_a_statement_without_rows_shows_its_tag(told: Told, make_shell: Make) -> None:
    assert told.run("create table t (a int); insert into t values (1), (2);") == "CREATE\nINSERT 0 2\n"
    assert make_shell(options=Options(Style("csv"))).run("insert into t values (3); select 1 as a") == "a\n1\n"


def test_the_first_error_stops_and_names_its_place(told: Told) -> None:
    error = told.fail("select 1;\nselec 2;\nselect 3;\n")
    assert error.startswith("ERROR:  Parser Error")
    assert "LINE 1: selec 2\n        ^" in error
    assert error.endswith("HINT:  a hint\n")


def test_a_file_gives_an_error_its_line(told: Told, tmp_path: Path) -> None:
    path = tmp_path / "a.sql"
    path.write_text("select 1;\n\nselec 2;\n")
    assert told.fail(f"\\i {path}\n").startswith(f"{path}:3: ERROR:  ")


def test_after_an_error_within_a_transaction_the_state_is_failed(told: Told) -> None:
    told.fail("begin; select nope;")
    assert told.shell.state == "E"
    told.shell.check_transaction()
    assert told.errors == ["WARNING:  the transaction was not committed; it is rolled back\n"]


def test_a_fault_of_the_engine_is_an_error_of_the_statement(told: Told) -> None:
    assert told.fail("select 'boom'") == "ERROR:  RuntimeError: a fault of the engine\n"


def test_notices_are_errors_output_at_once(told: Told) -> None:
    told.run("select 1;")
    session = cast(FakeSession, told.shell.session)
    assert session.listener is not None
    session.listener(Notice("starting\x1b Spark", hint="it takes seconds"))
    assert told.errors == ["NOTICE:  starting\\x1B Spark\nHINT:  it takes seconds\n"]


def test_a_session_that_cannot_be_had_is_an_error(told: Told, engine: FakeEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuses(_: object) -> None:
        raise SqlError("53300", "too many sessions")

    monkeypatch.setattr(engine, "session", refuses)
    assert told.fail("select 1") == "ERROR:  too many sessions\n"


def test_variables(make_shell: Make) -> None:
    told = make_shell(options=Options(Style(header=False), variables={"who": "O'Neil"}))
    assert told.run("select :'who';\n\\set n 3\nselect :n + 1;\n\\echo it is :n\n\\unset n\n\\set\n") == (
        " O'Neil\n 4\nit is 3\nwho = \"O'Neil\"\n"
    )
    assert "is not the name of a variable" in told.fail("\\set 1a b\n")


def test_commands_change_how_rows_look(make_shell: Make) -> None:
    told = make_shell(options=Options(Style()))
    text = "\\pset format csv\nselect 1 as a;\n\\pset null x\n\\pset format table\n\\t\nselect null;\n\\t off\n\\x on\nselect 1 as a;\n"
    assert told.run(text) == "a\n1\n x\n-[ RECORD 1 ]\na | 1\n\n"
    assert "the format can be table, csv, json, jsonl or vertical" in told.fail("\\pset format pdf\n")
    assert "\\pset has no border" in told.fail("\\pset border 2\n")
    assert "can be on or off" in told.fail("\\x maybe\n")
    told.run("\\pset\n")
    assert told.errors[-1].startswith("format   table\n")


def test_g_ends_a_statement_and_repeats_the_last(told: Told, tmp_path: Path) -> None:
    path = tmp_path / "out.txt"
    assert told.run("select 1 as a \\gx\n\\g\n") == "-[ RECORD 1 ]\na | 1\n\n a \n---\n 1\n(1 row)\n\n"
    assert told.run(f"\\g {path}\n") == ""
    assert path.read_text() == " a \n---\n 1\n(1 row)\n\n"
    assert told.run("select 2\n\\p\n\\r\n") == "select 2\n"


def test_g_without_a_statement_is_an_error(told: Told) -> None:
    assert told.fail("\\g\n") == "ERROR:  there is no statement\n"


def test_o_sends_results_to_a_file(told: Told, tmp_path: Path) -> None:
    path = tmp_path / "out.txt"
    assert told.run(f"\\pset format csv\n\\o {path}\nselect 1 as a;\nselect 2 as b;\n\\o\nselect 3 as c;\n") == "c\n3\n"
    assert path.read_text() == "a\n1\nb\n2\n"
    assert "No such file or directory" in told.fail(f"\\o {tmp_path}/missing/a\n")


def test_copy_reads_the_lines_that_follow(told: Told) -> None:
    assert told.run("create table t (a int);\ncopy t from stdin;\n1\n2\n\\.\nselect count(*) as n from t;\n") == (
        "CREATE\nCOPY 2\n n \n---\n 2\n(1 row)\n\n"
    )
    assert told.run("copy t to stdout;") == "1\n2\n"


def test_backslash_copy_reads_and_writes_files_of_this_machine(told: Told, tmp_path: Path) -> None:
    source, target = tmp_path / "in.tsv", tmp_path / "out.csv"
    source.write_text("1\té\n2\tx\n")
    told.run(f"create table t (a int, b text);\n\\copy t from '{source}'\n\\copy (select b from t order by a) to {target} csv\n")
    assert target.read_text() == "é\nx\n"
    assert "No such file" in told.fail("\\copy t from missing.csv\n")
    assert "\\copy needs" in told.fail("\\copy t\n")


def test_the_time_of_a_statement(make_shell: Make) -> None:
    assert "\nTime: " in make_shell().run("\\timing\nselect 1;\n")
    told = make_shell(options=Options(Style("csv"), timing=True))
    assert told.run("select 1 as a") == "a\n1\n"
    assert told.errors[0].startswith("Time: ")


def test_files_inside_of_each_other_have_a_limit(told: Told, tmp_path: Path) -> None:
    path = tmp_path / "a.sql"
    path.write_text(f"\\i {path}\n")
    assert "more than 16 files inside of each other" in told.fail(f"\\i {path}\n")
    assert "No such file" in told.fail("\\i missing.sql\n")


def test_q_ends_the_input(told: Told) -> None:
    assert told.run("\\echo a\n\\q\n\\echo b\n") == "a\n"


def test_help_and_commands_that_are_not_there(told: Told) -> None:
    assert told.run("\\?\n") == COMMANDS_TEXT + "\n"
    assert "INSERT INTO" in told.run("\\h insert;\n")
    assert "CREATE TABLE" in told.run("\\h\n")
    assert told.fail("\\h nonsense\n").startswith("ERROR:  no help for nonsense")
    assert told.fail("\\zzz\n") == "ERROR:  invalid command \\zzz; \\? lists the commands\n"
    assert told.fail("\\echo 'open\n").startswith("ERROR:  \\echo: No closing quotation")
    assert "wrong number of arguments" in told.fail("\\i\n")
    for name in LACKING:
        assert told.fail(f"\\{name}\n") == f"ERROR:  \\{name} is not supported: {LACKING[name]}\n"


def test_tables_are_described_by_statements(told: Told, engine: FakeEngine) -> None:
    """The engine of this test knows SHOW of settings alone, so the statement's echo is its heading."""
    assert told.run("\\d\n").startswith(" TABLES")
    assert told.run("\\dt\n").startswith(" TABLES")
    assert told.run("\\l\n").startswith(" DATABASES")
    assert told.run("\\dn\n").startswith(" SCHEMAS")
    engine.database.execute('create table "A b" (x int)')
    assert "INTEGER" not in told.errors
    assert told.run('\\d "A b"\n').startswith("DESCRIBE")


def test_rows_that_come_as_time_goes_on_may_end(told: Told, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(FakeResult, "is_live", True, raising=False)
    path = tmp_path / "live.json"
    told.run(f"\\pset format json\n\\o {path}\nselect 1 as a;\n\\o\n")
    assert json.loads(path.read_text()) == [{"a": 1}]


def test_a_large_result_is_not_held(make_shell: Make) -> None:
    """The engine is a few batches ahead of the output at most, so a reader that leaves ends it."""
    taken = []

    class Narrow:
        def write(self, text: str) -> None:
            taken.append(text)
            if len(taken) > 3:
                raise BrokenPipeError

        def close(self) -> None: ...

    told = make_shell(terminal=Narrow)
    with pytest.raises(BrokenPipeError):
        told.shell.run_lines(["select * from range(100000000000);"])
    assert sum(map(len, taken)) < 1_000_000
    assert not [each for each in threading.enumerate() if each.name == "sql-statement"]


def test_zones() -> None:
    assert str(zone_of("Europe/Berlin")) == "Europe/Berlin"
    assert str(zone_of("UTC")) == str(zone_of(None)) == str(zone_of("nowhere")) == "UTC"
    assert str(zone_of("+02")) == "UTC+02:00"


def test_watch_runs_a_statement_until_ctrl_c(make_shell: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    pauses = []

    def pause(seconds: float) -> None:
        pauses.append(seconds)
        if len(pauses) == 3:
            raise KeyboardInterrupt

    monkeypatch.setattr("barnabas.cli.sql.backslash.time.sleep", pause)
    assert make_shell(typed=True).run("select 1 as a \\watch 0.5\n").count(" a \n---\n 1\n") == 3
    assert pauses == [0.5] * 3
    assert "\\watch takes a number of seconds" in make_shell().fail("select 1 \\watch often\n")
