"""The records of consumer groups in `__consumer_offsets`, byte for byte as Kafka 4.3 writes them.

Rules
  1. Every type has a key and a value of version 0; keys are not flexible, values are.
  2. Additions of later versions of Kafka are tagged fields, and are skipped.
  3. The metadata of subscribed topics (type 4) was written by Kafka 4.0 and is ignored, and so is its tombstone.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum
from typing import ClassVar, TypeVar
from uuid import UUID

from barnabas.coordination.version_prefix import NUMBER_BYTES, Record, begin, leading_number, version_of
from barnabas.protocol.base_message import ZERO_UUID, Buffer, FieldSpec, Message
from barnabas.protocol.codec import decode, writer_of

V = TypeVar("V", bound=Message)
_NEVER = 32767


class ConsumerRecordType(IntEnum):
    """The number before a key."""

    GROUP = 3
    PARTITION_METADATA = 4
    MEMBER = 5
    TARGET = 6
    MEMBER_TARGET = 7
    CURRENT = 8
    REGULAR_EXPRESSION = 16


def _field(name: str, wire_type: str, *, array: bool = False, nullable: bool = False, tag: int | None = None) -> FieldSpec:
    return (name, wire_type, array, 0, _NEVER, 0 if nullable else _NEVER, _NEVER, tag, None)


def _structs(name: str, item: type[Message], *, array: bool = True, nullable: bool = False, tag: int | None = None) -> FieldSpec:
    return (name, "struct", array, 0, _NEVER, 0 if nullable else _NEVER, _NEVER, tag, item)


class GroupKey(Message):
    """Names a group: in the records of the group itself and of its target assignment."""

    __slots__ = ("group",)
    FIRST_VERSION, LAST_VERSION, FIRST_FLEXIBLE_VERSION = 0, 0, _NEVER
    FIELDS: ClassVar[tuple[FieldSpec, ...]] = (_field("group", "string"),)

    def __init__(self, *, group: str = "") -> None:
        self.group = group


class MemberKey(Message):
    """Names a member, in its own record and in those of its target and current assignment."""

    __slots__ = ("group", "member")
    FIRST_VERSION, LAST_VERSION, FIRST_FLEXIBLE_VERSION = 0, 0, _NEVER
    FIELDS: ClassVar[tuple[FieldSpec, ...]] = (_field("group", "string"), _field("member", "string"))

    def __init__(self, *, group: str = "", member: str = "") -> None:
        self.group = group
        self.member = member


class RegularExpressionKey(Message):
    """Names a regular expression that members of a group subscribe to."""

    __slots__ = ("group", "regular_expression")
    FIRST_VERSION, LAST_VERSION, FIRST_FLEXIBLE_VERSION = 0, 0, _NEVER
    FIELDS: ClassVar[tuple[FieldSpec, ...]] = (_field("group", "string"), _field("regular_expression", "string"))

    def __init__(self, *, group: str = "", regular_expression: str = "") -> None:
        self.group = group
        self.regular_expression = regular_expression


class GroupValue(Message):
    """The epoch of a group, and a hash of the topics that it is subscribed to (KIP-1101)."""

    __slots__ = ("epoch", "metadata_hash")
    FIRST_VERSION, LAST_VERSION, FIRST_FLEXIBLE_VERSION = 0, 0, 0
    FIELDS: ClassVar[tuple[FieldSpec, ...]] = (_field("epoch", "int32"), _field("metadata_hash", "int64", tag=0))

    def __init__(self, *, epoch: int = 0, metadata_hash: int = 0) -> None:
        self.epoch = epoch
        self.metadata_hash = metadata_hash


class ClassicProtocolValue(Message):
    """An assignor of a member of the classic protocol, with its metadata for the leader."""

    __slots__ = ("metadata", "name")
    FIRST_VERSION, LAST_VERSION, FIRST_FLEXIBLE_VERSION = 0, 0, 0
    FIELDS: ClassVar[tuple[FieldSpec, ...]] = (_field("name", "string"), _field("metadata", "bytes"))

    def __init__(self, *, name: str = "", metadata: bytes = b"") -> None:
        self.name = name
        self.metadata = metadata


class ClassicMemberValue(Message):
    """Additional fields of a member that uses the classic protocol."""

    __slots__ = ("session_timeout_ms", "supported_protocols")
    FIRST_VERSION, LAST_VERSION, FIRST_FLEXIBLE_VERSION = 0, 0, 0
    FIELDS: ClassVar[tuple[FieldSpec, ...]] = (
        _field("session_timeout_ms", "int32"),
        _structs("supported_protocols", ClassicProtocolValue),
    )

    def __init__(self, *, session_timeout_ms: int = 0, supported_protocols: Sequence[ClassicProtocolValue] = ()) -> None:
        self.session_timeout_ms = session_timeout_ms
        self.supported_protocols = supported_protocols


class MemberValue(Message):
    """The properties of a member."""

    __slots__ = (
        "classic_member_metadata",
        "client_host",
        "client_id",
        "instance_id",
        "rack_id",
        "rebalance_timeout_ms",
        "server_assignor",
        "subscribed_topic_names",
        "subscribed_topic_regex",
    )
    FIRST_VERSION, LAST_VERSION, FIRST_FLEXIBLE_VERSION = 0, 0, 0
    FIELDS: ClassVar[tuple[FieldSpec, ...]] = (
        _field("instance_id", "string", nullable=True),
        _field("rack_id", "string", nullable=True),
        _field("client_id", "string"),
        _field("client_host", "string"),
        _field("subscribed_topic_names", "string", array=True),
        _field("subscribed_topic_regex", "string", nullable=True),
        _field("rebalance_timeout_ms", "int32"),
        _field("server_assignor", "string", nullable=True),
        _structs("classic_member_metadata", ClassicMemberValue, array=False, nullable=True, tag=0),
    )

    def __init__(
        self,
        *,
        instance_id: str | None = None,
        rack_id: str | None = None,
        client_id: str = "",
        client_host: str = "",
        subscribed_topic_names: Sequence[str] = (),
        subscribed_topic_regex: str | None = None,
        rebalance_timeout_ms: int = -1,
        server_assignor: str | None = None,
        classic_member_metadata: ClassicMemberValue | None = None,
    ) -> None:
        self.instance_id = instance_id
        self.rack_id = rack_id
        self.client_id = client_id
        self.client_host = client_host
        self.subscribed_topic_names = subscribed_topic_names
        self.subscribed_topic_regex = subscribed_topic_regex
        self.rebalance_timeout_ms = rebalance_timeout_ms
        self.server_assignor = server_assignor
        self.classic_member_metadata = classic_member_metadata


class TargetValue(Message):
    """The group epoch of the target assignment, and its time."""

    __slots__ = ("assignment_epoch", "assignment_timestamp_ms")
    FIRST_VERSION, LAST_VERSION, FIRST_FLEXIBLE_VERSION = 0, 0, 0
    FIELDS: ClassVar[tuple[FieldSpec, ...]] = (
        _field("assignment_epoch", "int32"),
        _field("assignment_timestamp_ms", "int64", tag=0),
    )

    def __init__(self, *, assignment_epoch: int = 0, assignment_timestamp_ms: int = 0) -> None:
        self.assignment_epoch = assignment_epoch
        self.assignment_timestamp_ms = assignment_timestamp_ms


class TopicPartitionsValue(Message):
    """Partitions of one topic."""

    __slots__ = ("partitions", "topic_id")
    FIRST_VERSION, LAST_VERSION, FIRST_FLEXIBLE_VERSION = 0, 0, 0
    FIELDS: ClassVar[tuple[FieldSpec, ...]] = (_field("topic_id", "uuid"), _field("partitions", "int32", array=True))

    def __init__(self, *, topic_id: UUID = ZERO_UUID, partitions: Sequence[int] = ()) -> None:
        self.topic_id = topic_id
        self.partitions = partitions


class MemberTargetValue(Message):
    """The target assignment of a member."""

    __slots__ = ("topic_partitions",)
    FIRST_VERSION, LAST_VERSION, FIRST_FLEXIBLE_VERSION = 0, 0, 0
    FIELDS: ClassVar[tuple[FieldSpec, ...]] = (_structs("topic_partitions", TopicPartitionsValue),)

    def __init__(self, *, topic_partitions: Sequence[TopicPartitionsValue] = ()) -> None:
        self.topic_partitions = topic_partitions


class OwnedPartitionsValue(Message):
    """Partitions of one topic, with the epochs in which the member got them (KIP-1251); Kafka before 4.3 wrote no epochs."""

    __slots__ = ("assignment_epochs", "partitions", "topic_id")
    FIRST_VERSION, LAST_VERSION, FIRST_FLEXIBLE_VERSION = 0, 0, 0
    FIELDS: ClassVar[tuple[FieldSpec, ...]] = (
        _field("topic_id", "uuid"),
        _field("partitions", "int32", array=True),
        _field("assignment_epochs", "int32", array=True, nullable=True, tag=0),
    )

    def __init__(
        self, *, topic_id: UUID = ZERO_UUID, partitions: Sequence[int] = (), assignment_epochs: Sequence[int] | None = None
    ) -> None:
        self.topic_id = topic_id
        self.partitions = partitions
        self.assignment_epochs = assignment_epochs


class CurrentValue(Message):
    """The current assignment of a member."""

    __slots__ = ("assigned_partitions", "member_epoch", "partitions_pending_revocation", "previous_member_epoch", "state")
    FIRST_VERSION, LAST_VERSION, FIRST_FLEXIBLE_VERSION = 0, 0, 0
    FIELDS: ClassVar[tuple[FieldSpec, ...]] = (
        _field("member_epoch", "int32"),
        _field("previous_member_epoch", "int32"),
        _field("state", "int8"),
        _structs("assigned_partitions", OwnedPartitionsValue),
        _structs("partitions_pending_revocation", OwnedPartitionsValue),
    )

    def __init__(
        self,
        *,
        member_epoch: int = 0,
        previous_member_epoch: int = 0,
        state: int = 0,
        assigned_partitions: Sequence[OwnedPartitionsValue] = (),
        partitions_pending_revocation: Sequence[OwnedPartitionsValue] = (),
    ) -> None:
        self.member_epoch = member_epoch
        self.previous_member_epoch = previous_member_epoch
        self.state = state
        self.assigned_partitions = assigned_partitions
        self.partitions_pending_revocation = partitions_pending_revocation


class RegularExpressionValue(Message):
    """The topics of a regular expression, for a version of the metadata and a time."""

    __slots__ = ("timestamp_ms", "topics", "version")
    FIRST_VERSION, LAST_VERSION, FIRST_FLEXIBLE_VERSION = 0, 0, 0
    FIELDS: ClassVar[tuple[FieldSpec, ...]] = (
        _field("topics", "string", array=True),
        _field("version", "int64"),
        _field("timestamp_ms", "int64"),
    )

    def __init__(self, *, topics: Sequence[str] = (), version: int = 0, timestamp_ms: int = 0) -> None:
        self.topics = topics
        self.version = version
        self.timestamp_ms = timestamp_ms


Key = GroupKey | MemberKey | RegularExpressionKey
_KEYS: dict[int, type[GroupKey | MemberKey | RegularExpressionKey]] = {
    ConsumerRecordType.GROUP: GroupKey,
    ConsumerRecordType.PARTITION_METADATA: GroupKey,
    ConsumerRecordType.MEMBER: MemberKey,
    ConsumerRecordType.TARGET: GroupKey,
    ConsumerRecordType.MEMBER_TARGET: MemberKey,
    ConsumerRecordType.CURRENT: MemberKey,
    ConsumerRecordType.REGULAR_EXPRESSION: RegularExpressionKey,
}
VALUES: dict[int, type[Message]] = {
    ConsumerRecordType.GROUP: GroupValue,
    ConsumerRecordType.MEMBER: MemberValue,
    ConsumerRecordType.TARGET: TargetValue,
    ConsumerRecordType.MEMBER_TARGET: MemberTargetValue,
    ConsumerRecordType.CURRENT: CurrentValue,
    ConsumerRecordType.REGULAR_EXPRESSION: RegularExpressionValue,
}


def consumer_record(kind: ConsumerRecordType, key: Key, value: Message | None) -> Record:
    """A record of a consumer group; without a value it is a tombstone for the key."""
    written = begin(kind)
    writer_of(type(key), 0)(key, written)
    if value is None:
        return bytes(written), None
    body = begin(0)
    writer_of(type(value), 0)(value, body)
    return bytes(written), bytes(body)


def read_consumer_key(data: Buffer) -> tuple[ConsumerRecordType, Key] | None:
    """The key of a record of a consumer group; None for records of other groups.

    Raises:
        MalformedMessage: the bytes are not a key.
    """
    number = leading_number(data, "coordinator record key")
    cls = _KEYS.get(number)
    return None if cls is None else (ConsumerRecordType(number), decode(cls, 0, data, NUMBER_BYTES))


def read_consumer_value(cls: type[V], data: Buffer) -> V:
    """The value of a record; raises MalformedMessage for bytes or a version that Kafka never wrote."""
    return decode(cls, version_of(data, cls.__name__, cls.LAST_VERSION), data, NUMBER_BYTES)
