"""Jobs that insert: which topics they read and write, and what depends on them. No I/O."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from barnabas import limits
from barnabas.engine.jobs import STREAMING, InsertWork, Job
from barnabas.sql.interface import SqlError


def inserts(jobs: Mapping[str, Job], topic: str) -> list[Job]:
    """The jobs that insert and read or write a topic, by name."""
    return [job for _, job in sorted(jobs.items()) if isinstance(job.work, InsertWork) and topic in _topics(job.work)]


def _topics(work: InsertWork) -> set[str]:
    return {work.topic, *(each.topic for each in work.tables.values())}


def shown(job: Job) -> str:
    """A job that inserts in a sentence: the stream that it belongs to, or itself."""
    assert isinstance(job.work, InsertWork)
    return f"job {job.name}" if job.work.creates is None else f"stream {job.work.creates}"


def job_of_stream(jobs: Mapping[str, Job], name: str) -> Job | None:
    """The job that was created with a stream."""
    return next((job for job in jobs.values() if isinstance(job.work, InsertWork) and job.work.creates == name), None)


def check_no_loop(jobs: Mapping[str, Job], reads: Iterable[str], writes: str) -> None:
    """Raises SqlError 42P17 if what a job writes would come back to it through other jobs.

    Args:
        reads: the topics whose records make it write.
    """
    wanted, seen, pending = set(reads), set[str](), [writes]
    while pending:
        topic = pending.pop()
        if topic in wanted:
            way = "" if topic == writes else ", through other jobs"
            raise SqlError("42P17", f'the job would read the rows that it writes to "{writes}"{way}, without an end')
        for job in jobs.values():
            if isinstance(job.work, STREAMING) and topic in moving(job) and job.work.topic not in seen:
                seen.add(job.work.topic)
                pending.append(job.work.topic)


def moving(job: Job) -> set[str]:
    """The topics whose records make a job write: of one that inserts, those of its streams."""
    if not isinstance(job.work, STREAMING):
        return set()
    nodes = job.work.plan.tables
    is_insert = isinstance(job.work, InsertWork)
    return {each.topic for name, each in job.work.tables.items() if not is_insert or nodes[name].is_stream}


def free_job_name(jobs: Mapping[str, Job], wanted: str) -> str:
    """A name that no job has, with a number behind it if need be."""
    base = wanted[: limits.MAX_JOB_NAME - 5]
    name, number = base, 1
    while name in jobs:
        number += 1
        name = f"{base}_{number}"
    return name
