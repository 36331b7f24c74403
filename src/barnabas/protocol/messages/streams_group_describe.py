"""StreamsGroupDescribeRequest and StreamsGroupDescribeResponse. Written by tools/generate_messages.py; do not edit."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from barnabas.protocol.base_message import FieldSpec, Message


class StreamsGroupDescribeRequest(Message):
    __slots__ = (
        "group_ids",
        "include_authorized_operations",
    )
    FIRST_VERSION, LAST_VERSION, FIRST_FLEXIBLE_VERSION = 0, 0, 0
    FIELDS: ClassVar[tuple[FieldSpec, ...]] = (
        FieldSpec("group_ids", "string", is_array=True),
        FieldSpec("include_authorized_operations", "bool"),
    )

    def __init__(self, *, group_ids: Sequence[str] = (), include_authorized_operations: bool = False) -> None:
        self.group_ids: Sequence[str] = group_ids
        self.include_authorized_operations: bool = include_authorized_operations


class KeyValue(Message):
    __slots__ = (
        "key",
        "value",
    )
    FIRST_VERSION, LAST_VERSION, FIRST_FLEXIBLE_VERSION = 0, 0, 0
    FIELDS: ClassVar[tuple[FieldSpec, ...]] = (
        FieldSpec("key", "string"),
        FieldSpec("value", "string"),
    )

    def __init__(self, *, key: str = "", value: str = "") -> None:
        self.key: str = key
        self.value: str = value


class Endpoint(Message):
    __slots__ = (
        "host",
        "port",
    )
    FIRST_VERSION, LAST_VERSION, FIRST_FLEXIBLE_VERSION = 0, 0, 0
    FIELDS: ClassVar[tuple[FieldSpec, ...]] = (
        FieldSpec("host", "string"),
        FieldSpec("port", "uint16"),
    )

    def __init__(self, *, host: str = "", port: int = 0) -> None:
        self.host: str = host
        self.port: int = port


class TaskOffset(Message):
    __slots__ = (
        "subtopology_id",
        "partition",
        "offset",
    )
    FIRST_VERSION, LAST_VERSION, FIRST_FLEXIBLE_VERSION = 0, 0, 0
    FIELDS: ClassVar[tuple[FieldSpec, ...]] = (
        FieldSpec("subtopology_id", "string"),
        FieldSpec("partition", "int32"),
        FieldSpec("offset", "int64"),
    )

    def __init__(self, *, subtopology_id: str = "", partition: int = 0, offset: int = 0) -> None:
        self.subtopology_id: str = subtopology_id
        self.partition: int = partition
        self.offset: int = offset


class TaskIds(Message):
    __slots__ = (
        "subtopology_id",
        "partitions",
    )
    FIRST_VERSION, LAST_VERSION, FIRST_FLEXIBLE_VERSION = 0, 0, 0
    FIELDS: ClassVar[tuple[FieldSpec, ...]] = (
        FieldSpec("subtopology_id", "string"),
        FieldSpec("partitions", "int32", is_array=True),
    )

    def __init__(self, *, subtopology_id: str = "", partitions: Sequence[int] = ()) -> None:
        self.subtopology_id: str = subtopology_id
        self.partitions: Sequence[int] = partitions


class TopicInfo(Message):
    __slots__ = (
        "name",
        "partitions",
        "replication_factor",
        "topic_configs",
    )
    FIRST_VERSION, LAST_VERSION, FIRST_FLEXIBLE_VERSION = 0, 0, 0
    FIELDS: ClassVar[tuple[FieldSpec, ...]] = (
        FieldSpec("name", "string"),
        FieldSpec("partitions", "int32"),
        FieldSpec("replication_factor", "int16"),
        FieldSpec("topic_configs", "struct", is_array=True, item=KeyValue),
    )

    def __init__(
        self, *, name: str = "", partitions: int = 0, replication_factor: int = 0, topic_configs: Sequence[KeyValue] = ()
    ) -> None:
        self.name: str = name
        self.partitions: int = partitions
        self.replication_factor: int = replication_factor
        self.topic_configs: Sequence[KeyValue] = topic_configs


class Assignment(Message):
    __slots__ = (
        "active_tasks",
        "standby_tasks",
        "warmup_tasks",
    )
    FIRST_VERSION, LAST_VERSION, FIRST_FLEXIBLE_VERSION = 0, 0, 0
    FIELDS: ClassVar[tuple[FieldSpec, ...]] = (
        FieldSpec("active_tasks", "struct", is_array=True, item=TaskIds),
        FieldSpec("standby_tasks", "struct", is_array=True, item=TaskIds),
        FieldSpec("warmup_tasks", "struct", is_array=True, item=TaskIds),
    )

    def __init__(
        self, *, active_tasks: Sequence[TaskIds] = (), standby_tasks: Sequence[TaskIds] = (), warmup_tasks: Sequence[TaskIds] = ()
    ) -> None:
        self.active_tasks: Sequence[TaskIds] = active_tasks
        self.standby_tasks: Sequence[TaskIds] = standby_tasks
        self.warmup_tasks: Sequence[TaskIds] = warmup_tasks


class Subtopology(Message):
    __slots__ = (
        "subtopology_id",
        "source_topics",
        "repartition_sink_topics",
        "state_changelog_topics",
        "repartition_source_topics",
    )
    FIRST_VERSION, LAST_VERSION, FIRST_FLEXIBLE_VERSION = 0, 0, 0
    FIELDS: ClassVar[tuple[FieldSpec, ...]] = (
        FieldSpec("subtopology_id", "string"),
        FieldSpec("source_topics", "string", is_array=True),
        FieldSpec("repartition_sink_topics", "string", is_array=True),
        FieldSpec("state_changelog_topics", "struct", is_array=True, item=TopicInfo),
        FieldSpec("repartition_source_topics", "struct", is_array=True, item=TopicInfo),
    )

    def __init__(
        self,
        *,
        subtopology_id: str = "",
        source_topics: Sequence[str] = (),
        repartition_sink_topics: Sequence[str] = (),
        state_changelog_topics: Sequence[TopicInfo] = (),
        repartition_source_topics: Sequence[TopicInfo] = (),
    ) -> None:
        self.subtopology_id: str = subtopology_id
        self.source_topics: Sequence[str] = source_topics
        self.repartition_sink_topics: Sequence[str] = repartition_sink_topics
        self.state_changelog_topics: Sequence[TopicInfo] = state_changelog_topics
        self.repartition_source_topics: Sequence[TopicInfo] = repartition_source_topics


class Member(Message):
    __slots__ = (
        "member_id",
        "member_epoch",
        "instance_id",
        "rack_id",
        "client_id",
        "client_host",
        "topology_epoch",
        "process_id",
        "user_endpoint",
        "client_tags",
        "task_offsets",
        "task_end_offsets",
        "assignment",
        "target_assignment",
        "is_classic",
    )
    FIRST_VERSION, LAST_VERSION, FIRST_FLEXIBLE_VERSION = 0, 0, 0
    FIELDS: ClassVar[tuple[FieldSpec, ...]] = (
        FieldSpec("member_id", "string"),
        FieldSpec("member_epoch", "int32"),
        FieldSpec("instance_id", "string", first_nullable_version=0),
        FieldSpec("rack_id", "string", first_nullable_version=0),
        FieldSpec("client_id", "string"),
        FieldSpec("client_host", "string"),
        FieldSpec("topology_epoch", "int32"),
        FieldSpec("process_id", "string"),
        FieldSpec("user_endpoint", "struct", first_nullable_version=0, item=Endpoint),
        FieldSpec("client_tags", "struct", is_array=True, item=KeyValue),
        FieldSpec("task_offsets", "struct", is_array=True, item=TaskOffset),
        FieldSpec("task_end_offsets", "struct", is_array=True, item=TaskOffset),
        FieldSpec("assignment", "struct", item=Assignment),
        FieldSpec("target_assignment", "struct", item=Assignment),
        FieldSpec("is_classic", "bool"),
    )

    def __init__(
        self,
        *,
        member_id: str = "",
        member_epoch: int = 0,
        instance_id: str | None = None,
        rack_id: str | None = None,
        client_id: str = "",
        client_host: str = "",
        topology_epoch: int = 0,
        process_id: str = "",
        user_endpoint: Endpoint | None = None,
        client_tags: Sequence[KeyValue] = (),
        task_offsets: Sequence[TaskOffset] = (),
        task_end_offsets: Sequence[TaskOffset] = (),
        assignment: Assignment | None = None,
        target_assignment: Assignment | None = None,
        is_classic: bool = False,
    ) -> None:
        self.member_id: str = member_id
        self.member_epoch: int = member_epoch
        self.instance_id: str | None = instance_id
        self.rack_id: str | None = rack_id
        self.client_id: str = client_id
        self.client_host: str = client_host
        self.topology_epoch: int = topology_epoch
        self.process_id: str = process_id
        self.user_endpoint: Endpoint | None = user_endpoint
        self.client_tags: Sequence[KeyValue] = client_tags
        self.task_offsets: Sequence[TaskOffset] = task_offsets
        self.task_end_offsets: Sequence[TaskOffset] = task_end_offsets
        self.assignment: Assignment = Assignment() if assignment is None else assignment
        self.target_assignment: Assignment = Assignment() if target_assignment is None else target_assignment
        self.is_classic: bool = is_classic


class Topology(Message):
    __slots__ = (
        "epoch",
        "subtopologies",
    )
    FIRST_VERSION, LAST_VERSION, FIRST_FLEXIBLE_VERSION = 0, 0, 0
    FIELDS: ClassVar[tuple[FieldSpec, ...]] = (
        FieldSpec("epoch", "int32"),
        FieldSpec("subtopologies", "struct", is_array=True, first_nullable_version=0, item=Subtopology),
    )

    def __init__(self, *, epoch: int = 0, subtopologies: Sequence[Subtopology] | None = ()) -> None:
        self.epoch: int = epoch
        self.subtopologies: Sequence[Subtopology] | None = subtopologies


class DescribedGroup(Message):
    __slots__ = (
        "error_code",
        "error_message",
        "group_id",
        "group_state",
        "group_epoch",
        "assignment_epoch",
        "topology",
        "members",
        "authorized_operations",
    )
    FIRST_VERSION, LAST_VERSION, FIRST_FLEXIBLE_VERSION = 0, 0, 0
    FIELDS: ClassVar[tuple[FieldSpec, ...]] = (
        FieldSpec("error_code", "int16"),
        FieldSpec("error_message", "string", first_nullable_version=0),
        FieldSpec("group_id", "string"),
        FieldSpec("group_state", "string"),
        FieldSpec("group_epoch", "int32"),
        FieldSpec("assignment_epoch", "int32"),
        FieldSpec("topology", "struct", first_nullable_version=0, item=Topology),
        FieldSpec("members", "struct", is_array=True, item=Member),
        FieldSpec("authorized_operations", "int32"),
    )

    def __init__(
        self,
        *,
        error_code: int = 0,
        error_message: str | None = None,
        group_id: str = "",
        group_state: str = "",
        group_epoch: int = 0,
        assignment_epoch: int = 0,
        topology: Topology | None = None,
        members: Sequence[Member] = (),
        authorized_operations: int = -2147483648,
    ) -> None:
        self.error_code: int = error_code
        self.error_message: str | None = error_message
        self.group_id: str = group_id
        self.group_state: str = group_state
        self.group_epoch: int = group_epoch
        self.assignment_epoch: int = assignment_epoch
        self.topology: Topology | None = topology
        self.members: Sequence[Member] = members
        self.authorized_operations: int = authorized_operations


class StreamsGroupDescribeResponse(Message):
    __slots__ = (
        "throttle_time_ms",
        "groups",
    )
    FIRST_VERSION, LAST_VERSION, FIRST_FLEXIBLE_VERSION = 0, 0, 0
    FIELDS: ClassVar[tuple[FieldSpec, ...]] = (
        FieldSpec("throttle_time_ms", "int32"),
        FieldSpec("groups", "struct", is_array=True, item=DescribedGroup),
    )

    def __init__(self, *, throttle_time_ms: int = 0, groups: Sequence[DescribedGroup] = ()) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        self.groups: Sequence[DescribedGroup] = groups
