"""The frame around all commands: help, errors, exit codes, what is imported when."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import click
import pytest
from confluent_kafka import KafkaError, KafkaException

from barnabas import __version__
from barnabas.cli import main
from barnabas.cli.lazy import LazyGroup
from barnabas.cli.reference import walk
from tests.cli.conftest import UNUSED, Command

COMMANDS = [(name, command) for name, command in walk(main.cli, "barnabas")]
LEAVES = [(name, command) for name, command in COMMANDS if not isinstance(command, click.Group)]


def test_help_imports_nothing_heavy() -> None:
    program = "import sys; from barnabas.cli.main import run; run(['--help']); print(*sys.modules, file=sys.stderr)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    loaded = {module.partition(".")[0] for module in done.stderr.split()}
    assert loaded.isdisjoint({"rich", "confluent_kafka", "uvloop", "asyncio", "prometheus_client", "cramjam", "msgspec"})
    assert "barnabas.cli.topic" not in done.stderr.split()
    assert "Create, list, describe" in done.stdout


def test_a_broker_starts_without_what_only_other_commands_and_rare_requests_need() -> None:
    program = "import sys, barnabas.cli.broker, barnabas.server.main, barnabas.server.broker; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout.split()
    assert {"barnabas.cli.adopt", "barnabas.cli.reassign", "barnabas.cluster.offline", "re2", "rich"}.isdisjoint(loaded)


def test_the_line_in_the_help_of_a_group_is_the_command_s_own() -> None:
    for name, command in COMMANDS:
        if isinstance(command, LazyGroup):
            for child, entry in command.entries.items():
                found = command.get_command(click.Context(command), child)
                assert found is not None
                assert found.get_short_help_str(limit=200) == entry.short_help, f"{name} {child}"


@pytest.mark.parametrize(("name", "command"), LEAVES, ids=[name for name, _ in LEAVES])
def test_every_command_and_option_explains_itself(name: str, command: click.Command) -> None:
    assert command.help
    for parameter in command.params:
        if isinstance(parameter, click.Option):
            assert parameter.help, f"{name} {parameter.opts}"


@pytest.mark.parametrize("name", [name for name, _ in COMMANDS])
def test_every_command_has_help(command: Command, name: str) -> None:
    ended = command(*name.split()[1:], "--help")
    assert ended.code == 0
    assert ended.text.startswith(f"Usage: {name}")


def test_a_misspelt_command_is_bad_input_and_gets_a_hint(command: Command) -> None:
    ended = command("topics", "list")
    assert ended.code == 2
    assert ended.err == "barnabas: no command 'topics'; did you mean topic? (see barnabas --help)\n"


@pytest.mark.parametrize(
    "name", [name for name, found in COMMANDS if isinstance(found, click.Group) and not found.invoke_without_command]
)
def test_a_group_without_a_command_prints_its_help(command: Command, name: str) -> None:
    ended = command(*name.split()[1:])
    assert ended.code == 2
    assert ended.err.startswith(f"Usage: {name} [OPTIONS] COMMAND [ARGS]...\n\n")
    assert "\nCommands:\n" in ended.err


def test_a_missing_argument_is_bad_input(command: Command) -> None:
    ended = command("topic", "create")
    assert ended.code == 2
    assert ended.err.startswith("barnabas: Missing argument 'NAME...'")
    assert ended.err.count("\n") == 1


def test_version(command: Command) -> None:
    assert command("--version").text == f"barnabas {__version__}\n"


def test_an_unreachable_broker_is_one_line_and_exit_code_1(command: Command) -> None:
    ended = command("topic", "list", "-b", UNUSED)
    assert ended.code == 1
    assert ended.err.startswith("barnabas: cannot reach 127.0.0.1:1 (Connection refused)")
    assert ended.err.count("\n") == 1
    assert ended.out == b""


def test_a_reader_that_goes_away_ends_the_command_quietly() -> None:
    read_end, write_end = os.pipe()
    os.close(read_end)
    try:
        done = subprocess.run(
            [sys.executable, "-m", "barnabas.cli", "completion", "bash"],
            stdout=write_end,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    finally:
        os.close(write_end)
    assert (done.returncode, done.stderr) == (0, "")


def test_an_interrupted_command_ends_with_one_line() -> None:
    program = (
        "import signal, sys; from barnabas.cli import main; signal.signal(signal.SIGINT, signal.default_int_handler);"
        "main.cli.invoke = lambda _: signal.raise_signal(signal.SIGINT); sys.exit(main.run(['completion', 'bash']))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (1, "barnabas: interrupted\n")
    assert signal.getsignal(signal.SIGINT) is not None


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_scripts_name_the_command(command: Command, shell: str) -> None:
    ended = command("completion", shell)
    assert ended.code == 0
    assert "_BARNABAS_COMPLETE" in ended.text


def test_completion_completes_commands() -> None:
    environment = {**os.environ, "_BARNABAS_COMPLETE": "bash_complete", "COMP_WORDS": "barnabas to", "COMP_CWORD": "1"}
    done = subprocess.run([sys.executable, "-m", "barnabas.cli"], env=environment, capture_output=True, text=True, check=True)
    assert done.stdout == "plain,topic\n"


def test_an_error_of_the_client_is_one_line(command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: object) -> None:
        raise KafkaException(KafkaError(KafkaError._TRANSPORT))

    monkeypatch.setattr(main, "_invoke", fails)
    ended = command("topic", "list")
    assert (ended.code, ended.err) == (1, "barnabas: Broker transport failure (the client's _TRANSPORT)\n")
