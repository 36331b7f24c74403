"""ConsumerProtocolSubscription. Written by tools/generate_messages.py; do not edit."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from barnabas.protocol.base_message import FieldSpec, Message


class TopicPartition(Message):
    __slots__ = (
        "topic",
        "partitions",
    )
    FIRST_VERSION, LAST_VERSION, FIRST_FLEXIBLE_VERSION = 1, 3, 32767
    FIELDS: ClassVar[tuple[FieldSpec, ...]] = (
        FieldSpec("topic", "string", first_version=1),
        FieldSpec("partitions", "int32", is_array=True, first_version=1),
    )

    def __init__(self, *, topic: str = "", partitions: Sequence[int] = ()) -> None:
        self.topic: str = topic
        self.partitions: Sequence[int] = partitions


class ConsumerProtocolSubscription(Message):
    __slots__ = (
        "topics",
        "user_data",
        "owned_partitions",
        "generation_id",
        "rack_id",
    )
    FIRST_VERSION, LAST_VERSION, FIRST_FLEXIBLE_VERSION = 0, 3, 32767
    FIELDS: ClassVar[tuple[FieldSpec, ...]] = (
        FieldSpec("topics", "string", is_array=True),
        FieldSpec("user_data", "bytes", first_nullable_version=0),
        FieldSpec("owned_partitions", "struct", is_array=True, first_version=1, item=TopicPartition),
        FieldSpec("generation_id", "int32", first_version=2),
        FieldSpec("rack_id", "string", first_version=3, first_nullable_version=3),
    )

    def __init__(
        self,
        *,
        topics: Sequence[str] = (),
        user_data: bytes | None = None,
        owned_partitions: Sequence[TopicPartition] = (),
        generation_id: int = -1,
        rack_id: str | None = None,
    ) -> None:
        self.topics: Sequence[str] = topics
        self.user_data: bytes | None = user_data
        self.owned_partitions: Sequence[TopicPartition] = owned_partitions
        self.generation_id: int = generation_id
        self.rack_id: str | None = rack_id
