"""AddOffsetsToTxnRequest and AddOffsetsToTxnResponse. Written by tools/generate_messages.py; do not edit."""

from __future__ import annotations

from typing import ClassVar

from barnabas.protocol.base_message import FieldSpec, Message


class AddOffsetsToTxnRequest(Message):
    __slots__ = (
        "transactional_id",
        "producer_id",
        "producer_epoch",
        "group_id",
    )
    FIRST_VERSION, LAST_VERSION, FIRST_FLEXIBLE_VERSION = 0, 4, 3
    FIELDS: ClassVar[tuple[FieldSpec, ...]] = (
        FieldSpec("transactional_id", "string"),
        FieldSpec("producer_id", "int64"),
        FieldSpec("producer_epoch", "int16"),
        FieldSpec("group_id", "string"),
    )

    def __init__(self, *, transactional_id: str = "", producer_id: int = 0, producer_epoch: int = 0, group_id: str = "") -> None:
        self.transactional_id: str = transactional_id
        self.producer_id: int = producer_id
        self.producer_epoch: int = producer_epoch
        self.group_id: str = group_id


class AddOffsetsToTxnResponse(Message):
    __slots__ = (
        "throttle_time_ms",
        "error_code",
    )
    FIRST_VERSION, LAST_VERSION, FIRST_FLEXIBLE_VERSION = 0, 4, 3
    FIELDS: ClassVar[tuple[FieldSpec, ...]] = (
        FieldSpec("throttle_time_ms", "int32"),
        FieldSpec("error_code", "int16"),
    )

    def __init__(self, *, throttle_time_ms: int = 0, error_code: int = 0) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        self.error_code: int = error_code
