"""For any command line: exit code 0, 1 or 2, one line, and never a traceback."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Set as AbstractSet
from pathlib import Path

import click
import pytest

from barnabas.cli.types import strict
from barnabas.digits import INT32
from barnabas.testing.children import Child
from tests.cli import fuzzing
from tests.cli.conftest import UNUSED, Command, Ended

PARSED, SENT = 0.02, 0.004  # shares of all cases that take some seconds
OF_A_SERVICE = 12  # cases, each a process
SEED = 45


def parameters() -> list[tuple[str, click.Parameter]]:
    return [(name, parameter) for name, command in fuzzing.LEAVES for parameter in command.params]


def test_every_parameter_has_a_type_with_bounds() -> None:
    for name, parameter in parameters():
        kind = parameter.type
        if isinstance(kind, click.IntRange | click.FloatRange):
            assert None not in (kind.min, kind.max), f"{name} {parameter.opts}"
        else:
            assert kind not in (click.STRING, click.INT, click.FLOAT), f"{name} {parameter.opts}"
            assert type(kind) is not click.Path, f"{name} {parameter.opts}"


def test_a_parameter_without_a_type_takes_no_more_than_text() -> None:
    @click.command()
    @click.argument("name")
    def command(name: str) -> None:
        """Nothing."""

    for value in ("", " ", "\udcff", "x" * 40_000):
        with pytest.raises(click.BadParameter, match=r"empty|UTF-8|bytes"):
            strict(command).make_context("x", [value])


@pytest.fixture
def somewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Commands that make files make them in a folder of the test's own, and none reaches a service that runs on this machine."""
    for name in ("BARNABAS_CONNECT_URL", "SCHEMA_REGISTRY_URL"):
        monkeypatch.setenv(name, f"http://{UNUSED}")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)


@pytest.mark.usefixtures("somewhere")
def test_no_argument_ends_in_a_traceback_before_a_broker_is_asked(
    command: Command, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("BARNABAS_BOOTSTRAP_SERVERS", UNUSED)
    assert faults(command, PARSED, tmp_path, monkeypatch) == []


@pytest.mark.usefixtures("somewhere")
def test_no_argument_ends_in_a_traceback_at_a_broker(
    kafka_command: Command, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    assert faults(kafka_command, SENT, tmp_path, monkeypatch, fuzzing.SERVICES) == []


@pytest.mark.parametrize("name", sorted(fuzzing.SERVICES))
def test_a_service_with_an_odd_argument_starts_or_says_why(name: str, bootstrap: str, tmp_path: Path) -> None:
    ways = [(case, ended_service(case, bootstrap, tmp_path)) for case in fuzzing.cases_of(name, SEED, OF_A_SERVICE)]
    assert [(case, complaint, ended.err) for case, ended in ways for complaint in fuzzing.complaints(case, ended)] == []


def ended_service(case: fuzzing.Case, bootstrap: str, folder: Path) -> Ended:
    """How a service ended: by itself, or by SIGTERM when it was ready."""
    given = {**os.environ, "BARNABAS_BOOTSTRAP_SERVERS": bootstrap, "HOME": str(folder)}
    with (folder / "errors").open("w+") as errors:
        child: Child[str] = Child(
            [sys.executable, "-m", "barnabas.cli", *case.arguments], cwd=folder, env=given, stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=errors, text=True,
        )  # fmt: skip
        assert child.stdout is not None
        if "accepts connections" in child.stdout.readline():
            child.terminate()
        out, _ = child.communicate(timeout=60)
        errors.seek(0)
        return Ended(child.returncode, out.encode(), errors.read())


def faults(
    command: Command, share: float, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, left_out: AbstractSet[str] = frozenset()
) -> list[str]:
    """The faults of all endings, with the command lines."""
    wrong = []
    for number, case in enumerate(fuzzing.cases(SEED, share, left_out)):
        folder = tmp_path / str(number)
        folder.mkdir()
        monkeypatch.chdir(folder)
        ended = command(*case.arguments, stdin=b"x\n")
        wrong += [f"{case!r}: {complaint}: {ended.err[:300]}" for complaint in fuzzing.complaints(case, ended)]
    return wrong


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (("topic", "create", "t", "-p", "200000"), "--partitions"),
        (("topic", "create", ""), "NAME"),
        (("topic", "delete", "\udcff"), "NAME"),
        (("topic", "list", "--timeout", "nan"), "--timeout"),
        (("consume", "t", "--from", "0001-01-01"), "--from"),
        (("consume", "t", "--to", "9" * 30), "--to"),
        (("consume", "t", "-g", " "), "--group"),
        (("group", "reset-offsets", "g", "--by-duration", "9" * 5_000 + "w"), "--by-duration"),
        (("topic", "list", "-b", "host:²"), "--bootstrap-server"),
        (("topic", "list", "-b", "x" * 64), "--bootstrap-server"),
        (("quota", "set", "producer_byte_rate=nan", "--default", "user"), "QUOTA=VALUE"),
        (("start", "--data-dir", ""), "--data-dir"),
        (("topic", "list", "--command-config", "/dev/zero"), "/dev/zero"),
    ],
)
def test_the_line_names_the_option(command: Command, arguments: tuple[str, ...], named: str) -> None:
    ended = command(*arguments)
    assert (ended.code, named in ended.err, ended.err.count("\n")) == (2, True, 1), ended.err


def test_an_error_that_nobody_foresaw_is_one_line(command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    from barnabas.cli import main

    for error, code in ((ValueError("odd"), 2), (OverflowError("odd"), 2), (KeyError("odd"), 1), (RecursionError("odd"), 1)):

        def fails(_: object, error: Exception = error) -> None:
            raise error

        monkeypatch.setattr(main, "_invoke", fails)
        ended = command("topic", "list")
        assert (ended.code, ended.err.count("\n"), "BARNABAS_TRACEBACK=1 shows the traceback" in ended.err) == (code, 1, True)
    monkeypatch.setenv(main.TRACEBACK_VARIABLE, "1")
    with pytest.raises(RecursionError):
        command("topic", "list")


def test_an_error_shows_no_control_characters_and_has_an_end(command: Command) -> None:
    ended = command("topic", "create", "\x1b[31m" + "x" * 40_000, "-p", INT32)
    assert ended.code == 2
    assert "\x1b" not in ended.err
    assert len(ended.err) < 2_000
