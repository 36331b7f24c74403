"""The work of the runner's process; `__main__.py` starts it."""

from __future__ import annotations

import json
import logging
import multiprocessing
import shutil
import signal
import sys
import threading
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import msgspec

from barnabas.client.config import ClientConfig
from barnabas.engine.folders import job_folder
from barnabas.engine.job_loop import JobLoop
from barnabas.engine.jobs import Job, encode
from barnabas.engine.membership import SESSION_TIMEOUT_MS, Member
from barnabas.engine.runner.task_main import Start
from barnabas.engine.runner.task_process import TaskProcess
from barnabas.engine.runner_unit import apply_levels
from barnabas.engine.shared_jobs import own_jobs
from barnabas.engine.stores import assignments_of
from barnabas.pipelines.runs.process import guard_group

logger = logging.getLogger(__name__)
LEAVE_S = 3  # for tasks whose runner was killed; they are killed then
ASK_MS = 3_000  # of one request: the session must not end meanwhile
REGISTRY = "schema.registry.url"
FORMAT = "%(asctime)s level=%(levelname)s logger=%(name)s %(message)s"


class Runner:
    """Opens the jobs of a runner, each in a process.

    Args:
        settings: of the client.
        folder: of the engine.
        levels: of loggers.
    """

    def __init__(self, settings: Mapping[str, str], folder: Path, levels: Mapping[str, int]) -> None:
        self.settings = {name: value for name, value in settings.items() if name != REGISTRY}
        self._folder, self.levels = folder, levels
        self._context = multiprocessing.get_context("forkserver")

    def open(self, job: Job) -> TaskProcess:
        """The process of a job, which is not started yet."""
        start = Start(encode(job), self.settings, str(self._folder), dict(self.levels))
        return TaskProcess(self._context, start, lambda: self.levels)

    def forget(self, name: str) -> None:
        """Remove the log of a job that was dropped."""
        shutil.rmtree(job_folder(self._folder, name), ignore_errors=True)

    def listen(self, stopping: threading.Event) -> None:
        """Obey the lines of standard input, until it ends."""
        for line in sys.stdin:
            self.levels = json.loads(line)["levels"]
            apply_levels(self.levels)
        stopping.set()


def quick(config: ClientConfig) -> ClientConfig:
    """The same client, which waits no longer for an answer than `ASK_MS`."""
    limit_ms = min(config.default_api_timeout_ms, ASK_MS)
    return replace(config, default_api_timeout_ms=limit_ms, request_timeout_ms=min(config.request_timeout_ms, limit_ms))


def main(given: str) -> int:
    """Run the tasks of this engine until standard input ends or SIGTERM comes; returns the exit code.

    Args:
        given: what the process needs to begin, as JSON.
    """
    task = json.loads(given)
    guard_group(LEAVE_S)
    logging.basicConfig(level="INFO", stream=sys.stderr, format=FORMAT)
    apply_levels(task["levels"])
    stopping = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda _number, _frame: stopping.set())
    member = msgspec.convert(task["member"], Member)
    runner = Runner(task["settings"], Path(task["folder"]), task["levels"])
    threading.Thread(target=runner.listen, args=(stopping,), daemon=True).start()
    config = quick(ClientConfig.from_options(runner.settings))
    assignments = assignments_of(config)
    loop = JobLoop(
        config, runner.open, lambda jobs: own_jobs(jobs, assignments.follow(), member.id), member=member,
        patience_s=SESSION_TIMEOUT_MS / 1000, forget=runner.forget,
    )  # fmt: skip
    print("ready", flush=True)
    loop.run(stopping)
    assignments.close()
    return 0
