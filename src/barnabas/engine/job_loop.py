"""Makes what runs in this process equal to jobs: the loop of the driver and of a runner. One thread besides those of the jobs."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping

from barnabas.client.blocking import BlockingClient
from barnabas.client.config import ClientConfig
from barnabas.client.results import NewTopic
from barnabas.engine.job_states import placed, released
from barnabas.engine.jobs import PROGRESS, Job, JobState
from barnabas.engine.membership import Member
from barnabas.engine.running_job import RunningJob, Work
from barnabas.engine.stores import JobStores, stores_of
from barnabas.errors import BarnabasError

logger = logging.getLogger(__name__)
POLL_S = 0.1
STATES_AGE_S = 0.5
END_S = 5.0  # the supervisor kills the process after eight seconds
Select = Callable[[Mapping[str, Job]], Mapping[str, Job]]


class JobLoop:
    """Runs jobs.

    Args:
        make: opens one job; called in a thread of the job.
        select: those of all jobs that this process runs. Raises BarnabasError.
        is_alive: whether this process can work.
        member: the engine, if other engines may run these jobs too.
        patience_s: after so long without an answer of the cluster all jobs end, and start again with its next answer. None: they go on.
        forget: told the name of a job that was dropped, after it has ended.
        stores: of the jobs and their states; by default those of the cluster.
    """

    def __init__(
        self, config: ClientConfig, make: Callable[[Job], Work], select: Select, *, is_alive: Callable[[], bool] = lambda: True,
        member: Member | None = None, patience_s: float | None = None, forget: Callable[[str], None] = lambda _: None,
        stores: JobStores | None = None,
    ) -> None:  # fmt: skip
        self._client = BlockingClient(config)
        self._jobs, self._states, _ = stores or stores_of(config)
        self._make, self._select, self._is_alive = make, select, is_alive
        self._member, self._patience_s, self._forget = member, patience_s, forget
        self._running: dict[str, RunningJob] = {}
        self._heard_s = time.monotonic()

    def run(self, stopping: threading.Event) -> bool:
        """Work until the event; whether this process can work still."""
        alive = True
        is_prepared = False
        while not stopping.is_set() and alive:
            try:
                if not is_prepared:
                    self._client.ensure_topic(NewTopic(PROGRESS, 1, configs={"cleanup.policy": "compact"}))
                    is_prepared = True
                self._converge()
                self._heard_s = time.monotonic()
            except BarnabasError as error:  # jobs go on while the cluster does not answer
                logger.warning("event=job-loop-hindered error=%r", str(error))
                self._lose_patience()
            stopping.wait(POLL_S)
            alive = self._is_alive()
        self._end(END_S if alive else 0.0)
        return alive

    def _end(self, timeout_s: float) -> None:
        ends = [threading.Thread(target=each.end, args=(timeout_s,)) for each in self._running.values()]
        for end in ends:
            end.start()
        for end in ends:
            end.join()
        self._running.clear()
        if self._member is not None:
            try:
                self._publish(self._jobs.records, time.monotonic())
            except BarnabasError as error:
                logger.warning("event=jobs-not-released error=%r", str(error))
        for store in (self._jobs, self._states):
            store.close()
        self._client.close()

    def _lose_patience(self) -> None:
        """End all jobs if another engine has them by now."""
        now_s = time.monotonic()
        if self._patience_s is None or now_s - self._heard_s <= self._patience_s:
            return
        for each in self._running.values():
            each.step(None, now_s)

    def _converge(self) -> None:
        known = self._jobs.follow()
        jobs = self._select(known)
        now_s = time.monotonic()
        for name, job in jobs.items():
            if name not in self._running:
                self._running[name] = RunningJob(job, self._make)
        for name, each in list(self._running.items()):
            each.step(jobs.get(name), now_s)
            if name not in jobs and each.is_gone:
                del self._running[name]
                if name not in known:
                    self._forget(name)
        self._publish(jobs, now_s)

    def _publish(self, jobs: Mapping[str, Job], now_s: float) -> None:
        states = self._states.follow(max_age_s=STATES_AGE_S)
        now_ms = time.time_ns() // 1_000_000
        made: dict[str, JobState | None] = {}
        for name, each in self._running.items():
            now = each.state(states.get(name), now_s, now_ms) if name in jobs else None
            if now is not None:
                made[name] = now if self._member is None else placed(now, self._member)
        if self._member is not None:
            made |= {name: released(states[name]) for name in self._left(states)}
        changed = {name: state for name, state in made.items() if state != states.get(name)}
        if changed:
            self._states.put(self._client, changed)

    def _left(self, states: Mapping[str, JobState]) -> list[str]:
        """The jobs that say that they run here, and do not."""
        assert self._member is not None
        return [name for name, each in states.items() if each.worker == self._member.id and name not in self._running]
