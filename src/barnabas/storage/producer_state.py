"""A partition's state of its idempotent and transactional producers.

Owns, for each producer id, its epoch and the last five batches, and the open transactions. With it the leader distinguishes a
retry from a gap, and gives readers the start of the first undecided transaction.

Rules
  1. `check` changes nothing; `update` is called once the batch is in the file. The state is a function of the batches in the log, so it
     can be rebuilt from a snapshot and the batches after it.
  2. A retry of one of the last five batches gets the offset of the first append; an older batch is out of order.
  3. An unknown producer may begin at any sequence: its records may have been deleted (KIP-360).
  4. An entry with an open transaction never expires.
  5. A batch that repeats a batch of an ended transaction gets UNKNOWN_PRODUCER_ID. No client waits for its offset any more. Instead the
     client has reused the sequence numbers of an unanswered batch, dropped by an abort, for other records (librdkafka does so). Kafka
     treats these as a retry, and they are lost in a committed transaction. After this error librdkafka aborts and takes another epoch;
     other suitable errors are fatal for it.

Source: KIP-98 (idempotence and transactions), KIP-360, KIP-447. Ugly: a marker has its decision in a record, so `update_marker` also
gets the content of that record.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from barnabas.error_codes import ErrorCode
from barnabas.errors import KafkaError
from barnabas.protocol.records.batch_header import (
    CONTROL_BIT,
    MAX_SEQUENCE,
    NO_PRODUCER_EPOCH,
    NO_SEQUENCE,
    TRANSACTIONAL_BIT,
    BatchHeader,
)
from barnabas.storage.markers import Ending
from barnabas.tuples import new_tuple

KEPT_BATCHES = 5  # an idempotent client has at most 5 batches in flight
LOOKED_AT_AT_ONCE = 5000  # producers per part; takes 1 ms
NO_COORDINATOR_EPOCH = -1
NO_OFFSET = -1


class AppendedBatch(NamedTuple):
    """One of the last batches of a producer."""

    first_sequence: int
    last_sequence: int
    last_offset: int
    offset_delta: int
    timestamp: int

    @property
    def first_offset(self) -> int:
        return self.last_offset - self.offset_delta


class ProducerEntry(NamedTuple):
    """One producer; `transaction_first_offset` is NO_OFFSET while no transaction is open. `batches` are the last ones, oldest first.

    An entry never changes: each batch makes a new one, so that a thread can write the state of one moment.
    """

    producer_id: int
    epoch: int = NO_PRODUCER_EPOCH
    coordinator_epoch: int = NO_COORDINATOR_EPOCH
    last_timestamp: int = -1
    transaction_first_offset: int = NO_OFFSET
    # Of the open transaction's first batch; not in the snapshot file, so -1 for an entry from there.
    transaction_first_timestamp: int = -1
    markers: int = 0  # appended since the producer became known; not in the snapshot file
    batches: tuple[AppendedBatch, ...] = ()

    @property
    def last_sequence(self) -> int:
        return self.batches[-1].last_sequence if self.batches else NO_SEQUENCE

    @property
    def last_offset(self) -> int:
        return self.batches[-1].last_offset if self.batches else NO_OFFSET


class ProducerDescription(NamedTuple):
    """A producer as DescribeProducers shows it; `current_txn_start_offset` is -1 without an open transaction."""

    producer_id: int
    epoch: int
    last_sequence: int
    last_timestamp: int
    coordinator_epoch: int
    current_txn_start_offset: int


class CompletedTransaction(NamedTuple):
    """A transaction that a marker ended: offsets [first_offset, last_offset], the last one being the marker's."""

    producer_id: int
    first_offset: int
    last_offset: int
    aborted: bool
    last_stable_offset: int  # at the time of the marker


class LastWrite(NamedTuple):
    """The facts about a producer that compaction must preserve: its epoch, and the last offset of its last data batch (-1: unknown)."""

    epoch: int
    last_offset: int


class ProducerStates:
    """The producers of one partition."""

    def __init__(self, entries: Iterable[ProducerEntry] = ()) -> None:
        self._entries = {entry.producer_id: entry for entry in entries}
        # First offset -> producer id of open transactions, ordered by first offset.
        self._open = {
            entry.transaction_first_offset: entry.producer_id
            for entry in sorted(self._entries.values(), key=lambda entry: entry.transaction_first_offset)
            if entry.transaction_first_offset != NO_OFFSET
        }
        # First -> last offset of ended transactions that the high watermark has not passed.
        self._unreplicated: dict[int, int] = {}

    def __len__(self) -> int:
        return len(self._entries)

    def __iter__(self) -> Iterator[ProducerEntry]:
        return iter(self._entries.values())

    def last_writes(self) -> dict[int, LastWrite]:
        """The last write of each producer."""
        return {entry.producer_id: LastWrite(entry.epoch, entry.last_offset) for entry in self}

    def get(self, producer_id: int) -> ProducerEntry | None:
        return self._entries.get(producer_id)

    def check(self, header: BatchHeader, *, from_client: bool) -> AppendedBatch | None:
        """Check a batch before its append; returns None if it may be appended, or the batch that it repeats.

        Raises:
            KafkaError: INVALID_PRODUCER_EPOCH, OUT_OF_ORDER_SEQUENCE_NUMBER, UNKNOWN_PRODUCER_ID (rule 5), INVALID_TXN_STATE (a batch
                outside of the open transaction).
        """
        entry = self._entries.get(header.producer_id)
        if entry is None:
            return None
        if header.producer_epoch == entry.epoch:
            if not from_client or header.attributes & CONTROL_BIT:
                return None
            first = header.base_sequence
            if entry.batches and first == (entry.batches[-1].last_sequence + 1) & MAX_SEQUENCE:
                _check_inside(header, entry)
                return None
            last = header.last_sequence
            for batch in entry.batches:
                if batch.first_sequence == first and batch.last_sequence == last:
                    _check_repeated(header, entry, batch)
                    return batch
            if not entry.batches and first == 0:
                _check_inside(header, entry)
                return None
            raise _out_of_order(header, entry)
        if header.producer_epoch < entry.epoch:
            raise KafkaError(
                ErrorCode.INVALID_PRODUCER_EPOCH,
                f"Epoch of producer {header.producer_id} is {header.producer_epoch}, "
                f"which is smaller than the last seen epoch {entry.epoch}",
            )
        if from_client and not header.attributes & CONTROL_BIT and header.base_sequence != 0 and entry.epoch != NO_PRODUCER_EPOCH:
            raise _out_of_order(header, entry)
        if from_client:
            _check_inside(header, entry)
        return None

    def check_marker(self, header: BatchHeader, coordinator_epoch: int) -> None:
        """Refuse the marker of a transaction coordinator that was replaced."""
        entry = self._entries.get(header.producer_id)
        if entry is not None and coordinator_epoch < entry.coordinator_epoch:
            raise KafkaError(ErrorCode.TRANSACTION_COORDINATOR_FENCED, f"Coordinator epoch {coordinator_epoch} is out of date")

    def update(self, header: BatchHeader, base_offset: int) -> None:
        """Record that a data batch of a producer was appended at `base_offset`."""
        entry = self._entries.get(header.producer_id)
        if entry is None or entry.epoch != header.producer_epoch:
            entry = self._entry_of(header)
        producer_id, epoch, coordinator_epoch, _, first_offset, first_timestamp, markers, batches = entry
        delta, timestamp = header.last_offset_delta, header.max_timestamp
        batch = new_tuple(AppendedBatch, (header.base_sequence, header.last_sequence, base_offset + delta, delta, timestamp))
        if header.attributes & TRANSACTIONAL_BIT and first_offset == NO_OFFSET:
            first_offset, first_timestamp = base_offset, timestamp
            self._open[base_offset] = producer_id
        self._entries[producer_id] = new_tuple(
            ProducerEntry,
            (
                producer_id,
                epoch,
                coordinator_epoch,
                timestamp,
                first_offset,
                first_timestamp,
                markers,
                (*batches[1 - KEPT_BATCHES :], batch),
            ),
        )

    def update_marker(self, header: BatchHeader, ending: Ending, offset: int) -> CompletedTransaction | None:
        """Record that a marker was appended at `offset`; returns the transaction that it ended, if one was open."""
        aborted, coordinator_epoch, timestamp = ending
        producer_id, epoch, _, _, first_offset, first_timestamp, markers, batches = self._entry_of(header)
        self._entries[producer_id] = new_tuple(
            ProducerEntry,
            (producer_id, epoch, coordinator_epoch, timestamp, NO_OFFSET, first_timestamp, markers + 1, batches),
        )
        if first_offset == NO_OFFSET:
            return None
        del self._open[first_offset]
        self._unreplicated[first_offset] = offset
        stable = next(iter(self._open), offset + 1)
        return CompletedTransaction(producer_id, first_offset, offset, aborted, stable)

    def _entry_of(self, header: BatchHeader) -> ProducerEntry:
        """The former entry of the batch's producer, in the batch's epoch; batches of an older epoch are forgotten."""
        entry = self._entries.get(header.producer_id)
        if entry is None:
            return ProducerEntry(header.producer_id, header.producer_epoch)
        if entry.epoch != header.producer_epoch:
            return entry._replace(epoch=header.producer_epoch, batches=())
        return entry

    def is_in_transaction(self, producer_id: int, epoch: int) -> bool:
        """Whether a transaction of this producer and epoch is open."""
        entry = self._entries.get(producer_id)
        return entry is not None and entry.epoch == epoch and entry.transaction_first_offset != NO_OFFSET

    def markers_of(self, producer_id: int) -> int:
        """The number of markers of a producer since it became known, to compare with an earlier result."""
        entry = self._entries.get(producer_id)
        return 0 if entry is None else entry.markers

    def first_unstable_offset(self, high_watermark: int) -> int | None:
        """The start of the first transaction that is open, or whose end is not below `high_watermark`; None if there is none."""
        if self._unreplicated:
            for first, last in list(self._unreplicated.items()):
                if last < high_watermark:
                    del self._unreplicated[first]
        first_open = next(iter(self._open), None)
        if not self._unreplicated:
            return first_open
        first_ended = min(self._unreplicated)
        return first_ended if first_open is None else min(first_open, first_ended)

    def first_open(self) -> ProducerEntry | None:
        """The producer whose open transaction began first."""
        producer_id = next(iter(self._open.values()), None)
        return None if producer_id is None else self._entries[producer_id]

    def describe(self) -> list[ProducerDescription]:
        return [
            ProducerDescription(
                e.producer_id, e.epoch, e.last_sequence, e.last_timestamp, e.coordinator_epoch, e.transaction_first_offset
            )
            for e in self._entries.values()
        ]

    def expire(self, now_ms: int, expiration_ms: int) -> int:
        """Forget producers that wrote nothing for `expiration_ms`; returns how many."""
        before = len(self._entries)
        for _ in self.expire_in_parts(now_ms, expiration_ms):
            pass
        return before - len(self._entries)

    def expire_in_parts(self, now_ms: int, expiration_ms: int) -> Iterator[int]:
        """As `expire`, in parts of up to `LOOKED_AT_AT_ONCE` producers, between which other work can run; yields how many were checked."""
        entries = list(self)
        for start in range(0, len(entries), LOOKED_AT_AT_ONCE):
            part = entries[start : start + LOOKED_AT_AT_ONCE]
            for entry in part:
                is_silent = entry.transaction_first_offset == NO_OFFSET and now_ms - entry.last_timestamp >= expiration_ms
                if is_silent and self._entries.get(entry.producer_id) is entry:
                    del self._entries[entry.producer_id]
            yield len(part)


def _check_repeated(header: BatchHeader, entry: ProducerEntry, batch: AppendedBatch) -> None:
    is_open = entry.transaction_first_offset != NO_OFFSET and batch.first_offset >= entry.transaction_first_offset
    if header.attributes & TRANSACTIONAL_BIT and not is_open:
        raise KafkaError(
            ErrorCode.UNKNOWN_PRODUCER_ID, f"Producer {header.producer_id} repeats a batch of a transaction that was ended"
        )


def _check_inside(header: BatchHeader, entry: ProducerEntry) -> None:
    if entry.transaction_first_offset != NO_OFFSET and not header.attributes & TRANSACTIONAL_BIT:
        raise KafkaError(ErrorCode.INVALID_TXN_STATE, f"Producer {header.producer_id} has an open transaction here")


def _out_of_order(header: BatchHeader, entry: ProducerEntry) -> KafkaError:
    return KafkaError(
        ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
        f"Out of order sequence number for producer {header.producer_id}: {header.base_sequence} (incoming seq. number), "
        f"{entry.last_sequence} (current end sequence number)",
    )
