"""Keys and values of the topics of Kafka Connect: configs and statuses. Values are JSON without schemas.

    connect-configs   connector-NAME         {"properties": {...}}
                      task-NAME-N            {"properties": {...}}
                      commit-NAME            {"tasks": N}; the tasks below N are the ones that count
                      target-state-NAME      {"state": "STARTED"|"PAUSED", "state.v2": "STARTED"|"PAUSED"|"STOPPED"}
                      restart-connector-NAME {"include-tasks": bool, "only-failed": bool}
                      logger-cluster-NAME    {"level": "DEBUG"}
    connect-status    status-connector-NAME, status-task-NAME-N
                                             {"state", "trace", "worker_id", "generation", "version"}
                      status-topic-T:connector-NAME
                                             {"topic": {"name", "connector", "task", "discoverTimestamp"}}

A name may have dashes; the number of a task is what follows the last one.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Any

import msgspec
from msgspec import Struct

from barnabas.errors import BarnabasError

CONNECTOR, TASK, COMMIT, TARGET = "connector-", "task-", "commit-", "target-state-"
RESTART, LOGGER = "restart-connector-", "logger-cluster-"
STATUS_CONNECTOR, STATUS_TASK, STATUS_TOPIC, OF_CONNECTOR = "status-connector-", "status-task-", "status-topic-", ":connector-"
Value = Mapping[str, Any]
Changes = Mapping[str, Value | None]  # by key; None deletes
_DECODER = msgspec.json.Decoder(dict[str, Any])  # made at import, because threads must not make it at once


class Target(StrEnum):
    """What a user wants of a connector."""

    STARTED = "STARTED"
    PAUSED = "PAUSED"
    STOPPED = "STOPPED"


class State(StrEnum):
    """What a connector or a task does."""

    UNASSIGNED = "UNASSIGNED"
    RUNNING = "RUNNING"
    PAUSED = "PAUSED"
    FAILED = "FAILED"
    DESTROYED = "DESTROYED"
    RESTARTING = "RESTARTING"
    STOPPED = "STOPPED"


class Status(Struct, frozen=True):
    """The status of a connector or a task.

    Args:
        trace: the error of a failed one.
        version: of the plug-in.
    """

    state: str
    trace: str | None = None
    worker_id: str = ""
    generation: int = 0
    version: str | None = None

    def value(self) -> Value:
        """Of its record."""
        return msgspec.structs.asdict(self)

    def is_same(self, other: Status | None, *, of_same_worker: bool = False) -> bool:
        """Whether both say the same, of the same worker or of any."""
        if other is None or (of_same_worker and self.worker_id != other.worker_id):
            return False
        return (self.state, self.trace, self.version) == (other.state, other.trace, other.version)


class BadRecord(BarnabasError):
    """A record that is not JSON of an object."""


def encode(value: Value) -> bytes:
    """The bytes of a value."""
    return msgspec.json.encode(value)


def decode(payload: bytes) -> dict[str, Any]:
    """The value of a record. Raises BadRecord."""
    try:
        return _DECODER.decode(payload)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise BadRecord(str(error)) from None


def target_value(target: Target) -> Value:
    """Of the record of a target state: old workers know no STOPPED."""
    return {"state": Target.STARTED if target is Target.STARTED else Target.PAUSED, "state.v2": target}


def target_of(value: Value | None) -> Target:
    """The target state in a record; a connector without one is started."""
    found = None if value is None else value.get("state.v2", value.get("state"))
    return Target(found) if found in set(Target) else Target.STARTED


def status_of(value: Value | None) -> Status | None:
    """The status in a record; None for one that cannot be read."""
    try:
        return None if value is None else msgspec.convert(value, Status)
    except msgspec.ValidationError:
        return None


def task_key(prefix: str, connector: str, task: int) -> str:
    """The key of a record about a task."""
    return f"{prefix}{connector}-{task}"


def task_of(key: str, prefix: str) -> tuple[str, int] | None:
    """Connector and number of the task that a key is about; None if it is about none."""
    if not key.startswith(prefix):
        return None
    name, dash, number = key.removeprefix(prefix).rpartition("-")
    return (name, int(number)) if dash and number.isascii() and number.isdecimal() and len(number) < 10 else None


def topic_key(topic: str, connector: str) -> str:
    """The key of the record about a topic that a connector uses."""
    return f"{STATUS_TOPIC}{topic}{OF_CONNECTOR}{connector}"


def topic_of(key: str, connector: str) -> str | None:
    """The topic that a key says this connector uses; None if it says something else."""
    end = f"{OF_CONNECTOR}{connector}"
    return key.removeprefix(STATUS_TOPIC).removesuffix(end) if key.startswith(STATUS_TOPIC) and key.endswith(end) else None
