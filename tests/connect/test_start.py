"""`barnabas connect start`: with the engine that it brings, and without any."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from barnabas.testing import Broker
from barnabas.testing.services import URL
from tests.connect.workers import FILE_SINK, FILE_SOURCE, Worker
from tests.waiting import wait_until

pytestmark = pytest.mark.timeout(180)


class Started(NamedTuple):
    """A command that serves."""

    process: subprocess.Popen[str]
    url: str

    @property
    def pid(self) -> int:
        return self.process.pid


@contextmanager
def started(broker: Broker, folder: Path, *arguments: str, lines: int = 1) -> Iterator[Started]:
    """A command of `barnabas`, after its first lines; the first one with an address that it prints is its URL."""
    command = [sys.executable, "-m", "barnabas.cli", *arguments, "-b", broker.bootstrap_servers]
    with subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            found = [URL.search(process.stdout.readline()) for _ in range(lines)]
            assert all(found), found
            connect = [each[1] for each in found if each is not None and "Connect" in each.string]
            yield Started(process, connect[0] if connect else "")
        finally:
            process.terminate()
            process.wait(60)


def connect(group: str, *more: str) -> tuple[str, ...]:
    """The command of a worker whose topics are its own."""
    topics = [f"-X{name}.storage.topic={group}-{name}" for name in ("config", "status", "offset")]
    return ("connect", "start", "--listener", "http://127.0.0.1:0", "--group-id", group, *topics, *more)


def first_task(worker: Worker, name: str) -> dict[str, Any]:
    status, found = worker.ask("GET", f"/connectors/{name}/status")
    return dict(found["tasks"][0]) if status == 200 and found["tasks"] else {}


def test_a_worker_runs_tasks_by_itself(broker: Broker, tmp_path: Path) -> None:
    read, written = tmp_path / "read", tmp_path / "written"
    read.write_text("one\ntwo\n")
    with started(broker, tmp_path, *connect("alone"), lines=2) as it:
        worker = Worker(it)
        worker.make("alone-in", {"connector.class": FILE_SOURCE, "file": str(read), "topic": "alone"})
        worker.make("alone-out", {"connector.class": FILE_SINK, "file": str(written), "topics": "alone"})
        wait_until(lambda: written.exists() and written.read_text() == "one\ntwo\n", "the lines did not come", within_s=60)
        wait_until(lambda: first_task(worker, "alone-in").get("state") == "RUNNING", "the status does not say so", within_s=30)
        assert first_task(worker, "alone-in")["worker_id"] == it.url.removeprefix("http://")


def test_a_task_whose_target_is_away_says_so_while_it_runs(broker: Broker, tmp_path: Path) -> None:
    with started(broker, tmp_path, *connect("away"), lines=2) as it:
        worker = Worker(it)
        read = tmp_path / "read"
        read.write_text("one\n")
        config = {
            "connector.class": "barnabas.FileSink", "topics": "away", "flush.size": "1", "format.class": "lines",
            "store.url": "s3://bucket", "store.endpoint": "http://127.0.0.1:1", "store.region": "us-east-1",
            "store.access_key_id": "a", "store.secret_access_key": "b",
        }  # fmt: skip
        worker.make("away-out", config)
        worker.make("away-in", {"connector.class": FILE_SOURCE, "file": str(read), "topic": "away"})
        wait_until(lambda: "trace" in first_task(worker, "away-out"), "it does not say why it waits", within_s=90)
        found = first_task(worker, "away-out")
        assert (found["state"], "\n" in found["trace"]) == ("RUNNING", False)
        assert "s3://bucket" in found["trace"]


def test_without_an_engine_the_status_says_so_until_there_is_one(broker: Broker, tmp_path: Path) -> None:
    said = f"no engine runs in this cluster; this starts one: barnabas engine start --bootstrap-server {broker.bootstrap_servers}"
    with started(broker, tmp_path, *connect("lonely", "--no-engine")) as it:
        worker = Worker(it)
        worker.make("lonely", {"connector.class": FILE_SOURCE, "file": str(tmp_path / "none"), "topic": "lonely"})
        wait_until(lambda: first_task(worker, "lonely").get("trace") == said, "the status gives no reason", within_s=30)
        assert first_task(worker, "lonely")["state"] == "UNASSIGNED"
        engine = ("engine", "start", "--listener", "http://127.0.0.1:0")
        with started(broker, tmp_path, *engine) as other:
            wait_until(lambda: first_task(worker, "lonely").get("state") == "RUNNING", "the task does not run", within_s=60)
            assert "trace" not in first_task(worker, "lonely")
            os.kill(other.pid, signal.SIGKILL)
            other.process.wait(60)
        wait_until(lambda: first_task(worker, "lonely").get("trace") == said, "a task runs without an engine", within_s=30)
        with started(broker, tmp_path, *engine):
            wait_until(lambda: first_task(worker, "lonely").get("state") == "RUNNING", "the task does not run again", within_s=60)
            worker.ask("DELETE", "/connectors/lonely")


def test_standalone_and_distributed_workers_share_the_offsets_of_a_name(broker: Broker, tmp_path: Path) -> None:
    """A source that moves from one to the other goes on where it was."""
    read, written = tmp_path / "read", tmp_path / "written"
    read.write_text("one\ntwo\n")
    (tmp_path / "worker.properties").write_text("offset.storage.topic=moved-offset\nlisteners=http://127.0.0.1:0\n")
    config = {"connector.class": FILE_SOURCE, "file": str(read), "topic": "moved"}
    out = {"connector.class": FILE_SINK, "file": str(written), "topics": "moved"}
    for name, its in (("moving", config), ("moving-out", out)):
        (tmp_path / f"{name}.properties").write_text("".join(f"{key}={each}\n" for key, each in {"name": name, **its}.items()))

    def is_there(*lines: str) -> bool:
        return written.exists() and written.read_text().splitlines() == list(lines)

    files = ("worker.properties", "moving.properties", "moving-out.properties")
    with started(broker, tmp_path, "connect", "standalone", *files):
        wait_until(lambda: is_there("one", "two"), "the lines did not come", within_s=60)
    with read.open("a") as more:
        more.write("three\n")
    with started(broker, tmp_path, *connect("moved"), lines=2) as it:
        worker = Worker(it)
        worker.make("moving", config)
        worker.make("moving-out", out)
        wait_until(lambda: is_there("one", "two", "three"), "it did not go on where it was", within_s=60)
    assert written.read_text() == "one\ntwo\nthree\n"
