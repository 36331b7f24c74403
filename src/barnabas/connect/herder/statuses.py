"""The statuses of connectors and tasks, made of the states of their jobs."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct, structs

from barnabas.connect.herder.planning import is_ours, job_name
from barnabas.connect.herder.records import (
    STATUS_CONNECTOR,
    STATUS_TASK,
    State,
    Status,
    Target,
    Value,
    task_key,
    topic_key,
)
from barnabas.connect.herder.requests import forget
from barnabas.connect.herder.state import Configs, Statuses
from barnabas.engine import jobs as engine
from barnabas.engine.job_states import ENGINE_STOPPED
from barnabas.engine.jobs import Job, JobProgress, JobState

_AT_WORK = (State.UNASSIGNED, State.RUNNING, State.RESTARTING)  # states that an engine which is gone cannot take back


class Observer(Struct, frozen=True):
    """Who says the statuses.

    Args:
        worker_id: host and port of its REST interface.
        generation: of its leadership.
        version: of the plug-ins.
    """

    worker_id: str
    generation: int
    version: str


def status_changes(
    configs: Configs, known: Statuses, jobs: Mapping[str, Job], states: Mapping[str, JobState], failures: Mapping[str, str],
    config_topic: str, observer: Observer, hindrance: str | None = None,
) -> dict[str, Value | None]:  # fmt: skip
    """The records of `connect-status` that change.

    Args:
        failures: by connector, why its tasks could not be made.
        hindrance: why no task runs, whatever the states say. None: engines are there.
    """
    changes: dict[str, Value | None] = {}
    for gone in known.names() - configs.connectors.keys():
        changes |= forget(known, gone)
    for name in configs.connectors:
        own = _made(observer, connector_state(configs.target(name), name in failures), failures.get(name))
        if not own.is_same(known.connector(name)):
            changes[STATUS_CONNECTOR + name] = own.value()
        tasks = range(len(configs.tasks(name))) if configs.target(name) is not Target.STOPPED else range(0)
        said = known.tasks(name)
        for task in tasks:
            job = jobs.get(job_name(name, task))
            state = states.get(job_name(name, task))
            now = _of_task(job, state, config_topic, observer, hindrance)
            if not now.is_same(said.get(task), of_same_worker=state is not None and state.worker_id is not None):
                changes[task_key(STATUS_TASK, name, task)] = now.value()
        changes |= {task_key(STATUS_TASK, name, task): None for task in said if task not in tasks}
    return changes


def connector_state(target: Target, has_failed: bool) -> State:
    """The state of a connector."""
    match target:
        case Target.STOPPED:
            return State.STOPPED
        case Target.PAUSED:
            return State.PAUSED
    return State.FAILED if has_failed else State.RUNNING


def _of_task(job: Job | None, state: JobState | None, config_topic: str, observer: Observer, hindrance: str | None) -> Status:
    if job is not None and not is_ours(job, config_topic):
        return _made(
            observer, State.FAILED, f"the job {job.name} belongs to another Connect cluster or to SQL; rename the connector"
        )
    found, trace = task_state(job, state)
    if hindrance is not None and (found in _AT_WORK or trace == ENGINE_STOPPED):
        return _made(observer, State.UNASSIGNED, hindrance)
    made = _made(observer, found, trace)
    return made if state is None or state.worker_id is None else structs.replace(made, worker_id=state.worker_id)


def task_state(job: Job | None, state: JobState | None) -> tuple[State, str | None]:
    """The state of a task, and the error of a failed one."""
    if job is None or state is None or state.generation != job.generation:
        return State.UNASSIGNED, None
    if state.restarts != job.restarts:
        return State.RESTARTING, None
    match state.state:
        case engine.State.RUNNING:
            return State.RUNNING, state.error  # why it waits for others
        case engine.State.PAUSED:
            return State.PAUSED, None
        case engine.State.STARTING | engine.State.WAITING | engine.State.FAILED if state.error is not None:
            return State.FAILED, state.error
        case engine.State.STARTING if job.restarts:
            return State.RESTARTING, None
    return State.UNASSIGNED, None


def _made(observer: Observer, state: State, trace: str | None) -> Status:
    return Status(state, trace, observer.worker_id, observer.generation, observer.version)


def topic_changes(
    configs: Configs, known: Statuses, jobs: Mapping[str, Job], progress: Mapping[str, JobProgress], now_ms: int
) -> dict[str, Value | None]:
    """Records about topics that connectors have begun to use, as the progress of their jobs says."""
    changes: dict[str, Value | None] = {}
    for name in configs.connectors:
        there = known.topics(name)
        for task in range(len(configs.tasks(name))):
            job, its = jobs.get(job_name(name, task)), progress.get(job_name(name, task))
            if job is None or its is None or its.generation != job.generation:
                continue
            for topic in its.topics:
                key = topic_key(topic, name)
                if topic not in there and key not in changes:
                    changes[key] = {"topic": {"name": topic, "connector": name, "task": task, "discoverTimestamp": now_ms}}
    return changes
