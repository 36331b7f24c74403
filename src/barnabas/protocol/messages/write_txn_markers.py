"""WriteTxnMarkersRequest and WriteTxnMarkersResponse. Written by tools/generate_messages.py; do not edit."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from barnabas.protocol.base_message import FieldSpec, Message


class WritableTxnMarkerTopic(Message):
    __slots__ = (
        "name",
        "partition_indexes",
    )
    FIRST_VERSION, LAST_VERSION, FIRST_FLEXIBLE_VERSION = 0, 2, 1
    FIELDS: ClassVar[tuple[FieldSpec, ...]] = (
        FieldSpec("name", "string"),
        FieldSpec("partition_indexes", "int32", is_array=True),
    )

    def __init__(self, *, name: str = "", partition_indexes: Sequence[int] = ()) -> None:
        self.name: str = name
        self.partition_indexes: Sequence[int] = partition_indexes


class WritableTxnMarker(Message):
    __slots__ = (
        "producer_id",
        "producer_epoch",
        "transaction_result",
        "topics",
        "coordinator_epoch",
        "transaction_version",
    )
    FIRST_VERSION, LAST_VERSION, FIRST_FLEXIBLE_VERSION = 0, 2, 1
    FIELDS: ClassVar[tuple[FieldSpec, ...]] = (
        FieldSpec("producer_id", "int64"),
        FieldSpec("producer_epoch", "int16"),
        FieldSpec("transaction_result", "bool"),
        FieldSpec("topics", "struct", is_array=True, item=WritableTxnMarkerTopic),
        FieldSpec("coordinator_epoch", "int32"),
        FieldSpec("transaction_version", "int8", first_version=2),
    )

    def __init__(
        self,
        *,
        producer_id: int = 0,
        producer_epoch: int = 0,
        transaction_result: bool = False,
        topics: Sequence[WritableTxnMarkerTopic] = (),
        coordinator_epoch: int = 0,
        transaction_version: int = 0,
    ) -> None:
        self.producer_id: int = producer_id
        self.producer_epoch: int = producer_epoch
        self.transaction_result: bool = transaction_result
        self.topics: Sequence[WritableTxnMarkerTopic] = topics
        self.coordinator_epoch: int = coordinator_epoch
        self.transaction_version: int = transaction_version


class WriteTxnMarkersRequest(Message):
    __slots__ = ("markers",)
    FIRST_VERSION, LAST_VERSION, FIRST_FLEXIBLE_VERSION = 0, 2, 1
    FIELDS: ClassVar[tuple[FieldSpec, ...]] = (FieldSpec("markers", "struct", is_array=True, item=WritableTxnMarker),)

    def __init__(self, *, markers: Sequence[WritableTxnMarker] = ()) -> None:
        self.markers: Sequence[WritableTxnMarker] = markers


class WritableTxnMarkerPartitionResult(Message):
    __slots__ = (
        "partition_index",
        "error_code",
    )
    FIRST_VERSION, LAST_VERSION, FIRST_FLEXIBLE_VERSION = 0, 2, 1
    FIELDS: ClassVar[tuple[FieldSpec, ...]] = (
        FieldSpec("partition_index", "int32"),
        FieldSpec("error_code", "int16"),
    )

    def __init__(self, *, partition_index: int = 0, error_code: int = 0) -> None:
        self.partition_index: int = partition_index
        self.error_code: int = error_code


class WritableTxnMarkerTopicResult(Message):
    __slots__ = (
        "name",
        "partitions",
    )
    FIRST_VERSION, LAST_VERSION, FIRST_FLEXIBLE_VERSION = 0, 2, 1
    FIELDS: ClassVar[tuple[FieldSpec, ...]] = (
        FieldSpec("name", "string"),
        FieldSpec("partitions", "struct", is_array=True, item=WritableTxnMarkerPartitionResult),
    )

    def __init__(self, *, name: str = "", partitions: Sequence[WritableTxnMarkerPartitionResult] = ()) -> None:
        self.name: str = name
        self.partitions: Sequence[WritableTxnMarkerPartitionResult] = partitions


class WritableTxnMarkerResult(Message):
    __slots__ = (
        "producer_id",
        "topics",
    )
    FIRST_VERSION, LAST_VERSION, FIRST_FLEXIBLE_VERSION = 0, 2, 1
    FIELDS: ClassVar[tuple[FieldSpec, ...]] = (
        FieldSpec("producer_id", "int64"),
        FieldSpec("topics", "struct", is_array=True, item=WritableTxnMarkerTopicResult),
    )

    def __init__(self, *, producer_id: int = 0, topics: Sequence[WritableTxnMarkerTopicResult] = ()) -> None:
        self.producer_id: int = producer_id
        self.topics: Sequence[WritableTxnMarkerTopicResult] = topics


class WriteTxnMarkersResponse(Message):
    __slots__ = ("markers",)
    FIRST_VERSION, LAST_VERSION, FIRST_FLEXIBLE_VERSION = 0, 2, 1
    FIELDS: ClassVar[tuple[FieldSpec, ...]] = (FieldSpec("markers", "struct", is_array=True, item=WritableTxnMarkerResult),)

    def __init__(self, *, markers: Sequence[WritableTxnMarkerResult] = ()) -> None:
        self.markers: Sequence[WritableTxnMarkerResult] = markers
