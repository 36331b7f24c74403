"""ListTransactionsRequest and ListTransactionsResponse. Written by tools/generate_messages.py; do not edit."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from barnabas.protocol.base_message import FieldSpec, Message


class ListTransactionsRequest(Message):
    __slots__ = (
        "state_filters",
        "producer_id_filters",
        "duration_filter",
        "transactional_id_pattern",
    )
    FIRST_VERSION, LAST_VERSION, FIRST_FLEXIBLE_VERSION = 0, 2, 0
    FIELDS: ClassVar[tuple[FieldSpec, ...]] = (
        FieldSpec("state_filters", "string", is_array=True),
        FieldSpec("producer_id_filters", "int64", is_array=True),
        FieldSpec("duration_filter", "int64", first_version=1),
        FieldSpec("transactional_id_pattern", "string", first_version=2, first_nullable_version=2),
    )

    def __init__(
        self,
        *,
        state_filters: Sequence[str] = (),
        producer_id_filters: Sequence[int] = (),
        duration_filter: int = -1,
        transactional_id_pattern: str | None = None,
    ) -> None:
        self.state_filters: Sequence[str] = state_filters
        self.producer_id_filters: Sequence[int] = producer_id_filters
        self.duration_filter: int = duration_filter
        self.transactional_id_pattern: str | None = transactional_id_pattern


class TransactionState(Message):
    __slots__ = (
        "transactional_id",
        "producer_id",
        "transaction_state",
    )
    FIRST_VERSION, LAST_VERSION, FIRST_FLEXIBLE_VERSION = 0, 2, 0
    FIELDS: ClassVar[tuple[FieldSpec, ...]] = (
        FieldSpec("transactional_id", "string"),
        FieldSpec("producer_id", "int64"),
        FieldSpec("transaction_state", "string"),
    )

    def __init__(self, *, transactional_id: str = "", producer_id: int = 0, transaction_state: str = "") -> None:
        self.transactional_id: str = transactional_id
        self.producer_id: int = producer_id
        self.transaction_state: str = transaction_state


class ListTransactionsResponse(Message):
    __slots__ = (
        "throttle_time_ms",
        "error_code",
        "unknown_state_filters",
        "transaction_states",
    )
    FIRST_VERSION, LAST_VERSION, FIRST_FLEXIBLE_VERSION = 0, 2, 0
    FIELDS: ClassVar[tuple[FieldSpec, ...]] = (
        FieldSpec("throttle_time_ms", "int32"),
        FieldSpec("error_code", "int16"),
        FieldSpec("unknown_state_filters", "string", is_array=True),
        FieldSpec("transaction_states", "struct", is_array=True, item=TransactionState),
    )

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        unknown_state_filters: Sequence[str] = (),
        transaction_states: Sequence[TransactionState] = (),
    ) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        self.error_code: int = error_code
        self.unknown_state_filters: Sequence[str] = unknown_state_filters
        self.transaction_states: Sequence[TransactionState] = transaction_states
