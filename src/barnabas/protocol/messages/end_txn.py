"""EndTxnRequest and EndTxnResponse. Written by tools/generate_messages.py; do not edit."""

from __future__ import annotations

from typing import ClassVar

from barnabas.protocol.base_message import FieldSpec, Message


class EndTxnRequest(Message):
    __slots__ = (
        "transactional_id",
        "producer_id",
        "producer_epoch",
        "committed",
    )
    FIRST_VERSION, LAST_VERSION, FIRST_FLEXIBLE_VERSION = 0, 5, 3
    FIELDS: ClassVar[tuple[FieldSpec, ...]] = (
        FieldSpec("transactional_id", "string"),
        FieldSpec("producer_id", "int64"),
        FieldSpec("producer_epoch", "int16"),
        FieldSpec("committed", "bool"),
    )

    def __init__(
        self, *, transactional_id: str = "", producer_id: int = 0, producer_epoch: int = 0, committed: bool = False
    ) -> None:
        self.transactional_id: str = transactional_id
        self.producer_id: int = producer_id
        self.producer_epoch: int = producer_epoch
        self.committed: bool = committed


class EndTxnResponse(Message):
    __slots__ = (
        "throttle_time_ms",
        "error_code",
        "producer_id",
        "producer_epoch",
    )
    FIRST_VERSION, LAST_VERSION, FIRST_FLEXIBLE_VERSION = 0, 5, 3
    FIELDS: ClassVar[tuple[FieldSpec, ...]] = (
        FieldSpec("throttle_time_ms", "int32"),
        FieldSpec("error_code", "int16"),
        FieldSpec("producer_id", "int64", first_version=5),
        FieldSpec("producer_epoch", "int16", first_version=5),
    )

    def __init__(
        self, *, throttle_time_ms: int = 0, error_code: int = 0, producer_id: int = -1, producer_epoch: int = -1
    ) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        self.error_code: int = error_code
        self.producer_id: int = producer_id
        self.producer_epoch: int = producer_epoch
