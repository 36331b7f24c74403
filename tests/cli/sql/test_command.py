"""`barnabas sql` as a user calls it, against a broker: options, inputs, exit codes."""

from __future__ import annotations

import json
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.cli.conftest import UNUSED, Command


@pytest.fixture
def filled(kafka_command: Command, topic: str) -> str:
    """A topic with two records."""
    assert kafka_command("produce", topic, stdin=b'{"a":1}\n{"a":2}\n').code == 0
    return f'"{topic}"'


def test_statements_of_the_command_line(kafka_command: Command, filled: str) -> None:
    ended = kafka_command("sql", "-c", f"select count(*) as n from {filled}; select 1 as a", "-c", "\\echo done")
    assert (ended.code, ended.err) == (0, "")
    assert ended.text == " n \n---\n 2\n(1 row)\n\n a \n---\n 1\n(1 row)\n\ndone\n"


def test_statements_of_a_pipe(kafka_command: Command, filled: str) -> None:
    ended = kafka_command("sql", "--format", "jsonl", stdin=f"select value from {filled} order by value".encode())
    assert [json.loads(json.loads(line)["value"]) for line in ended.lines] == [{"a": 1}, {"a": 2}]


def test_statements_of_a_file_into_a_file(kafka_command: Command, tmp_path: Path) -> None:
    source, target = tmp_path / "a.sql", tmp_path / "a.csv"
    source.write_text("select :n as n, :'who' as who;")
    ended = kafka_command("sql", "-f", source, "--format", "csv", "-o", target, "-v", "n=3", "-v", "who=O'Neil")
    assert (ended.code, ended.text, ended.err) == (0, "", "")
    assert target.read_text() == "n,who\n3,O'Neil\n"


def test_standard_input_as_a_file_and_rows_alone(kafka_command: Command) -> None:
    assert kafka_command("sql", "-f", "-", "--no-header", stdin=b"select 1, 2;").text == " 1 | 2\n"


def test_the_first_error_stops_with_exit_code_1(kafka_command: Command) -> None:
    ended = kafka_command("sql", stdin=b"select 1 as a;\nselect nope;\nselect 2 as b;\n")
    assert ended.code == 1
    assert ended.text == " a \n---\n 1\n(1 row)\n\n"
    assert ended.err.startswith('<stdin>:2: ERROR:  column "nope" does not exist\nLINE 1: select nope\n               ^\n')


def test_times_are_no_results(kafka_command: Command) -> None:
    ended = kafka_command("sql", "-c", "select 1 as a", "--timing", "--format", "json")
    assert json.loads(ended.out) == [{"a": 1}]
    assert ended.err.startswith("Time: ")


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (("-c", "x", "-f", "-"), "-c and -f exclude each other"),
        (("-f", "/no/such/file"), "does not exist"),
        (("--format", "pdf"), "pdf"),
        (("-v", "1a=b", "-c", "x"), "'1a' is not the name of a variable"),
        (("-v", "a", "-c", "x"), "-v 'a' is not key=value"),
        (("-c", "select 1", "start"), "-c belongs behind the word start"),
        (("select 1",), "no command 'select 1'"),
        (("-c", "select 1", "-X", "security.protocol=nonsense"), "nonsense"),
    ],
)
def test_bad_input_has_exit_code_2(kafka_command: Command, arguments: tuple[str, ...], text: str) -> None:
    ended = kafka_command("sql", *arguments)
    assert (ended.code, ended.out) == (2, b"")
    assert text in ended.err
    assert ended.err.count("\n") == 1


def test_a_file_that_is_not_utf8_is_bad_input(kafka_command: Command, tmp_path: Path) -> None:
    path = tmp_path / "a.sql"
    path.write_bytes(b"select 1;\n\xff\n")
    ended = kafka_command("sql", "-f", path)
    assert (ended.code, ended.err) == (2, "barnabas: the input is not UTF-8\n")


def test_an_output_that_cannot_be_written_is_an_error(kafka_command: Command, tmp_path: Path) -> None:
    ended = kafka_command("sql", "-c", "select 1", "-o", tmp_path / "missing" / "a.csv")
    assert ended.code == 1
    assert "No such file or directory" in ended.err


def test_no_broker_is_one_line(command: Command) -> None:
    ended = command("sql", "-b", UNUSED, "-c", "select 1")
    assert (ended.code, ended.err.count("\n")) == (1, 1)
    assert "cannot reach 127.0.0.1:1" in ended.err


def test_a_missing_library_is_bad_input(kafka_command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("barnabas.cli.sql.command.find_spec", lambda name: None if name == "sqlglot" else find_spec(name))
    ended = kafka_command("sql", "-c", "select 1")
    assert (ended.code, ended.err) == (2, "barnabas: SQL needs the library sqlglot: pip install 'barnabas[sql]'\n")
