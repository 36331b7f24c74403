"""The jobs that the connectors need: one for each task, `connect-NAME-TASK`.

Rules
  1. A job belongs to the Connect cluster whose `config.storage.topic` its work names. Others are left alone, also if they have a name
     that is needed here.
  2. A task whose config changes starts again from its offsets: its job gets the work and another number of restarts.
  3. A stopped connector has no jobs, a paused one has jobs that rest.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from msgspec import Struct, structs

from barnabas.connect.herder.records import Target
from barnabas.connect.herder.state import Config, Configs
from barnabas.engine.jobs import ConnectorWork, Desired, Job

CONFIG_TOPIC = "config.storage.topic"


class Kinds(Struct, frozen=True):
    """Class and kind of the plug-in of a connector."""

    plugin: str
    kind: Literal["source", "sink"]


def job_name(connector: str, task: int) -> str:
    """The name of the job of a task."""
    return f"connect-{connector}-{task}"


def is_ours(job: Job | None, config_topic: str) -> bool:
    """Whether a job belongs to this Connect cluster; see rule 1."""
    return job is not None and isinstance(job.work, ConnectorWork) and job.work.worker.get(CONFIG_TOPIC) == config_topic


def works(
    name: str, tasks: list[Config], kind: Kinds, worker: Mapping[str, str], *, needs_spark: bool = False
) -> dict[str, ConnectorWork]:
    """The work of each task of a connector, by the name of its job."""
    return {
        job_name(name, at): ConnectorWork(
            connector=name, task=at, tasks=len(tasks), kind=kind.kind, plugin=kind.plugin, worker=worker,
            config={key: value for key, value in config.items() if value is not None}, needs_spark=needs_spark,
        )
        for at, config in enumerate(tasks)
    }  # fmt: skip


def job_changes(
    configs: Configs, wanted: Mapping[str, ConnectorWork], known: Mapping[str, Job], config_topic: str, now_ms: int,
    undecided: frozenset[str] = frozenset(),
) -> dict[str, Job | None]:  # fmt: skip
    """The jobs that change; None removes one.

    Args:
        wanted: by the names of jobs, of all connectors that have tasks.
        undecided: connectors whose tasks are not known at the moment: their jobs stay as they are.
    """
    changes: dict[str, Job | None] = {}
    for name, job in known.items():
        if is_ours(job, config_topic) and name not in wanted and _connector(job) not in undecided:
            changes[name] = None
    for name, work in wanted.items():
        desired = Desired.PAUSED if configs.target(work.connector) is Target.PAUSED else Desired.RUNNING
        there = known.get(name)
        if there is None:
            changes[name] = Job(name, work, desired=desired, generation=now_ms, created_ms=now_ms)
        elif is_ours(there, config_topic):
            restarts = there.restarts + (there.work != work)
            made = structs.replace(there, work=work, desired=desired, restarts=restarts)
            if made != there:
                changes[name] = made
    for connector in undecided & configs.connectors.keys():  # a pause or a stop does not wait for the tasks
        changes |= _retargeted(configs, connector, known, config_topic, changes)
    return changes


def _retargeted(
    configs: Configs, connector: str, known: Mapping[str, Job], config_topic: str, changes: Mapping[str, Job | None]
) -> dict[str, Job | None]:
    target = configs.target(connector)
    desired = Desired.PAUSED if target is Target.PAUSED else Desired.RUNNING
    found: dict[str, Job | None] = {}
    for name, job in known.items():
        if name in changes or not is_ours(job, config_topic) or _connector(job) != connector:
            continue
        if target is Target.STOPPED:
            found[name] = None
        elif job.desired is not desired:
            found[name] = structs.replace(job, desired=desired)
    return found


def _connector(job: Job) -> str:
    assert isinstance(job.work, ConnectorWork)
    return job.work.connector
