"""One partition that this broker follows: where it fetches next, and what the leader's answer does to the log.

Owns the log while another broker leads. No I/O of its own but the log's: a fetcher sends `position` to the leader and hands the answer to
`receive`, which says what comes next.

Rules
  1. The log is cut only where the leader says that histories part, by leader epoch (KIP-101, KIP-595): never at the high watermark, below
     which records may lie that only this replica still has.
  2. A cut may have to be made in several steps: where the leader's epoch is not known here, the log is cut to the end of the epoch before,
     and the next answer tells the rest.
  3. `position` promises the leader that everything below its offset is here, and on the disk where the topic asks for that: what is not yet
     flushed is not claimed. And it promises that nothing below its start comes back: a start that is not written down is not claimed.
  4. The high watermark follows the leader's and never passes the log's end.
  5. The follower deletes records below the leader's log start. If the leader's log starts after the end of this log, this log begins
     anew from there.
  6. A compacted log that is cut below where it is clean is begun anew: what is left lacks records that were replaced by others behind the
     cut. That happens where records were lost that counted as committed.
  7. Before synced records are cut, the recovery point on the disk moves below the cut. Otherwise a crash in the middle would leave a log
     with a hole that passes for whole. The follower asks the leader again then.
  8. Nothing is cut while the cleaner puts segments in the place of others; the fetcher asks again.
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
    """The offset that a follower fetches from, and the state that it reports by fetching."""

    offset: int
    last_fetched_epoch: int
    log_start_offset: int
    leader_epoch: int


class DivergingEpoch(NamedTuple):
    """The leader's largest epoch up to the one told, and where its records end there."""

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
    """Where the log is to be cut, and what has to be found out before, in a thread."""

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
    """A follower's part in one epoch of leadership."""

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
        """Take in the leader's answer to a fetch at `asked`.

        Raises:
            KafkaError: CORRUPT_MESSAGE where the records are not what the leader stored.
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
        """The position was outside the leader's log, which is [leader_start, leader_end).

        A log that ends behind the leader's (which was elected uncleanly) is cut at its end; the epochs tell the rest. One that ends before
        the leader's begins has nothing the leader can continue, and one that begins behind its end has nothing of it.
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
        """An empty log may have to begin at an offset inside of a batch (DeleteRecords moved the leader's start there): the batch is
        taken as a whole, and the start moves up again by the answer."""
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
        """Do what was `planned`, now that its rewind was run; where the log has changed meanwhile the leader is asked again.

        Raises:
            LogDirFailed: the disk does not work.
        """
        if self.log.truncator.still_holds(cut.rewind) and self.log.truncator.may_cut(cut.offset):
            self._truncate(cut.offset, cut.rewind)
        return Next.FETCH

    def _is_full_of_gaps(self, offset: int) -> bool:
        """Whether what lies below `offset` may lack records that compaction took out for newer ones behind it."""
        return offset < self.log.cleaned_end

    def _left_by_cut(self, offset: int) -> int:
        """Where the log ends when it is cut at `offset`."""
        return min(self.log.log_start_offset, offset) if self._is_full_of_gaps(offset) else offset

    def _truncate(self, offset: int, rewind: ProducerRewind | None = None) -> None:
        if self._is_full_of_gaps(offset):
            self.log.truncator.truncate_fully_and_start_at(self._left_by_cut(offset))
        else:
            self.log.truncator.truncate_to(offset, rewind)
        self.high_watermark = min(self.high_watermark, self.log.log_end_offset)
