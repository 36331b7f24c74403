"""Reading a log: records by offset, offsets by time, leader epochs, and the state of producers and their transactions.

Nothing here changes the log, except that expired producers are forgotten.
"""

from __future__ import annotations

from collections.abc import Iterator

from barnabas.error_codes import ErrorCode
from barnabas.errors import (
    KafkaError,
)
from barnabas.storage.file_region import Behind, FileRegion, is_still, read_region, region_behind
from barnabas.storage.integrity import NOTHING_FOLLOWS, Damage
from barnabas.storage.log.state import LogState
from barnabas.storage.producer_state import (
    CompletedTransaction,
    LastWrite,
    ProducerDescription,
    ProducerEntry,
)
from barnabas.storage.retention import unknown_ages
from barnabas.storage.segment_times import TimesLook
from barnabas.storage.time_search import SealedSearch, TimestampedOffset, first_at_or_after, newest, sealed_search
from barnabas.storage.transaction_index import aborted_in


class LogReader:
    """The part that answers questions about a log."""

    __slots__ = ("_log",)

    def __init__(self, log: LogState) -> None:
        self._log = log

    def read(
        self,
        offset: int,
        max_bytes: int,
        *,
        limit_offset: int,
        minimum_one: bool,
        as_stored: bool = False,
        is_verified_later: bool = False,
    ) -> FileRegion | None:
        """Whole batches, from the one with `offset` on, ending before `limit_offset`; None if there are none.

        Args:
            max_bytes: maximum size.
            minimum_one: return the first batch even if it alone is larger.
            as_stored: do not skip batches that compaction emptied, because the caller copies the log.
            is_verified_later: the caller verifies the bytes in a thread if needed, so the answer need not be exact (`FileRegion.reach`).

        Raises:
            KafkaError: OFFSET_OUT_OF_RANGE outside of [log start offset, log end offset].
            CorruptLog: the bytes are damaged, and the end of the damage is unknown.
            OSError: the disk fails.
        """
        log = self._log
        if offset >= limit_offset and log.log_start_offset <= offset <= log.log_end_offset:
            return None
        if offset < log.log_start_offset or offset > log.log_end_offset:
            raise KafkaError(ErrorCode.OFFSET_OUT_OF_RANGE)
        return read_region(
            log.segments,
            offset,
            max_bytes,
            limit_offset,
            minimum_one=minimum_one,
            as_stored=as_stored,
            is_verified_later=is_verified_later,
        )

    def read_behind(self, region: FileRegion, max_bytes: int, *, limit_offset: int) -> Behind | None:
        """The result of the next `read` by a reader that has taken `region`; None if it is not known in advance.

        Raises:
            CorruptLog, OSError: as `read`.
        """
        return region_behind(self._log.segments, region, max_bytes, limit_offset)

    def still_has(self, behind: Behind) -> bool:
        """Whether `read` would give the same now, or more."""
        log = self._log
        return log.log_start_offset <= behind.offset and is_still(log.segments, behind)

    def bounded(self, damage: Damage) -> Damage:
        """The same damage; if no whole batch follows it in its file, it reaches to the end of the segment."""
        if damage.next_offset != NOTHING_FOLLOWS:
            return damage
        return damage._replace(next_offset=self._log.segments.starting_at(damage.first_offset)[0].next_offset)

    def unknown_ages(self, now_ms: int) -> TimesLook | None:
        """The times that retention must read from the disk; None if none. The caller runs it in a thread, then calls its `note`."""
        log = self._log
        return unknown_ages(log.segments, log.config, log.log_start_offset, now_ms)

    def sealed_search(self, timestamp_ms: int) -> SealedSearch | None:
        """The search of sealed segments for `offset_for_timestamp`; None if it needs none.

        The caller runs it in a thread, calls its `note` and passes it to that method.
        """
        log = self._log
        return sealed_search(log.segments, timestamp_ms, log.log_start_offset)

    def unknown_times(self) -> TimesLook | None:
        """The times that `offset_of_max_timestamp` must read from the disk; None if there are none.

        The caller runs it in a thread, then calls its `note`.
        """
        unknown = [segment for segment in self._log.segments.sealed if not segment.knows("max_timestamp")]
        return TimesLook(unknown, None, lambda _: False) if unknown else None

    def offset_for_timestamp(self, timestamp_ms: int, searched: SealedSearch | None = None) -> TimestampedOffset | None:
        """The first record at or after a time; None if there is none."""
        log = self._log
        if searched is None or not searched.holds(log.segments, log.log_start_offset):
            return first_at_or_after(log.segments, timestamp_ms, log.log_start_offset)
        return searched.found or first_at_or_after(searched.behind(log.segments), timestamp_ms, log.log_start_offset)

    def offset_of_max_timestamp(self) -> TimestampedOffset | None:
        """The first record with the largest time in the log; None in an empty log."""
        log = self._log
        return None if log.log_start_offset == log.log_end_offset else newest(log.segments, log.log_start_offset)

    def segment_end(self, offset: int) -> int:
        """The end offset of the segment that contains `offset`."""
        return self._log.segments.starting_at(offset)[0].next_offset

    def has_segment_behind(self, offset: int, end: int) -> bool:
        """Whether the segment that contains `offset` is sealed and ends at or before `end`."""
        log = self._log
        segment = log.segments[max(0, log.segments.index_of(offset))]
        return segment is not log.segments.active and segment.next_offset <= end

    @property
    def latest_epoch(self) -> int:
        """The leader epoch of the last record, -1 before the first."""
        return self._log.epoch_file.epochs.latest

    @property
    def epoch_of_end(self) -> int:
        """The leader epoch of the last record, -1 if unknown; an epoch that began after that record does not count.

        If all records were removed, it is the epoch of the last one of them, or an epoch that began where they ended.
        """
        log = self._log
        is_emptied = 0 < log.log_start_offset == log.log_end_offset
        return self.epoch_at(log.log_end_offset - (not is_emptied))

    def epoch_at(self, offset: int) -> int:
        """The leader epoch in which the record at `offset` was or will be written, -1 if unknown."""
        return self._log.epoch_file.epochs.epoch_of(offset)

    def end_offset_for_epoch(self, leader_epoch: int) -> tuple[int, int]:
        """The largest epoch up to this one and its end offset; (-1, -1) if unknown (KIP-101)."""
        log = self._log
        return log.epoch_file.epochs.end_offset_for(leader_epoch, log.log_end_offset)

    def first_unstable_offset(self, high_watermark: int) -> int | None:
        """The start of the first transaction that readers of committed records may not pass; None if there is none."""
        return self._log.producer_states.first_unstable_offset(high_watermark)

    def is_in_transaction(self, producer_id: int, epoch: int) -> bool:
        """Whether a transaction of this producer and epoch is open here."""
        return self._log.producer_states.is_in_transaction(producer_id, epoch)

    def has_producer(self, producer_id: int) -> bool:
        """Whether anything is known of a producer here."""
        return self._log.producer_states.get(producer_id) is not None

    def first_open_transaction(self) -> ProducerEntry | None:
        """The producer whose open transaction holds back readers of committed records; None if there is none."""
        return self._log.producer_states.first_open()

    def markers_of(self, producer_id: int) -> int:
        """A number that changes after each marker of a producer."""
        return self._log.producer_states.markers_of(producer_id)

    def aborted_transactions(self, first_offset: int, end_offset: int) -> list[CompletedTransaction]:
        """The aborted transactions with records in [first_offset, end_offset)."""
        found = []
        for segment in self._log.segments.starting_at(first_offset):
            for entry in aborted_in(segment, first_offset):
                if entry.first_offset < end_offset:
                    found.append(entry)
                if entry.last_stable_offset >= end_offset:
                    return found
        return found

    def producers(self) -> list[ProducerDescription]:
        """All producers that wrote with a producer id and are not forgotten yet."""
        return self._log.producer_states.describe()

    def last_writes(self) -> dict[int, LastWrite]:
        """For each producer, the facts that compaction must preserve."""
        return self._log.producer_states.last_writes()

    def expire_producers_in_parts(self, now_ms: int, silent_ms: int) -> Iterator[int]:
        """As `expire_producers`, in parts between which other work can run; yields the number of producers that each part checked."""
        return self._log.producer_states.expire_in_parts(now_ms, silent_ms)

    def expire_producers(self, now_ms: int, silent_ms: int | None = None) -> int:
        """Forget producers that wrote nothing for `silent_ms` (default: the setting at the opening); returns how many."""
        log = self._log
        return log.producer_states.expire(now_ms, log.producer_id_expiration_ms if silent_ms is None else silent_ms)
