"""Engines as processes that share the tasks of connectors, without Spark; jobs are declared as the leader of Connect does."""

from __future__ import annotations

import os
import signal
from collections.abc import Mapping
from pathlib import Path
from typing import Literal

from barnabas.client.blocking import BlockingClient
from barnabas.client.config import ClientConfig
from barnabas.engine.jobs import ASSIGNMENTS, JOBS, PROGRESS, STATES, ConnectorWork, Job, JobState, State
from barnabas.engine.stores import assignments_of, jobs_of, states_of
from barnabas.testing import Broker
from barnabas.testing.services import ServicesProcess
from tests.connect.runtime.tasks import STRINGS
from tests.waiting import wait_until


class Workers:
    """Engines of one cluster."""

    def __init__(self, broker: Broker, folder: Path) -> None:
        self.settings = {"bootstrap.servers": broker.bootstrap_servers}
        config = ClientConfig.from_options(self.settings)
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

    def declare(
        self, connector: str, kind: Literal["source", "sink"], plugin: str, config: Mapping[str, str], *, tasks: int = 1,
        restarts: int = 0,
    ) -> list[str]:  # fmt: skip
        """Jobs of a connector; returns their names."""
        works = [
            ConnectorWork(connector, task, tasks, kind, plugin, {"name": connector, **config}, STRINGS) for task in range(tasks)
        ]
        jobs = {f"connect-{connector}-{work.task}": work for work in works}
        self.jobs.put(self.client, {name: Job(name, work, generation=1, restarts=restarts) for name, work in jobs.items()})
        return list(jobs)

    def state(self, name: str) -> JobState | None:
        return self.states.follow().get(name)

    def running(self) -> dict[str, str | None]:
        """The URL of the engine by the job that it runs."""
        return {name: each.url for name, each in self.states.follow().items() if each.state is State.RUNNING and each.worker}

    def counts(self) -> list[int]:
        """The numbers of jobs that the engines run, the greatest first."""
        found = list(self.running().values())
        return sorted((found.count(each.url) for each in self.engines.values()), reverse=True)

    def waits_for(self, *counts: int) -> None:
        wait_until(lambda: self.counts() == list(counts), f"the engines do not run {counts} jobs", within_s=30)

    def close(self) -> None:
        for each in self.engines.values():
            each.close()
        there = self.client.topics()
        self.client.delete_topics([each for each in (JOBS, STATES, PROGRESS, ASSIGNMENTS) if each in there])
        for store in (self.jobs, self.states, self.assignments, self.client):
            store.close()
