"""What a shard of transactional ids is asked with, answers with and is told of, and what it counts."""

from __future__ import annotations

from typing import Protocol

from msgspec import Struct

from barnabas.coordination.result import Written
from barnabas.coordination.transactions.markers import Marker
from barnabas.coordination.transactions.transaction import NOBODY, Owner, Transaction


class TransactionConfig(Protocol):
    """The broker settings that this coordinator obeys, named as Kafka's keys."""

    @property
    def add_partitions_to_txn_retry_backoff_max_ms(self) -> int: ...
    @property
    def request_timeout_ms(self) -> int: ...
    @property
    def transaction_max_timeout_ms(self) -> int: ...
    @property
    def transaction_two_phase_commit_enable(self) -> bool: ...
    @property
    def transactional_id_expiration_ms(self) -> int: ...
    @property
    def transaction_remove_expired_transaction_cleanup_interval_ms(self) -> int: ...


class InitRequest(Struct, frozen=True):
    """InitProducerId for a transactional id.

    Args:
        expected: who asks, where it had the id before; else NOBODY.
        two_phase: somebody else decides the transactions of this owner, so that they never time out (KIP-939).
        keep_prepared: leave an open transaction as it is, to be ended by the next owner.
    """

    transactional_id: str
    timeout_ms: int
    expected: Owner = NOBODY
    two_phase: bool = False
    keep_prepared: bool = False


class Initialised(Struct, frozen=True):
    """The owner of the id, and whose transaction is open and was kept."""

    owner: Owner
    ongoing: Owner = NOBODY


class Decided(Struct, Written, frozen=True):
    """The end of a transaction was decided by the record that was written; `is_late`: because it took too long."""

    transaction: Transaction
    is_late: bool = False


class Completing(Struct, Written, frozen=True):
    """Transactions were ended by the records that were written."""

    markers: tuple[Marker, ...]


class EndCounts(Struct):
    """How transactions were ended, as far as decided by coordinators that share this; the timed out ones are among the aborted."""

    committed: int = 0
    aborted: int = 0
    timed_out: int = 0
