"""ZooKeeper servers as child processes: nothing of them is left, whatever happens to who started them."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from barnabas.testing import zookeeper
from barnabas.testing.zookeeper import ZooKeeper, ZooKeeperUnavailable

STARTER = """
import sys
from barnabas.testing.zookeeper import ZooKeeper
running = ZooKeeper()
print(running.folder, running.ports[0], flush=True)
sys.stdin.read()
"""


def listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def test_nothing_is_left_after_close() -> None:
    with ZooKeeper() as running:
        folder, port = running.folder, running.ports[0]
        assert listens(port)
    assert not listens(port)
    assert not folder.exists()


def test_a_folder_that_was_given_stays_and_is_used_again(tmp_path: Path) -> None:
    with ZooKeeper(folder=tmp_path):
        pass
    assert (tmp_path / "data-1").is_dir()
    with ZooKeeper(folder=tmp_path) as again:
        assert again.folder == tmp_path


def test_nothing_is_left_when_the_starter_is_killed() -> None:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-c", STARTER]
    starter = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment, text=True)
    assert starter.stdout is not None
    with starter, starter.stdout:
        folder, port = starter.stdout.readline().split()
        assert listens(int(port))
        starter.send_signal(signal.SIGKILL)
        # The guard is not the server's parent and cannot wait for its end: the folder may go just before the port closes.
        while Path(folder).exists() or listens(int(port)):
            os.sched_yield()


def test_what_is_missing_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(zookeeper, "JAR", tmp_path / "zookeeper.jar")
    with pytest.raises(ZooKeeperUnavailable, match="apt-get install zookeeper"):
        ZooKeeper()
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ZooKeeperUnavailable, match="java"):
        ZooKeeper()


def test_a_folder_may_have_any_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LC_ALL", "C")  # in this locale Java cannot encode most of these characters
    folder = tmp_path / "ü 😀\udcff\\,#=:!%$'\"\n-x "
    with ZooKeeper(folder=folder) as zookeeper:
        assert zookeeper.pids
        assert (folder / "data-1" / "version-2").is_dir()
    assert list(tmp_path.iterdir()) == [folder]
