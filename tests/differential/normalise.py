"""Replaces values that may differ between two brokers by fixed ones.

Ids and members become placeholders numbered in the order of their first appearance, or named after the topic where an answer tells both;
times of the run, hosts, ports and paths become words; texts for people become "<text>" (whether there is one is compared). Arrays
whose order means nothing are sorted by what identifies their elements, so that the placeholders come out alike.
"""

from __future__ import annotations

import json
import time
from dataclasses import dataclass, field
from typing import Any

DAY_MS = 86_400_000
WORDS = {
    "finalized_features_epoch": "<epoch>",
    "host": "<host>",
    "port": "<port>",
    "cluster_id": "<cluster>",
    "log_dir": "<path>",
    "client_host": "<host>",
    "token_id": "<token>",
    "hmac": "<hmac>",
}
SIZES_OF_THE_MACHINE = ("total_bytes", "usable_bytes")
TEXTS = ("error_message", "documentation", "batch_index_error_message")
BROKER_FIELDS = ("node_id", "leader_id", "controller_id", "broker_id", "replica_nodes", "isr_nodes", "leader_broker_id")
NUMBERED = {"topic_id": "topic", "member_id": "member", "leader": "member", "session_id": "session", "producer_id": "producer",
            "directory_id": "directory"}  # fmt: skip
NOTHING = ("", "zero", 0, -1, None)  # values of a numbered field that say "none"
# fields that identify an element of an array, in order of precedence
IDENTITY = ("api_key", "name", "topic", "topic_name", "group_id", "key", "partition_index", "partition_id", "partition", "index",
            "resource_type", "resource_name", "config_name", "client_id", "group_instance_id", "metadata", "broker_id", "node_id",
            "last_sequence", "producer_epoch")  # fmt: skip
NAMES_OF_OWN_THINGS = ("name", "topic", "topic_name", "group_id", "resource_name")


@dataclass
class Normaliser:
    """The placeholders of one scenario."""

    node_id: int
    prefix: str
    numbers: dict[str, dict[Any, str]] = field(default_factory=dict)
    topic_names: dict[str, str] = field(default_factory=dict)

    def __call__(self, answer: Any, *, only_mine: bool = False) -> Any:
        """`answer` with placeholders; with `only_mine` without the topics and groups of other scenarios."""
        self._learn_topic_ids(answer)
        if only_mine:
            answer = self._mine(answer)
        return self._value("", in_order(answer))

    def _learn_topic_ids(self, value: Any) -> None:
        if isinstance(value, dict):
            name, topic_id = value.get("name") or value.get("topic_name"), value.get("topic_id")
            if name and topic_id not in NOTHING:
                self.topic_names[topic_id] = f"<id of {name}>"
        for each in _children(value):
            self._learn_topic_ids(each)

    def _mine(self, value: Any) -> Any:
        if isinstance(value, dict):
            return {name: self._mine(each) for name, each in value.items()}
        if isinstance(value, list):
            return [self._mine(each) for each in value if self._is_mine(each)]
        return value

    def _is_mine(self, element: Any) -> bool:
        if not isinstance(element, dict):
            return True
        names = [element[name] for name in NAMES_OF_OWN_THINGS if name in element]
        return not names or any(str(name).startswith(self.prefix) for name in names)

    def _value(self, name: str, value: Any) -> Any:
        if isinstance(value, dict):
            return {key: self._value(key, each) for key, each in value.items()}
        if isinstance(value, list):
            return [self._value(name, each) for each in value]
        if name in NUMBERED and value not in NOTHING:
            return self.topic_names.get(value) or self.numbered(NUMBERED[name], value)
        return self._scalar(name, value)

    def _scalar(self, name: str, value: Any) -> Any:
        if value is None or isinstance(value, bool):
            return value
        if name in WORDS:
            return WORDS[name] if value not in ("", -1) else value
        if name in TEXTS:
            return "<text>" if value else value
        if name in SIZES_OF_THE_MACHINE and value != -1:
            return "<bytes>"
        if name in BROKER_FIELDS and value == self.node_id:
            return "<broker>"
        if isinstance(value, int) and abs(value - time.time() * 1000) < DAY_MS:
            return "<now>"
        return value

    def numbered(self, kind: str, value: Any) -> str:
        """The placeholder of an id, the next number when it is new."""
        known = self.numbers.setdefault(kind, {})
        return known.setdefault(value, f"<{kind} {len(known) + 1}>")


def _children(value: Any) -> list[Any]:
    if isinstance(value, dict):
        return list(value.values())
    return value if isinstance(value, list) else []


def identity(element: Any) -> str | None:
    """The key that distinguishes this element of an array from the others; None if its position does."""
    if not isinstance(element, dict):
        return None
    if "magic" in element:
        return str(element["base_offset"])
    found = [element[name] for name in IDENTITY if element.get(name) is not None and not isinstance(element[name], list | dict)]
    return "/".join(str(each) for each in found) if found else None


def in_order(value: Any) -> Any:
    """Arrays of identified elements sorted; arrays of numbers, batches and records as they came."""
    if isinstance(value, dict):
        return {name: each if name == "records" else in_order(each) for name, each in value.items()}
    if isinstance(value, list):
        elements = [in_order(each) for each in value]
        if elements and all(identity(each) is not None for each in elements):
            elements.sort(key=lambda each: json.dumps([_sortable(each.get(name)) for name in IDENTITY]))
        return elements
    return value


def _sortable(value: Any) -> str:
    return f"{value:020}" if isinstance(value, int) and not isinstance(value, bool) else str(value)
