"""Makes the queries of a Spark session equal to the jobs of views. One thread besides those of the jobs."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable

from barnabas.client.blocking import BlockingClient
from barnabas.client.config import ClientConfig
from barnabas.client.results import NewTopic
from barnabas.engine.driver.running_job import RunningJob, Work
from barnabas.engine.jobs import DRIVEN, PROGRESS, Job, JobState
from barnabas.engine.stores import JobStores, stores_of
from barnabas.errors import BarnabasError

logger = logging.getLogger(__name__)
POLL_S = 0.1
STATES_AGE_S = 0.5
END_S = 5.0  # the supervisor kills the driver after eight seconds


class Driver:
    """Runs views.

    Args:
        make: opens one job; called in a thread of the job.
        is_alive: whether Spark works.
        stores: of the jobs and their states; by default those of the cluster.
    """

    def __init__(
        self, config: ClientConfig, make: Callable[[Job], Work], is_alive: Callable[[], bool], stores: JobStores | None = None
    ) -> None:
        self._client = BlockingClient(config)
        self._jobs, self._states, _ = stores or stores_of(config)
        self._make, self._is_alive = make, is_alive
        self._running: dict[str, RunningJob] = {}

    def run(self, stopping: threading.Event) -> bool:
        """Work until the event; whether Spark works still."""
        self._ensure_progress()
        alive = True
        while not stopping.is_set() and alive:
            try:
                self._converge()
            except BarnabasError as error:  # what runs goes on while the cluster does not answer
                logger.warning("event=driver-hindered error=%r", str(error))
            stopping.wait(POLL_S)
            alive = self._is_alive()
        ends = [threading.Thread(target=each.end, args=(END_S if alive else 0.0,)) for each in self._running.values()]
        for end in ends:
            end.start()
        for end in ends:
            end.join()
        for store in (self._jobs, self._states):
            store.close()
        self._client.close()
        return alive

    def _ensure_progress(self) -> None:
        self._client.ensure_topic(NewTopic(PROGRESS, 1, configs={"cleanup.policy": "compact"}))

    def _converge(self) -> None:
        jobs = {name: job for name, job in self._jobs.follow().items() if isinstance(job.work, DRIVEN)}
        now_s = time.monotonic()
        for name, job in jobs.items():
            if name not in self._running:
                self._running[name] = RunningJob(job, self._make)
        for name, each in list(self._running.items()):
            each.step(jobs.get(name), now_s)
            if name not in jobs and each.is_gone:
                del self._running[name]
        self._publish(now_s)

    def _publish(self, now_s: float) -> None:
        states = self._states.follow(max_age_s=STATES_AGE_S)
        now_ms = time.time_ns() // 1_000_000
        changed: dict[str, JobState | None] = {}
        for name, each in self._running.items():
            now = each.state(states.get(name), now_s, now_ms)
            if now is not None and now != states.get(name):
                changed[name] = now
        if changed:
            self._states.put(self._client, changed)
