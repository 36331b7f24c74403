"""The process of one pipeline, as `barnabas pipeline run` makes it (`pipelines/runs/process.py`).

Rule: a pipeline runs code, so an engine runs only what lies in a folder that its operator named. A path that leads out of it by `..`
or by a symbolic link is refused. Of the settings of Spark, a job has those that name no code.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from barnabas.engine.child import Child
from barnabas.engine.folders import job_folder, job_log
from barnabas.engine.jobs import Job, JobProgress, PipelineWork
from barnabas.engine.life import Life
from barnabas.engine.rotating_log import RotatingLog
from barnabas.engine.unit import Unit
from barnabas.errors import BarnabasError
from barnabas.pipelines.runs.folders import begin_update, flow_error
from barnabas.pipelines.runs.progress import FOLDER_VARIABLE, read_progress
from barnabas.pipelines.runs.project import Target, find_target

COMMAND = (sys.executable, "-m", "barnabas.pipelines.runs.process")
BOOTSTRAP_VARIABLE = "BARNABAS_BOOTSTRAP"  # the projects of `barnabas pipeline init` read it
LOCK = "lock"
FOLDER_SETTING = "engine.pipelines.dir"
HARMLESS = re.compile(
    r"spark\.(cores\.max|default\.parallelism|driver\.(cores|memory)|executor\.(cores|instances|memory)|task\.cpus|app\.name"
    r"|scheduler\.(mode|pool)|sql\.(shuffle\.partitions|session\.timeZone|ansi\.enabled)|sql\.adaptive\.[\w.]+)"
)


class NotAllowed(BarnabasError):
    """A pipeline that this engine does not run; the text says why."""


class PipelineUnit(Unit):
    """One pipeline.

    Args:
        job: with `PipelineWork`.
        pipelines: the folder of the pipelines that may run; None: none may.
        bootstrap: of the cluster.
        master, conf: of the engine; the job's own settings go before.
    """

    def __init__(
        self, job: Job, folder: Path, pipelines: Path | None, *, bootstrap: str, master: str, conf: Mapping[str, str],
        command: Sequence[str] = COMMAND, life: Life | None = None,
    ) -> None:  # fmt: skip
        super().__init__(f"job {job.name}", life)
        self.job = job
        self._folder, self._pipelines, self._bootstrap, self._command = folder, pipelines, bootstrap, command
        self._conf = {"spark.master": master, **conf, **job.conf}

    @property
    def folder(self) -> Path:
        return job_folder(self._folder, self.job.name)

    def spawn(self) -> Child:
        work = self.job.work
        assert isinstance(work, PipelineWork)
        target = checked(work, self.job.conf, self._pipelines)
        self.folder.mkdir(parents=True, exist_ok=True)
        begin_update(self._events)
        options = [
            f"--events={self._events}",
            "--parent-pipe=0",
            *(f"--conf={name}={value}" for name, value in self._conf.items()),
        ]
        if not target.is_script:
            marker = self.folder / str(self.job.generation)  # is there once the tables were emptied for this generation
            options += ["--full-refresh-all"] if self.job.generation and not marker.exists() else []
            options += [f"--every={work.every_s}"] if work.every_s is not None else []
            marker.mkdir(exist_ok=True)
        environment = {FOLDER_VARIABLE: str(self.folder), BOOTSTRAP_VARIABLE: self._bootstrap}
        command = [*self._command, *options, "--", str(target.path), *work.arguments]
        log = RotatingLog(job_log(self._folder, self.job.name))
        return Child(command, environment, log, lock=self.folder / LOCK, announces=False)

    def has_failed(self, code: int) -> bool:
        return code != 0

    def reason(self, child: Child, code: int) -> str:
        return flow_error(self._events) or super().reason(child, code)

    @property
    def _events(self) -> Path:
        return self.folder / "events.jsonl"

    def progress(self, now_ms: int) -> JobProgress | None:
        """Of the run, from the files of its sources; None before they have any."""
        sources = read_progress(self.folder)
        if not sources:
            return None
        rows, lag = sum(each.rows for each in sources), sum(each.lag for each in sources)
        return JobProgress(self.job.name, self.job.generation, 0, {}, total_in=rows, lag=lag, at_ms=now_ms)


def checked(work: PipelineWork, conf: Mapping[str, str], pipelines: Path | None) -> Target:
    """The target of a pipeline that this engine may run. Raises NotAllowed, PipelineError."""
    if pipelines is None:
        raise NotAllowed(f"this engine runs no pipelines: {FOLDER_SETTING} names no folder for them")
    path = Path(work.target)
    root = pipelines.resolve()
    resolved = (path if path.is_absolute() else root / path).resolve()
    if not resolved.is_relative_to(root):
        raise NotAllowed(f"{work.target} is not in {pipelines}, the folder of the pipelines of this engine")
    if wrong := sorted(name for name in conf if not HARMLESS.fullmatch(name)):
        raise NotAllowed(f"a job cannot have the setting {wrong[0]}; the engine can: barnabas engine start --conf")
    target = find_target(resolved)
    if target.is_script and work.every_s is not None:
        raise NotAllowed("every_s is for declared pipelines, not for scripts")
    if work.arguments and not target.is_script:
        raise NotAllowed("only a script takes arguments")
    return target
