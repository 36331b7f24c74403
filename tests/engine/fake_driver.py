"""Stands in for `python -m barnabas.engine.driver`: speaks its contract without Spark.

The `sql` of a view says how it behaves: `crash` ends the process with an error as soon as the job should run; anything else runs.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import sys
import threading
import time
from pathlib import Path
from types import FrameType

from barnabas.client.blocking import BlockingClient
from barnabas.client.config import ClientConfig
from barnabas.engine.folders import job_folder, job_log
from barnabas.engine.jobs import Desired, Job, JobProgress, JobState, State, ViewWork
from barnabas.engine.stores import jobs_of, progress_of, states_of
from barnabas.errors import BarnabasError

ENDED = threading.Event()


def main() -> None:
    task = json.loads(os.environ["BARNABAS_ENGINE_TASK"])
    signal.signal(signal.SIGTERM, _end)
    threading.Thread(target=_watch_input, daemon=True).start()
    folder = Path(task["folder"])
    config = ClientConfig.from_options(task["settings"])
    client, jobs, states, progress = BlockingClient(config), jobs_of(config), states_of(config), progress_of(config)
    (folder / "fake.pid").write_text(str(os.getpid()))
    (folder / "fake.task").write_text(json.dumps(task))
    print("ready", flush=True)
    print("fake driver works", file=sys.stderr, flush=True)
    while not ENDED.wait(0.05):
        with contextlib.suppress(BarnabasError):
            found = {name: job for name, job in jobs.follow().items() if isinstance(job.work, ViewWork)}
            for job in found.values():
                if job.desired is Desired.RUNNING and isinstance(job.work, ViewWork) and job.work.sql == "crash":
                    raise SystemExit("SomeError: the fake crashes")
            known = states.follow()
            made = {name: _state(folder, job) for name, job in found.items()}
            if changed := {name: each for name, each in made.items() if not _same(known.get(name), each)}:
                states.put(client, dict(changed))
                progress.put(client, {name: _progress(found[name]) for name in changed})


def _same(known: JobState | None, made: JobState) -> bool:
    return known is not None and (known.state, known.generation, known.restarts) == (made.state, made.generation, made.restarts)


def _state(folder: Path, job: Job) -> JobState:
    job_folder(folder, job.name, job.generation).mkdir(parents=True, exist_ok=True)
    with job_log(folder, job.name).open("a") as log:
        log.write(f"{job.name} is {job.desired}\n")
    state = State.RUNNING if job.desired is Desired.RUNNING else State.PAUSED
    return JobState(job.name, job.generation, job.restarts, state, int(time.time() * 1000))


def _progress(job: Job) -> JobProgress:
    assert isinstance(job.work, ViewWork)
    offsets = {each.topic: {"0": 1} for each in job.work.tables.values()}
    return JobProgress(job.name, job.generation, 7, offsets, 3, 2, 30, 20, 5, 500, 12.5, int(time.time() * 1000))


def _end(_number: int, _frame: FrameType | None) -> None:
    ENDED.set()


def _watch_input() -> None:
    while os.read(0, 1024):
        pass
    ENDED.set()


if __name__ == "__main__":
    main()
