"""Waits until a view has what was written. `statement_timeout` and a cancellation end each wait."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from barnabas.engine.jobs import Job, JobState, State
from barnabas.sql.interface import Notice
from barnabas.sql.views.jobs import AGE_S, WORKING, ViewJobs

if TYPE_CHECKING:
    from barnabas.sql.statements.host import Host

POLL_S = 0.01
ENGINE_S = 3.0  # for an engine that starts to be found
NO_ENGINE = "`barnabas engine start`, or `barnabas start`, runs one"


def wait_for_rows(session: Host, job: Job) -> None:
    """Wait until the first rows of a job are there, and tell the caller why not if they do not come. Raises SqlError."""
    jobs = session.view_jobs
    if not jobs.has_engine(time.monotonic() + ENGINE_S, session.running.check):
        session.notify(Notice(f'no engine runs, so the view "{job.name}" has no rows yet', hint=NO_ENGINE))
        return
    if not any(each.state is State.RUNNING for each in jobs.states().values()):
        session.notify(Notice("starting Spark; this takes some seconds"))
    while not _is_published(jobs, job):
        session.running.check()
        state = jobs.states(POLL_S).get(job.name)
        if state is not None and state.generation == job.generation and _has_failed(state):
            text = f'the view "{job.name}" has no rows yet: {state.error}'
            session.notify(Notice(text, "WARNING", "01000", "barnabas.views shows its state"))
            return
        time.sleep(POLL_S)


def _is_published(jobs: ViewJobs, job: Job) -> bool:
    found = jobs.progress(AGE_S).get(job.name)
    return found is not None and found.generation == job.generation


def _has_failed(state: JobState) -> bool:
    return state.state not in WORKING and state.error is not None and (state.tries > 1 or state.state is State.FAILED)
