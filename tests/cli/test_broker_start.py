"""`barnabas broker start` and `barnabas start` as processes, and what they make of their options."""

from __future__ import annotations

import fcntl
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from barnabas.cli.broker import collect_properties
from barnabas.cli.errors import BadInput
from barnabas.testing.broker import ADDRESS, Broker
from barnabas.testing.children import Child
from tests.cli.conftest import Command, ignoring_sigint
from tests.locks import held_by_another_process

NOTHING: dict[str, Any] = {"data_dir": None, "listeners": None, "pairs": (), "config_file": None, "broker_id": None}


def run_to_end(*arguments: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "barnabas.cli", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


@contextmanager
def running(*arguments: object, wrap: Callable[[Sequence[str]], list[str]] = list) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """The process and its first line."""
    command = wrap([sys.executable, "-m", "barnabas.cli", *map(str, arguments)])
    # in development mode the loop logs each step of 0.1 s
    how = {name: value for name, value in os.environ.items() if name != "PYTHONDEVMODE"}
    with Child[str](command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=how) as process:
        try:
            assert process.stdout is not None
            yield process, process.stdout.readline()
        finally:
            process.kill()


@pytest.mark.parametrize("how_to_stop", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
@pytest.mark.parametrize("how_to_start", [["broker", "start"], ["start"]])
def test_it_names_its_address_serves_and_stops(
    command: Command, tmp_path: Path, how_to_start: list[str], how_to_stop: signal.Signals
) -> None:
    options = ["--data-dir", tmp_path / "data", "--listeners", "PLAINTEXT://127.0.0.1:0", "--log-level", "warning"]
    with running(*how_to_start, *options) as (process, line):
        ((name, host, port),) = ADDRESS.findall(line)
        assert (name, host) == ("PLAINTEXT", "127.0.0.1")
        assert command("topic", "create", "t", "-b", f"{host}:{port}").code == 0
        process.send_signal(how_to_stop)
        out, err = process.communicate(timeout=30)
    assert (process.returncode, out, err) == (0, "", "")
    assert (tmp_path / "data").is_dir()


def test_sigquit_shows_what_its_threads_do_and_it_goes_on(command: Command, tmp_path: Path) -> None:
    options = ["--data-dir", tmp_path / "data", "--listeners", "PLAINTEXT://127.0.0.1:0", "--log-level", "warning"]
    with running("broker", "start", *options) as (process, line):
        ((_, host, port),) = ADDRESS.findall(line)
        process.send_signal(signal.SIGQUIT)
        assert command("topic", "create", "t", "-b", f"{host}:{port}").code == 0
        process.terminate()
        _, err = process.communicate(timeout=30)
    assert process.returncode == 0
    assert "most recent call first" in err


def test_started_with_sigint_ignored_it_is_stopped_by_sigterm_only(command: Command, tmp_path: Path) -> None:
    """As in the background of a shell; Kafka's broker stays as well."""
    options = ["--data-dir", tmp_path / "data", "--listeners", "PLAINTEXT://127.0.0.1:0", "--log-level", "warning"]
    with running("broker", "start", *options, wrap=ignoring_sigint) as (process, line):
        ((_, host, port),) = ADDRESS.findall(line)
        process.send_signal(signal.SIGINT)
        assert command("topic", "create", "t", "-b", f"{host}:{port}").code == 0
        process.terminate()
        out, err = process.communicate(timeout=30)
    assert (process.returncode, out, err) == (0, "", "")


def test_a_second_broker_on_the_folder_is_refused(tmp_path: Path) -> None:
    options = ["broker", "start", "--data-dir", tmp_path / "data", "--listeners", "PLAINTEXT://127.0.0.1:0"]
    with running(*options):
        second = run_to_end(*options)
    assert second.returncode == 1
    assert str(tmp_path / "data") in second.stderr.splitlines()[-1]


def test_a_broker_is_refused_where_kafka_runs(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    folder.mkdir()
    with held_by_another_process(folder / ".lock"):
        ended = run_to_end("broker", "start", "--data-dir", folder, "--listeners", "PLAINTEXT://127.0.0.1:0")
    assert ended.returncode == 1
    assert "another broker is using it" in ended.stderr.splitlines()[-1]
    assert [path.name for path in folder.iterdir()] == [".lock"]


def test_kafka_is_refused_where_a_broker_runs(tmp_path: Path) -> None:
    with running("broker", "start", "--data-dir", tmp_path, "--listeners", "PLAINTEXT://127.0.0.1:0") as (_, line):
        assert line
        with (tmp_path / ".lock").open("rb+") as file, pytest.raises(BlockingIOError):
            fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)


def test_places_that_cannot_be_used_are_named_in_one_line(command: Command, tmp_path: Path) -> None:
    """`/sys` is a file system in which nobody makes folders, root neither."""
    file, stranger = tmp_path / "file", tmp_path / "stranger"
    file.touch()
    stranger.mkdir()
    (stranger / "meta.properties").write_text("version=1\ncluster.id=abc\nnode.id=7\n")
    places = {
        Path("/sys/barnabas"): "'/sys/barnabas'",
        file: "File exists",
        stranger: "it belongs to broker 7, this is broker 1",
    }
    damaged = tmp_path / "damaged"
    with Broker(data_dir=damaged) as broker:
        assert command("topic", "create", "t", "-b", broker.bootstrap_servers).code == 0
    (damaged / "t-0" / "partition.metadata").write_text("rubbish")
    ended = run_to_end("broker", "start", "--data-dir", damaged, "--listeners", "PLAINTEXT://127.0.0.1:0")
    assert ended.returncode == 1
    assert ended.stderr.splitlines()[-1] == (
        f"barnabas: {damaged}/t-0/partition.metadata is corrupt at byte 0: not a line of it: 'no topic_id'; "
        "`barnabas doctor check` says what is wrong and can be put right"
    )
    for place, reason in places.items():
        ended = run_to_end("broker", "start", "--data-dir", place, "--listeners", "PLAINTEXT://127.0.0.1:0")
        (line,) = ended.stderr.splitlines()
        assert (ended.returncode, ended.stdout) == (1, "")
        assert line.startswith(f"barnabas: log directory {place}: ")
        assert reason in line


def test_a_bad_value_is_exit_code_2_with_what_is_allowed(tmp_path: Path) -> None:
    ended = run_to_end("broker", "start", "--data-dir", tmp_path, "--config", "num.partitions=many")
    assert ended.returncode == 2
    assert "num.partitions" in ended.stderr
    assert "many" in ended.stderr
    assert ended.stdout == ""


def test_a_secret_that_cannot_be_had_is_exit_code_2_with_its_placeholder(tmp_path: Path) -> None:
    settings = [
        "config.providers=env",
        "config.providers.env.class=org.apache.kafka.common.config.provider.EnvVarConfigProvider",
        "ssl.key.password=${env:BARNABAS_HAS_NO_SUCH_SECRET}",
    ]
    ended = run_to_end("broker", "start", "--data-dir", tmp_path, *(word for each in settings for word in ("--config", each)))
    assert (ended.returncode, ended.stdout) == (2, "")
    assert "${env:BARNABAS_HAS_NO_SUCH_SECRET}" in ended.stderr
    assert "the variable is not set" in ended.stderr


def test_a_key_store_that_cannot_be_read_is_exit_code_2(tmp_path: Path) -> None:
    store = f"ssl.keystore.location={tmp_path / 'missing.p12'}"
    ended = run_to_end("broker", "start", "--data-dir", tmp_path, "--listeners", "SSL://127.0.0.1:0", "--config", store)
    (line,) = ended.stderr.splitlines()
    assert (ended.returncode, ended.stdout) == (2, "")
    assert line.startswith("barnabas: invalid value ")
    assert "missing.p12' for listener.name.ssl.ssl.keystore.location: a file that can be read (No such file or directory)" in line


def test_an_unknown_key_is_a_warning(tmp_path: Path) -> None:
    options = ["--data-dir", tmp_path, "--listeners", "PLAINTEXT://127.0.0.1:0", "--config", "no.such.key=1"]
    with running("broker", "start", *options) as (process, line):
        assert ADDRESS.findall(line)
        process.terminate()
        _, err = process.communicate(timeout=30)
    assert process.returncode == 0
    assert "no.such.key" in err


def test_no_data_folder_is_bad_input(command: Command) -> None:
    assert command("broker", "start").code == 2


def test_what_is_said_later_wins(tmp_path: Path) -> None:
    file = tmp_path / "server.properties"
    file.write_text("log.dirs=/from/file\nnum.partitions=1\nlisteners=PLAINTEXT://file:1\n")
    options = {**NOTHING, "config_file": str(file), "pairs": ("num.partitions=2", "listeners=PLAINTEXT://pair:1"), "broker_id": 7}
    assert collect_properties(**options) == {
        "log.dirs": "/from/file",
        "num.partitions": "2",
        "listeners": "PLAINTEXT://pair:1",
        "node.id": "7",
    }
    assert collect_properties(**{**options, "listeners": "PLAINTEXT://option:1"})["listeners"] == "PLAINTEXT://option:1"


@pytest.mark.parametrize("how_to_start", [["broker", "start"], ["start"]])
@pytest.mark.parametrize(
    ("said", "folder"),
    [
        ([], "environment"),
        (["--config", "log.dirs=config"], "config"),
        (["--config-file", "server.properties"], "file"),
        (["--config", "log.dirs=config", "--data-dir", "option"], "option"),
    ],
)
def test_the_environment_names_the_folder_where_nothing_else_does(
    command: Command, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, how_to_start: list[str], said: list[str], folder: str
) -> None:
    started: list[dict[str, str]] = []

    def run_server(properties: dict[str, str], *_: object) -> int:
        started.append(properties)
        return 0

    for module in ("broker", "start"):
        monkeypatch.setattr(f"barnabas.cli.{module}.run_server", run_server)
    monkeypatch.setenv("BARNABAS_DATA_DIR", "environment")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "server.properties").write_text("log.dirs=file\n")
    assert command(*how_to_start, *said).code == 0
    assert [properties["log.dirs"] for properties in started] == [folder]


@pytest.mark.parametrize("key", ["log.dir", "log.dirs"])
def test_a_terminal_is_told_where_the_data_lies(key: str, tmp_path: Path) -> None:
    terminal, its_end = os.openpty()
    folder = tmp_path / "data"
    command = [
        sys.executable,
        "-m",
        "barnabas.cli",
        "start",
        "--config",
        f"{key}={folder}",
        "--listeners",
        "PLAINTEXT://127.0.0.1:0",
    ]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=its_end, text=True) as process:
        os.close(its_end)
        try:
            assert process.stdout is not None
            assert ADDRESS.findall(process.stdout.readline())
            assert f"data in {folder};" in os.read(terminal, 65_536).decode()
        finally:
            process.kill()
            os.close(terminal)


def test_a_missing_settings_file_is_bad_input(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="cannot read"):
        collect_properties(**{**NOTHING, "config_file": str(tmp_path / "missing")})
