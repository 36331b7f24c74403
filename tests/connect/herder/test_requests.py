"""Requests about connectors: the records that they write, and their refusals."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest

from barnabas.connect.herder import requests
from barnabas.connect.herder.records import Changes, Target
from barnabas.connect.herder.state import Configs, Statuses
from barnabas.web.routing import HttpError

CONFIG = {"connector.class": "FileStreamSource", "name": "a", "topic": "t"}
RUNNING = {"state": "RUNNING", "trace": None, "worker_id": "w", "generation": 1, "version": "1"}
FAILED = {**RUNNING, "state": "FAILED", "trace": "boom"}


def applied(records: Mapping[str, Any], changes: Changes) -> dict[str, Any]:
    return {key: value for key, value in {**records, **changes}.items() if value is not None}


def after(*steps: Callable[[Configs], Changes], records: Mapping[str, Any] | None = None) -> dict[str, Any]:
    found = dict(records or {})
    for step in steps:
        found = applied(found, step(Configs(found)))
    return found


def create(configs: Configs) -> Changes:
    return requests.create(configs, "a", CONFIG, None)


def tasks(configs: Configs) -> Changes:
    return requests.task_records(configs, "a", [{**CONFIG, "n": "0"}, {**CONFIG, "n": "1"}])


def statuses(**tasks: dict[str, Any]) -> Statuses:
    return Statuses(
        {"status-connector-a": RUNNING, **{f"status-task-a-{number.removeprefix('t')}": each for number, each in tasks.items()}}
    )


def refusal(call: Callable[[], Any]) -> tuple[int, str]:
    with pytest.raises(HttpError) as raised:
        call()
    return raised.value.status, raised.value.message


def test_a_connector_is_made_once() -> None:
    records = after(create)
    assert records == {"connector-a": {"properties": CONFIG}}
    assert refusal(lambda: create(Configs(records))) == (409, "Connector a already exists")


def test_a_connector_may_be_made_stopped() -> None:
    records = after(lambda configs: requests.create(configs, "a", CONFIG, Target.STOPPED))
    assert records["target-state-a"] == {"state": "PAUSED", "state.v2": "STOPPED"}
    assert Configs(records).target("a") is Target.STOPPED


def test_the_name_in_the_config_is_that_of_the_path() -> None:
    assert requests.named("a", {"x": "y"}) == {"x": "y", "name": "a"}
    assert requests.named("a", {"name": "a"}) == {"name": "a"}
    assert refusal(lambda: requests.named("a", {"name": "b"})) == (
        400, "Connector name configuration (b) doesn't match connector name in the URL (a)",
    )  # fmt: skip


def test_a_patch_changes_and_removes_keys() -> None:
    configs = Configs(after(create))
    assert requests.patched(configs, "a", {"topic": "u", "connector.class": None}) == {"name": "a", "topic": "u"}
    assert refusal(lambda: requests.patched(configs, "b", {})) == (404, "Connector b not found")


def test_nothing_of_a_connector_stays_when_it_is_deleted() -> None:
    records = after(create, tasks, lambda configs: requests.set_target(configs, "a", Target.PAUSED))
    assert len(records) == 5
    assert after(lambda configs: requests.delete(configs, "a"), records=records) == {}
    assert refusal(lambda: requests.delete(Configs({}), "a")) == (404, "Connector a not found")


def test_a_stopped_connector_has_no_tasks() -> None:
    records = after(create, tasks, lambda configs: requests.set_target(configs, "a", Target.STOPPED))
    assert Configs(records).tasks("a") == []
    assert requests.set_target(Configs(records), "a", Target.STOPPED) == {}
    assert refusal(lambda: requests.set_target(Configs({}), "a", Target.PAUSED)) == (404, "Unknown connector a")


def test_tasks_are_written_whole_and_once() -> None:
    records = after(create, tasks)
    assert [each["n"] for each in Configs(records).tasks("a")] == ["0", "1"]
    assert tasks(Configs(records)) == {}
    fewer = after(lambda configs: requests.task_records(configs, "a", [CONFIG]), records=records)
    assert "task-a-1" not in fewer
    assert Configs(fewer).tasks("a") == [CONFIG]


@pytest.mark.parametrize(
    ("include", "failed", "connector", "restarted"),
    [(False, False, True, ()), (True, False, True, (0, 1)), (True, True, False, (1,)), (False, True, False, ())],
)
def test_restarts_mean_what_they_say(include: bool, failed: bool, connector: bool, restarted: tuple[int, ...]) -> None:
    configs = Configs(after(create, tasks))
    said = statuses(t0=RUNNING, t1=FAILED)
    found = requests.restart(configs, said, "a", include_tasks=include, only_failed=failed, kind="source")
    assert (found.connector, found.tasks) == (connector, restarted)
    assert bool(found.changes("a")) is connector
    if include or failed:
        assert found.answer is not None
        assert found.answer["connector"]["state"] == ("RESTARTING" if connector else "RUNNING")
        states = {each["id"]: each["state"] for each in found.answer["tasks"]}
        assert {task for task, state in states.items() if state == "RESTARTING"} == set(restarted)
    else:
        assert found.answer is None


def test_a_restart_needs_a_connector_with_a_status() -> None:
    assert refusal(lambda: requests.restart(Configs({}), Statuses({}), "a", include_tasks=False, only_failed=False)) == (
        404, "Unknown connector: a",
    )  # fmt: skip
    configs = Configs(after(create, tasks))
    assert refusal(lambda: requests.restart(configs, Statuses({}), "a", include_tasks=True, only_failed=False)) == (
        404, "Status for connector a not found",
    )  # fmt: skip
    requests.check_task(configs, "a", 1)
    assert refusal(lambda: requests.check_task(configs, "a", 2)) == (404, "Unknown task: a-2")
    assert refusal(lambda: requests.check_task(configs, "b", 0)) == (404, "Unknown connector: b")


def test_statuses_have_kafkas_form() -> None:
    configs = Configs(after(create, tasks))
    assert requests.shown_status(configs, statuses(t0=FAILED), "a", "source") == {
        "name": "a",
        "connector": {"state": "RUNNING", "worker_id": "w", "version": "1"},
        "tasks": [{"id": 0, "state": "FAILED", "worker_id": "w", "version": "1", "trace": "boom"}],
        "type": "source",
    }
    assert requests.shown_task_status(statuses(t3=RUNNING), "a", 3)["state"] == "RUNNING"
    assert refusal(lambda: requests.shown_status(configs, Statuses({}), "a")) == (404, "No status found for connector a")
    assert refusal(lambda: requests.shown_task_status(statuses(), "a", 3)) == (404, "No status found for task a-3")


def test_statuses_and_topics_are_forgotten() -> None:
    said = Statuses({**statuses(t0=RUNNING).records, "status-topic-t:connector-a": {"topic": {}}, "status-connector-b": RUNNING})
    assert requests.forget_topics(said, "a") == {"status-topic-t:connector-a": None}
    assert set(requests.forget(said, "a")) == {"status-connector-a", "status-task-a-0", "status-topic-t:connector-a"}
