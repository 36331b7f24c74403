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
        ("topic", "string", False, 1, 32767, 32767, 32767, None, None),
        ("partitions", "int32", True, 1, 32767, 32767, 32767, None, None),
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
        ("topics", "string", True, 0, 32767, 32767, 32767, None, None),
        ("user_data", "bytes", False, 0, 32767, 0, 32767, None, None),
        ("owned_partitions", "struct", True, 1, 32767, 32767, 32767, None, TopicPartition),
        ("generation_id", "int32", False, 2, 32767, 32767, 32767, None, None),
        ("rack_id", "string", False, 3, 32767, 3, 32767, None, None),
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
