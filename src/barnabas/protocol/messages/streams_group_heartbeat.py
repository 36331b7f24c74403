"""StreamsGroupHeartbeatRequest and StreamsGroupHeartbeatResponse. Written by tools/generate_messages.py; do not edit."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from barnabas.protocol.base_message import FieldSpec, Message


class RequestTaskIds(Message):
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


class RequestEndpoint(Message):
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


class CopartitionGroup(Message):
    __slots__ = (
        "source_topics",
        "source_topic_regex",
        "repartition_source_topics",
    )
    FIRST_VERSION, LAST_VERSION, FIRST_FLEXIBLE_VERSION = 0, 0, 0
    FIELDS: ClassVar[tuple[FieldSpec, ...]] = (
        FieldSpec("source_topics", "int16", is_array=True),
        FieldSpec("source_topic_regex", "int16", is_array=True),
        FieldSpec("repartition_source_topics", "int16", is_array=True),
    )

    def __init__(
        self,
        *,
        source_topics: Sequence[int] = (),
        source_topic_regex: Sequence[int] = (),
        repartition_source_topics: Sequence[int] = (),
    ) -> None:
        self.source_topics: Sequence[int] = source_topics
        self.source_topic_regex: Sequence[int] = source_topic_regex
        self.repartition_source_topics: Sequence[int] = repartition_source_topics


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


class Subtopology(Message):
    __slots__ = (
        "subtopology_id",
        "source_topics",
        "source_topic_regex",
        "state_changelog_topics",
        "repartition_sink_topics",
        "repartition_source_topics",
        "copartition_groups",
    )
    FIRST_VERSION, LAST_VERSION, FIRST_FLEXIBLE_VERSION = 0, 0, 0
    FIELDS: ClassVar[tuple[FieldSpec, ...]] = (
        FieldSpec("subtopology_id", "string"),
        FieldSpec("source_topics", "string", is_array=True),
        FieldSpec("source_topic_regex", "string", is_array=True),
        FieldSpec("state_changelog_topics", "struct", is_array=True, item=TopicInfo),
        FieldSpec("repartition_sink_topics", "string", is_array=True),
        FieldSpec("repartition_source_topics", "struct", is_array=True, item=TopicInfo),
        FieldSpec("copartition_groups", "struct", is_array=True, item=CopartitionGroup),
    )

    def __init__(
        self,
        *,
        subtopology_id: str = "",
        source_topics: Sequence[str] = (),
        source_topic_regex: Sequence[str] = (),
        state_changelog_topics: Sequence[TopicInfo] = (),
        repartition_sink_topics: Sequence[str] = (),
        repartition_source_topics: Sequence[TopicInfo] = (),
        copartition_groups: Sequence[CopartitionGroup] = (),
    ) -> None:
        self.subtopology_id: str = subtopology_id
        self.source_topics: Sequence[str] = source_topics
        self.source_topic_regex: Sequence[str] = source_topic_regex
        self.state_changelog_topics: Sequence[TopicInfo] = state_changelog_topics
        self.repartition_sink_topics: Sequence[str] = repartition_sink_topics
        self.repartition_source_topics: Sequence[TopicInfo] = repartition_source_topics
        self.copartition_groups: Sequence[CopartitionGroup] = copartition_groups


class Topology(Message):
    __slots__ = (
        "epoch",
        "subtopologies",
    )
    FIRST_VERSION, LAST_VERSION, FIRST_FLEXIBLE_VERSION = 0, 0, 0
    FIELDS: ClassVar[tuple[FieldSpec, ...]] = (
        FieldSpec("epoch", "int32"),
        FieldSpec("subtopologies", "struct", is_array=True, item=Subtopology),
    )

    def __init__(self, *, epoch: int = 0, subtopologies: Sequence[Subtopology] = ()) -> None:
        self.epoch: int = epoch
        self.subtopologies: Sequence[Subtopology] = subtopologies


class StreamsGroupHeartbeatRequest(Message):
    __slots__ = (
        "group_id",
        "member_id",
        "member_epoch",
        "endpoint_information_epoch",
        "instance_id",
        "rack_id",
        "rebalance_timeout_ms",
        "topology",
        "active_tasks",
        "standby_tasks",
        "warmup_tasks",
        "process_id",
        "user_endpoint",
        "client_tags",
        "task_offsets",
        "task_end_offsets",
        "shutdown_application",
    )
    FIRST_VERSION, LAST_VERSION, FIRST_FLEXIBLE_VERSION = 0, 0, 0
    FIELDS: ClassVar[tuple[FieldSpec, ...]] = (
        FieldSpec("group_id", "string"),
        FieldSpec("member_id", "string"),
        FieldSpec("member_epoch", "int32"),
        FieldSpec("endpoint_information_epoch", "int32"),
        FieldSpec("instance_id", "string", first_nullable_version=0),
        FieldSpec("rack_id", "string", first_nullable_version=0),
        FieldSpec("rebalance_timeout_ms", "int32"),
        FieldSpec("topology", "struct", first_nullable_version=0, item=Topology),
        FieldSpec("active_tasks", "struct", is_array=True, first_nullable_version=0, item=RequestTaskIds),
        FieldSpec("standby_tasks", "struct", is_array=True, first_nullable_version=0, item=RequestTaskIds),
        FieldSpec("warmup_tasks", "struct", is_array=True, first_nullable_version=0, item=RequestTaskIds),
        FieldSpec("process_id", "string", first_nullable_version=0),
        FieldSpec("user_endpoint", "struct", first_nullable_version=0, item=RequestEndpoint),
        FieldSpec("client_tags", "struct", is_array=True, first_nullable_version=0, item=KeyValue),
        FieldSpec("task_offsets", "struct", is_array=True, first_nullable_version=0, item=TaskOffset),
        FieldSpec("task_end_offsets", "struct", is_array=True, first_nullable_version=0, item=TaskOffset),
        FieldSpec("shutdown_application", "bool"),
    )

    def __init__(
        self,
        *,
        group_id: str = "",
        member_id: str = "",
        member_epoch: int = 0,
        endpoint_information_epoch: int = 0,
        instance_id: str | None = None,
        rack_id: str | None = None,
        rebalance_timeout_ms: int = -1,
        topology: Topology | None = None,
        active_tasks: Sequence[RequestTaskIds] | None = (),
        standby_tasks: Sequence[RequestTaskIds] | None = (),
        warmup_tasks: Sequence[RequestTaskIds] | None = (),
        process_id: str | None = None,
        user_endpoint: RequestEndpoint | None = None,
        client_tags: Sequence[KeyValue] | None = (),
        task_offsets: Sequence[TaskOffset] | None = (),
        task_end_offsets: Sequence[TaskOffset] | None = (),
        shutdown_application: bool = False,
    ) -> None:
        self.group_id: str = group_id
        self.member_id: str = member_id
        self.member_epoch: int = member_epoch
        self.endpoint_information_epoch: int = endpoint_information_epoch
        self.instance_id: str | None = instance_id
        self.rack_id: str | None = rack_id
        self.rebalance_timeout_ms: int = rebalance_timeout_ms
        self.topology: Topology | None = topology
        self.active_tasks: Sequence[RequestTaskIds] | None = active_tasks
        self.standby_tasks: Sequence[RequestTaskIds] | None = standby_tasks
        self.warmup_tasks: Sequence[RequestTaskIds] | None = warmup_tasks
        self.process_id: str | None = process_id
        self.user_endpoint: RequestEndpoint | None = user_endpoint
        self.client_tags: Sequence[KeyValue] | None = client_tags
        self.task_offsets: Sequence[TaskOffset] | None = task_offsets
        self.task_end_offsets: Sequence[TaskOffset] | None = task_end_offsets
        self.shutdown_application: bool = shutdown_application


class Status(Message):
    __slots__ = (
        "status_code",
        "status_detail",
    )
    FIRST_VERSION, LAST_VERSION, FIRST_FLEXIBLE_VERSION = 0, 0, 0
    FIELDS: ClassVar[tuple[FieldSpec, ...]] = (
        FieldSpec("status_code", "int8"),
        FieldSpec("status_detail", "string"),
    )

    def __init__(self, *, status_code: int = 0, status_detail: str = "") -> None:
        self.status_code: int = status_code
        self.status_detail: str = status_detail


class ResponseTaskIds(Message):
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


class ResponseEndpoint(Message):
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


class TopicPartition(Message):
    __slots__ = (
        "topic",
        "partitions",
    )
    FIRST_VERSION, LAST_VERSION, FIRST_FLEXIBLE_VERSION = 0, 0, 0
    FIELDS: ClassVar[tuple[FieldSpec, ...]] = (
        FieldSpec("topic", "string"),
        FieldSpec("partitions", "int32", is_array=True),
    )

    def __init__(self, *, topic: str = "", partitions: Sequence[int] = ()) -> None:
        self.topic: str = topic
        self.partitions: Sequence[int] = partitions


class EndpointToPartitions(Message):
    __slots__ = (
        "user_endpoint",
        "active_partitions",
        "standby_partitions",
    )
    FIRST_VERSION, LAST_VERSION, FIRST_FLEXIBLE_VERSION = 0, 0, 0
    FIELDS: ClassVar[tuple[FieldSpec, ...]] = (
        FieldSpec("user_endpoint", "struct", item=ResponseEndpoint),
        FieldSpec("active_partitions", "struct", is_array=True, item=TopicPartition),
        FieldSpec("standby_partitions", "struct", is_array=True, item=TopicPartition),
    )

    def __init__(
        self,
        *,
        user_endpoint: ResponseEndpoint | None = None,
        active_partitions: Sequence[TopicPartition] = (),
        standby_partitions: Sequence[TopicPartition] = (),
    ) -> None:
        self.user_endpoint: ResponseEndpoint = ResponseEndpoint() if user_endpoint is None else user_endpoint
        self.active_partitions: Sequence[TopicPartition] = active_partitions
        self.standby_partitions: Sequence[TopicPartition] = standby_partitions


class StreamsGroupHeartbeatResponse(Message):
    __slots__ = (
        "throttle_time_ms",
        "error_code",
        "error_message",
        "member_id",
        "member_epoch",
        "heartbeat_interval_ms",
        "acceptable_recovery_lag",
        "task_offset_interval_ms",
        "status",
        "active_tasks",
        "standby_tasks",
        "warmup_tasks",
        "endpoint_information_epoch",
        "partitions_by_user_endpoint",
    )
    FIRST_VERSION, LAST_VERSION, FIRST_FLEXIBLE_VERSION = 0, 0, 0
    FIELDS: ClassVar[tuple[FieldSpec, ...]] = (
        FieldSpec("throttle_time_ms", "int32"),
        FieldSpec("error_code", "int16"),
        FieldSpec("error_message", "string", first_nullable_version=0),
        FieldSpec("member_id", "string"),
        FieldSpec("member_epoch", "int32"),
        FieldSpec("heartbeat_interval_ms", "int32"),
        FieldSpec("acceptable_recovery_lag", "int32"),
        FieldSpec("task_offset_interval_ms", "int32"),
        FieldSpec("status", "struct", is_array=True, first_nullable_version=0, item=Status),
        FieldSpec("active_tasks", "struct", is_array=True, first_nullable_version=0, item=ResponseTaskIds),
        FieldSpec("standby_tasks", "struct", is_array=True, first_nullable_version=0, item=ResponseTaskIds),
        FieldSpec("warmup_tasks", "struct", is_array=True, first_nullable_version=0, item=ResponseTaskIds),
        FieldSpec("endpoint_information_epoch", "int32"),
        FieldSpec("partitions_by_user_endpoint", "struct", is_array=True, first_nullable_version=0, item=EndpointToPartitions),
    )

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        error_message: str | None = None,
        member_id: str = "",
        member_epoch: int = 0,
        heartbeat_interval_ms: int = 0,
        acceptable_recovery_lag: int = 0,
        task_offset_interval_ms: int = 0,
        status: Sequence[Status] | None = (),
        active_tasks: Sequence[ResponseTaskIds] | None = (),
        standby_tasks: Sequence[ResponseTaskIds] | None = (),
        warmup_tasks: Sequence[ResponseTaskIds] | None = (),
        endpoint_information_epoch: int = 0,
        partitions_by_user_endpoint: Sequence[EndpointToPartitions] | None = (),
    ) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        self.error_code: int = error_code
        self.error_message: str | None = error_message
        self.member_id: str = member_id
        self.member_epoch: int = member_epoch
        self.heartbeat_interval_ms: int = heartbeat_interval_ms
        self.acceptable_recovery_lag: int = acceptable_recovery_lag
        self.task_offset_interval_ms: int = task_offset_interval_ms
        self.status: Sequence[Status] | None = status
        self.active_tasks: Sequence[ResponseTaskIds] | None = active_tasks
        self.standby_tasks: Sequence[ResponseTaskIds] | None = standby_tasks
        self.warmup_tasks: Sequence[ResponseTaskIds] | None = warmup_tasks
        self.endpoint_information_epoch: int = endpoint_information_epoch
        self.partitions_by_user_endpoint: Sequence[EndpointToPartitions] | None = partitions_by_user_endpoint
