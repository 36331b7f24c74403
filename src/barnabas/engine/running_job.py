"""One job of a loop: starts it, looks after it, ends it, and starts it again after a failure. The work is done in threads, so that no job
waits for another."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from typing import Protocol, runtime_checkable

from barnabas.engine.job_states import made, waiting
from barnabas.engine.jobs import Desired, Job, JobState, State
from barnabas.engine.life import Action, Life, Phase
from barnabas.engine.reasons import one_line

logger = logging.getLogger(__name__)


class Work(Protocol):
    """The work of a job: `driver/view_job.py: ViewJob`, `runner/task_process.py: TaskProcess`, `connect/runtime/task.py: Task`."""

    def start(self) -> object:
        """Begin; raises if it cannot."""

    def failure(self) -> str | None:
        """Why it has ended, in one line; None while it runs."""

    def has_settled(self) -> bool:
        """Whether it has taken a micro-batch since its start, or found nothing to take."""

    def cancel(self) -> None:
        """End a start that lasts, if that can be had: `start` raises then. Called by another thread, again and again."""

    def stop(self) -> None:
        """End, and release everything; safe in any state."""


@runtime_checkable
class Hindered(Protocol):
    """Work that may have to wait for others while it runs, such as a task whose target is away."""

    def hindrance(self) -> str | None:
        """Why it waits, in one line; None if it does not."""


class RunningJob:
    """A job that the loop knows.

    Args:
        make: opens the job's state; raises if it cannot.
    """

    def __init__(self, job: Job, make: Callable[[Job], Work]) -> None:
        self.job, self._make = job, make
        self.life = Life()
        self._work: Work | None = None
        self._thread: threading.Thread | None = None
        self._outcome: tuple[str | None] | None = None  # of the thread: the error, or that there is none
        self._fault: str | None = None  # of the last run, until this one has settled: it may fail in the same way

    def step(self, job: Job | None, now_s: float) -> None:
        """Look at the job, and do what its life needs.

        Args:
            job: as it should be now; None if it is dropped.
        """
        self._look(now_s)
        is_same = job is not None and _signature(job) == _signature(self.job)
        if job is not None and not is_same and not self.life.is_there:
            self.job, self.life, self._fault = job, Life(), None
            is_same = True
        if job is not None and is_same:
            self.job = job
        wanted = is_same and self.job.desired is Desired.RUNNING
        if self._thread is not None:
            if not wanted and self.life.phase is Phase.STARTING and self._work is not None:
                self._work.cancel()
            return
        action = self.life.tick(now_s, wanted=wanted)
        if action is Action.START:
            self._begin(self._start)
        elif action in (Action.TERMINATE, Action.KILL):
            self._begin(self._release)

    def _begin(self, action: Callable[[], None], failure: str | None = None) -> None:
        self._thread = threading.Thread(target=self._run, args=(action, failure), name=f"job-{self.job.name}", daemon=True)
        self._thread.start()

    def _run(self, action: Callable[[], None], failure: str | None) -> None:
        try:
            action()
            self._outcome = (failure,)
        except Exception as error:
            logger.warning("event=job-not-started job=%s", self.job.name, exc_info=True)
            self._release()
            self._outcome = (one_line(error),)

    def _start(self) -> None:
        self._work = self._make(self.job)
        self._work.start()

    def _release(self) -> None:
        work, self._work = self._work, None
        if work is not None:
            work.stop()

    def _look(self, now_s: float) -> None:
        if self._thread is not None:
            if self._outcome is None:
                return
            (error,), self._outcome, self._thread = self._outcome, None, None
            if self.life.phase is Phase.STARTING and error is None:
                self.life.ready()
            else:
                self.life.ended(now_s, error)
        if self._work is not None and self.life.phase is Phase.RUNNING:
            failure = self._work.failure()
            if failure is not None:
                self._fault = failure
                self._begin(self._release, failure)  # the end of a step, or of a query, may take long
            elif self._fault is not None and self._work.has_settled():
                self._fault = None

    def state(self, known: JobState | None, now_s: float, now_ms: int) -> JobState | None:
        """Its state for the topic; None while it does not tell."""
        if self.job.desired is Desired.PAUSED:
            return made(self.job, known, State.PAUSED, now_ms) if not self.life.is_there else None
        match self.life.phase:
            case Phase.WAITING:
                return waiting(self.job, known, self.life, now_s, now_ms)
            case Phase.RUNNING if self._fault is not None:
                return made(self.job, known, State.STARTING, now_ms, tries=self.life.tries, error=self._fault)
            case Phase.RUNNING:
                return made(self.job, known, State.RUNNING, now_ms, tries=self.life.tries, error=self._hindrance())
            case Phase.STARTING:
                return made(self.job, known, State.STARTING, now_ms, tries=self.life.tries, error=self.life.reason)
        return None

    def _hindrance(self) -> str | None:
        return self._work.hindrance() if isinstance(self._work, Hindered) else None

    @property
    def is_gone(self) -> bool:
        """Whether nothing of it runs."""
        return not self.life.is_there and self._thread is None

    def end(self, timeout_s: float) -> None:
        """End it, at most in so much time."""
        deadline_s = time.monotonic() + timeout_s
        if self._thread is not None:
            self._thread.join(timeout_s)
        closing = threading.Thread(target=self._release, daemon=True)
        closing.start()
        closing.join(max(0.0, deadline_s - time.monotonic()))


def _signature(job: Job) -> tuple[object, ...]:
    return job.work, job.generation, job.restarts, job.pool
