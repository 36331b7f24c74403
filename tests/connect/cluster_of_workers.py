"""Engines as processes that share the tasks of connectors, without Spark; jobs are declared as the leader of Connect does."""

from __future__ import annotations

import os
import signal
from collections.abc import Mapping
from pathlib import Path
from typing import Literal

from barnabas.client.blocking import BlockingClient
from barnabas.client.config import ClientConfig
from barnabas.client.results import NewTopic
from barnabas.connect.runtime.source_offsets import records_of
from barnabas.engine.folders import job_log
from barnabas.engine.jobs import ASSIGNMENTS, JOBS, PROGRESS, STATES, ConnectorWork, Job, JobState, State
from barnabas.engine.stores import assignments_of, jobs_of, states_of
from barnabas.testing import Broker
from barnabas.testing.services import ServicesProcess
from tests.connect.runtime.tasks import JSON
from tests.waiting import wait_until

RUNNER, SERVER = "barnabas.engine.runner", "multiprocessing.forkserver"


class Workers:
    """Engines of one cluster."""

    def __init__(self, broker: Broker, folder: Path) -> None:
        self.settings = {"bootstrap.servers": broker.bootstrap_servers}
        config = ClientConfig.from_options({**self.settings, "isolation.level": "read_committed"})
        self.client = BlockingClient(config)
        self.jobs, self.states, self.assignments = jobs_of(config), states_of(config), assignments_of(config)
        self.folder = folder
        self.engines: dict[str, ServicesProcess] = {}

    def start(self, name: str) -> ServicesProcess:
        folder = self.folder / name
        folder.mkdir(exist_ok=True)
        properties = {**self.settings, "engine.data.dir": str(folder), "engine.linger.ms": "300"}
        self.engines[name] = ServicesProcess("engine", properties, folder / "services.log")
        return self.engines[name]

    def kill(self, name: str) -> None:
        """End the services process by SIGKILL."""
        engine = self.engines.pop(name)
        os.kill(engine.pid, signal.SIGKILL)
        engine.close()

    def stop(self, name: str) -> None:
        self.engines.pop(name).close()

    def create_topic(self, name: str, partitions: int = 1) -> None:
        self.client.create_topics([NewTopic(name, partitions)])

    def declare(
        self, connector: str, kind: Literal["source", "sink"], plugin: str, config: Mapping[str, str], *, tasks: int = 1,
        restarts: int = 0,
    ) -> list[str]:  # fmt: skip
        """Jobs of a connector; returns their names."""
        works = [
            ConnectorWork(connector, task, tasks, kind, plugin, {"name": connector, **config}, JSON) for task in range(tasks)
        ]
        jobs = {f"connect-{connector}-{work.task}": work for work in works}
        self.jobs.put(self.client, {name: Job(name, work, generation=1, restarts=restarts) for name, work in jobs.items()})
        return list(jobs)

    def state(self, name: str) -> JobState | None:
        return self.states.follow().get(name)

    def until(self, name: str, state: State, error: str | None = None) -> JobState:
        """Wait until a job is in a state, with this error."""
        found: list[JobState] = []

        def holds() -> bool:
            now = self.state(name)
            found[:] = [] if now is None else [now]
            return now is not None and now.state is state and now.error == error

        wait_until(holds, f"{name} is not {state}", within_s=40)
        return found[0]

    def values(self, topic: str) -> list[bytes]:
        """The committed values of a topic."""
        return [bytes(each.value or b"") for each in records_of(self.client, topic)]

    def log(self, name: str, job: str) -> str:
        """The log of a job at an engine."""
        path = job_log(self.folder / name, job)
        return path.read_text() if path.exists() else ""

    def running(self) -> dict[str, str | None]:
        """The URL of the engine by the job that it runs."""
        return {name: each.url for name, each in self.states.follow().items() if each.state is State.RUNNING and each.worker}

    def counts(self) -> list[int]:
        """The numbers of jobs that the engines run, the greatest first."""
        found = list(self.running().values())
        return sorted((found.count(each.url) for each in self.engines.values()), reverse=True)

    def waits_for(self, *counts: int) -> None:
        wait_until(lambda: self.counts() == list(counts), f"the engines do not run {counts} jobs", within_s=40)

    def close(self) -> None:
        for each in self.engines.values():
            each.close()
        there = self.client.topics()
        self.client.delete_topics([each for each in (JOBS, STATES, PROGRESS, ASSIGNMENTS) if each in there])
        for store in (self.jobs, self.states, self.assignments, self.client):
            store.close()


def descendants(pid: int) -> dict[int, list[str]]:
    """The processes below one, as `ps` shows them: their command lines."""
    parents: dict[int, int] = {}
    for path in Path("/proc").iterdir():
        if path.name.isdigit():
            try:
                parents[int(path.name)] = int((path / "stat").read_text().rpartition(")")[2].split()[1])
            except OSError:
                continue
    found: set[int] = set()
    while more := {each for each, parent in parents.items() if parent in {pid, *found}} - found:
        found |= more
    lines = {}
    for each in found:
        try:
            lines[each] = Path(f"/proc/{each}/cmdline").read_text().split("\0")
        except OSError:
            continue
    return lines


def runner_of(pid: int) -> int | None:
    """The runner of an engine."""
    return next((each for each, line in descendants(pid).items() if RUNNER in line), None)


def tasks_of(pid: int) -> list[int]:
    """The processes of tasks of an engine: those below the fork server of its runner."""
    runner = runner_of(pid)
    if runner is None:
        return []
    servers = [each for each, line in descendants(runner).items() if any(SERVER in word for word in line)]
    below = {each: descendants(each) for each in servers}
    top = max(below, key=lambda each: len(below[each]), default=None)
    return sorted(below[top]) if top is not None else []
