"""The thread that every worker has: the leader makes jobs and statuses equal to the configs; the others only follow the levels of loggers.

Rules
  1. Each step is decided from the newest records, and a step that was made before changes nothing. So a kill at any point, and two
     leaders for some seconds, do no harm.
  2. Tasks are written before jobs, jobs before statuses.
  3. The tasks of one connector, and its errors, hold up no other.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping
from functools import partial

from msgspec import Struct

import barnabas
from barnabas.client.blocking import BlockingClient
from barnabas.client.config import ClientConfig
from barnabas.client.keyed_topic import Contended, KeyedTopicError
from barnabas.connect.herder.planning import job_changes, works
from barnabas.connect.herder.records import RESTART, Changes, Target
from barnabas.connect.herder.requests import task_records
from barnabas.connect.herder.state import Config, Configs
from barnabas.connect.herder.statuses import Observer, status_changes, topic_changes
from barnabas.connect.herder.validation import kinds_of
from barnabas.connect.leading.engines import Engines
from barnabas.connect.leading.task_maker import TaskMaker
from barnabas.connect.levels import Levels
from barnabas.connect.references import Resolver
from barnabas.connect.store.connect_topics import CONFIGS, ConnectTopics
from barnabas.engine.jobs import ConnectorWork, Job
from barnabas.engine.stores import JobStores, stores_of
from barnabas.errors import BarnabasError

logger = logging.getLogger(__name__)
POLL_S, IDLE_POLL_S, FOLLOW_S = 0.2, 0.5, 2.0  # between two looks: with connectors, without, and as no leader
PROGRESS_AGE_S = 2.0
SAY_AGAIN_S = 60.0


class Worker(Struct, frozen=True):
    """One worker.

    Args:
        id: host and port of its REST interface.
        settings: that tasks need, by Kafka's names.
    """

    id: str
    settings: Mapping[str, str]


class Leader:
    """See the module.

    Args:
        stores: of the jobs; by default those of the cluster, which its engines run.
    """

    def __init__(
        self, config: ClientConfig, topics: ConnectTopics, worker: Worker, resolver: Resolver, levels: Levels,
        stores: JobStores | None = None,
    ) -> None:  # fmt: skip
        self._topics, self._worker, self._levels = topics, worker, levels
        self._client = BlockingClient(config)
        self._engines = Engines(self._client) if stores is None else None
        self.jobs, self._states, self._progress = stores or stores_of(config)
        self._active, self._stopping, self._wake = False, False, threading.Event()
        self._maker = TaskMaker(worker.settings, resolver, self._wake)
        self._generation = 0
        self._said: tuple[str, float] = ("", 0.0)
        self._thread = threading.Thread(target=self._run, name="connect-leader", daemon=True)

    @property
    def is_active(self) -> bool:
        """Whether this worker leads."""
        return self._active

    def start(self) -> None:
        """Begin; returns at once."""
        self._thread.start()

    def activate(self, is_active: bool) -> None:
        """Whether this worker is the elected one."""
        if is_active != self._active:
            logger.info("event=connect-leader is_active=%s", is_active)
        if is_active and not self._active:
            self._generation = int(time.time())
        self._active = is_active
        self._wake.set()

    def wake(self) -> None:
        """Look at once: something has changed."""
        self._wake.set()

    def close(self) -> None:
        """End the thread."""
        self._stopping = True
        self._wake.set()
        if self._thread.is_alive():
            self._thread.join()
        for each in (self.jobs, self._states, self._progress, self._client):
            each.close()

    def _run(self) -> None:
        while not self._stopping:
            pause_s = IDLE_POLL_S
            try:
                configs = self._topics.configs()
                self._levels.apply(configs.levels)
                if self._active:
                    self._converge(configs)
                else:
                    self._maker.clear()
                pause_s = FOLLOW_S if not self._active else POLL_S if configs.connectors else IDLE_POLL_S
            except BarnabasError as error:
                self._tell_trouble(str(error))
            except Exception:  # the leader must go on, whatever one connector brings
                logger.exception("event=connect-step-failed")
            self._wake.wait(pause_s)
            self._wake.clear()

    def _tell_trouble(self, reason: str) -> None:
        now_s = time.monotonic()
        if self._said[0] != reason or now_s - self._said[1] > SAY_AGAIN_S:
            self._said = reason, now_s
            logger.warning("event=connect-hindered reason=%r", reason)

    def _converge(self, configs: Configs) -> None:
        topic = self._topics.names[CONFIGS]
        jobs = self.jobs.follow()
        statuses = self._topics.statuses()
        if (
            not configs.connectors
            and not statuses.names()
            and not any(isinstance(each.work, ConnectorWork) for each in jobs.values())
        ):
            return
        configs = self._with_tasks(configs)
        wanted, undecided = self._wanted(configs)
        now_ms = time.time_ns() // 1_000_000

        def changes(there: Mapping[str, Job]) -> dict[str, Job | None]:
            return job_changes(configs, wanted, there, topic, now_ms, undecided)

        failures = {**self._maker.failures(), **(self._change_jobs(changes) if changes(jobs) else {})}
        jobs, states = self.jobs.records, self._states.follow()
        observer = Observer(self._worker.id, self._generation, barnabas.__version__)
        hindrance = self._engines.hindrance(time.monotonic()) if wanted and self._engines is not None else None
        said = status_changes(configs, statuses, jobs, states, failures, topic, observer, hindrance)
        said |= topic_changes(configs, statuses, jobs, self._progress.follow(max_age_s=PROGRESS_AGE_S), now_ms)
        if said and self._active:
            self._topics.put_statuses(self._client, said)

    def _change_jobs(self, changes: Callable[[Mapping[str, Job]], dict[str, Job | None]]) -> dict[str, str]:
        """Write the jobs that change; returns why the tasks of some connectors get none. A connector that cannot have its jobs, since
        there are too many or one is too large, holds up no other."""
        try:
            self.jobs.change(self._client, changes)
            return {}
        except Contended:
            raise
        except KeyedTopicError:
            failures = {}
            for name in sorted(changes(self.jobs.follow()), key=lambda each: changes(self.jobs.records).get(each) is not None):
                try:
                    self.jobs.change(self._client, partial(_only, changes=changes, name=name))
                except KeyedTopicError as error:
                    job = changes(self.jobs.records)[name]
                    assert job is not None
                    assert isinstance(job.work, ConnectorWork)
                    failures[job.work.connector] = str(error)
            return failures

    def _with_tasks(self, configs: Configs) -> Configs:
        """The configs after the tasks that are known now were written."""
        now_s = time.monotonic()
        self._maker.keep(configs.connectors)
        for name in configs.connectors:
            if configs.wants_restart(name):
                self._maker.forget(name)
                self._topics.change_configs(self._client, partial(_without_restart, name=name))
        made: dict[str, tuple[Config, list[Config]]] = {}
        for name, config in configs.connectors.items():
            if configs.target(name) is Target.STOPPED:
                self._maker.forget(name)
                continue
            tasks = self._maker.tasks(name, config, now_s)
            if tasks is not None and task_records(configs, name, tasks):
                made[name] = config, tasks
        if not made:
            return configs

        def decide(now: Configs) -> Changes:
            changes: dict[str, Mapping[str, object] | None] = {}
            for name, (config, tasks) in made.items():
                if now.connectors.get(name) == config and now.target(name) is not Target.STOPPED:
                    changes |= task_records(now, name, tasks)
            return changes

        self._topics.change_configs(self._client, decide)
        return self._topics.configs()

    def _wanted(self, configs: Configs) -> tuple[dict[str, ConnectorWork], frozenset[str]]:
        """The work of all tasks, and the connectors whose tasks are not known."""
        wanted: dict[str, ConnectorWork] = {}
        undecided = set()
        now_s = time.monotonic()
        for name, config in configs.connectors.items():
            if configs.target(name) is Target.STOPPED:
                continue
            tasks, kinds = self._maker.tasks(name, config, now_s), kinds_of(config)
            if tasks is None or kinds is None:
                undecided.add(name)
            else:
                wanted |= works(name, tasks, kinds, self._worker.settings, needs_spark=self._maker.needs_spark(name))
        return wanted, frozenset(undecided)


def _without_restart(configs: Configs, name: str) -> Changes:
    return {RESTART + name: None} if configs.wants_restart(name) else {}


def _only(
    there: Mapping[str, Job], changes: Callable[[Mapping[str, Job]], dict[str, Job | None]], name: str
) -> dict[str, Job | None]:
    return {key: job for key, job in changes(there).items() if key == name}
