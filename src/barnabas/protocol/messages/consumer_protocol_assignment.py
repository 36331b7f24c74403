"""ConsumerProtocolAssignment. Written by tools/generate_messages.py; do not edit."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from barnabas.protocol.base_message import FieldSpec, Message


class TopicPartition(Message):
    __slots__ = (
        "topic",
        "partitions",
    )
    FIRST_VERSION, LAST_VERSION, FIRST_FLEXIBLE_VERSION = 0, 3, 32767
    FIELDS: ClassVar[tuple[FieldSpec, ...]] = (
        FieldSpec("topic", "string"),
        FieldSpec("partitions", "int32", is_array=True),
    )

    def __init__(self, *, topic: str = "", partitions: Sequence[int] = ()) -> None:
        self.topic: str = topic
        self.partitions: Sequence[int] = partitions


class ConsumerProtocolAssignment(Message):
    __slots__ = (
        "assigned_partitions",
        "user_data",
    )
    FIRST_VERSION, LAST_VERSION, FIRST_FLEXIBLE_VERSION = 0, 3, 32767
    FIELDS: ClassVar[tuple[FieldSpec, ...]] = (
        FieldSpec("assigned_partitions", "struct", is_array=True, item=TopicPartition),
        FieldSpec("user_data", "bytes", first_nullable_version=0),
    )

    def __init__(self, *, assigned_partitions: Sequence[TopicPartition] = (), user_data: bytes | None = None) -> None:
        self.assigned_partitions: Sequence[TopicPartition] = assigned_partitions
        self.user_data: bytes | None = user_data
