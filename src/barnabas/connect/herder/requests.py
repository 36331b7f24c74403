"""Requests about connectors: each gives the records that it writes, or raises the refusal (HttpError)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from barnabas.connect.herder import errors
from barnabas.connect.herder.records import (
    COMMIT,
    CONNECTOR,
    RESTART,
    STATUS_CONNECTOR,
    STATUS_TASK,
    TARGET,
    TASK,
    Changes,
    State,
    Status,
    Target,
    Value,
    target_value,
    task_key,
    topic_key,
)
from barnabas.connect.herder.state import Config, Configs, Statuses
from barnabas.web.routing import HttpError


def named(name: str, config: Mapping[str, str | None]) -> dict[str, str | None]:
    """The config with the name of its connector in it. Raises HttpError 400 if it has another one."""
    own = config.get("name")
    if own is not None and own != name:
        raise errors.bad(f"Connector name configuration ({own}) doesn't match connector name in the URL ({name})")
    return dict(config) if own is not None else {**config, "name": name}


def create(configs: Configs, name: str, config: Config, target: Target | None) -> Changes:
    """A new connector. Raises HttpError 409."""
    if name in configs.connectors:
        raise errors.exists(name)
    first: dict[str, Value] = {} if target is None else {TARGET + name: target_value(target)}
    return {**first, CONNECTOR + name: {"properties": config}}


def put(config: Config, name: str) -> Changes:
    """A connector with this config, whether it is there or not."""
    return {CONNECTOR + name: {"properties": config}}


def patched(configs: Configs, name: str, patch: Mapping[str, str | None]) -> dict[str, str | None]:
    """The config with these keys; None removes a key. Raises HttpError 404."""
    if name not in configs.connectors:
        raise errors.not_found(name)
    merged = {**configs.connectors[name], **patch}
    return {key: value for key, value in merged.items() if value is not None}


def delete(configs: Configs, name: str) -> Changes:
    """No connector. Raises HttpError 404. Its tasks go with it, so that one of the same name does not begin with them."""
    if name not in configs.connectors:
        raise errors.not_found(name)
    there = (TARGET + name, RESTART + name, COMMIT + name, *configs.task_keys(name))
    return {CONNECTOR + name: None, **{key: None for key in there if key in configs.records}}


def set_target(configs: Configs, name: str, target: Target) -> Changes:
    """Another target state; a stopped connector has no tasks. Raises HttpError 404."""
    if name not in configs.connectors:
        raise errors.unknown(name)
    if configs.target(name) is target and TARGET + name in configs.records:
        return {}
    no_tasks: Changes = {COMMIT + name: {"tasks": 0}} if target is Target.STOPPED else {}
    return {**no_tasks, TARGET + name: target_value(target)}


class Restart(Struct, frozen=True):
    """What a request to restart means.

    Args:
        tasks: that restart.
        answer: the status that the caller gets; None if it gets none.
    """

    connector: bool
    tasks: tuple[int, ...]
    answer: dict[str, Any] | None

    def changes(self, name: str) -> Changes:
        """The records that it writes. The jobs of the tasks are another matter."""
        return {RESTART + name: {"include-tasks": False, "only-failed": False}} if self.connector else {}


def restart(
    configs: Configs, statuses: Statuses, name: str, *, include_tasks: bool, only_failed: bool, kind: str = "unknown"
) -> Restart:
    """What to restart. Raises HttpError 404."""
    if name not in configs.connectors:
        raise errors.unknown(name, colon=True)
    if not include_tasks and not only_failed:
        return Restart(True, (), None)
    status = statuses.connector(name)
    if status is None:
        raise HttpError(404, f"Status for connector {name} not found")
    restarts = not only_failed or status.state == State.FAILED
    tasks = {
        task: each
        for task, each in statuses.tasks(name).items()
        if include_tasks and (not only_failed or each.state == State.FAILED)
    }
    answer = shown_status(configs, statuses, name, kind)
    if restarts:
        answer["connector"]["state"] = State.RESTARTING
    for each in answer["tasks"]:
        if each["id"] in tasks:
            each["state"] = State.RESTARTING
    return Restart(restarts, tuple(tasks), answer)


def check_task(configs: Configs, name: str, task: int) -> None:
    """Raises HttpError 404 for a task that is not there."""
    if name not in configs.connectors:
        raise errors.unknown(name, colon=True)
    if task >= len(configs.tasks(name)):
        raise HttpError(404, f"Unknown task: {name}-{task}")


def shown_status(configs: Configs, statuses: Statuses, name: str, kind: str = "unknown") -> dict[str, Any]:
    """The status of a connector and of its tasks, as the REST interface has it. Raises HttpError 404."""
    status = statuses.connector(name)
    if status is None:
        raise errors.no_status(f"connector {name}")
    tasks = [{"id": task, **_shown(each)} for task, each in statuses.tasks(name).items()]
    return {"name": name, "connector": _shown(status), "tasks": tasks, "type": kind if name in configs.connectors else "unknown"}


def shown_task_status(statuses: Statuses, name: str, task: int) -> dict[str, Any]:
    """The status of a task. Raises HttpError 404."""
    status = statuses.tasks(name).get(task)
    if status is None:
        raise errors.no_status(f"task {name}-{task}")
    return {"id": task, **_shown(status)}


def _shown(status: Status) -> dict[str, Any]:
    trace = {} if status.trace is None else {"trace": status.trace}
    return {"state": status.state, "worker_id": status.worker_id, "version": status.version, **trace}


def forget_topics(statuses: Statuses, name: str) -> Changes:
    """No topics that the connector uses."""
    return {topic_key(topic, name): None for topic in statuses.topics(name)}


def forget(statuses: Statuses, name: str) -> Changes:
    """No status of a connector."""
    keys = [STATUS_CONNECTOR + name, *(task_key(STATUS_TASK, name, task) for task in statuses.tasks(name))]
    return {**{key: None for key in keys if key in statuses.records}, **forget_topics(statuses, name)}


def task_records(configs: Configs, name: str, tasks: list[Config]) -> Changes:
    """The records of the tasks of a connector; nothing if they are there."""
    if configs.tasks(name) == tasks and COMMIT + name in configs.records:
        return {}
    made: dict[str, Value | None] = {task_key(TASK, name, at): {"properties": config} for at, config in enumerate(tasks)}
    gone = {key: None for key in configs.task_keys(name) if key not in made}
    return {**made, **gone, COMMIT + name: {"tasks": len(tasks)}}
