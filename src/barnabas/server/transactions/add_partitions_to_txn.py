"""How a partition joins a transaction: before the append of the first batch, the broker asks the transaction's coordinator (KIP-890).

A client of transactions version 2 names the partition only by its batch, so the coordinator adds the partition. A client of version 1 has
added it before. Then the broker asks the coordinator whether this is so, unless `transaction.partition.verification.enable` is off.
Otherwise a batch that arrives after the end of its transaction would open another one without an end.

Rules
  1. While the coordinator is asked, the broker does not read from the connection, because later requests must be handled after this one.
  2. If a marker is written in the meantime, it may be the end of the transaction that the coordinator has just confirmed. So the broker
     asks again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Protocol

from barnabas.coordination.transactions.transaction import Owner, TopicPartition
from barnabas.errors import BarnabasError, ErrorCode, KafkaError
from barnabas.protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)
from barnabas.protocol.partitions import by_topic
from barnabas.server.cluster.peers import ClientError, Peers, peers_of
from barnabas.server.services import report_later

if TYPE_CHECKING:
    from barnabas.coordination.transactions.coordinator import TransactionCoordinator
    from barnabas.replication.leader_partition import LeaderPartition
    from barnabas.server.services import Services

PAUSE = "transaction"
MOST_ATTEMPTS = 5
ADDING_VERSION = 2  # of transactions, for clients that leave the adding to the broker
# If the coordinator cannot answer now, the client is told to retry.
UNDECIDED = frozenset(
    {
        ErrorCode.CONCURRENT_TRANSACTIONS,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.NETWORK_EXCEPTION,
    }
)


class Coordinators(Protocol):
    """The parts of the coordinators that this module uses."""

    transactions: TransactionCoordinator

    def leader_of_transaction(self, transactional_id: str) -> int | None: ...


class AddPartitionsToTxn:
    """Asks the coordinators for one broker."""

    def __init__(self, services: Services, coordinators: Coordinators) -> None:
        self._services = services
        self._coordinators = coordinators
        self._transactions = coordinators.transactions
        self._peers: Peers | None = None
        self._held: set[asyncio.Task[None]] = set()

    async def close(self) -> None:
        """Stop all work. Held requests get no answer; their connections are closed."""
        for task in self._held:
            task.cancel()
        await asyncio.gather(*self._held, return_exceptions=True)
        if self._peers is not None:
            await self._peers.close()

    def hold(self, work: Coroutine[Any, Any, None]) -> None:
        """Run the work that ends the wait of a held request."""
        task = self._services.loop.create_task(work)
        self._held.add(task)
        task.add_done_callback(self._held.discard)
        report_later(self._services.faults, task)

    async def join(
        self, transactional_id: str, owner: Owner, partitions: Iterable[LeaderPartition], *, adds: bool, knows_abortable: bool
    ) -> dict[TopicPartition, ErrorCode]:
        """The error of each partition for writes in the transaction of `owner`, or NONE.

        Args:
            adds: the coordinator adds missing partitions; otherwise the client must have added them.
            knows_abortable: the client knows TRANSACTION_ABORTABLE; otherwise it gets INVALID_TXN_STATE.
        """
        here = list(partitions)
        codes: Mapping[TopicPartition, ErrorCode] = {}
        for _ in range(MOST_ATTEMPTS):
            ends = [partition.log.reader.markers_of(owner.producer_id) for partition in here]
            codes = await self._ask(transactional_id, owner, [(p.topic, p.index) for p in here], adds=adds)
            if ends == [partition.log.reader.markers_of(owner.producer_id) for partition in here]:
                break
        else:
            codes = {(p.topic, p.index): ErrorCode.CONCURRENT_TRANSACTIONS for p in here}
        return {each: _told(code, adds=adds, knows_abortable=knows_abortable) for each, code in codes.items()}

    def join_at_once(
        self, transactional_id: str, owner: Owner, partitions: Iterable[LeaderPartition], *, adds: bool, knows_abortable: bool
    ) -> dict[TopicPartition, ErrorCode] | None:
        """The same as `join`, if the coordinator is here and need not wait; otherwise None, and the caller must await `join`."""
        transactions = self._transactions
        if self._coordinators.leader_of_transaction(transactional_id) != self._services.config.broker_id:
            return None
        here = [(p.topic, p.index) for p in partitions]
        codes: Mapping[TopicPartition, ErrorCode] | None
        try:
            if not adds:
                codes = transactions.verify_at_once(transactional_id, owner, here)
            else:
                is_committed = transactions.add_at_once(transactional_id, owner, here, ADDING_VERSION)
                codes = dict.fromkeys(here, ErrorCode.NONE) if is_committed else None
        except KafkaError as error:
            if adds and error.code is ErrorCode.CONCURRENT_TRANSACTIONS:
                return None
            codes = dict.fromkeys(here, error.code)
        except BarnabasError:  # as in `_ask`
            codes = dict.fromkeys(here, ErrorCode.UNKNOWN_SERVER_ERROR)
        if codes is None:
            return None
        return {each: _told(code, adds=adds, knows_abortable=knows_abortable) for each, code in codes.items()}

    def is_joined_at_once(self, transactional_id: str, owner: Owner, partition: LeaderPartition, *, adds: bool) -> bool:
        """Whether the coordinator is here, need not wait, and allows writes to one partition. For the reason of a False, call `join`."""
        if not adds:
            return self._transactions.holds_at_once(transactional_id, owner, (partition.topic, partition.index))
        told = self.join_at_once(transactional_id, owner, (partition,), adds=adds, knows_abortable=True)
        return told is not None and not any(told.values())

    async def _ask(
        self, transactional_id: str, owner: Owner, partitions: list[TopicPartition], *, adds: bool
    ) -> Mapping[TopicPartition, ErrorCode]:
        leader = self._coordinators.leader_of_transaction(transactional_id)
        try:
            if leader == self._services.config.broker_id:
                if not adds:
                    return await self._transactions.verify(transactional_id, owner, partitions)
                await self._transactions.add(transactional_id, owner, partitions, ADDING_VERSION)
                return dict.fromkeys(partitions, ErrorCode.NONE)
            if leader is None:
                raise KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE)
            return await self._ask_elsewhere(leader, transactional_id, owner, partitions, adds=adds)
        except KafkaError as error:
            return dict.fromkeys(partitions, error.code)
        except ClientError:
            return dict.fromkeys(partitions, ErrorCode.NETWORK_EXCEPTION)
        except BarnabasError:  # a broken invariant of the coordinator, which has logged it
            return dict.fromkeys(partitions, ErrorCode.UNKNOWN_SERVER_ERROR)

    async def _ask_elsewhere(
        self, leader: int, transactional_id: str, owner: Owner, partitions: list[TopicPartition], *, adds: bool
    ) -> Mapping[TopicPartition, ErrorCode]:
        if self._peers is None:
            self._peers = peers_of(lambda: self._services.metadata, self._services, "transactions")
        asked = AddPartitionsToTxnTransaction(
            transactional_id=transactional_id,
            producer_id=owner.producer_id,
            producer_epoch=owner.epoch,
            verify_only=not adds,
            topics=[AddPartitionsToTxnTopic(name=name, partitions=indexes) for name, indexes in by_topic(partitions).items()],
        )
        response = await self._peers.send(leader, AddPartitionsToTxnRequest(transactions=[asked]))
        if response.error_code:
            return dict.fromkeys(partitions, ErrorCode(response.error_code))
        return {
            (topic.name, each.partition_index): ErrorCode(each.partition_error_code)
            for told in response.results_by_transaction
            for topic in told.topic_results
            for each in topic.results_by_partition
        }


def _told(code: ErrorCode, *, adds: bool, knows_abortable: bool) -> ErrorCode:
    if code is ErrorCode.TRANSACTION_ABORTABLE and not knows_abortable:
        return ErrorCode.INVALID_TXN_STATE
    if code is ErrorCode.PRODUCER_FENCED:
        return ErrorCode.INVALID_PRODUCER_EPOCH  # the log tells producers this error, and so does Kafka here
    if code not in UNDECIDED or (adds and code is ErrorCode.CONCURRENT_TRANSACTIONS):
        return code
    return ErrorCode.NOT_ENOUGH_REPLICAS
