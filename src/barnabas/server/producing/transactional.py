"""Produce requests of transactions: held until their partitions have joined.

Once a partition has a batch of the transaction, later batches are handled like all others: the log knows that the transaction is open.

Clients of transactions version 2 count sequences from 0 in each transaction. So if a partition does not know the producer, it refuses a
batch with a later sequence. Otherwise it could not take the earlier batch any more, which was refused and will come again.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

from barnabas.coordination.transactions.transaction import Owner, TopicPartition
from barnabas.errors import ErrorCode, KafkaError
from barnabas.protocol.produce import FIRST_TOPIC_ID_VERSION, ProduceHead, read_produce
from barnabas.protocol.records.batch_header import is_transactional, producer_of, read_header
from barnabas.server.producing.holding import HoldingBroker, hold_back
from barnabas.server.transactions.add_partitions_to_txn import PAUSE
from barnabas.tuples import new_tuple

if TYPE_CHECKING:
    from barnabas.config.broker import BrokerConfig
    from barnabas.replication.hosted_partitions import HostedPartitions
    from barnabas.replication.leader_partition import LeaderPartition
    from barnabas.replication.partition import Partition
    from barnabas.server.connection import Connection

Joined = dict[TopicPartition, ErrorCode]
GoOn = Callable[[memoryview, ProduceHead, Joined], None]
NOT_IN_IT = "The partition is not in the transaction."
NOT_THE_FIRST = "The producer's first batch for this partition has not arrived."
FIRST_ABORTABLE_VERSION = 11  # the first with TRANSACTION_ABORTABLE
FIRST_ADDING_VERSION = 12  # from it on, clients have transactions version 2 and leave the adding to the broker (KIP-890)


class TransactionalBroker(HoldingBroker, Protocol):
    """The parts of the broker that this module uses."""

    config: BrokerConfig
    partitions: HostedPartitions


def hold(
    broker: TransactionalBroker,
    connection: Connection,
    frame: memoryview,
    body: int,
    version: int,
    head: ProduceHead,
    go_on: GoOn,
) -> bool:
    """Ask the coordinator first, if a partition is not in the transaction yet. Returns False if no partition must join.

    Args:
        go_on: called with the frame, the decoded request and the coordinator's answers; at once if the coordinator need not be asked.
    """
    joining, owners, too_early = _to_join(broker, version, head)
    if head.transactional_id is None or not (joining or too_early):
        return False
    refused = {(each.topic, each.index): ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER for each in too_early}
    # a transactional id has one producer; the coordinator's answer about it must not count for the others
    if len(owners) > 1:
        go_on(frame, head, {(each.topic, each.index): ErrorCode.INVALID_PRODUCER_ID_MAPPING for each in joining} | refused)
        return True
    if not joining:
        go_on(frame, head, refused)
        return True
    (owner,) = owners
    adds, knows_abortable = version >= FIRST_ADDING_VERSION, version >= FIRST_ABORTABLE_VERSION
    if not adds and not broker.config.transaction_partition_verification_enable:
        go_on(frame, head, {(each.topic, each.index): ErrorCode.NONE for each in joining})
        return True
    told = broker.add_partitions_to_txn.join_at_once(
        head.transactional_id, owner, joining, adds=adds, knows_abortable=knows_abortable
    )
    if told is not None:
        go_on(frame, head, told | refused)
        return True
    held = memoryview(bytearray(frame))
    name = head.transactional_id

    async def join() -> Callable[[], None]:
        joined = await broker.add_partitions_to_txn.join(name, owner, joining, adds=adds, knows_abortable=knows_abortable)
        return lambda: go_on(held, read_produce(held, body, version), joined | refused)

    hold_back(broker, connection, PAUSE, len(held), join)
    return True


def is_joined_at_once(
    broker: TransactionalBroker, partition: LeaderPartition, records: memoryview, transactional_id: str | None, version: int
) -> bool:
    """Whether the partition of a batch is in its transaction, or joins it without a wait for the coordinator.

    Also False for a batch that must be refused: `hold` reports the error.
    """
    producer_id, epoch, sequence = producer_of(records)
    log = partition.log
    if log.reader.is_in_transaction(producer_id, epoch):
        return True
    if transactional_id is None:
        return False
    adds = version >= FIRST_ADDING_VERSION
    if adds and sequence > 0 and not log.reader.has_producer(producer_id):
        return False
    if not adds and not broker.config.transaction_partition_verification_enable:
        return True
    owner = new_tuple(Owner, (producer_id, epoch))
    return broker.add_partitions_to_txn.is_joined_at_once(transactional_id, owner, partition, adds=adds)


def _to_join(
    broker: TransactionalBroker, version: int, head: ProduceHead
) -> tuple[list[LeaderPartition], set[Owner], list[LeaderPartition]]:
    """The partitions that are not in the transaction yet, the owners of their batches, and the partitions that lack an earlier batch."""
    find = broker.partitions.by_id_bytes if version >= FIRST_TOPIC_ID_VERSION else broker.partitions.by_name_bytes
    joining: list[LeaderPartition] = []
    owners: set[Owner] = set()
    too_early: list[LeaderPartition] = []
    for key, records in head.topics:
        partitions = find(key) or {}
        for each in records:
            partition = partitions.get(each.partition)
            if partition is None or not partition.is_leader or each.records is None:
                continue
            if not is_transactional(each.records):
                continue
            header = read_header(each.records)
            if partition.log.reader.is_in_transaction(header.producer_id, header.producer_epoch):
                continue
            if (
                version >= FIRST_ADDING_VERSION
                and header.base_sequence > 0
                and not partition.log.reader.has_producer(header.producer_id)
            ):
                too_early.append(partition)
                continue
            joining.append(partition)
            owners.add(Owner(header.producer_id, header.producer_epoch))
    return joining, owners, too_early


def why_not_in_transaction(partition: Partition, records: memoryview, head: ProduceHead, joined: Joined) -> KafkaError | None:
    """The reason why a batch of a transaction may not be appended; None if its partition is in the transaction.

    The error is TRANSACTIONAL_ID_AUTHORIZATION_FAILED without a transactional id, else the coordinator's answer.
    """
    if head.transactional_id is None:
        return KafkaError(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED, "A transactional batch needs a transactional id.")
    if not partition.is_leader:
        return KafkaError(partition.refusal)
    code = joined.get((partition.topic, partition.index))
    if code is not None:
        reason = NOT_THE_FIRST if code is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER else NOT_IN_IT
        return KafkaError(code, reason) if code else None
    header = read_header(records)
    if partition.log.reader.is_in_transaction(header.producer_id, header.producer_epoch):
        return None
    return KafkaError(ErrorCode.INVALID_TXN_STATE, NOT_IN_IT)
