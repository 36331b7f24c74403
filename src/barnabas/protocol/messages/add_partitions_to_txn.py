"""AddPartitionsToTxnRequest and AddPartitionsToTxnResponse. Written by tools/generate_messages.py; do not edit."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from barnabas.protocol.base_message import FieldSpec, Message


class AddPartitionsToTxnTopic(Message):
    __slots__ = (
        "name",
        "partitions",
    )
    FIRST_VERSION, LAST_VERSION, FIRST_FLEXIBLE_VERSION = 0, 5, 3
    FIELDS: ClassVar[tuple[FieldSpec, ...]] = (
        FieldSpec("name", "string"),
        FieldSpec("partitions", "int32", is_array=True),
    )

    def __init__(self, *, name: str = "", partitions: Sequence[int] = ()) -> None:
        self.name: str = name
        self.partitions: Sequence[int] = partitions


class AddPartitionsToTxnTransaction(Message):
    __slots__ = (
        "transactional_id",
        "producer_id",
        "producer_epoch",
        "verify_only",
        "topics",
    )
    FIRST_VERSION, LAST_VERSION, FIRST_FLEXIBLE_VERSION = 4, 5, 4
    FIELDS: ClassVar[tuple[FieldSpec, ...]] = (
        FieldSpec("transactional_id", "string", first_version=4),
        FieldSpec("producer_id", "int64", first_version=4),
        FieldSpec("producer_epoch", "int16", first_version=4),
        FieldSpec("verify_only", "bool", first_version=4),
        FieldSpec("topics", "struct", is_array=True, first_version=4, item=AddPartitionsToTxnTopic),
    )

    def __init__(
        self,
        *,
        transactional_id: str = "",
        producer_id: int = 0,
        producer_epoch: int = 0,
        verify_only: bool = False,
        topics: Sequence[AddPartitionsToTxnTopic] = (),
    ) -> None:
        self.transactional_id: str = transactional_id
        self.producer_id: int = producer_id
        self.producer_epoch: int = producer_epoch
        self.verify_only: bool = verify_only
        self.topics: Sequence[AddPartitionsToTxnTopic] = topics


class AddPartitionsToTxnRequest(Message):
    __slots__ = (
        "v3_and_below_transactional_id",
        "transactions",
        "v3_and_below_producer_id",
        "v3_and_below_producer_epoch",
        "v3_and_below_topics",
    )
    FIRST_VERSION, LAST_VERSION, FIRST_FLEXIBLE_VERSION = 0, 5, 3
    FIELDS: ClassVar[tuple[FieldSpec, ...]] = (
        FieldSpec("v3_and_below_transactional_id", "string", last_version=3),
        FieldSpec("transactions", "struct", is_array=True, first_version=4, item=AddPartitionsToTxnTransaction),
        FieldSpec("v3_and_below_producer_id", "int64", last_version=3),
        FieldSpec("v3_and_below_producer_epoch", "int16", last_version=3),
        FieldSpec("v3_and_below_topics", "struct", is_array=True, last_version=3, item=AddPartitionsToTxnTopic),
    )

    def __init__(
        self,
        *,
        v3_and_below_transactional_id: str = "",
        transactions: Sequence[AddPartitionsToTxnTransaction] = (),
        v3_and_below_producer_id: int = 0,
        v3_and_below_producer_epoch: int = 0,
        v3_and_below_topics: Sequence[AddPartitionsToTxnTopic] = (),
    ) -> None:
        self.v3_and_below_transactional_id: str = v3_and_below_transactional_id
        self.transactions: Sequence[AddPartitionsToTxnTransaction] = transactions
        self.v3_and_below_producer_id: int = v3_and_below_producer_id
        self.v3_and_below_producer_epoch: int = v3_and_below_producer_epoch
        self.v3_and_below_topics: Sequence[AddPartitionsToTxnTopic] = v3_and_below_topics


class AddPartitionsToTxnPartitionResult(Message):
    __slots__ = (
        "partition_index",
        "partition_error_code",
    )
    FIRST_VERSION, LAST_VERSION, FIRST_FLEXIBLE_VERSION = 0, 5, 3
    FIELDS: ClassVar[tuple[FieldSpec, ...]] = (
        FieldSpec("partition_index", "int32"),
        FieldSpec("partition_error_code", "int16"),
    )

    def __init__(self, *, partition_index: int = 0, partition_error_code: int = 0) -> None:
        self.partition_index: int = partition_index
        self.partition_error_code: int = partition_error_code


class AddPartitionsToTxnTopicResult(Message):
    __slots__ = (
        "name",
        "results_by_partition",
    )
    FIRST_VERSION, LAST_VERSION, FIRST_FLEXIBLE_VERSION = 0, 5, 3
    FIELDS: ClassVar[tuple[FieldSpec, ...]] = (
        FieldSpec("name", "string"),
        FieldSpec("results_by_partition", "struct", is_array=True, item=AddPartitionsToTxnPartitionResult),
    )

    def __init__(self, *, name: str = "", results_by_partition: Sequence[AddPartitionsToTxnPartitionResult] = ()) -> None:
        self.name: str = name
        self.results_by_partition: Sequence[AddPartitionsToTxnPartitionResult] = results_by_partition


class AddPartitionsToTxnResult(Message):
    __slots__ = (
        "transactional_id",
        "topic_results",
    )
    FIRST_VERSION, LAST_VERSION, FIRST_FLEXIBLE_VERSION = 4, 5, 4
    FIELDS: ClassVar[tuple[FieldSpec, ...]] = (
        FieldSpec("transactional_id", "string", first_version=4),
        FieldSpec("topic_results", "struct", is_array=True, first_version=4, item=AddPartitionsToTxnTopicResult),
    )

    def __init__(self, *, transactional_id: str = "", topic_results: Sequence[AddPartitionsToTxnTopicResult] = ()) -> None:
        self.transactional_id: str = transactional_id
        self.topic_results: Sequence[AddPartitionsToTxnTopicResult] = topic_results


class AddPartitionsToTxnResponse(Message):
    __slots__ = (
        "throttle_time_ms",
        "results_by_topic_v3_and_below",
        "error_code",
        "results_by_transaction",
    )
    FIRST_VERSION, LAST_VERSION, FIRST_FLEXIBLE_VERSION = 0, 5, 3
    FIELDS: ClassVar[tuple[FieldSpec, ...]] = (
        FieldSpec("throttle_time_ms", "int32"),
        FieldSpec("results_by_topic_v3_and_below", "struct", is_array=True, last_version=3, item=AddPartitionsToTxnTopicResult),
        FieldSpec("error_code", "int16", first_version=4),
        FieldSpec("results_by_transaction", "struct", is_array=True, first_version=4, item=AddPartitionsToTxnResult),
    )

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        results_by_topic_v3_and_below: Sequence[AddPartitionsToTxnTopicResult] = (),
        error_code: int = 0,
        results_by_transaction: Sequence[AddPartitionsToTxnResult] = (),
    ) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        self.results_by_topic_v3_and_below: Sequence[AddPartitionsToTxnTopicResult] = results_by_topic_v3_and_below
        self.error_code: int = error_code
        self.results_by_transaction: Sequence[AddPartitionsToTxnResult] = results_by_transaction
