"""Opens a job: its folder, its log, its state, and the query that is not started yet."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from barnabas.client.config import ClientConfig
from barnabas.engine.driver.job_logs import JobLogs
from barnabas.engine.driver.kept_view import KeptView
from barnabas.engine.driver.reasons import rebuild
from barnabas.engine.driver.view_job import ViewJob
from barnabas.engine.folders import job_folder
from barnabas.engine.jobs import Job, JobProgress, ViewWork
from barnabas.engine.stores import progress_of
from barnabas.errors import BarnabasError
from barnabas.functions.store import check_stored
from barnabas.incremental.flow import open_flow
from barnabas.incremental.interface import FlowError
from barnabas.incremental.macros import MACROS
from barnabas.schemas.arrow.columns import RegistryAddress

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MEMORY_BYTES = 512 << 20
THREADS = 2
STATE = "state.duckdb"
REGISTRY = "schema.registry.url"


class CheckpointLost(BarnabasError):
    """A job has rows in its topic, and its folder does not have the state that made them, or it cannot be read."""

    def __init__(self, name: str, why: str) -> None:
        super().__init__(name, why)
        self.name, self.why = name, why

    def __str__(self) -> str:
        return f"the state of {self.name} {self.why}; {rebuild(self.name)}"


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
        self._logs = JobLogs(folder)

    def open(self, job: Job) -> ViewJob:
        """Raises CheckpointLost, NotThere, ClientError, OSError."""
        assert isinstance(job.work, ViewWork)
        check_stored(self._config, job.work.plan.functions)
        progress = self._progress(job)
        folder = job_folder(self._folder, job.name, job.generation)
        has_state, has_checkpoint = (folder / STATE).exists(), (folder / "checkpoint").exists()
        if progress is not None and progress.batch > 0 and not (has_state and has_checkpoint):
            raise CheckpointLost(job.name, "is gone from its folder")
        if not (has_state and has_checkpoint):
            shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True, exist_ok=True)
        try:
            flow = open_flow(job.work.plan, folder / STATE, MEMORY_BYTES, THREADS, [MACROS])
        except FlowError as error:
            raise CheckpointLost(job.name, f"cannot be read: {error}") from error
        log = self._logs.open(job.name)
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
