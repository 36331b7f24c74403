"""A cluster for tests of the engine: declare jobs, look at their states, run supervisors with the fake driver."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from barnabas.client.blocking import BlockingClient
from barnabas.client.config import ClientConfig
from barnabas.engine.jobs import JOBS, PROGRESS, STATES, Desired, InputTable, Job, JobState, PipelineWork, ViewWork
from barnabas.engine.stores import jobs_of, progress_of, states_of
from barnabas.engine.supervisor import EngineSettings, Supervisor
from barnabas.incremental.plan import Column, Input, Plan
from barnabas.testing import Broker
from tests.waiting import wait_until

FAKE = (sys.executable, str(Path(__file__).with_name("fake_driver.py")))


def view(name: str, sql: str = "select 1", **fields: Any) -> Job:
    plan = Plan((Input("t", (Column("a", "BIGINT"),)),))
    tables = {"t": InputTable(f"{name}.in", "json", ("a",))}
    return Job(name, ViewWork(sql, plan, tables, name, "a bigint", "a bigint"), **fields)


def pipeline(name: str, target: str, *arguments: str, **fields: Any) -> Job:
    return Job(name, PipelineWork(target, arguments), **fields)


class Cluster:
    """A broker, and the topics of jobs on it."""

    def __init__(self, broker: Broker, folder: Path) -> None:
        self.bootstrap, self.folder = broker.bootstrap_servers, folder
        self.config = ClientConfig.from_options({"bootstrap.servers": self.bootstrap})
        self.client = BlockingClient(self.config)
        self.jobs, self.states, self.progress = jobs_of(self.config), states_of(self.config), progress_of(self.config)
        self.said: list[str] = []

    def declare(self, *jobs: Job) -> None:
        self.jobs.put(self.client, {each.name: each for each in jobs})

    def drop(self, *names: str) -> None:
        self.jobs.put(self.client, dict.fromkeys(names))

    def state(self, name: str) -> JobState | None:
        return self.states.follow().get(name)

    def is_in(self, name: str, state: str) -> bool:
        found = self.state(name)
        return found is not None and found.state == state

    def wait_for(self, name: str, state: str) -> JobState:
        wait_until(lambda: self.is_in(name, state), f"{name} is not {state}")
        found = self.state(name)
        assert found is not None
        return found

    @property
    def driver(self) -> int | None:
        """The process of the fake driver, if it lives."""
        try:
            pid = int((self.folder / "fake.pid").read_text())
            os.kill(pid, 0)
        except (FileNotFoundError, ProcessLookupError, ValueError):
            return None
        return pid

    @contextmanager
    def supervisor(self, **settings: Any) -> Iterator[Supervisor]:
        """An active one."""
        client = {"bootstrap.servers": self.bootstrap}
        given: dict[str, Any] = {
            "driver": FAKE,
            "linger_s": 0.3,
            "pause_s": 0.1,
            "master": "local[3]",
            "conf": {"spark.x": "y"},
            **settings,
        }
        supervisor = Supervisor(self.config, EngineSettings(client, self.folder, **given), self.said.append)
        supervisor.start()
        supervisor.activate(True)
        try:
            yield supervisor
        finally:
            supervisor.close()

    def close(self) -> None:
        """End what a test left, and forget all jobs."""
        if self.driver is not None:
            with suppress(ProcessLookupError):
                os.kill(self.driver, signal.SIGKILL)
        there = self.client.topics()
        self.client.delete_topics([each for each in (JOBS, STATES, PROGRESS) if each in there])
        for each in (self.jobs, self.states, self.progress, self.client):
            each.close()


PAUSED = Desired.PAUSED
