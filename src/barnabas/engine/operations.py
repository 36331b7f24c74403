"""The requests of people about jobs: pause, resume, restart, create, delete. Each is one change of the topic of jobs."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping

import msgspec

from barnabas import limits
from barnabas.client.blocking import BlockingClient
from barnabas.client.keyed_topic import KeyedTopic
from barnabas.engine.jobs import DRIVEN, Desired, InsertWork, Job, PipelineWork
from barnabas.errors import BarnabasError

Jobs = KeyedTopic[Job]
_DROPPED = {"view": "DROP MATERIALIZED VIEW", "stream": "DROP STREAM"}


class JobError(BarnabasError):
    """A request about a job that cannot be done; the text says why."""


class UnknownJob(JobError):
    """There is no job of this name."""


class JobExists(JobError):
    """There is a job of this name already."""


def pause(jobs: Jobs, client: BlockingClient, name: str) -> Job:
    """Let a job rest; it keeps its state. Raises UnknownJob, and as `KeyedTopic.change`."""
    return _changed(jobs, client, name, lambda job: msgspec.structs.replace(job, desired=Desired.PAUSED))


def resume(jobs: Jobs, client: BlockingClient, name: str) -> Job:
    """Let a job go on. Raises as `pause`."""
    return _changed(jobs, client, name, lambda job: msgspec.structs.replace(job, desired=Desired.RUNNING))


def restart(jobs: Jobs, client: BlockingClient, name: str, *, rebuild: bool = False) -> Job:
    """Start a job again, from its state or from nothing; a paused one runs afterwards.

    Raises:
        JobError: from nothing, it would write rows twice. Others as `pause`.
    """

    def again(job: Job) -> Job:
        if rebuild and isinstance(job.work, InsertWork) and not job.work.target.is_keyed:
            raise JobError(f"{name} appends rows, so a rebuild would write all of them a second time")
        generation = job.generation + rebuild
        return msgspec.structs.replace(job, desired=Desired.RUNNING, restarts=job.restarts + 1, generation=generation)

    return _changed(jobs, client, name, again)


def create(jobs: Jobs, client: BlockingClient, job: Job) -> Job:
    """Declare a job. Raises JobExists, JobError for a wrong name, and as `pause`.

    The first generation of a view is the time of its creation in milliseconds: a view that had the name before may have left state, and a
    sink of the same name and generation would take the micro-batches for known ones.
    """
    check_name(job.name)
    now_ms = int(time.time() * 1000)
    generation = now_ms if isinstance(job.work, DRIVEN) else 0
    made = msgspec.structs.replace(job, created_ms=now_ms, generation=generation, restarts=0)

    def decide(there: Mapping[str, Job]) -> Mapping[str, Job | None]:
        if job.name in there:
            raise JobExists(f"there is a job {job.name} already")
        return {job.name: made}

    jobs.change(client, decide)
    return made


def delete(jobs: Jobs, client: BlockingClient, name: str) -> None:
    """Remove a pipeline or an insert. Raises JobError for a view or a stream, and as `pause`."""

    def decide(there: Mapping[str, Job]) -> Mapping[str, Job | None]:
        job = _named(there, name)
        if job.kind in _DROPPED:
            raise JobError(f"{name} is a {job.kind}; drop it by SQL: {_DROPPED[job.kind]}")
        return {name: None}

    jobs.change(client, decide)


def pipeline(
    name: str, target: str, arguments: tuple[str, ...] = (), every_s: float | None = None, conf: Mapping[str, str] | None = None
) -> Job:
    """A job for a pipeline."""
    return Job(name, PipelineWork(target, arguments, every_s), conf=dict(conf or {}))


def check_name(name: str) -> None:
    """Raises JobError for a name that a job cannot have."""
    if not name.strip() or len(name) > limits.MAX_JOB_NAME or not name.isprintable():
        raise JobError(f"the name of a job has 1 to {limits.MAX_JOB_NAME} printable characters")


def _changed(jobs: Jobs, client: BlockingClient, name: str, change: Callable[[Job], Job]) -> Job:
    made: list[Job] = []

    def decide(there: Mapping[str, Job]) -> Mapping[str, Job | None]:
        before = _named(there, name)
        made[:] = [change(before)]
        return {name: made[0]} if made[0] != before else {}

    jobs.change(client, decide)
    return made[0]


def _named(there: Mapping[str, Job], name: str) -> Job:
    job = there.get(name)
    if job is None:
        raise UnknownJob(f"there is no job {name}")
    return job
