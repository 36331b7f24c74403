"""Standard streams that are closed, full, or read by nobody."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from barnabas.testing.zookeeper import free_ports
from tests.cli import fuzzing
from tests.cli.conftest import UNUSED, Command
from tests.waiting import wait_until

BARNABAS = (sys.executable, "-m", "barnabas.cli")
HOWS = ("<&-", ">&-", "2>&-", "<&- >&- 2>&-")


def shell(how: str, *arguments: str, stdin: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        ["sh", "-c", f'exec "$@" {how}', "sh", *BARNABAS, *arguments], input=stdin, capture_output=True, check=False, timeout=60
    )


def test_every_command_with_every_stream_closed(tmp_path: Path) -> None:
    """Its help, and what it does where no broker is to be reached or what it is given is refused."""
    helps = [[*name.split()[1:], "--help"] for name, _ in fuzzing.LEAVES]
    actions = [list(fuzzing.case_of(name, command).arguments) for name, command in fuzzing.LEAVES]
    environment = {
        **os.environ,
        "BARNABAS_BOOTSTRAP_SERVERS": UNUSED,
        "HOME": str(tmp_path),
        "PYTHONPATH": os.pathsep.join(sys.path),
    }
    done = subprocess.run(
        [sys.executable, "-m", "tests.cli.closed_streams"],
        input=json.dumps(helps + actions), capture_output=True, text=True, check=True, env=environment, cwd=tmp_path,
    )  # fmt: skip
    results = json.loads(done.stdout.splitlines()[-1])
    assert len(results) == 5 * len(fuzzing.LEAVES)
    for arguments, closed, code, error in results:
        assert error is None, f"{arguments} without {closed}: {error}"
        assert code in ({0} if arguments[-1] == "--help" else {0, 1, 2}), f"{arguments} without {closed} ended with {code}"


@pytest.mark.parametrize("how", ["<&-", HOWS[-1]])
def test_a_broker_without_a_stream_ends_in_order(tmp_path: Path, how: str) -> None:
    (port,) = free_ports(1)
    arguments = ["broker", "start", "--data-dir", str(tmp_path / "d"), "--listeners", f"PLAINTEXT://127.0.0.1:{port}"]
    with subprocess.Popen(["sh", "-c", f'exec "$@" {how}', "sh", *BARNABAS, *arguments], stdout=-1, stderr=-1) as process:
        try:
            wait_until(lambda: is_serving(port), within_s=60)
            process.send_signal(signal.SIGTERM)
            assert process.wait(60) == 0
        finally:
            process.kill()


def is_serving(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), 1).close()
    except OSError:
        return False
    return True


@pytest.mark.parametrize("how", HOWS)
def test_records_go_in_and_come_out_without_the_other_streams(
    kafka_command: Command, topic: str, bootstrap: str, how: str
) -> None:
    server = ("-b", bootstrap)
    # without standard input, it sends no record
    assert shell(how, "produce", topic, "-p", "0", *server, stdin=b"a\n").returncode == 0
    assert kafka_command("produce", topic, "-p", "0", stdin=b"a\n").code == 0
    ended = shell(how, "consume", topic, *server)
    assert ended.returncode == 0
    assert ended.stdout == (b"" if how in (">&-", HOWS[-1]) else b"a\n" * (1 if how == "<&-" else 2))


def test_a_full_output_is_one_line_and_a_failure(kafka_command: Command, topic: str, bootstrap: str) -> None:
    assert kafka_command("produce", topic, stdin=b"a\n").code == 0
    for arguments in (("--help",), ("topic", "list", "-b", bootstrap), ("consume", topic, "-b", bootstrap)):
        ended = shell(">/dev/full", *arguments)
        assert (ended.returncode, ended.stderr) == (1, b"barnabas: cannot write to standard output: No space left on device\n")
    assert shell("2>/dev/full", "topic", "nonsense").returncode == 2


def test_a_reader_that_goes_away_is_no_failure(kafka_command: Command, topic: str, bootstrap: str) -> None:
    assert kafka_command("produce", topic, "-p", 0, stdin=b"x" * 100 + b"\n" * 20_000).code == 0
    arguments = [*BARNABAS, "consume", topic, "-b", bootstrap]
    with subprocess.Popen(arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline()
        process.stdout.close()
        assert process.stderr is not None
        assert (process.stderr.read(), process.wait(60)) == (b"", 0)
