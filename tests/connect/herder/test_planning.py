"""The jobs that connectors need, and the statuses that their states make."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from msgspec import structs

from barnabas.connect.herder.planning import CONFIG_TOPIC, Kinds, job_changes, works
from barnabas.connect.herder.records import State, Target, target_value
from barnabas.connect.herder.state import Configs, Statuses
from barnabas.connect.herder.statuses import Observer, status_changes, task_state, topic_changes
from barnabas.engine.job_states import ENGINE_STOPPED
from barnabas.engine.jobs import ConnectorWork, Desired, Job, JobProgress, JobState, PipelineWork
from barnabas.engine.jobs import State as JobStateName

TOPIC = "connect-configs"
WORKER = {CONFIG_TOPIC: TOPIC}
OBSERVER = Observer("w:1", 3, "1.0")


def configs(count: int = 2, target: Target | None = None, name: str = "a", **more: str) -> Configs:
    records: dict[str, Any] = {f"connector-{name}": {"properties": {"name": name, **more}}, f"commit-{name}": {"tasks": count}}
    records |= {f"task-{name}-{task}": {"properties": {"name": name, "task": str(task), **more}} for task in range(count)}
    return Configs(records | ({} if target is None else {f"target-state-{name}": target_value(target)}))


def wanted(of: Configs, name: str = "a") -> dict[str, ConnectorWork]:
    return works(name, of.tasks(name), Kinds("Class", "source"), WORKER)


def made(of: Configs, known: Mapping[str, Job] | None = None, **options: Any) -> dict[str, Job]:
    there = dict(known or {})
    changes = job_changes(of, wanted(of), there, TOPIC, 7, **options)
    return {name: job for name, job in {**there, **changes}.items() if job is not None}


def test_each_task_has_a_job_which_is_made_once() -> None:
    of = configs()
    jobs = made(of)
    assert list(jobs) == ["connect-a-0", "connect-a-1"]
    work = jobs["connect-a-1"].work
    assert isinstance(work, ConnectorWork)
    assert (work.connector, work.task, work.tasks, work.kind, work.plugin) == ("a", 1, 2, "source", "Class")
    assert work.config == {"name": "a", "task": "1"}
    assert job_changes(of, wanted(of), jobs, TOPIC, 8) == {}


def test_another_config_starts_the_task_again_from_its_offsets() -> None:
    before = made(configs())
    after = made(configs(file="x"), before)
    assert {(each.restarts, each.generation) for each in after.values()} == {(1, 7)}


def test_tasks_that_are_gone_lose_their_jobs() -> None:
    assert list(made(configs(1), made(configs(3)))) == ["connect-a-0"]
    stopped = configs(0, Target.STOPPED)
    assert made(stopped, made(configs(3))) == {}
    assert job_changes(Configs({}), {}, made(configs(1)), TOPIC, 7) == {"connect-a-0": None}


def test_a_paused_connector_has_jobs_that_rest() -> None:
    paused = made(configs(target=Target.PAUSED), made(configs()))
    assert {each.desired for each in paused.values()} == {Desired.PAUSED}
    assert {each.restarts for each in paused.values()} == {0}
    assert {each.desired for each in made(configs(target=Target.STARTED), paused).values()} == {Desired.RUNNING}


def test_jobs_of_others_are_left_alone() -> None:
    other = made(configs())["connect-a-0"]
    assert isinstance(other.work, ConnectorWork)
    other = structs.replace(other, work=structs.replace(other.work, worker={CONFIG_TOPIC: "other-configs"}))
    pipeline = Job("connect-a-1", PipelineWork("x.py"))
    there = {"connect-a-0": other, "connect-a-1": pipeline, "connect-b-0": structs.replace(other, name="connect-b-0")}
    assert job_changes(configs(), wanted(configs()), there, TOPIC, 7) == {}
    changes = status_changes(configs(), Statuses({}), there, {}, {}, TOPIC, OBSERVER)
    assert changes["status-task-a-0"] is not None
    assert changes["status-task-a-0"]["state"] == "FAILED"


def test_while_tasks_are_not_known_jobs_stay_but_for_their_target() -> None:
    there = made(configs())
    undecided = frozenset({"a"})
    assert job_changes(configs(), {}, there, TOPIC, 7, undecided) == {}
    paused = job_changes(configs(target=Target.PAUSED), {}, there, TOPIC, 7, undecided)
    assert {name: job and job.desired for name, job in paused.items()} == dict.fromkeys(there, Desired.PAUSED)


JOB = made(configs(1))["connect-a-0"]


@pytest.mark.parametrize(
    ("job", "state", "expected"),
    [
        (None, None, (State.UNASSIGNED, None)),
        (JOB, None, (State.UNASSIGNED, None)),
        (JOB, JobState("j", 7, 0, JobStateName.STARTING, 0), (State.UNASSIGNED, None)),
        (JOB, JobState("j", 7, 0, JobStateName.STARTING, 0, error="boom"), (State.FAILED, "boom")),
        (JOB, JobState("j", 7, 0, JobStateName.WAITING, 0, error="boom"), (State.FAILED, "boom")),
        (JOB, JobState("j", 7, 0, JobStateName.FAILED, 0, error="boom"), (State.FAILED, "boom")),
        (JOB, JobState("j", 7, 0, JobStateName.RUNNING, 0), (State.RUNNING, None)),
        (JOB, JobState("j", 7, 0, JobStateName.RUNNING, 0, error="it is away"), (State.RUNNING, "it is away")),
        (JOB, JobState("j", 7, 0, JobStateName.PAUSED, 0), (State.PAUSED, None)),
        (JOB, JobState("j", 6, 0, JobStateName.RUNNING, 0), (State.UNASSIGNED, None)),
        (structs.replace(JOB, restarts=1), JobState("j", 7, 0, JobStateName.RUNNING, 0), (State.RESTARTING, None)),
        (structs.replace(JOB, restarts=1), JobState("j", 7, 1, JobStateName.STARTING, 0), (State.RESTARTING, None)),
    ],
)
def test_the_state_of_a_job_is_that_of_its_task(
    job: Job | None, state: JobState | None, expected: tuple[State, str | None]
) -> None:
    assert task_state(job, state) == expected


def said(changes: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value and (value["state"], value["trace"]) for key, value in changes.items()}


def test_statuses_are_written_when_they_change() -> None:
    of, jobs = configs(1), made(configs(1))
    states = {"connect-a-0": JobState("connect-a-0", 7, 0, JobStateName.RUNNING, 0)}
    first = status_changes(of, Statuses({}), jobs, states, {}, TOPIC, OBSERVER)
    assert said(first) == {"status-connector-a": ("RUNNING", None), "status-task-a-0": ("RUNNING", None)}
    known = Statuses({key: value for key, value in first.items() if value is not None})
    assert status_changes(of, known, jobs, states, {}, TOPIC, structs.replace(OBSERVER, generation=9)) == {}
    failed = status_changes(of, known, jobs, states, {"a": "no tasks"}, TOPIC, OBSERVER)
    assert said(failed) == {"status-connector-a": ("FAILED", "no tasks")}
    stopped = status_changes(configs(0, Target.STOPPED), known, {}, {}, {}, TOPIC, OBSERVER)
    assert said(stopped) == {"status-connector-a": ("STOPPED", None), "status-task-a-0": None}
    gone = status_changes(Configs({}), known, {}, {}, {}, TOPIC, OBSERVER)
    assert said(gone) == {"status-connector-a": None, "status-task-a-0": None}


@pytest.mark.parametrize(
    ("state", "error", "expected"),
    [
        (None, None, ("UNASSIGNED", "no engine")),
        (JobStateName.RUNNING, None, ("UNASSIGNED", "no engine")),
        (JobStateName.WAITING, ENGINE_STOPPED, ("UNASSIGNED", "no engine")),
        (JobStateName.WAITING, "boom", ("FAILED", "boom")),
        (JobStateName.PAUSED, None, ("PAUSED", None)),
    ],
)
def test_without_engines_a_task_says_why_it_does_not_run(
    state: JobStateName | None, error: str | None, expected: tuple[str, str | None]
) -> None:
    states = {} if state is None else {"connect-a-0": JobState("connect-a-0", 7, 0, state, 0, error=error)}
    changes = status_changes(configs(1), Statuses({}), made(configs(1)), states, {}, TOPIC, OBSERVER, "no engine")
    assert said(changes)["status-task-a-0"] == expected


def test_topics_come_from_the_progress_of_jobs() -> None:
    of, jobs = configs(1), made(configs(1))
    progress = {"connect-a-0": JobProgress("connect-a-0", 7, 1, {}, topics=("t",))}
    changes = topic_changes(of, Statuses({}), jobs, progress, 99)
    assert changes == {
        "status-topic-t:connector-a": {"topic": {"name": "t", "connector": "a", "task": 0, "discoverTimestamp": 99}}
    }
    assert topic_changes(of, Statuses({"status-topic-t:connector-a": {}}), jobs, progress, 99) == {}
