"""Connect and the engine in one process, and a second engine: statuses, logs and levels of loggers of tasks that run in processes."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.request import urlopen

import pytest

from barnabas.services.supervisor import spawn
from barnabas.testing import Broker
from barnabas.testing.services import URL
from tests.connect.cluster_of_workers import Workers
from tests.connect.sample_plugins import installed
from tests.connect.workers import Worker
from tests.waiting import wait_until

LOCAL = "http://127.0.0.1:0"


class Both:
    """The process of both services."""

    def __init__(self, process: subprocess.Popen[bytes], urls: list[str]) -> None:
        self.process = process
        self.engine, self.url = urls

    @property
    def connect(self) -> Worker:
        return Worker(self)  # type: ignore[arg-type]  # it needs a process with a URL


@contextmanager
def serving(broker: Broker, folder: Path) -> Iterator[Both]:
    """Connect and the engine."""
    properties = {
        "bootstrap.servers": broker.bootstrap_servers, "engine.data.dir": str(folder / "both"), "group.id": folder.name,
        **{f"{name}.storage.topic": f"{folder.name}-{name}" for name in ("config", "status", "offset")},
    }  # fmt: skip
    process = spawn({"engine": LOCAL, "connect": LOCAL}, properties, stdout=subprocess.PIPE)
    try:
        assert process.stdout is not None
        found = [URL.search(process.stdout.readline().decode()) for _ in range(2)]
        yield Both(process, [each[1] for each in found if each is not None])
    finally:
        process.terminate()
        process.communicate(timeout=60)


def test_status_logs_and_levels_of_tasks_on_two_engines(broker: Broker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", installed(tmp_path / "installed"))
    workers = Workers(broker, tmp_path)
    with serving(broker, tmp_path) as both:
        try:
            workers.start("other")
            for name in ("one", "two"):
                workers.create_topic(name)
                both.connect.make(name, {"connector.class": "tests.Counting", "topic": name})
            workers_of = {}

            def are_shared() -> bool:
                for name in ("one", "two"):
                    tasks = both.connect.ask("GET", f"/connectors/{name}/status")[1].get("tasks", [])
                    workers_of[name] = [(each["state"], each["worker_id"]) for each in tasks]
                here, there = (url.removeprefix("http://") for url in (both.url, workers.engines["other"].url))
                return sorted(workers_of.values()) == sorted([[("RUNNING", here)], [("RUNNING", there)]])

            wait_until(are_shared, "the tasks are not shared", within_s=30)
            assert both.connect.ask("PUT", "/admin/loggers/barnabas.connect", {"level": "DEBUG"})[0] == 200
            here = next(name for name, found in workers_of.items() if found[0][1] == both.url.removeprefix("http://"))
            for name in ("one", "two"):  # of any engine, as the engine that has the log
                with urlopen(f"{both.engine}/jobs/connect-{name}-0/logs?lines=10000", timeout=60) as answer:
                    assert "event=counts-from" in answer.read().decode()
            log = tmp_path / "both" / "jobs" / f"connect-{here}-0" / "log"
            wait_until(lambda: "event=counts-now" in log.read_text(), "the level did not come to the task")
            assert both.connect.ask("DELETE", f"/connectors/{here}")[0] == 204
            wait_until(lambda: not log.exists(), "the log stays")
        finally:
            workers.close()
