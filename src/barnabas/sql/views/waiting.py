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
from barnabas.engine.jobs import STREAMING, Desired, Job, JobState, State, ViewWork
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


def wait_for_rows(session: Waiting, job: Job, needed: Mapping[str, Ends] | None = None) -> None:
    """Wait until the first rows of a job are there, and tell the caller why not if they do not come. Raises SqlError.

    Args:
        needed: the offsets that an insert must have.
    """
    jobs = session.view_jobs
    kind = "view" if _is_view(job) else "job"
    if not jobs.has_engine(time.monotonic() + ENGINE_S, session.running.check):
        session.notify(Notice(f'no engine runs, so the {kind} "{job.name}" has no rows yet', hint=NO_ENGINE))
        return
    if not any(each.state is State.RUNNING for each in jobs.states().values()):
        session.notify(Notice("starting Spark; this takes some seconds"))
    while not _is_published(jobs, job, needed or {}):
        session.running.check()
        state = jobs.states(POLL_S).get(job.name)
        if state is not None and state.generation == job.generation and _has_failed(state):
            text = f'the {kind} "{job.name}" has no rows yet: {state.error}'
            session.notify(Notice(text, "WARNING", "01000", f"barnabas.{kind}s shows its state"))
            return
        time.sleep(POLL_S)
    wait_for_running(session, job)


def wait_for_running(session: Waiting, job: Job) -> bool:
    """Wait until a job that has rows has told its state too: the driver writes it at its next look. ENGINE_S at most. Raises SqlError.

    Returns:
        Whether it works.
    """
    until_s = time.monotonic() + ENGINE_S
    while time.monotonic() < until_s:
        state = session.view_jobs.states(POLL_S).get(job.name)
        if not _works(job, state):
            return False
        if state is not None and _is_of(state, job) and state.state is State.RUNNING:
            return True
        session.running.check()
        time.sleep(POLL_S)
    return True


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


def _is_published(jobs: ViewJobs, job: Job, needed: Mapping[str, Ends]) -> bool:
    found = jobs.progress(AGE_S).get(job.name)
    return found is not None and found.generation == job.generation and _has(found.offsets, needed)


def _has_failed(state: JobState) -> bool:
    return state.state not in WORKING and state.error is not None and (state.tries > 1 or state.state is State.FAILED)


class CatchingUp:
    """The waits of one session. Views and streams are named by their topics, since several jobs may write to one."""

    def __init__(self, session: Waiting) -> None:
        self._session = session
        self._seen: dict[str, int] = {}  # by topic: the number of the session's writes that it has

    def before_reading(self, topics: Iterable[str]) -> None:
        """Let views and streams have what the session wrote, within READ_S; a warning tells of those that do not. Raises SqlError."""
        access = self._session.access
        wanted = [name for name in topics if self._seen.get(name) != access.writes]
        if wanted:
            self._warn(self._wait(wanted, access.own_writes(), time.monotonic() + READ_S))
            self._seen |= dict.fromkeys(wanted, access.writes)  # a view that is late is waited for once after each write

    def is_done(self, name: str) -> bool:
        """Whether `before_reading` has nothing to wait for."""
        return not self._session.access.writes or self._seen.get(name) == self._session.access.writes

    def flush(self) -> None:
        """Let all views and inserts have what the session wrote. Raises SqlError."""
        written = self._session.access.own_writes()
        if written:
            topics = [job.work.topic for job in self._session.view_jobs.jobs().values() if isinstance(job.work, STREAMING)]
            self._warn(self._wait(topics, written, math.inf))

    def refresh(self, topic: str) -> None:
        """Let a view or a stream have all that is committed at this moment. Raises SqlError 55000 if its job does not work."""
        jobs = self._session.view_jobs.jobs()
        ends = ends_of(self._session, _tables_below(jobs, topic), read_committed=True)
        late = self._wait([topic], ends, math.inf, from_first=True)
        for each in _writing(jobs, topic) if not late else ():
            if each.desired is Desired.RUNNING and not wait_for_running(self._session, each):
                late = [each.name]
        if late:
            job, state = jobs.get(late[0]), self._session.view_jobs.states().get(late[0])
            reason = "it has not started" if state is None else state.error or f"it is {state.state}"
            kind, words = ("view", "MATERIALIZED VIEW") if _is_view(job) else ("job", "JOB")
            hint = f"RESUME {words} lets it go on" if job is not None and job.desired is Desired.PAUSED else None
            raise SqlError("55000", f'the {kind} "{late[0]}" does not run: {reason}', hint=hint)

    def _wait(self, topics: Iterable[str], written: Mapping[str, Ends], until_s: float, *, from_first: bool = False) -> list[str]:
        """Wait for the jobs that write to topics; those that were not waited for to the end, as they do not work or take too long.

        Args:
            from_first: whether a view must have its first rows even if nothing was written.
        """
        walk = _Walk(self._session, written, until_s, from_first=from_first)
        for topic in topics:
            walk.wait(topic)
            if not any(each.name in walk.late for each in _writing(walk.jobs, topic)):
                self._seen[topic] = self._session.access.writes
        return walk.late

    def _warn(self, late: list[str]) -> None:
        for name in late:
            kind = "view" if _is_view(self._session.view_jobs.store.records.get(name)) else "job"
            text = f'the {kind} "{name}" does not have yet what this session wrote'
            self._session.notify(Notice(text, "WARNING", "01000", f"barnabas.{kind}s shows its state"))


class _Walk:
    """One wait, from the tables up to the views."""

    def __init__(self, session: Waiting, written: Mapping[str, Ends], until_s: float, *, from_first: bool) -> None:
        self._session, self._written, self._until_s, self._from_first = session, written, until_s, from_first
        self.jobs = session.view_jobs.jobs()
        self._known: dict[str, Ends] = {}
        self.late: list[str] = []

    def wait(self, topic: str) -> Ends:
        """Wait for the jobs that write to a topic; the offsets behind their rows then, none if they read nothing of what was written."""
        if topic in self._known:
            return self._known[topic]
        self._known[topic] = {}
        writers = _writing(self.jobs, topic)
        late = [each for each in writers if not self._has_all(each)]
        if late or not writers or not (self._from_first or any(self._needed(each) for each in writers)):
            return {}
        ends = ends_of(self._session, [topic], read_committed=False).get(topic, {})
        self._session.access.must_see(topic, ends)
        self._known[topic] = ends
        return ends

    def _needed(self, job: Job) -> dict[str, Ends]:
        """The offsets that a job must have, after waits for those below it."""
        assert isinstance(job.work, STREAMING)
        needed: dict[str, Ends] = {}
        for topic in {each.topic for each in job.work.tables.values()}:
            ends = dict(self._written.get(topic, {}))
            for partition, end in self.wait(topic).items():
                ends[partition] = max(end, ends.get(partition, 0))
            if ends:
                needed[topic] = ends
        return needed

    def _has_all(self, job: Job) -> bool:
        """Wait for one job; whether it has what it needs."""
        needed = self._needed(job)
        if not (needed or self._from_first) or self._reached(job, needed):
            return True
        self.late.append(job.name)
        return False

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
    if state is None or not _is_of(state, job):
        return True
    return state.state in (*WORKING, State.PAUSED) or (state.state is State.WAITING and state.tries < 2)


def _is_of(state: JobState, job: Job) -> bool:
    return (state.generation, state.restarts) == (job.generation, job.restarts)


def _has(offsets: Mapping[str, Mapping[str, int]], needed: Mapping[str, Ends]) -> bool:
    return all(
        offsets.get(topic, {}).get(str(partition), 0) >= end for topic, ends in needed.items() for partition, end in ends.items()
    )


def _writing(jobs: Mapping[str, Job], topic: str) -> list[Job]:
    """The jobs that write to a topic."""
    return [job for job in jobs.values() if isinstance(job.work, STREAMING) and job.work.topic == topic]


def _is_view(job: Job | None) -> bool:
    return job is not None and isinstance(job.work, ViewWork)


def _tables_below(jobs: Mapping[str, Job], topic: str) -> set[str]:
    """The topics that a view or a stream reads, and those that the ones below it read, without the topics of views."""
    found: set[str] = set()
    seen: set[str] = set()
    pending = [topic]
    while pending:
        writers = _writing(jobs, pending.pop())
        for job in writers:
            assert isinstance(job.work, STREAMING)
            for each in {table.topic for table in job.work.tables.values()} - seen:
                seen.add(each)
                pending.append(each)
                if not any(map(_is_view, _writing(jobs, each))):
                    found.add(each)
    return found


def ends_of(session: Waiting, topics: Iterable[str], *, read_committed: bool) -> dict[str, Ends]:
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
