"""The records of `__consumer_offsets`, byte for byte as Kafka 4.3 writes them.

A key is a 16-bit record type and a message of version 0; a value is a 16-bit version and a message of that version.

Rules
  1. Offsets are written with value version 4: it has the topic's id. They are written with version 1 if the request has its own
     retention (OffsetCommit before version 5), since only version 1 has this field. Groups are written with version 3.
  2. The readers accept every value version that Kafka ever wrote.
  3. An unknown record type gives None: other group types share this topic, and a broker of a later version may have more types.

Ugly: the record type was once a version of the key, so type 0 is an offset key too.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum
from typing import ClassVar, TypeVar
from uuid import UUID

from barnabas.coordination.version_prefix import NUMBER_BYTES, Record, begin, leading_number, version_of
from barnabas.protocol.base_message import OPEN_END, ZERO_UUID, Buffer, FieldSpec, Message
from barnabas.protocol.codec import decode, writer_of


class RecordType(IntEnum):
    """The number before a key."""

    OFFSET_COMMIT_ONCE = 0
    OFFSET_COMMIT = 1
    GROUP_METADATA = 2


V = TypeVar("V", bound=Message)
OFFSET_VALUE_VERSION, OFFSET_VALUE_VERSION_WITH_EXPIRY = 4, 1
GROUP_VALUE_VERSION = 3
NO_TIMESTAMP = -1
MAX_NAME_BYTES = 32_000  # name lengths are 16-bit; this leaves room for the suffix of a member id


class OffsetCommitKey(Message):
    """Names the partition of one committed offset of one group."""

    __slots__ = ("group", "partition", "topic")
    FIRST_VERSION, LAST_VERSION, FIRST_FLEXIBLE_VERSION = 0, 0, OPEN_END
    FIELDS: ClassVar[tuple[FieldSpec, ...]] = (
        FieldSpec("group", "string"),
        FieldSpec("topic", "string"),
        FieldSpec("partition", "int32"),
    )

    def __init__(self, *, group: str = "", topic: str = "", partition: int = 0) -> None:
        self.group = group
        self.topic = topic
        self.partition = partition


class OffsetCommitValue(Message):
    """One committed offset; the coordinator keeps the same object in memory.

    `leader_epoch` is -1 if the client sent none, `expire_timestamp_ms` is -1 unless the request had a retention.
    """

    __slots__ = ("commit_timestamp_ms", "expire_timestamp_ms", "leader_epoch", "metadata", "offset", "topic_id")
    FIRST_VERSION, LAST_VERSION, FIRST_FLEXIBLE_VERSION = 0, 4, 4
    FIELDS: ClassVar[tuple[FieldSpec, ...]] = (
        FieldSpec("offset", "int64"),
        FieldSpec("leader_epoch", "int32", first_version=3),
        FieldSpec("metadata", "string"),
        FieldSpec("commit_timestamp_ms", "int64"),
        FieldSpec("expire_timestamp_ms", "int64", first_version=1, last_version=1),
        FieldSpec("topic_id", "uuid", first_version=4, tag=0),
    )

    def __init__(
        self,
        *,
        offset: int = 0,
        leader_epoch: int = -1,
        metadata: str = "",
        commit_timestamp_ms: int = 0,
        expire_timestamp_ms: int = NO_TIMESTAMP,
        topic_id: UUID = ZERO_UUID,
    ) -> None:
        self.offset = offset
        self.leader_epoch = leader_epoch
        self.metadata = metadata
        self.commit_timestamp_ms = commit_timestamp_ms
        self.expire_timestamp_ms = expire_timestamp_ms
        self.topic_id = topic_id


class GroupMetadataKey(Message):
    """Names a group of the classic protocol."""

    __slots__ = ("group",)
    FIRST_VERSION, LAST_VERSION, FIRST_FLEXIBLE_VERSION = 0, 0, OPEN_END
    FIELDS: ClassVar[tuple[FieldSpec, ...]] = (FieldSpec("group", "string"),)

    def __init__(self, *, group: str = "") -> None:
        self.group = group


class MemberMetadata(Message):
    """One member of a classic group, in its stored form."""

    __slots__ = (
        "assignment",
        "client_host",
        "client_id",
        "group_instance_id",
        "member_id",
        "rebalance_timeout_ms",
        "session_timeout_ms",
        "subscription",
    )
    FIRST_VERSION, LAST_VERSION, FIRST_FLEXIBLE_VERSION = 0, 4, 4
    FIELDS: ClassVar[tuple[FieldSpec, ...]] = (
        FieldSpec("member_id", "string"),
        FieldSpec("group_instance_id", "string", first_version=3, first_nullable_version=3),
        FieldSpec("client_id", "string"),
        FieldSpec("client_host", "string"),
        FieldSpec("rebalance_timeout_ms", "int32", first_version=1),
        FieldSpec("session_timeout_ms", "int32"),
        FieldSpec("subscription", "bytes"),
        FieldSpec("assignment", "bytes"),
    )

    def __init__(
        self,
        *,
        member_id: str = "",
        group_instance_id: str | None = None,
        client_id: str = "",
        client_host: str = "",
        rebalance_timeout_ms: int = -1,
        session_timeout_ms: int = 0,
        subscription: bytes = b"",
        assignment: bytes = b"",
    ) -> None:
        self.member_id = member_id
        self.group_instance_id = group_instance_id
        self.client_id = client_id
        self.client_host = client_host
        self.rebalance_timeout_ms = rebalance_timeout_ms
        self.session_timeout_ms = session_timeout_ms
        self.subscription = subscription
        self.assignment = assignment


class GroupMetadataValue(Message):
    """One generation of a classic group."""

    __slots__ = ("current_state_timestamp_ms", "generation", "leader", "members", "protocol", "protocol_type")
    FIRST_VERSION, LAST_VERSION, FIRST_FLEXIBLE_VERSION = 0, 4, 4
    FIELDS: ClassVar[tuple[FieldSpec, ...]] = (
        FieldSpec("protocol_type", "string"),
        FieldSpec("generation", "int32"),
        FieldSpec("protocol", "string", first_nullable_version=0),
        FieldSpec("leader", "string", first_nullable_version=0),
        FieldSpec("current_state_timestamp_ms", "int64", first_version=2),
        FieldSpec("members", "struct", is_array=True, item=MemberMetadata),
    )

    def __init__(
        self,
        *,
        protocol_type: str = "",
        generation: int = 0,
        protocol: str | None = None,
        leader: str | None = None,
        current_state_timestamp_ms: int = NO_TIMESTAMP,
        members: Sequence[MemberMetadata] = (),
    ) -> None:
        self.protocol_type = protocol_type
        self.generation = generation
        self.protocol = protocol
        self.leader = leader
        self.current_state_timestamp_ms = current_state_timestamp_ms
        self.members = members


Key = OffsetCommitKey | GroupMetadataKey


def offset_record(group: str, topic: str, partition: int, value: OffsetCommitValue | None) -> Record:
    """The record that commits an offset; without a value, its tombstone."""
    key = begin(RecordType.OFFSET_COMMIT)
    writer_of(OffsetCommitKey, 0)(OffsetCommitKey(group=group, topic=topic, partition=partition), key)
    if value is None:
        return bytes(key), None
    version = OFFSET_VALUE_VERSION if value.expire_timestamp_ms == NO_TIMESTAMP else OFFSET_VALUE_VERSION_WITH_EXPIRY
    return bytes(key), _versioned(value, version)


def group_record(group: str, value: GroupMetadataValue | None) -> Record:
    """The record of a group's generation; without a value, its tombstone."""
    key = begin(RecordType.GROUP_METADATA)
    writer_of(GroupMetadataKey, 0)(GroupMetadataKey(group=group), key)
    return bytes(key), None if value is None else _versioned(value, GROUP_VALUE_VERSION)


def read_key(data: Buffer) -> Key | None:
    """The key of a record; None for an unknown record type.

    Raises:
        MalformedMessage: the bytes are not a key.
    """
    match leading_number(data, "coordinator record key"):
        case RecordType.OFFSET_COMMIT_ONCE | RecordType.OFFSET_COMMIT:
            return decode(OffsetCommitKey, 0, data, NUMBER_BYTES)
        case RecordType.GROUP_METADATA:
            return decode(GroupMetadataKey, 0, data, NUMBER_BYTES)
        case _:
            return None


def read_offset_value(data: Buffer) -> OffsetCommitValue:
    """The value of an offset record; raises MalformedMessage for bytes or a version that Kafka never wrote."""
    return _decode_value(OffsetCommitValue, data)


def read_group_value(data: Buffer) -> GroupMetadataValue:
    """The value of a group record; raises MalformedMessage for bytes or a version that Kafka never wrote."""
    return _decode_value(GroupMetadataValue, data)


def is_too_long(name: str) -> bool:
    """Whether a name of a request is too long for a record, which is possible in newer versions of requests."""
    return len(name) > MAX_NAME_BYTES // 4 and len(name.encode()) > MAX_NAME_BYTES


def _versioned(message: Message, version: int) -> bytes:
    out = begin(version)
    writer_of(type(message), version)(message, out)
    return bytes(out)


def _decode_value(cls: type[V], data: Buffer) -> V:
    return decode(cls, version_of(data, cls.__name__, cls.LAST_VERSION), data, NUMBER_BYTES)
