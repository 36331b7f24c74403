"""The rounds: change jobs, kill something at some moment, and look whether everything becomes as the jobs say.

The driver is the fake of `tests/engine/fake_driver.py`, so a round takes seconds, and the moments are those of the supervisor.
"""

from __future__ import annotations

import os
import random
import signal
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path

from barnabas.engine import operations
from barnabas.engine.folders import job_folder
from barnabas.engine.jobs import Desired, Job, State
from barnabas.errors import BarnabasError
from barnabas.testing import Broker
from tests.engine.cluster import Cluster, pipeline, view
from tests.engine.processes import Service, serving
from tests.spans import until_random_moment
from tests.waiting import wait_until

VIEWS, PIPELINES = ("a", "b", "c"), ("p", "q")
KINDS = ("driver", "engine", "broker", "nothing")
SLEEPS = "import time\ntime.sleep(3600)\n"
WITHIN_S = 120.0


@dataclass(frozen=True)
class Round:
    """One round that held."""

    number: int
    kind: str
    jobs: int
    seconds: float


class Torture:
    """A broker, an engine that is started again after each kill, and jobs.

    Args:
        folder: for everything on disk.
    """

    def __init__(self, folder: Path, seed: int) -> None:
        self._random = random.Random(seed)
        self._pipelines = folder / "pipelines"
        self._pipelines.mkdir()
        (self._pipelines / "sleeps.py").write_text(SLEEPS)
        self._folder = folder
        self._stack = ExitStack()
        self._broker = self._stack.enter_context(Broker())
        self._cluster = Cluster(self._broker, folder / "engine")
        self._stack.callback(self._cluster.close)
        self._engine: Service | None = None
        self._running = ExitStack()

    def __enter__(self) -> Torture:
        try:
            self._start()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._running.close()
        self._stack.close()

    def _start(self) -> None:
        self._running.close()
        self._running = ExitStack()
        self._engine = self._running.enter_context(serving(self._cluster, engine_pipelines_dir=str(self._pipelines)))

    def round(self, number: int) -> Round:
        """Raises AssertionError if the cluster does not become as its jobs say."""
        kind, began = self._random.choice(KINDS), time.monotonic()
        for _ in range(self._random.randint(1, 4)):
            self._change()
        until_random_moment(self._random, 0.6)
        self._kill(kind)
        try:
            wait_until(self._is_as_declared, within_s=WITHIN_S)
        except AssertionError:
            raise AssertionError(f"round {number}, {kind} killed: {'; '.join(self._difference())}") from None
        return Round(number, kind, len(self._cluster.jobs.records), time.monotonic() - began)

    def _change(self) -> None:
        name, act = (
            self._random.choice((*VIEWS, *PIPELINES)),
            self._random.choice(("create", "drop", "pause", "resume", "restart")),
        )
        jobs, client = self._cluster.jobs, self._cluster.client
        with suppress(operations.JobError):
            match act:
                case "create":
                    operations.create(jobs, client, view(name) if name in VIEWS else pipeline(name, "sleeps.py"))
                case "drop":
                    jobs.put(client, {name: None})
                case "pause":
                    operations.pause(jobs, client, name)
                case "resume":
                    operations.resume(jobs, client, name)
                case "restart":
                    operations.restart(jobs, client, name, rebuild=self._random.random() < 0.5)

    def _kill(self, kind: str) -> None:
        if kind == "driver" and (driver := self._cluster.driver) is not None:
            with suppress(ProcessLookupError):
                os.kill(driver, signal.SIGKILL)
            wait_until(lambda: self._cluster.driver != driver, within_s=WITHIN_S)
        elif kind == "engine" and self._engine is not None:
            self._engine.process.kill()
            self._start()
        elif kind == "broker":
            self._broker.kill()
            until_random_moment(self._random, 0.5)
            self._broker.restart()

    def _is_as_declared(self) -> bool:
        try:
            return not self._difference()
        except BarnabasError:  # the broker starts
            return False

    def _difference(self) -> list[str]:
        """How the states and the processes differ from the jobs."""
        jobs, states = self._cluster.jobs.follow(), self._cluster.states.follow()
        found = [f"{name} has a state, and is no job" for name in states.keys() - jobs.keys()]
        for name, job in jobs.items():
            state = states.get(name)
            wanted = State.RUNNING if job.desired is Desired.RUNNING else State.PAUSED
            told = None if state is None else (state.state, state.generation, state.restarts)
            if told != (wanted, job.generation, job.restarts):
                found.append(f"{name} is {told}, and should be {wanted}, {job.generation}, {job.restarts}")
        found += [f"the folder of {name} is left" for name in (*VIEWS, *PIPELINES) if name not in jobs and self._has_folder(name)]
        is_needed = any(name in VIEWS and job.desired is Desired.RUNNING for name, job in jobs.items())
        if is_needed != (self._cluster.driver is not None):
            found.append(f"the driver is {'not ' * is_needed}there")
        found += self._processes(jobs)
        return found

    def _has_folder(self, name: str) -> bool:
        return job_folder(self._cluster.folder, name).exists()

    def _processes(self, jobs: dict[str, Job] | object) -> list[str]:
        """A job has one process at most, whatever was killed."""
        lines = []
        for path in Path("/proc").glob("[0-9]*/cmdline"):
            with suppress(OSError):
                lines.append(path.read_bytes().replace(b"\0", b" ").decode(errors="replace"))
        running = [line for line in lines if str(self._folder) in line and "barnabas.pipelines.runs.process" in line]
        twice = [name for name in PIPELINES if sum(f"/{name}/events" in line for line in running) > 1]
        return [f"{name} runs twice" for name in twice]


def torture(rounds: int, seed: int) -> Iterator[Round]:
    """Raises AssertionError in the round that fails."""
    with tempfile.TemporaryDirectory() as folder, Torture(Path(folder), seed) as it:
        for number in range(1, rounds + 1):
            yield it.round(number)
