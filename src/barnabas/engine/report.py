"""Reports about jobs: the job, its state, its progress, how many records it is behind."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from msgspec import Struct

from barnabas.client.blocking import BlockingClient
from barnabas.client.results import LATEST, TopicPartition
from barnabas.engine.jobs import STREAMING, ConnectorWork, Job, JobProgress, JobState
from barnabas.errors import KafkaError


class Report(Struct, frozen=True):
    """One job. The lag is None if nothing says it."""

    job: Job
    state: JobState | None
    progress: JobProgress | None
    lag: int | None


def reports(
    client: BlockingClient, jobs: Mapping[str, Job], states: Mapping[str, JobState], progress: Mapping[str, JobProgress],
    names: Iterable[str] | None = None,
) -> list[Report]:  # fmt: skip
    """The jobs of these names, or all, in the order of their names. Raises ClientError."""
    wanted = sorted(jobs if names is None else names)
    current = {name: each for name in wanted if (each := progress.get(name)) and each.generation == jobs[name].generation}
    behind = lags(client, current)
    return [Report(jobs[name], states.get(name), current.get(name), behind.get(name)) for name in wanted]


def lags(client: BlockingClient, progress: Mapping[str, JobProgress]) -> dict[str, int]:
    """How many records each job is behind the ends of its topics; without those whose topics are gone, or are
    shorter than what the job has read: they were made again. Raises ClientError."""
    told = {name: each.lag for name, each in progress.items() if each.lag is not None}
    positions = {name: _positions(each) for name, each in progress.items() if each.offsets}
    places = {place: LATEST for found in positions.values() for place in found}
    try:
        ends = client.list_offsets(places, read_committed=True) if places else {}
    except KafkaError:  # a topic is gone: ask for each job alone
        for name in positions if len(positions) > 1 else ():
            told |= lags(client, {name: progress[name]})
        return told
    for name, its in positions.items():
        behind = [ends[at].offset - offset for at, offset in its.items()]
        if min(behind, default=0) >= 0:
            told[name] = sum(behind)
    return told


def _positions(progress: JobProgress) -> dict[TopicPartition, int]:
    return {
        (topic, int(partition)): offset
        for topic, partitions in progress.offsets.items()
        for partition, offset in partitions.items()
        if partition.isdecimal()
    }


def shown(report: Report) -> dict[str, Any]:
    """One job as JSON has it."""
    job, state, progress = report.job, report.state, report.progress
    found: dict[str, Any] = {
        "name": job.name,
        "kind": job.kind,
        "desired": job.desired,
        "state": None if state is None else state.state,
        "since_ms": None if state is None else state.since_ms,
        "error": None if state is None else state.error,
        "tries": None if state is None else state.tries,
        "next_try_ms": None if state is None else state.next_try_ms,
        "lag": report.lag,
        "generation": job.generation,
        "restarts": job.restarts,
        "created_ms": job.created_ms,
        "pool": job.pool,
    }
    if isinstance(job.work, STREAMING):
        topics = sorted({each.topic for each in job.work.tables.values()})
        found |= {"sql": job.work.sql, "topic": job.work.topic, "reads": topics}
    elif isinstance(job.work, ConnectorWork):
        found |= {"connector": job.work.connector, "task": job.work.task, "plugin": job.work.plugin}
        found |= {"engine": None if state is None else state.url}
    else:
        found |= {
            "target": job.work.target,
            "arguments": list(job.work.arguments),
            "every_s": job.work.every_s,
            "conf": dict(job.conf),
        }
    counts = ("rows_in", "rows_out", "total_in", "total_out", "late_rows", "state_rows", "state_bytes")
    fields = ("batch", *counts, "took_ms", "at_ms", "offsets")
    return {**found, "progress": None if progress is None else {each: getattr(progress, each) for each in fields}}
