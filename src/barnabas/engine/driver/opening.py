"""Opens a job: its folder, its log, its state, and the query that is not started yet."""

from __future__ import annotations

import logging
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from barnabas.client.config import ClientConfig
from barnabas.engine.driver.kept_view import KeptView
from barnabas.engine.driver.view_job import ViewJob
from barnabas.engine.folders import job_folder, job_log
from barnabas.engine.jobs import Job, JobProgress, ViewWork
from barnabas.engine.rotating_log import RotatingLog
from barnabas.engine.stores import progress_of
from barnabas.errors import BarnabasError
from barnabas.functions.store import check_stored
from barnabas.incremental.flow import open_flow
from barnabas.incremental.macros import MACROS
from barnabas.schemas.arrow.columns import RegistryAddress

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MEMORY_BYTES = 512 << 20
THREADS = 2
STATE = "state.duckdb"
REGISTRY = "schema.registry.url"


class CheckpointLost(BarnabasError):
    """A job has rows in its topic, and its folder does not have the state that made them."""

    def __init__(self, name: str, folder: Path) -> None:
        super().__init__(name, folder)
        self.name = name

    def __str__(self) -> str:
        return f"the state of {self.name} is gone from its folder; `barnabas job restart {self.name} --rebuild` computes it again"


class Opener:
    """Opens the jobs of a driver.

    Args:
        settings: of the client, with `bootstrap.servers`.
        folder: of the engine.
    """

    def __init__(self, spark: SparkSession, settings: Mapping[str, str], folder: Path) -> None:
        self._spark, self._folder = spark, folder
        url = settings.get(REGISTRY)
        self._registry = None if url is None else RegistryAddress(url)
        self._settings = {name: value for name, value in settings.items() if name != REGISTRY}
        self._config = ClientConfig.from_options(self._settings)
        self._logs: dict[str, logging.Logger] = {}

    def open(self, job: Job) -> ViewJob:
        """Raises CheckpointLost, FlowError, NotThere, ClientError, OSError."""
        assert isinstance(job.work, ViewWork)
        check_stored(self._config, job.work.plan.functions)
        progress = self._progress(job)
        folder = job_folder(self._folder, job.name, job.generation)
        has_state, has_checkpoint = (folder / STATE).exists(), (folder / "checkpoint").exists()
        if progress is not None and progress.batch > 0 and not (has_state and has_checkpoint):
            raise CheckpointLost(job.name, folder)
        if not (has_state and has_checkpoint):
            shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True, exist_ok=True)
        flow = open_flow(job.work.plan, folder / STATE, MEMORY_BYTES, THREADS, [MACROS])
        log = self._log(job.name)
        try:
            view = KeptView(job, self._settings, flow, progress=progress, registry=self._registry, log=log)
        except BaseException:
            flow.close()
            raise
        return ViewJob(self._spark, view, self._settings, folder, log)

    def _progress(self, job: Job) -> JobProgress | None:
        store = progress_of(self._config)
        try:
            found = store.follow().get(job.name)
        finally:
            store.close()
        return found if found is not None and found.generation == job.generation else None

    def _log(self, name: str) -> logging.Logger:
        found = self._logs.get(name)
        if found is None:
            found = self._logs[name] = logging.getLogger(f"barnabas.job.{name.replace('.', '_')}")
            found.addHandler(_JobLog(RotatingLog(job_log(self._folder, name))))
        return found


class _JobLog(logging.Handler):
    """Writes lines to the log of one job."""

    def __init__(self, log: RotatingLog) -> None:
        super().__init__()
        self._log = log
        self.setFormatter(logging.Formatter("%(asctime)s level=%(levelname)s %(message)s"))

    def emit(self, record: logging.LogRecord) -> None:
        self._log.write(self.format(record).encode(errors="replace") + b"\n")
