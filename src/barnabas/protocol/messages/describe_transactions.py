"""DescribeTransactionsRequest and DescribeTransactionsResponse. Written by tools/generate_messages.py; do not edit."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from barnabas.protocol.base_message import FieldSpec, Message


class DescribeTransactionsRequest(Message):
    __slots__ = ("transactional_ids",)
    FIRST_VERSION, LAST_VERSION, FIRST_FLEXIBLE_VERSION = 0, 0, 0
    FIELDS: ClassVar[tuple[FieldSpec, ...]] = (FieldSpec("transactional_ids", "string", is_array=True),)

    def __init__(self, *, transactional_ids: Sequence[str] = ()) -> None:
        self.transactional_ids: Sequence[str] = transactional_ids


class TopicData(Message):
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


class TransactionState(Message):
    __slots__ = (
        "error_code",
        "transactional_id",
        "transaction_state",
        "transaction_timeout_ms",
        "transaction_start_time_ms",
        "producer_id",
        "producer_epoch",
        "topics",
    )
    FIRST_VERSION, LAST_VERSION, FIRST_FLEXIBLE_VERSION = 0, 0, 0
    FIELDS: ClassVar[tuple[FieldSpec, ...]] = (
        FieldSpec("error_code", "int16"),
        FieldSpec("transactional_id", "string"),
        FieldSpec("transaction_state", "string"),
        FieldSpec("transaction_timeout_ms", "int32"),
        FieldSpec("transaction_start_time_ms", "int64"),
        FieldSpec("producer_id", "int64"),
        FieldSpec("producer_epoch", "int16"),
        FieldSpec("topics", "struct", is_array=True, item=TopicData),
    )

    def __init__(
        self,
        *,
        error_code: int = 0,
        transactional_id: str = "",
        transaction_state: str = "",
        transaction_timeout_ms: int = 0,
        transaction_start_time_ms: int = 0,
        producer_id: int = 0,
        producer_epoch: int = 0,
        topics: Sequence[TopicData] = (),
    ) -> None:
        self.error_code: int = error_code
        self.transactional_id: str = transactional_id
        self.transaction_state: str = transaction_state
        self.transaction_timeout_ms: int = transaction_timeout_ms
        self.transaction_start_time_ms: int = transaction_start_time_ms
        self.producer_id: int = producer_id
        self.producer_epoch: int = producer_epoch
        self.topics: Sequence[TopicData] = topics


class DescribeTransactionsResponse(Message):
    __slots__ = (
        "throttle_time_ms",
        "transaction_states",
    )
    FIRST_VERSION, LAST_VERSION, FIRST_FLEXIBLE_VERSION = 0, 0, 0
    FIELDS: ClassVar[tuple[FieldSpec, ...]] = (
        FieldSpec("throttle_time_ms", "int32"),
        FieldSpec("transaction_states", "struct", is_array=True, item=TransactionState),
    )

    def __init__(self, *, throttle_time_ms: int = 0, transaction_states: Sequence[TransactionState] = ()) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        self.transaction_states: Sequence[TransactionState] = transaction_states
