"""A cluster for trying things out: it says where it is, and leaves nothing behind when it ends, in whatever way that happens."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient

import barnabas

WITHIN_S = 60


@pytest.mark.timeout(150)
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL], ids=["interrupted", "killed"])
def test_a_cluster_starts_and_ends(tmp_path: Path, number: signal.Signals) -> None:
    source = str(Path(barnabas.__file__).resolve().parent.parent)
    command = [sys.executable, "-m", "barnabas.cli", "cluster", "start", "--brokers", "2"]
    environment = {**os.environ, "PYTHONPATH": source}
    process = subprocess.Popen(
        command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=environment
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
            admin = AdminClient({"bootstrap.servers": said["bootstrap"][0], "log_level": 0})
            deadline = time.monotonic() + WITHIN_S
            while sorted((metadata := admin.list_topics(timeout=WITHIN_S)).brokers) != [1, 2]:
                assert time.monotonic() < deadline, f"brokers {sorted(metadata.brokers)}"
            assert metadata.controller_id in {1, 2}
            del admin
            children = [int(said[f"broker {n}"][3]) for n in (1, 2)]
            process.send_signal(number)
            assert process.wait(WITHIN_S) == (0 if number is signal.SIGINT else -signal.SIGKILL)
        finally:
            process.kill()  # its end ends the cluster
    deadline = time.monotonic() + WITHIN_S
    for process_id in [*children, *users_of(tmp_path)]:
        assert has_ended(process_id, deadline - time.monotonic()), "processes are left"
    assert not users_of(tmp_path)
    assert sorted(path.name for path in (tmp_path / "barnabas-cluster").iterdir()) == ["broker-1", "broker-2", "zookeeper"]


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
    """The processes that name the folder on their command lines."""
    found = []
    for entry in Path("/proc").iterdir():
        try:
            if (
                entry.name.isdigit()
                and entry.name != str(os.getpid())
                and str(folder).encode() in (entry / "cmdline").read_bytes()
            ):
                found.append(int(entry.name))
        except OSError:
            continue
    return found
