"""The supervisor: makes what runs equal to the jobs. One thread; it imports no Spark.

Rules
  1. Views, inserts and pipelines run while this engine is the elected one of its cluster (`activate`). Every engine runs tasks of
     connectors, those that the elected one assigns to it (`shared_jobs.py`).
  2. The driver, with Spark, starts with the first view, insert or task that needs Spark, and ends some seconds after the last. Each
     pipeline is a process of its own. A process that fails starts again after a pause; the others go on.
  3. While the driver works, it writes the states of its jobs. Otherwise, and for pipelines, the supervisor does.
  4. If the cluster does not answer, what runs goes on.
  5. Nothing is written to the folder before there is a job.
"""

from __future__ import annotations

import contextlib
import logging
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from secrets import token_hex

from msgspec import Struct, structs

from barnabas.client.blocking import BlockingClient
from barnabas.client.config import ClientConfig
from barnabas.engine import job_states, pipeline_unit, runner_unit, spark_unit
from barnabas.engine.cleaning import Cleaner
from barnabas.engine.clock import Ticking, tick
from barnabas.engine.holding import FolderInUse, HeldFolder
from barnabas.engine.jobs import DRIVEN, Job, JobProgress, JobState, PipelineWork
from barnabas.engine.life import Life, Phase
from barnabas.engine.membership import Member
from barnabas.engine.pipeline_unit import PipelineUnit
from barnabas.engine.runner_unit import RunnerUnit
from barnabas.engine.shared_jobs import SharedJobs
from barnabas.engine.spark_unit import SparkUnit
from barnabas.engine.stores import jobs_of, progress_of, states_of
from barnabas.errors import BarnabasError

logger = logging.getLogger(__name__)
POLL_S, IDLE_POLL_S = 0.2, 0.5  # between two looks at the jobs; while there are none
STATES_AGE_S = 0.5  # how old the driver's states may be
PROGRESS_S = 2.0  # between two records about the progress of a pipeline
TIMEOUT_MS = 5_000  # of a request to the cluster: processes that end are not seen meanwhile
END_S = 8.0  # for all processes when the engine ends; the host of the services waits for ten seconds
SAY_AGAIN_S = 60.0  # between two lines about the same trouble


class EngineSettings(Struct, frozen=True):
    """How an engine runs jobs.

    Args:
        client: settings of the client for the cluster, by Kafka's names.
        folder: of the engine; made with the first job.
        master, conf: of Spark.
        pipelines: the folder of the pipelines that may run; None: none may.
        linger_s: how long the driver stays without a job.
        warm_s: how long the runner of connectors waits for the first job.
        pause_s: before a process that failed once starts again; see `Life`.
        driver, pipeline, runner: commands of the processes.
    """

    client: Mapping[str, str]
    folder: Path
    master: str = "local[*]"
    conf: Mapping[str, str] = {}
    pipelines: Path | None = None
    linger_s: float = 10.0
    warm_s: float = 0.0
    pause_s: float = 1.0
    driver: Sequence[str] = spark_unit.COMMAND
    pipeline: Sequence[str] = pipeline_unit.COMMAND
    runner: Sequence[str] = runner_unit.COMMAND


class Supervisor:
    """Runs the jobs of a cluster.

    Args:
        say: told lines for people.
        member: this engine.
    """

    def __init__(
        self, config: ClientConfig, settings: EngineSettings, say: Callable[[str], None], member: Member | None = None
    ) -> None:
        self._settings, self._say = settings, say
        limit_ms = min(config.default_api_timeout_ms, TIMEOUT_MS)
        config = replace(config, default_api_timeout_ms=limit_ms, request_timeout_ms=min(config.request_timeout_ms, limit_ms))
        self._client = BlockingClient(config)
        self.jobs, self.states, self.progress = jobs_of(config), states_of(config), progress_of(config)
        self.shared = SharedJobs(
            config, member or Member("", token_hex(8)), self._make_runner, settings.linger_s, settings.warm_s
        )
        self._members: Sequence[Member] = ()
        self._root_level = logging.root.level
        self._held = HeldFolder(settings.folder)
        self._cleaner = Cleaner(settings.folder, self.jobs, self.states, self.progress)
        self.spark: SparkUnit | None = None
        self.pipelines: dict[str, PipelineUnit] = {}
        self._active, self._stopping, self._wake = False, False, threading.Event()
        self._idle_since_s: float | None = None
        self._told_s = -PROGRESS_S
        self._ticking = Ticking()
        self._said: tuple[str, float] | None = None
        self._thread = threading.Thread(target=self._run, name="engine", daemon=True)

    @property
    def hindrance(self) -> str | None:
        """The last trouble that kept it from its work."""
        return None if self._said is None else self._said[0]

    def start(self) -> None:
        """Begin; returns at once."""
        self._thread.start()

    def activate(self, is_active: bool, members: Sequence[Member] = ()) -> None:
        """Whether this engine is the elected one, and all engines of the cluster."""
        if is_active != self._active:
            logger.info("event=engine-elected is_active=%s", is_active)
        self._active, self._members = is_active, members
        self._wake.set()

    def close(self) -> None:
        """End everything that runs."""
        self._stopping = True
        self._wake.set()
        if self._thread.is_alive():
            self._thread.join()
        for each in (self.jobs, self.states, self.progress, self.shared, self._client):
            each.close()
        self._held.close()

    def _run(self) -> None:
        while not self._stopping:
            try:
                self._converge()
            except FolderInUse as error:
                self._tell_trouble(str(error))
            except BarnabasError as error:
                self._look(time.monotonic())
                self._tell_trouble(str(error))
            except Exception:  # the supervisor must go on, whatever one job brings
                logger.exception("event=engine-step-failed")
            self._wake.wait(POLL_S if self.jobs.records else IDLE_POLL_S)
            self._wake.clear()
        self._end()

    def _tell_trouble(self, reason: str) -> None:
        now_s = time.monotonic()
        if self._said is None or self._said[0] != reason or now_s - self._said[1] > SAY_AGAIN_S:
            self._said = reason, now_s
            logger.warning("event=engine-hindered reason=%r", reason)

    def _converge(self) -> None:
        jobs = self.jobs.follow()
        states = self.states.follow(max_age_s=STATES_AGE_S)
        now_s, now_ms = time.monotonic(), int(time.time() * 1000)
        if not self._active:
            self._rest(now_s)
        if not jobs and not states and not self._units() and not self.shared.is_warm(now_s):
            return
        self.shared.follow(jobs)
        if self._active:
            self.shared.assign(self._client, jobs, states, self._members)
        self.shared.step(jobs, states, now_s)
        self._change_states(self.shared.mine(jobs), states, lambda job, known: self.shared.state(job, known, now_s, now_ms))
        if self._active:
            self._lead(jobs, states, now_s, now_ms)

    def _lead(self, jobs: Mapping[str, Job], states: Mapping[str, JobState], now_s: float, now_ms: int) -> None:
        """Do the work of the active engine."""
        own = {name: job for name, job in jobs.items() if not job.is_shared}
        try:
            self._held.hold(self.jobs.cluster_id)
        except FolderInUse as error:
            reason = str(error)
            self._change_states(own, states, lambda job, known: job_states.hindered(job, known, reason, now_ms))
            raise
        self._step_views({name: job for name, job in own.items() if isinstance(job.work, DRIVEN)}, states, now_s)
        self._step_pipelines({name: job for name, job in own.items() if isinstance(job.work, PipelineWork)}, states, now_s)
        self._change_states(own, states, lambda job, known: self._state(job, known, now_s, now_ms))
        self._publish_progress(now_s, now_ms)
        if self._ticking.is_due(own.values(), now_s):
            tick(self._client)
        uses_folders = [each for each in (self.spark, self.shared.runner) if each is not None and each.life.is_there]
        self._cleaner.clean(self._client, now_s, is_used=bool(uses_folders), units=self.pipelines.keys())

    def _step_views(self, views: Mapping[str, Job], states: Mapping[str, JobState], now_s: float) -> None:
        due = sorted(name for name, job in views.items() if job_states.should_run(job, states.get(name)))
        if due and self.spark is None:
            given = self._settings
            self.spark = SparkUnit(
                given.client, given.folder, given.master, given.conf, self._say, command=given.driver, life=self._life()
            )
        if self.spark is None:
            return
        if due:
            self.spark.first_job, self._idle_since_s = due[0], None
        elif self._idle_since_s is None:
            self._idle_since_s = now_s
        lingers = self._idle_since_s is not None and now_s - self._idle_since_s < self._settings.linger_s
        self.spark.step(now_s, wanted=bool(due) or (lingers and self.spark.life.is_there))

    def _step_pipelines(self, jobs: Mapping[str, Job], states: Mapping[str, JobState], now_s: float) -> None:
        for name, job in jobs.items():
            if name not in self.pipelines and job_states.should_run(job, states.get(name)):
                self.pipelines[name] = self._pipeline(job)
        for name, unit in list(self.pipelines.items()):
            now = jobs.get(name)
            is_same = now is not None and _signature(now) == _signature(unit.job)
            unit.step(now_s, wanted=is_same and now is not None and job_states.should_run(now, states.get(name)))
            if not is_same and not unit.life.is_there:
                del self.pipelines[name]

    def _pipeline(self, job: Job) -> PipelineUnit:
        given = self._settings
        bootstrap = given.client.get("bootstrap.servers", "")
        return PipelineUnit(
            job, given.folder, given.pipelines, bootstrap=bootstrap, master=given.master, conf=given.conf, command=given.pipeline,
            life=self._life(),
        )  # fmt: skip

    def _life(self) -> Life:
        return Life(first_pause_s=self._settings.pause_s)

    def _change_states(
        self, jobs: Mapping[str, Job], states: Mapping[str, JobState], state: Callable[[Job, JobState | None], JobState | None]
    ) -> None:
        """Write the states that have changed; None stands for one that stays."""

        def changes(states: Mapping[str, JobState]) -> dict[str, JobState | None]:
            made = {name: state(job, states.get(name)) for name, job in jobs.items()}
            return {name: each for name, each in made.items() if each is not None and each != states.get(name)}

        if changes(states):
            self.states.change(self._client, changes)

    def _state(self, job: Job, known: JobState | None, now_s: float, now_ms: int) -> JobState | None:
        unit = self.spark if isinstance(job.work, DRIVEN) else self.pipelines.get(job.name)
        life = unit.life if unit is not None else Life()
        if isinstance(job.work, DRIVEN):
            return job_states.of_view(job, known, life, now_s, now_ms, began_ms=unit.began_ms if unit is not None else 0)
        return job_states.of_pipeline(job, known, life, now_s, now_ms, is_done=unit is not None and unit.is_done)

    def _publish_progress(self, now_s: float, now_ms: int) -> None:
        """Write how far pipelines have come, if that has changed."""
        if now_s - self._told_s < PROGRESS_S:
            return
        self._told_s = now_s
        known = self.progress.records
        changed: dict[str, JobProgress | None] = {}
        for name, unit in self.pipelines.items():
            now, before = unit.progress(now_ms), known.get(name)
            if now is not None and (before is None or structs.replace(before, at_ms=now_ms) != now):
                changed[name] = now
        if changed:
            self.progress.put(self._client, changed)

    def _make_runner(self) -> RunnerUnit:
        given = self._settings
        return RunnerUnit(
            given.client,
            given.folder,
            self.shared.member,
            root_level=self._root_level,
            command=given.runner,
            pause_s=given.pause_s,
        )

    def _units(self) -> list[SparkUnit | PipelineUnit | RunnerUnit]:
        return [*self._led(), *([self.shared.runner] if self.shared.runner is not None else [])]

    def _led(self) -> list[SparkUnit | PipelineUnit]:
        """The processes that the active engine alone has."""
        return [*([self.spark] if self.spark is not None else []), *self.pipelines.values()]

    def _look(self, now_s: float) -> None:
        """Keep what runs while the cluster does not answer."""
        for unit in self._units():
            unit.step(now_s, wanted=unit.life.phase is not Phase.OFF)

    def _rest(self, now_s: float) -> None:
        """Another engine is active, or none: run no views and no pipelines."""
        for unit in self._led():
            unit.step(now_s, wanted=False)
        if not any(unit.life.is_there for unit in self._led()):
            self.spark, self._idle_since_s = None, None
            self.pipelines.clear()
            self._held.close()

    def _end(self) -> None:
        ran = self._units()
        for unit in ran:
            unit.step(time.monotonic(), wanted=False)
        deadline_s = time.monotonic() + END_S
        for unit in ran:
            unit.end(deadline_s)
        if ran:
            with contextlib.suppress(BarnabasError):  # then the states say what the jobs did last
                self._tell_end()

    def _tell_end(self) -> None:
        """Say of the jobs that ran here that they do not."""
        mine = self.shared.mine(self.jobs.records)
        here = {name for name, job in self.jobs.records.items() if name in mine or (self._active and not job.is_shared)}
        states = {name: each for name, each in self.states.follow().items() if name in here}
        found = job_states.stopped(states, job_states.ENGINE_STOPPED, int(time.time() * 1000))
        if found:
            self.states.put(self._client, dict(found))


def _signature(job: Job) -> tuple[object, ...]:
    return job.work, job.generation, job.restarts, job.conf
