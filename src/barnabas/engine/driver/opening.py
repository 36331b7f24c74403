"""Opens a job: its folder, its log, its state, and the query that is not started yet."""

from __future__ import annotations

import logging
import shutil
import threading
import time
from collections.abc import Callable, Mapping
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from barnabas.client.config import ClientConfig
from barnabas.engine.driver.appended import Appended
from barnabas.engine.driver.job_sink import recovered
from barnabas.engine.driver.kept_view import KeptView
from barnabas.engine.driver.shared_query import SharedQueries
from barnabas.engine.driver.view_job import ViewJob
from barnabas.engine.folders import job_folder, queries_folder
from barnabas.engine.job_logs import JobLogs
from barnabas.engine.jobs import PROGRESS, STREAMING, ConnectorWork, InsertWork, Job, JobProgress, ViewWork
from barnabas.engine.reasons import rebuild
from barnabas.engine.running_job import Work
from barnabas.engine.stores import progress_of
from barnabas.errors import BarnabasError
from barnabas.functions.store import check_stored
from barnabas.incremental.appending import open_appending
from barnabas.incremental.flow import open_flow
from barnabas.incremental.interface import FlowError
from barnabas.incremental.macros import MACROS
from barnabas.schemas.arrow.columns import RegistryAddress

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MEMORY_BYTES = 512 << 20
THREADS = 2
STATE = "state.duckdb"
HIDDEN_S, POLL_S = 20.0, 0.05  # other jobs end their transactions within a step
REGISTRY = "schema.registry.url"
CONNECTORS = "barnabas.connect.runtime.opening"
APPENDS_AGAIN = "DROP JOB ends it, and INSERT … WITH (start = 'latest') goes on with new records"


def opened(
    job: Job, settings: Mapping[str, str], path: Path, *, progress: JobProgress | None, registry: RegistryAddress | None = None,
    log: logging.Logger | None = None,
) -> KeptView | Appended:  # fmt: skip
    """What takes the micro-batches of a job. Raises FlowError, TableError.

    Args:
        path: of the state.
    """
    if isinstance(job.work, InsertWork):
        appending = open_appending(job.work.plan, path, MEMORY_BYTES, THREADS, [MACROS])
        try:
            return Appended(job, settings, appending, progress=progress, registry=registry, log=log)
        except BaseException:
            appending.close()
            raise
    assert isinstance(job.work, ViewWork)
    flow = open_flow(job.work.plan, path, MEMORY_BYTES, THREADS, [MACROS])
    try:
        return KeptView(job, settings, flow, progress=progress, registry=registry, log=log)
    except BaseException:
        flow.close()
        raise


class CheckpointLost(BarnabasError):
    """A job has rows in its topic, and its folder does not have the state that made them, or it cannot be read."""

    def __init__(self, job: Job, why: str) -> None:
        super().__init__(job, why)
        self.job, self.why = job, why

    def __str__(self) -> str:
        work = self.job.work
        appends = isinstance(work, InsertWork) and not work.target.is_keyed
        help_text = APPENDS_AGAIN if appends else rebuild(self.job.name)
        return f"the state of {self.job.name} {self.why}; {help_text}"


class Opener:
    """Opens the jobs of a driver.

    Args:
        spark: waits for the session. Connectors begin without it, unless they work with it.
        settings: of the client, with `bootstrap.servers`.
        folder: of the engine.
    """

    def __init__(self, spark: Callable[[], SparkSession], settings: Mapping[str, str], folder: Path) -> None:
        self._spark, self._folder = spark, folder
        url = settings.get(REGISTRY)
        self._registry = None if url is None else RegistryAddress(url)
        self._settings = {name: value for name, value in settings.items() if name != REGISTRY}
        self._config = ClientConfig.from_options(self._settings)
        self._logs = JobLogs(folder)
        self._queries: SharedQueries | None = None
        self._lock = threading.Lock()

    def open(self, job: Job) -> Work:
        """Raises CheckpointLost, ProgressHidden, NotThere, ClientError, MicroBatchFailed, OSError, and what a connector raises."""
        if isinstance(job.work, ConnectorWork):
            # loaded by name: the house of connectors stands on the engine
            found: Work = import_module(CONNECTORS).opened(job, self._settings, self._logs.open(job.name), self._spark)
            return found
        assert isinstance(job.work, STREAMING)
        check_stored(self._config, job.work.plan.functions)
        progress = last_progress(job, self._settings)
        folder = job_folder(self._folder, job.name, job.generation)
        if not (folder / STATE).exists():
            if progress is not None and progress.batch > 0:
                raise CheckpointLost(job, "is gone from its folder")
            shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True, exist_ok=True)
        log = self._logs.open(job.name)
        try:
            taking = opened(job, self._settings, folder / STATE, progress=progress, registry=self._registry, log=log)
        except FlowError as error:
            raise CheckpointLost(job, f"cannot be read: {error}") from error
        spark = self._spark()
        return ViewJob(spark, taking, self._settings, self._shared(spark), log)

    def _shared(self, spark: SparkSession) -> SharedQueries:
        with self._lock:
            if self._queries is None:
                self._queries = SharedQueries(spark, self._settings, queries_folder(self._folder))
            return self._queries


def last_progress(job: Job, settings: Mapping[str, str]) -> JobProgress | None:
    """The progress of a job's generation with its last step, after what an earlier process decided is complete.

    Raises:
        ProgressHidden: the record of the step cannot be read.
        MicroBatchFailed: the topics cannot be written now.
    """
    step = recovered(job, settings)
    store = progress_of(ClientConfig.from_options(settings))
    deadline_s = time.monotonic() + HIDDEN_S
    try:
        while True:
            found = store.follow().get(job.name)
            if found is not None and found.generation != job.generation:
                found = None
            if step is None or (found is not None and found.batch >= step):
                return found
            if time.monotonic() > deadline_s:
                raise ProgressHidden(job.name, step)
            time.sleep(POLL_S)
    finally:
        store.close()


class ProgressHidden(BarnabasError):
    """A step is in the topic of a job, and its progress cannot be read."""

    def __init__(self, job: str, step: int) -> None:
        super().__init__(job, step)
        self.job, self.step = job, step

    def __str__(self) -> str:
        return (
            f"{self.job} has written step {self.step}, and the topic {PROGRESS} does not show its record: an open transaction of "
            "another job may be before it, or the record was deleted"
        )
