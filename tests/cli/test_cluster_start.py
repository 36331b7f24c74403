"""A cluster for trying things out: it says where it is, and leaves nothing behind when it ends, in whatever way that happens."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient

import barnabas
from barnabas.testing.children import Child
from tests.cli.conftest import Command

WITHIN_S = 60


@contextmanager
def started(folder: Path, *options: str) -> Iterator[tuple[subprocess.Popen[str], dict[str, list[str]]]]:
    """The command in `folder`, and the lines it said by their first words; its end ends the cluster."""
    source = str(Path(barnabas.__file__).resolve().parent.parent)
    command = [sys.executable, "-m", "barnabas.cli", "cluster", "start", *options]
    environment = {**os.environ, "PYTHONPATH": source}
    process: Child[str] = Child(
        command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=environment
    )
    assert process.stdout is not None
    with process, process.stdout as lines:
        try:
            said = {}
            for line in lines:
                name, *rest = line.split()
                said[name if name != "broker" else f"broker {rest[0]}"] = rest
                if name == "bootstrap":
                    break
            yield process, said
        finally:
            process.kill()


@pytest.mark.timeout(150)
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL], ids=["interrupted", "killed"])
def test_a_cluster_starts_and_ends(tmp_path: Path, number: signal.Signals) -> None:
    with started(tmp_path, "--brokers", "2") as (process, said):
        admin = AdminClient({"bootstrap.servers": said["bootstrap"][0], "log_level": 0})
        deadline = time.monotonic() + WITHIN_S
        while sorted((metadata := admin.list_topics(timeout=WITHIN_S)).brokers) != [1, 2]:
            assert time.monotonic() < deadline, f"brokers {sorted(metadata.brokers)}"
        assert metadata.controller_id in {1, 2}
        del admin
        children = [int(said[f"broker {n}"][3]) for n in (1, 2)]
        process.send_signal(number)
        assert process.wait(WITHIN_S) == (0 if number is signal.SIGINT else -signal.SIGKILL)
    check_all_ended(tmp_path, children)
    assert sorted(path.name for path in (tmp_path / "barnabas-cluster").iterdir()) == ["broker-1", "broker-2", "zookeeper"]


@pytest.mark.timeout(150)
def test_a_cluster_on_an_ensemble_takes_and_gives_a_record(tmp_path: Path, command: Command) -> None:
    with started(tmp_path, "--brokers", "1", "--zookeepers", "3") as (process, said):
        assert len(said["zookeeper"][0].split(",")) == 3
        zookeepers = [user for user in users_of(tmp_path) if b"QuorumPeerMain" in command_line(user)]
        assert len(zookeepers) == 3
        server = "-b", said["bootstrap"][0]
        assert command("produce", "t", *server, stdin=b"one\n").code == 0
        assert command("consume", "t", "--from", "earliest", *server).lines == ["one"]
        broker = int(said["broker 1"][3])
        process.send_signal(signal.SIGINT)
        assert process.wait(WITHIN_S) == 0
    check_all_ended(tmp_path, [*zookeepers, broker])


def check_all_ended(folder: Path, children: Sequence[int]) -> None:
    deadline = time.monotonic() + WITHIN_S
    for process_id in [*children, *users_of(folder)]:
        assert has_ended(process_id, deadline - time.monotonic()), "processes are left"
    assert not users_of(folder)


def has_ended(process_id: int, within_s: float) -> bool:
    """Whether a process, that need not be ours, is gone; waits for it."""
    try:
        end = os.pidfd_open(process_id)
    except ProcessLookupError:
        return True
    try:
        return bool(select.select([end], [], [], max(within_s, 0))[0])
    finally:
        os.close(end)


def users_of(folder: Path) -> list[int]:
    """The processes that name the folder on their command lines or hold it open, but for this one."""
    found = []
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and entry.name != str(os.getpid()):
                names = [command_line(int(entry.name)), *(os.fsencode(os.readlink(each)) for each in (entry / "fd").iterdir())]
                if any(os.fsencode(folder) in name for name in names):
                    found.append(int(entry.name))
        except OSError:
            continue
    return found


def command_line(process_id: int) -> bytes:
    return Path(f"/proc/{process_id}/cmdline").read_bytes()
