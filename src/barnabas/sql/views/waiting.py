"""Waits until views have what was written. `statement_timeout` and a cancellation end each wait.

A view has an offset of a topic if its progress has it: the job writes its progress with the rows, in one transaction. A view over a view
has what the lower view wrote.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Mapping
from typing import Protocol

from barnabas.client.blocking import BlockingClient
from barnabas.client.results import LATEST
from barnabas.engine.jobs import Desired, Job, JobState, State, ViewWork
from barnabas.sql.catalog.access import Access
from barnabas.sql.interface import Notice, SqlError
from barnabas.sql.running import Running
from barnabas.sql.views.jobs import AGE_S, WORKING, ViewJobs

POLL_S = 0.01
ENGINE_S = 3.0  # for an engine that starts to be found
REST_S = 10.0  # for a job that was paused to rest
READ_S = 10.0  # that a query waits for a view to have what its session wrote
NO_ENGINE = "`barnabas engine start`, or `barnabas start`, runs one"
Ends = dict[int, int]


class Waiting(Protocol):
    """The session that waits."""

    client: BlockingClient
    running: Running
    access: Access

    @property
    def view_jobs(self) -> ViewJobs: ...

    def notify(self, notice: Notice) -> None: ...


def wait_for_rows(session: Waiting, job: Job) -> None:
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


def wait_for_rest(session: Waiting, name: str) -> None:
    """Wait until a job that was paused rests, if an engine runs, and REST_S at most. Raises SqlError."""
    jobs = session.view_jobs
    until_s = time.monotonic() + REST_S
    if not jobs.has_engine(0, session.running.check):
        return
    while time.monotonic() < until_s:
        state = jobs.states(POLL_S).get(name)
        if state is None or state.state not in WORKING:
            return
        session.running.check()
        time.sleep(POLL_S)


def _is_published(jobs: ViewJobs, job: Job) -> bool:
    found = jobs.progress(AGE_S).get(job.name)
    return found is not None and found.generation == job.generation


def _has_failed(state: JobState) -> bool:
    return state.state not in WORKING and state.error is not None and (state.tries > 1 or state.state is State.FAILED)


class CatchingUp:
    """The waits of one session. Views are named by their jobs, which have the names of their topics."""

    def __init__(self, session: Waiting) -> None:
        self._session = session
        self._seen: dict[str, int] = {}  # by view: the number of the session's writes that it has

    def before_reading(self, names: Iterable[str]) -> None:
        """Let views have what the session wrote, within READ_S; a warning tells of those that do not. Raises SqlError."""
        access = self._session.access
        wanted = [name for name in names if self._seen.get(name) != access.writes]
        if wanted:
            self._warn(self._wait(wanted, access.own_writes(), time.monotonic() + READ_S))
            self._seen |= dict.fromkeys(wanted, access.writes)  # a view that is late is waited for once after each write

    def is_done(self, name: str) -> bool:
        """Whether `before_reading` has nothing to wait for."""
        return not self._session.access.writes or self._seen.get(name) == self._session.access.writes

    def flush(self) -> None:
        """Let all views have what the session wrote. Raises SqlError."""
        written = self._session.access.own_writes()
        if written:
            names = [job.name for job in self._session.view_jobs.jobs().values() if isinstance(job.work, ViewWork)]
            self._warn(self._wait(names, written, math.inf))

    def refresh(self, name: str) -> None:
        """Let a view have all that is committed at this moment. Raises SqlError 55000 if its job does not work."""
        jobs = self._session.view_jobs.jobs()
        topics = _tables_below(jobs, name)
        ends = _by_topic(self._session, topics, read_committed=True)
        late = self._wait([name], ends, math.inf, from_first=True)
        if late:
            state = self._session.view_jobs.states().get(late[0])
            reason = "it has not started" if state is None else state.error or f"it is {state.state}"
            raise SqlError("55000", f'the view "{late[0]}" does not run: {reason}', hint="RESUME MATERIALIZED VIEW lets it go on")

    def _wait(self, names: Iterable[str], written: Mapping[str, Ends], until_s: float, *, from_first: bool = False) -> list[str]:
        """Wait for views; those that were not waited for to the end, as they do not work or take too long.

        Args:
            from_first: whether a view must have its first rows even if nothing was written.
        """
        walk = _Walk(self._session, written, until_s, from_first=from_first)
        for name in names:
            if walk.wait(name) or name not in walk.late:
                self._seen[name] = self._session.access.writes
        return walk.late

    def _warn(self, late: list[str]) -> None:
        for name in late:
            text = f'the view "{name}" does not have yet what this session wrote'
            self._session.notify(Notice(text, "WARNING", "01000", "barnabas.views shows its state"))


class _Walk:
    """One wait, from the tables up to the views."""

    def __init__(self, session: Waiting, written: Mapping[str, Ends], until_s: float, *, from_first: bool) -> None:
        self._session, self._written, self._until_s, self._from_first = session, written, until_s, from_first
        self._jobs = session.view_jobs.jobs()
        self._views = {job.work.topic: name for name, job in self._jobs.items() if isinstance(job.work, ViewWork)}
        self._known: dict[str, Ends] = {}
        self.late: list[str] = []

    def wait(self, name: str) -> Ends:
        """Wait for one view; the offsets behind its rows then, empty if it reads nothing of what was written."""
        if name in self._known:
            return self._known[name]
        self._known[name] = {}
        job = self._jobs.get(name)
        if job is None or not isinstance(job.work, ViewWork):
            return {}
        needed: dict[str, Ends] = {}
        for topic in {each.topic for each in job.work.tables.values()}:
            below = self._views.get(topic)
            ends = self._written.get(topic, {}) if below is None else self.wait(below)
            if ends:
                needed[topic] = ends
        if not needed and not self._from_first:
            return {}
        if not self._reached(job, needed):
            self.late.append(name)
            return {}
        ends = _by_topic(self._session, [job.work.topic], read_committed=False).get(job.work.topic, {})
        self._session.access.must_see(job.work.topic, ends)
        self._known[name] = ends
        return ends

    def _reached(self, job: Job, needed: Mapping[str, Ends]) -> bool:
        jobs = self._session.view_jobs
        look_s = time.monotonic() + ENGINE_S
        while True:
            progress = jobs.progress().get(job.name)
            if progress is not None and progress.generation == job.generation and _has(progress.offsets, needed):
                return True
            now_s = time.monotonic()
            if now_s > self._until_s or not _works(job, jobs.states(POLL_S).get(job.name)):
                return False
            self._session.running.check()
            if now_s > look_s:
                look_s = now_s + ENGINE_S
                if not jobs.has_engine(now_s, self._session.running.check):
                    return False
            time.sleep(POLL_S)


def _works(job: Job, state: JobState | None) -> bool:
    """Whether a job runs, or will when the engine has seen it."""
    if job.desired is Desired.PAUSED:
        return False
    is_of_job = state is not None and (state.generation, state.restarts) == (job.generation, job.restarts)
    if not is_of_job or state is None:
        return True
    return state.state in (*WORKING, State.PAUSED) or (state.state is State.WAITING and state.tries < 2)


def _has(offsets: Mapping[str, Mapping[str, int]], needed: Mapping[str, Ends]) -> bool:
    return all(
        offsets.get(topic, {}).get(str(partition), 0) >= end for topic, ends in needed.items() for partition, end in ends.items()
    )


def _tables_below(jobs: Mapping[str, Job], name: str) -> set[str]:
    """The topics that a view reads, and those that the views below it read, without the topics of views."""
    views = {job.work.topic: job for job in jobs.values() if isinstance(job.work, ViewWork)}
    found: set[str] = set()
    seen: set[str] = set()
    pending = [jobs[name]] if name in jobs else []
    while pending:
        work = pending.pop().work
        for topic in {each.topic for each in work.tables.values()} if isinstance(work, ViewWork) else ():
            if topic in views and topic not in seen:
                seen.add(topic)
                pending.append(views[topic])
            elif topic not in views:
                found.add(topic)
    return found


def _by_topic(session: Waiting, topics: Iterable[str], *, read_committed: bool) -> dict[str, Ends]:
    """The ends of topics that exist, partition by partition, without empty partitions."""
    client = session.client
    known = client.topics_by_name(sorted(topics))
    places = {(topic, partition): LATEST for topic, found in known.items() for partition in found.partitions}
    ends = client.list_offsets(places, read_committed=read_committed) if places else {}
    made: dict[str, Ends] = {}
    for (topic, partition), found in ends.items():
        if found.offset > 0:
            made.setdefault(topic, {})[partition] = found.offset
    return made
