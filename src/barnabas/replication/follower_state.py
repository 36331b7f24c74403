"""One partition that this broker follows: the position of its next fetch, and the effects of the leader's answer on the log.

Owns the log while another broker leads. Its only I/O is that of the log. A fetcher sends `position` to the leader and passes the answer
to `receive`, which returns the next step.

Rules
  1. The log is cut only where the leader says that histories diverge, by leader epoch (KIP-101, KIP-595). It is never cut at the high
     watermark: records after it may be committed, and only this replica may still have them.
  2. A cut may take several steps. If this log does not know the leader's epoch, the log is cut to the end of the previous epoch, and the
     next answer says more.
  3. `position` promises the leader that all records below its offset are here, and on the disk if the topic's settings ask for that: the
     follower does not report unflushed records. It also promises that no record below its start comes back: the follower does not report
     a start that is not written to the disk.
  4. The high watermark follows the leader's and never passes the log's end.
  5. The follower deletes records below the leader's log start. If the leader's log starts after the end of this log, this log is emptied
     and starts there.
  6. A compacted log that is cut within its cleaned part is emptied and starts again: the rest would lack records whose newer versions
     came after the cut. This happens if records were lost that counted as committed.
  7. Before synced records are cut, the recovery point on the disk moves below the cut. Otherwise a crash during the cut would leave a
     log with a hole that counts as complete. Until the recovery point has moved, the follower asks the leader again.
  8. The log is not cut while the cleaner replaces segments; the fetcher asks again.
"""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple

from barnabas.error_codes import ErrorCode
from barnabas.errors import KafkaError
from barnabas.protocol.records.batch_header import HEADER_SIZE, Buffer, read_header
from barnabas.storage.log import Log
from barnabas.storage.producer_rewind import ProducerRewind
from barnabas.tuples import new_tuple

NO_EPOCH = -1


class Position(NamedTuple):
    """The offset that a follower fetches from, and the state that its fetch reports."""

    offset: int
    last_fetched_epoch: int
    log_start_offset: int
    leader_epoch: int


class DivergingEpoch(NamedTuple):
    """The leader's largest epoch up to the requested one, and its end offset in the leader's log."""

    epoch: int
    end_offset: int


class LeadersAnswer(NamedTuple):
    """A partition's part of a fetch answer."""

    error: ErrorCode
    high_watermark: int
    log_start_offset: int
    records: Buffer
    diverging: DivergingEpoch | None = None


class Cut(NamedTuple):
    """The offset of a planned cut, and the rewind of producer state that a thread must compute first."""

    offset: int
    rewind: ProducerRewind


class Next(Enum):
    """The next step of the fetcher for this partition."""

    FETCH = "fetch"  # send the next fetch for `position`
    WAIT = "wait"  # try again after `replica.fetch.backoff.ms`
    ASK_RANGE = "ask range"  # ask the leader for its log start and end offsets, and pass them to `reset`
    CUT = "cut"  # run the rewind of `planned`, and pass `planned` to `cut`
    STOP = "stop"  # do nothing until the controller names the leader


class FollowerState:
    """A follower during one leader epoch."""

    __slots__ = ("has_caught_up", "high_watermark", "leader_epoch", "leader_id", "log", "planned")

    def __init__(self, log: Log, *, leader_id: int, leader_epoch: int, high_watermark: int) -> None:
        self.log = log
        self.leader_id = leader_id
        self.leader_epoch = leader_epoch
        self.high_watermark = min(high_watermark, log.log_end_offset)
        self.planned: Cut | None = None
        self.has_caught_up = False  # the log holds all records that the leader's last answer called committed

    @property
    def position(self) -> Position:
        log = self.log
        return new_tuple(Position, (log.log_end_offset, log.reader.latest_epoch, log.kept_start_offset, self.leader_epoch))

    def receive(self, asked: Position, answer: LeadersAnswer, now_ms: int) -> Next:
        """Apply the leader's answer to a fetch at `asked`.

        Raises:
            KafkaError: CORRUPT_MESSAGE if the records are not those that the leader stored.
            LogDirFailed: the disk does not work.
        """
        if asked != self.position:
            return Next.FETCH  # the answer belongs to a position before a truncation
        error = answer.error
        if error is ErrorCode.OFFSET_OUT_OF_RANGE:
            return Next.ASK_RANGE
        if error is ErrorCode.FENCED_LEADER_EPOCH:
            return Next.STOP
        if error is not ErrorCode.NONE:
            return Next.WAIT
        if answer.diverging is not None:
            if self.log.is_swapping:
                return Next.WAIT
            return self._cut(answer.diverging)
        if len(answer.records):
            self._begin_where_they_begin(answer.records)
            self.log.appender.append_as_follower(answer.records, now_ms=now_ms)
        self.high_watermark = max(self.high_watermark, min(answer.high_watermark, self.log.log_end_offset))
        self.has_caught_up = self.log.log_end_offset >= answer.high_watermark
        start = min(answer.log_start_offset, self.log.log_end_offset)
        if start > self.log.log_start_offset:
            self.log.truncator.delete_records_before(start)
        return Next.FETCH

    def reset(self, leader_start: int, leader_end: int) -> Next:
        """Handle a position outside of the leader's log, which is [leader_start, leader_end).

        If this log ends after the leader's (which was elected uncleanly), it is cut at the leader's end, and later answers compare the
        epochs. If it ends before the leader's begins, or begins after the leader's ends, the leader cannot continue it: it is emptied
        and starts at `leader_start`.
        """
        end = self.log.log_end_offset
        if self.log.is_swapping:
            return Next.WAIT
        if leader_start > end or leader_end < self.log.log_start_offset:
            if self.log.truncator.may_cut(min(self.log.log_start_offset, leader_start)):
                self.log.truncator.truncate_fully_and_start_at(leader_start)
                self.high_watermark = leader_start
        elif leader_end < end:
            if self.log.truncator.may_cut(self._left_by_cut(leader_end)):
                self._truncate(leader_end)
        else:
            return Next.WAIT  # the leader's log moved in the meantime, and the position is inside it
        return Next.FETCH

    def _begin_where_they_begin(self, records: Buffer) -> None:
        """Start an empty log at the first batch of `records`, if the log starts at an offset inside of this batch. DeleteRecords may
        have moved the leader's start there. The log takes the whole batch, and the answer moves the start up again."""
        log = self.log
        if log.log_start_offset != log.log_end_offset or len(records) < HEADER_SIZE or log.is_swapping:
            return
        first = read_header(records)
        if first.base_offset < log.log_end_offset <= first.last_offset:
            log.truncator.truncate_fully_and_start_at(first.base_offset)

    def _cut(self, diverging: DivergingEpoch) -> Next:
        before = self.position
        epoch, epoch_end = self.log.reader.end_offset_for_epoch(diverging.epoch)
        if epoch == NO_EPOCH:
            target = diverging.end_offset
        elif epoch == diverging.epoch:
            target = min(epoch_end, diverging.end_offset)
        else:
            target = epoch_end
        if not self.log.truncator.may_cut(self._left_by_cut(target)):
            return Next.FETCH
        rewind = None if self._is_full_of_gaps(target) else self.log.truncator.plan_truncation(target)
        if rewind is not None:
            self.planned = Cut(target, rewind)
            return Next.CUT
        self._truncate(target)
        if self.position == before:
            raise KafkaError(
                ErrorCode.CORRUPT_MESSAGE,
                f"The leader says that {self.log.topic}-{self.log.partition} parts at {diverging}, yet nothing here lies behind that.",
            )
        return Next.FETCH

    def cut(self, cut: Cut) -> Next:
        """Do the `planned` cut after its rewind was computed; if the log has changed in the meantime, the follower asks the leader again.

        Raises:
            LogDirFailed: the disk does not work.
        """
        if self.log.truncator.still_holds(cut.rewind) and self.log.truncator.may_cut(cut.offset):
            self._truncate(cut.offset, cut.rewind)
        return Next.FETCH

    def _is_full_of_gaps(self, offset: int) -> bool:
        """Whether the log below `offset` may lack records that compaction removed in favour of newer ones after `offset`."""
        return offset < self.log.cleaned_end

    def _left_by_cut(self, offset: int) -> int:
        """The end of the log after a cut at `offset`."""
        return min(self.log.log_start_offset, offset) if self._is_full_of_gaps(offset) else offset

    def _truncate(self, offset: int, rewind: ProducerRewind | None = None) -> None:
        if self._is_full_of_gaps(offset):
            self.log.truncator.truncate_fully_and_start_at(self._left_by_cut(offset))
        else:
            self.log.truncator.truncate_to(offset, rewind)
        self.high_watermark = min(self.high_watermark, self.log.log_end_offset)
