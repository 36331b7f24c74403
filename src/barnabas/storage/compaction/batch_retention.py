"""Decides the retention of a batch before its records are read: because of its transaction or its producer.

Owns the state of transactions while the batches of a log go by in order.

Rules
  1. Records of an aborted transaction are removed at once. Its entry in the index of aborted transactions stays while a batch
     of it exists, so that readers of that batch know of the abort.
  2. A marker stays while there are batches of its transaction. Then its batch gets a delete horizon (now +
     `delete.retention.ms`, KIP-534), and is removed after that: a reader in the middle of the transaction has this time to read
     its end.
  3. The last batch of each producer that the broker knows stays as a header without records, and with it the producer's last
     sequence: after a restart the broker must still detect a retried batch.
  4. The last batch of a group of segments stays as a header too. So the cleaned segment ends at the same offset as the
     segments that it replaces, and a start after a crash during the swap can identify the replaced segments (see swap.py).

Source: KIP-98, KIP-360, KIP-534. Kafka's cleaner has rule 4 for the last batch of a cleaning only.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import IntEnum

from barnabas.protocol.records.batch_header import BatchHeader
from barnabas.protocol.records.record import Record
from barnabas.storage.markers import parse_marker
from barnabas.storage.producer_state import CompletedTransaction, LastWrite


class BatchRetention(IntEnum):
    """The retention of one batch."""

    FILTER = 0  # each record is checked; a batch without remaining records is removed
    FILTER_KEEP_HEADER = 1  # each record is checked; the header always stays
    KEEP = 2  # unchanged
    KEEP_WITH_HORIZON = 3  # unchanged, but with a delete horizon
    HEADER_ONLY = 4  # all records are removed
    DROP = 5


class TransactionFilter:
    """Follows the transactions of a log, batch by batch.

    Args:
        aborted: the aborted transactions that overlap with the read part of the log, in any order.
    """

    def __init__(self, aborted: Iterable[CompletedTransaction]) -> None:
        self._waiting = sorted(aborted, key=lambda entry: entry.first_offset, reverse=True)
        self._aborted: dict[int, CompletedTransaction] = {}  # producer id -> its transaction at the current offset
        self._aborted_seen: set[int] = set()  # producers whose aborted transaction had a batch so far
        self._committed_seen: set[int] = set()  # producers whose other transaction had a batch so far
        self.kept_entries: list[CompletedTransaction] = []  # aborted transactions that still have batches, ordered by marker

    def is_aborted(self, header: BatchHeader) -> bool:
        """Whether a data batch belongs to an aborted transaction."""
        self._begin_up_to(header.last_offset)
        if not header.is_transactional:
            return False
        entry = self._aborted.get(header.producer_id)
        if entry is not None and header.base_offset <= entry.last_offset:
            self._aborted_seen.add(header.producer_id)
            return True
        self._committed_seen.add(header.producer_id)
        return False

    def is_useless(self, header: BatchHeader, marker: Record | None) -> bool:
        """Whether a control batch ends a transaction without remaining batches; always true if it has no record."""
        self._begin_up_to(header.last_offset)
        if marker is None:
            return True
        decision = parse_marker(marker)
        if decision is None:
            return False
        is_abort, _ = decision
        if not is_abort:
            seen = header.producer_id in self._committed_seen
            self._committed_seen.discard(header.producer_id)
            return not seen
        entry = self._aborted.pop(header.producer_id, None)
        seen = header.producer_id in self._aborted_seen
        self._aborted_seen.discard(header.producer_id)
        if entry is not None and seen:
            self.kept_entries.append(entry)
        return not (entry is not None and seen)

    def _begin_up_to(self, offset: int) -> None:
        while self._waiting and self._waiting[-1].first_offset <= offset:
            entry = self._waiting.pop()
            self._aborted[entry.producer_id] = entry
            self._aborted_seen.discard(entry.producer_id)


class BatchFilter:
    """Decides the retention of each batch of a log.

    Args:
        producers: the producers that the broker knows.
        expired_ms: delete horizons up to this time have passed.
    """

    def __init__(self, aborted: Iterable[CompletedTransaction], producers: Mapping[int, LastWrite], expired_ms: int) -> None:
        self.transactions = TransactionFilter(aborted)
        self._producers = producers
        self._expired_ms = expired_ms

    def retention(self, header: BatchHeader, marker: Record | None, *, is_last: bool) -> BatchRetention:
        """The retention of the batch.

        Args:
            marker: the record of a control batch, None if it has none.
            is_last: the batch is the last one of its group of segments.
        """
        keep_header = is_last or self._is_last_of_producer(header)
        if not header.is_control:
            if self.transactions.is_aborted(header):
                return BatchRetention.HEADER_ONLY if keep_header else BatchRetention.DROP
            return BatchRetention.FILTER_KEEP_HEADER if keep_header else BatchRetention.FILTER
        useless = self.transactions.is_useless(header, marker)
        if marker is None:
            return BatchRetention.HEADER_ONLY if keep_header else BatchRetention.DROP
        if not useless:
            return BatchRetention.KEEP
        horizon = header.delete_horizon_ms
        if horizon is None:
            return BatchRetention.KEEP_WITH_HORIZON
        if horizon > self._expired_ms:
            return BatchRetention.KEEP
        return BatchRetention.HEADER_ONLY if keep_header else BatchRetention.DROP

    def _is_last_of_producer(self, header: BatchHeader) -> bool:
        known = self._producers.get(header.producer_id)
        if header.producer_id < 0 or known is None:
            return False
        if known.last_offset >= 0:
            return header.last_offset == known.last_offset
        return header.is_control and header.producer_epoch == known.epoch
