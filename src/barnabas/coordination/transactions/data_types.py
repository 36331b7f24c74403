"""The requests, responses, events and counters of a shard of transactional ids."""

from __future__ import annotations

from typing import Protocol

from msgspec import Struct

from barnabas.coordination.result import Written
from barnabas.coordination.transactions.markers import Marker
from barnabas.coordination.transactions.transaction import NOBODY, Owner, Transaction


class TransactionConfig(Protocol):
    """The broker settings of this coordinator, named as Kafka's keys."""

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
        expected: the requesting producer, if it had the id before; else NOBODY.
        two_phase: an external coordinator decides the transactions of this owner, so they never time out (KIP-939).
        keep_prepared: keep an open transaction, so that the next owner ends it.
    """

    transactional_id: str
    timeout_ms: int
    expected: Owner = NOBODY
    two_phase: bool = False
    keep_prepared: bool = False


class Initialised(Struct, frozen=True):
    """The owner of the id, and the owner of the kept open transaction."""

    owner: Owner
    ongoing: Owner = NOBODY


class Decided(Struct, Written, frozen=True):
    """The written record decides the end of a transaction; `is_late` means that it timed out."""

    transaction: Transaction
    is_late: bool = False


class Completing(Struct, Written, frozen=True):
    """The written records end transactions."""

    markers: tuple[Marker, ...]


class EndCounts(Struct):
    """Counts of ended transactions by result; aborted includes timed out. Several coordinators may share one object."""

    committed: int = 0
    aborted: int = 0
    timed_out: int = 0
