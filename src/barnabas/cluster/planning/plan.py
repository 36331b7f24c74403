"""A planned change of the cluster: operations for the store, the delta of the image, and instructions for brokers.

A plan is based on one image and one set of entry versions. Every write in it expects the version that was read. So if another
broker wrote in between, the store refuses the whole plan, and the caller plans again. A controller's plan also checks its
fence, so the store refuses every later plan of a deposed controller.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar
from uuid import UUID

from msgspec import Struct, field

from barnabas.cluster.metadata import store_entries
from barnabas.cluster.metadata.declared import Changes, Kind
from barnabas.cluster.metadata.image import MetadataDelta, MetadataImage, Resource, Topic
from barnabas.cluster.planning.instructions import Instruction
from barnabas.cluster.store.interface import ABSENT, Check, Entry, Operation, Put, Remove
from barnabas.protocol.values import ResourceType

R = TypeVar("R")
Declaring = Callable[[MetadataImage], tuple[R, Changes]]  # returns an answer, and the changes that make it true


class Versions:
    """The last read or written version of each entry."""

    def __init__(self, entries: Iterable[Entry] = ()) -> None:
        self._of = {entry.path: entry.version for entry in entries}

    def expected(self, path: str) -> int:
        return self._of.get(path, ABSENT)

    def reread(self, found: Mapping[str, Entry | None]) -> None:
        """Record the versions of entries that were read; None for a missing one."""
        for path, entry in found.items():
            if entry is None:
                self._of.pop(path, None)
            else:
                self._of[path] = entry.version

    def learn(self, operations: Iterable[Operation]) -> None:
        """Record the versions after these operations were committed."""
        for operation in operations:
            if isinstance(operation, Put):
                self._of[operation.path] = self.expected(operation.path) + 1
            elif isinstance(operation, Remove):
                self._of.pop(operation.path, None)


class Plan(Struct, frozen=True):
    operations: tuple[Operation, ...] = ()
    delta: MetadataDelta = field(default_factory=MetadataDelta)
    instructions: tuple[Instruction, ...] = ()
    claims_controller: bool = False  # the plan makes this broker controller


class PlanBuilder:
    """Builds a plan; each method takes a target state and adds the writes that lead to it.

    Args:
        fence: the version of CONTROLLER_EPOCH from this controller's election; None before it.
    """

    def __init__(self, versions: Versions, fence: int | None = None) -> None:
        self._versions = versions
        self._fence = fence
        self._checks: list[Check] = []
        self._operations: list[Operation] = []
        self._topics: list[Topic] = []
        self._deleted: list[str] = []
        self._deletions: dict[UUID, tuple[int, ...]] = {}
        self.configs: dict[Resource, Mapping[str, str]] = {}
        self.declared: dict[tuple[Kind, str], Any] = {}
        self.instructions: list[Instruction] = []

    def build(self) -> Plan:
        if not self._operations:
            return Plan()
        guard = [] if self._fence is None else [Check(store_entries.CONTROLLER_EPOCH, self._fence)]
        delta = MetadataDelta(
            tuple(self._topics), tuple(self._deleted), self.configs, deletions=self._deletions, declared=self.declared
        )
        return Plan((*guard, *self._checks, *self._operations), delta, tuple(self.instructions))

    def rests_on(self, path: str) -> None:
        """Make the plan valid only while this entry is unchanged."""
        check = Check(path, self._versions.expected(path))
        if check.expected != ABSENT and check not in self._checks:
            self._checks.append(check)

    def put(self, path: str, value: bytes) -> None:
        self._operations.append(Put(path, value, self._versions.expected(path)))

    def remove(self, path: str) -> None:
        expected = self._versions.expected(path)
        if expected != ABSENT:
            self._operations.append(Remove(path, expected))

    def create_topic(self, topic: Topic) -> None:
        self.put(store_entries.topic_path(topic.name), store_entries.encode_topic(topic))
        for path, value in store_entries.chunks_of(topic):
            self.put(path, value)
        self._topics.append(topic)

    def change_topic(self, before: Topic, after: Topic) -> None:
        """Add or change partitions of a topic; only entries that differ are written."""
        if len(before.partitions) != len(after.partitions):
            self.put(store_entries.topic_path(after.name), store_entries.encode_topic(after))
        for path, value in store_entries.chunks_of(after, before):
            self.put(path, value)
        self._topics.append(after)

    def delete_topic(self, topic: Topic) -> None:
        self.remove(store_entries.topic_path(topic.name))
        for path in store_entries.chunk_paths(topic.name, len(topic.partitions)):
            self.remove(path)
        self.remove(store_entries.config_path((ResourceType.TOPIC, topic.name)))
        brokers = tuple(sorted({replica for state in topic.partitions for replica in state.replicas}))
        self.put(store_entries.deleted_topic_path(topic.topic_id), store_entries.encode_deletion(brokers))
        self._deletions[topic.topic_id] = brokers
        self._deleted.append(topic.name)

    def wait_for_deletion(self, topic_id: UUID, brokers: tuple[int, ...]) -> None:
        """Set the brokers that may still have logs of a deleted topic."""
        path = store_entries.deleted_topic_path(topic_id)
        if brokers:
            self.put(path, store_entries.encode_deletion(brokers))
        else:
            self.remove(path)
        self._deletions[topic_id] = brokers

    def set_config(self, resource: Resource, settings: Mapping[str, str]) -> None:
        """Set the settings of a resource."""
        path = store_entries.config_path(resource)
        if settings:
            self.put(path, store_entries.encode(dict(settings)))
        else:
            self.remove(path)
        self.configs[resource] = settings

    def declare(self, kind: Kind, key: str, value: Any) -> None:
        """Set a declaration; None removes it."""
        path = store_entries.declaration_path(kind, key)
        if value is None:
            self.remove(path)
        else:
            self.put(path, store_entries.encode(value))
        self.declared[kind, key] = value
