"""The records of `__transaction_state`, byte for byte as Kafka 4.3 writes them.

A key is a 16-bit 0 and the transactional id; a value is a 16-bit version and a message of that version. Version 1 has the
fields of transactions of version 2; version 0 can be read.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from struct import Struct
from typing import ClassVar

from barnabas.coordination.transactions.transaction import NO_EPOCH, NO_PRODUCER_ID, State, TopicPartition, Transaction
from barnabas.coordination.version_prefix import NUMBER_BYTES, Record, leading_number, version_of
from barnabas.errors import MalformedMessage
from barnabas.protocol.base_message import OPEN_END, FieldSpec, Message
from barnabas.protocol.codec import decode, write_varint, writer_of
from barnabas.protocol.partitions import by_topic

KEY_VERSION, VALUE_VERSION = 0, 1
_KEY = Struct(">hh")  # version, length of the transactional id
_HEAD = Struct(">hqhib")  # version, producer id, producer epoch, timeout in ms, state
_TIMES = Struct(">qq")  # times of the last update and of the start
_NULL_ARRAY = b"\0"
_TAGGED_ID, _TAGGED_SHORT = Struct(">BBq"), Struct(">BBh")  # tag, size of the number in bytes, number


class TransactionLogKey(Message):
    """Names a transactional id."""

    __slots__ = ("transactional_id",)
    FIRST_VERSION, LAST_VERSION, FIRST_FLEXIBLE_VERSION = 0, 0, OPEN_END
    FIELDS: ClassVar[tuple[FieldSpec, ...]] = (FieldSpec("transactional_id", "string"),)

    def __init__(self, *, transactional_id: str = "") -> None:
        self.transactional_id = transactional_id


class TransactionPartitions(Message):
    """Partitions of one topic."""

    __slots__ = ("partition_ids", "topic")
    FIRST_VERSION, LAST_VERSION, FIRST_FLEXIBLE_VERSION = 0, 1, 1
    FIELDS: ClassVar[tuple[FieldSpec, ...]] = (
        FieldSpec("topic", "string"),
        FieldSpec("partition_ids", "int32", is_array=True),
    )

    def __init__(self, *, topic: str = "", partition_ids: Sequence[int] = ()) -> None:
        self.topic = topic
        self.partition_ids = partition_ids


class TransactionLogValue(Message):
    """One transactional id; `Transaction` explains the fields."""

    __slots__ = (
        "client_transaction_version",
        "next_producer_epoch",
        "next_producer_id",
        "previous_producer_id",
        "producer_epoch",
        "producer_id",
        "transaction_last_update_timestamp_ms",
        "transaction_partitions",
        "transaction_start_timestamp_ms",
        "transaction_status",
        "transaction_timeout_ms",
    )
    FIRST_VERSION, LAST_VERSION, FIRST_FLEXIBLE_VERSION = 0, 1, 1
    FIELDS: ClassVar[tuple[FieldSpec, ...]] = (
        FieldSpec("producer_id", "int64"),
        FieldSpec("previous_producer_id", "int64", first_version=1, tag=0),
        FieldSpec("next_producer_id", "int64", first_version=1, tag=1),
        FieldSpec("producer_epoch", "int16"),
        FieldSpec("next_producer_epoch", "int16", first_version=1, tag=3),
        FieldSpec("transaction_timeout_ms", "int32"),
        FieldSpec("transaction_status", "int8"),
        FieldSpec("transaction_partitions", "struct", is_array=True, first_nullable_version=0, item=TransactionPartitions),
        FieldSpec("transaction_last_update_timestamp_ms", "int64"),
        FieldSpec("transaction_start_timestamp_ms", "int64"),
        FieldSpec("client_transaction_version", "int16", first_version=1, tag=2),
    )

    def __init__(
        self,
        *,
        producer_id: int = 0,
        previous_producer_id: int = NO_PRODUCER_ID,
        next_producer_id: int = NO_PRODUCER_ID,
        producer_epoch: int = 0,
        next_producer_epoch: int = NO_EPOCH,
        transaction_timeout_ms: int = 0,
        transaction_status: int = 0,
        transaction_partitions: Sequence[TransactionPartitions] | None = (),
        transaction_last_update_timestamp_ms: int = 0,
        transaction_start_timestamp_ms: int = 0,
        client_transaction_version: int = 0,
    ) -> None:
        self.producer_id = producer_id
        self.previous_producer_id = previous_producer_id
        self.next_producer_id = next_producer_id
        self.producer_epoch = producer_epoch
        self.next_producer_epoch = next_producer_epoch
        self.transaction_timeout_ms = transaction_timeout_ms
        self.transaction_status = transaction_status
        self.transaction_partitions = transaction_partitions
        self.transaction_last_update_timestamp_ms = transaction_last_update_timestamp_ms
        self.transaction_start_timestamp_ms = transaction_start_timestamp_ms
        self.client_transaction_version = client_transaction_version


def transaction_record(transaction: Transaction) -> Record:
    """The record of a transactional id's state: a `TransactionLogValue`, encoded by hand because each transaction writes three
    such records."""
    value = b"".join(
        (
            _HEAD.pack(
                VALUE_VERSION,
                transaction.producer_id,
                transaction.producer_epoch,
                transaction.timeout_ms,
                transaction.state,
            ),
            _NULL_ARRAY if transaction.state is State.EMPTY else _array_of(transaction.partitions),
            _TIMES.pack(transaction.last_update_ms, transaction.start_ms),
            _tagged(transaction),
        )
    )
    return _key_of(transaction.transactional_id), value


@lru_cache(maxsize=64)  # the record of the end names the same partitions as the record of the beginning
def _array_of(partitions: frozenset[TopicPartition]) -> bytes:
    topics = by_topic(sorted(partitions))
    out = bytearray()
    write_varint(len(topics) + 1, out)
    write = writer_of(TransactionPartitions, VALUE_VERSION)
    for topic, numbers in topics.items():
        write(TransactionPartitions(topic=topic, partition_ids=numbers), out)
    return bytes(out)


def _tagged(transaction: Transaction) -> bytes:
    """The tagged fields, without those that have their default."""
    fields = []
    if transaction.previous_producer_id != NO_PRODUCER_ID:
        fields.append(_TAGGED_ID.pack(0, _TAGGED_ID.size - 2, transaction.previous_producer_id))
    if transaction.next_producer_id != NO_PRODUCER_ID:
        fields.append(_TAGGED_ID.pack(1, _TAGGED_ID.size - 2, transaction.next_producer_id))
    if transaction.client_version:
        fields.append(_TAGGED_SHORT.pack(2, _TAGGED_SHORT.size - 2, transaction.client_version))
    if transaction.next_producer_epoch != NO_EPOCH:
        fields.append(_TAGGED_SHORT.pack(3, _TAGGED_SHORT.size - 2, transaction.next_producer_epoch))
    return b"".join((bytes((len(fields),)), *fields))


def tombstone(transactional_id: str) -> Record:
    """The tombstone of a transactional id."""
    return _key_of(transactional_id), None


def read_record(record: Record) -> tuple[str, Transaction | None] | None:
    """The transactional id and its state (None for a tombstone); None for any other record.

    Raises:
        MalformedMessage: bytes or a version that Kafka never wrote.
    """
    key, value = record
    if leading_number(key, "transaction key") != KEY_VERSION:
        return None
    name = decode(TransactionLogKey, KEY_VERSION, key, NUMBER_BYTES).transactional_id
    if value is None:
        return name, None
    version = version_of(value, "transaction value", VALUE_VERSION)
    return name, _transaction_of(name, decode(TransactionLogValue, version, value, NUMBER_BYTES))


def _key_of(transactional_id: str) -> bytes:
    name = transactional_id.encode()
    return _KEY.pack(KEY_VERSION, len(name)) + name


def _transaction_of(name: str, value: TransactionLogValue) -> Transaction:
    try:
        state = State(value.transaction_status)
    except ValueError:
        raise MalformedMessage("transaction value", value.transaction_status, "an unknown state") from None
    partitions = ((each.topic, index) for each in value.transaction_partitions or () for index in each.partition_ids)
    return Transaction(
        name,
        producer_id=value.producer_id,
        producer_epoch=value.producer_epoch,
        previous_producer_id=value.previous_producer_id,
        next_producer_id=value.next_producer_id,
        next_producer_epoch=value.next_producer_epoch,
        timeout_ms=value.transaction_timeout_ms,
        state=state,
        partitions=frozenset(partitions),
        start_ms=value.transaction_start_timestamp_ms,
        last_update_ms=value.transaction_last_update_timestamp_ms,
        client_version=value.client_transaction_version,
    )
