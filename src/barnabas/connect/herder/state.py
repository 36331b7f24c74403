"""What the topics say: connectors, their tasks and target states, and statuses. Both are views of the newest records by key."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from typing import Any

from barnabas.connect.herder.records import (
    COMMIT,
    CONNECTOR,
    LOGGER,
    RESTART,
    STATUS_CONNECTOR,
    STATUS_TASK,
    TARGET,
    TASK,
    Status,
    Target,
    Value,
    status_of,
    target_of,
    task_key,
    task_of,
    topic_of,
)

Config = Mapping[str, str | None]


class Configs:
    """Connectors, as the records of `connect-configs` say."""

    def __init__(self, records: Mapping[str, Value]) -> None:
        self.records = records
        self._connectors: dict[str, Config] = {}
        for key, value in records.items():
            config = properties(value) if key.startswith(CONNECTOR) else None
            if config is not None:
                self._connectors[key.removeprefix(CONNECTOR)] = config

    @property
    def connectors(self) -> Mapping[str, Config]:
        """Configs by name."""
        return self._connectors

    def target(self, name: str) -> Target:
        """What a user wants of a connector."""
        return target_of(self.records.get(TARGET + name))

    def tasks(self, name: str) -> list[Config]:
        """The configs of the tasks of a connector; none if they are not complete."""
        if name not in self._connectors:
            return []
        count = self.records.get(COMMIT + name, {}).get("tasks")
        if not isinstance(count, int):
            return []
        found = [properties(self.records.get(task_key(TASK, name, task), {})) for task in range(count)]
        return [] if None in found else [each for each in found if each is not None]

    def task_keys(self, name: str) -> list[str]:
        """The keys of all records of tasks of a connector, also of those that do not count."""
        return [key for key in self.records if (task_of(key, TASK) or ("", -1))[0] == name and key.startswith(TASK)]

    def wants_restart(self, name: str) -> bool:
        """Whether somebody asked that the connector computes its tasks again."""
        return RESTART + name in self.records

    @property
    def levels(self) -> Mapping[str, str]:
        """The levels of loggers that somebody has set for all workers."""
        return {
            key.removeprefix(LOGGER): str(value.get("level"))
            for key, value in self.records.items()
            if key.startswith(LOGGER) and value.get("level")
        }


def properties(value: Value) -> Config | None:
    """The config in a record of a connector or a task; None if it has none."""
    found = value.get("properties")
    return {str(key): None if each is None else str(each) for key, each in found.items()} if isinstance(found, dict) else None


class Statuses:
    """Statuses and topics, as the records of `connect-status` say."""

    def __init__(self, records: Mapping[str, Value]) -> None:
        self.records = records
        self._tasks: dict[str, dict[int, Status]] = defaultdict(dict)
        for key, value in records.items():
            found = task_of(key, STATUS_TASK)
            status = status_of(value) if found is not None else None
            if found is not None and status is not None:
                self._tasks[found[0]][found[1]] = status

    def connector(self, name: str) -> Status | None:
        """Of a connector; None if there is none."""
        return status_of(self.records.get(STATUS_CONNECTOR + name))

    def tasks(self, name: str) -> Mapping[int, Status]:
        """Of the tasks of a connector, in their order."""
        return dict(sorted(self._tasks.get(name, {}).items()))

    def names(self) -> set[str]:
        """Of all connectors that have a status."""
        own = {key.removeprefix(STATUS_CONNECTOR) for key in self.records if key.startswith(STATUS_CONNECTOR)}
        return own | set(self._tasks)

    def topics(self, name: str) -> dict[str, Any]:
        """The topics that a connector uses, with the records that say so."""
        return {topic: value for key, value in self.records.items() if (topic := topic_of(key, name)) is not None}
