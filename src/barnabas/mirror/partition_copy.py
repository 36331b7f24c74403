"""One partition that this broker leads and that is a copy of a partition of another cluster: what to fetch, and what an answer does.

Owns the position in the source. Its only I/O is that of the log. A fetcher sends `position` to the leader in the source and passes the
answer to `receive`, which returns the next step. Followers in this cluster replicate the log as always.

Rules
  1. Every batch is kept as the source stored it: offsets, timestamps, codec, producer id, control batches. Only its leader epoch becomes
     that of this cluster, because followers here compare epochs. It is not under the CRC, which is checked.
  2. Only committed batches are copied, because the source shows no others.
  3. Before the first fetch the last batch here is compared with that of the source (`Step.COMPARE`). A copy whose source has other records
     at the same offsets stops, and nothing is cut: a person must decide.
  4. The log start follows that of the source, up to the high watermark here. A copy whose source begins past its end starts again empty.
  5. A copy that is promoted takes no more from its source once it is drained. Then it ends open transactions by markers of its own.
  6. In a failback, and after a source has lost records, the offset is searched up to which both logs are the same (`divergence`).
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import Enum
from typing import NamedTuple

from barnabas.config.mirror_settings import OF_FAILBACK, PROMOTING, PROMOTING_NOW, TRUNCATING
from barnabas.error_codes import ErrorCode
from barnabas.mirror.divergence import NO_EPOCH, NO_POSITION, UNKNOWN, Divergence
from barnabas.mirror.source_batches import kept_by_compaction, last_leader_epoch, pieces
from barnabas.mirror.status import PartitionStatus, refusal
from barnabas.protocol.records.batch_header import HEADER_SIZE, BatchHeader, Buffer, read_header
from barnabas.replication.leader_partition import LeaderPartition
from barnabas.storage.log.appender import LogAppender
from barnabas.storage.markers import marker_batch
from barnabas.storage.replicated_batches import set_leader_epoch

NEVER_MS = -1


class SourceAnswer(NamedTuple):
    """The part of the source's answer about one partition.

    Args:
        is_limited: other partitions have records in the answer. So it may have left no room for those of this one.
    """

    error: ErrorCode
    high_watermark: int
    log_start_offset: int
    records: Buffer
    has_diverged: bool = False
    is_limited: bool = False


class Step(Enum):
    """The next step of the fetcher for this partition."""

    TAKE = "take"  # append the records of the answer by `take`
    FETCH = "fetch"
    FIND_LEADER = "find leader"  # read the metadata of the source again
    ASK_RANGE = "ask range"  # ask the source for its log start and end offsets, and pass them to `receive_range`
    WAIT = "wait"
    CUT = "cut"  # run `divergence.cut` with the rewind of `divergence.plan_cut`
    STOP = "stop"  # `reason` says why; a person must act


class PartitionCopy:
    """See the module.

    Args:
        partition: the leader of the copy.
        now_ms: the time.
        source_topic: the name of the topic in the source, if it has another one.
    """

    def __init__(self, partition: LeaderPartition, now_ms: int, source_topic: str = "") -> None:
        self.partition = partition
        self.source_topic = source_topic or partition.topic
        self.source_start = self.source_end = UNKNOWN
        self.source_epoch = NO_EPOCH  # leader epoch in the source of the last batch here
        self.source_leader_epoch = NO_EPOCH  # the highest one that the source has told
        self.reason = ""  # what holds the copy back
        self.is_stopped = False
        self.is_source_deleted = False  # the source has no such topic; the copy goes on if it is there again with the same id
        self.caught_up_ms = now_ms
        self._is_compared = False
        self._end_to_reach = UNKNOWN  # of a promotion: the source has told this end since it began
        self._heard_ms = NEVER_MS  # the time of the last answer about records
        self._copied_end = UNKNOWN  # the end before the markers of a promotion
        self._is_ended = False  # open transactions were ended
        self._parted = ""  # why the copy has stopped, if the source has other records than the copy
        self.divergence = Divergence(partition)
        self._state = self.state

    # Fetching

    @property
    def state(self) -> str:
        return self.partition.log.config.mirror_state

    @property
    def position(self) -> int:
        """The offset to fetch next."""
        log = self.partition.log
        if (searched := self.divergence.position) is not None:
            return searched
        if self._must_compare or self._is_searching:
            return max(log.log_end_offset - 1, 0)
        return log.log_end_offset

    @property
    def _must_compare(self) -> bool:
        """Whether the last batch here must still be compared with that of the source."""
        return not self._is_compared and self.partition.log.log_end_offset > self.partition.log.log_start_offset

    @property
    def is_behind(self) -> bool:
        """Whether the source is known to have records that are not here."""
        return self.source_end > self.partition.log.log_end_offset

    @property
    def wants_records(self) -> bool:
        """Whether the partition should be fetched now."""
        partition = self.partition
        self._notice_state()
        if self._parted:
            return not partition.closed and not self.divergence.is_known
        if partition.closed or self.is_stopped or self.is_drained:
            return False
        if self.state in OF_FAILBACK:
            return not self.divergence.is_known or self.divergence.must_cut
        if self.divergence.must_wait:
            self.reason = "waits for the next leader epoch"
            return False
        if partition.is_under_min_isr:
            self.reason = "fewer than min.insync.replicas are in sync here"
            return False
        return True

    def _notice_state(self) -> None:
        """If the state of the topic has changed, begin a failback, or follow the source after it."""
        if self.state == self._state:
            return
        if self.state in OF_FAILBACK or self._state in OF_FAILBACK:
            self.is_stopped = self._is_compared = False
            self.reason = self._parted = ""
            self.source_epoch = NO_EPOCH
            self.divergence.forget(keep_offset=self.state == TRUNCATING)
        self._state, self._end_to_reach = self.state, UNKNOWN

    def receive(self, asked: int, answer: SourceAnswer, now_ms: int) -> Step:
        """Apply an answer, except for its records, which `take` appends.

        Args:
            asked: the `position` of the fetch.
        """
        if asked != self.position or self.partition.closed:
            return Step.FETCH
        if answer.error is ErrorCode.OFFSET_OUT_OF_RANGE:
            return Step.ASK_RANGE
        if answer.error is not ErrorCode.NONE:
            self.reason = refusal(answer.error)
            return Step.FIND_LEADER
        if answer.has_diverged:
            return self._part("the source has lost records that are here (an unclean election)")
        self.reason = self._parted
        if not self.is_behind:
            self.caught_up_ms = now_ms  # a session leaves out partitions without news
        self.source_end = answer.high_watermark
        self.source_start = max(self.source_start, answer.log_start_offset)
        if answer.is_limited and not len(answer.records) and asked < answer.high_watermark:
            return Step.FETCH
        if self._is_searching:
            return self._look_for_common_point(asked, answer.records)
        if self._must_compare:
            return self._compare(answer.records)
        self._heard_ms = now_ms
        if not len(answer.records):
            return self._receive_nothing(now_ms)
        return Step.TAKE

    def heard(self, now_ms: int) -> None:
        """The source has answered, and has no news of this partition."""
        if self._heard_ms != NEVER_MS:
            self._heard_ms = now_ms
        if not self.is_behind:
            self.caught_up_ms = now_ms

    def _compare(self, records: Buffer) -> Step:
        """Compare the last batch here with that of the source at the same offset. Compaction in the source may have rewritten it."""
        log = self.partition.log
        theirs = read_header(records) if len(records) >= HEADER_SIZE else None
        if theirs is None or theirs.base_offset >= log.log_end_offset:  # compaction has removed the batch from the source
            self._is_compared = True
            return Step.FETCH
        ours = self._last_header()
        is_same = ours is None or (theirs.crc, theirs.batch_length) == (ours.crc, ours.batch_length)
        if ours is not None and kept_by_compaction(theirs) != kept_by_compaction(ours):
            return self._part(f"the source has other batches at offset {log.log_end_offset - 1}")
        if not is_same and "compact" not in log.config.cleanup_policy:
            return self._part(f"the source has other records at offset {log.log_end_offset - 1}")
        self._is_compared = True
        self.source_epoch = theirs.partition_leader_epoch
        return Step.FETCH

    def _last_header(self) -> BatchHeader | None:
        log = self.partition.log
        region = log.reader.read(log.log_end_offset - 1, 1, limit_offset=log.log_end_offset, minimum_one=True)
        if region is None:
            return None
        return read_header(log.files.pread(region.fileno, HEADER_SIZE, region.position))

    def _receive_nothing(self, now_ms: int) -> Step:
        """The source has no record at the position."""
        if self.partition.log.log_end_offset >= self.source_end:
            self.caught_up_ms = now_ms
        self._follow_start()
        return Step.FETCH

    def receive_range(self, start: int, end: int) -> Step:
        """The log of the source is [start, end), and the position lies outside of it."""
        log = self.partition.log
        self.source_start, self.source_end = start, end
        if self._is_searching:
            return self._look_for_common_point(NO_POSITION, b"")
        if start >= log.log_end_offset:
            self._is_compared = True
            return self._begin_at(start)
        if end < log.log_end_offset:
            return self._part(f"the source ends at {end}, before the copy: it has lost records or was made again")
        return Step.WAIT

    def _begin_at(self, start: int) -> Step:
        """The log of the source begins at or past the end of the copy. If it is past it, nothing here is in the source any more.

        The log starts again empty there, as that of a follower does. So no transaction stays open whose end was deleted in the source.
        """
        log = self.partition.log
        if start == log.log_end_offset:
            return Step.FETCH
        if log.is_swapping or not log.truncator.may_cut(log.log_start_offset):
            return Step.WAIT
        self.partition.cut_log(start, None, start_again_at=start)
        self.partition.took_over(start, 0)
        self.source_epoch = NO_EPOCH
        return Step.FETCH

    # Failback, and a source that has lost records

    def _part(self, reason: str) -> Step:
        """Stop, because the source has other records than the copy. The search for the common offset goes on, to tell how many."""
        self._parted, self.source_epoch = reason, NO_EPOCH
        self.divergence.forget()
        return self._stop(reason)

    @property
    def _is_searching(self) -> bool:
        return self.state in OF_FAILBACK or bool(self._parted)

    def _look_for_common_point(self, asked: int, records: Buffer) -> Step:
        """Go on with the search after an answer of the source; `asked` is NO_POSITION after its range alone."""
        divergence, was_known = self.divergence, self.divergence.is_known
        if not divergence.search(asked, records, self.source_start, self.source_end):
            return Step.FETCH
        if self._parted:
            if not was_known:
                self._parted += f"; the source does not have {divergence.beyond} offsets here, from {divergence.common_offset} on"
                self.reason = self._parted
            return Step.STOP
        return Step.CUT if divergence.must_cut else Step.WAIT

    def _stop(self, reason: str) -> Step:
        self.reason, self.is_stopped = reason, True
        return Step.STOP

    def stop(self, reason: str) -> None:
        """Take no more from the source."""
        self._stop(reason)

    # Records

    def take(self, records: memoryview, now_ms: int) -> Iterator[None]:
        """Append the records of an answer in pieces; each yield lets the loop do other work.

        Raises:
            KafkaError: CORRUPT_MESSAGE, the bytes are not those that the source stored.
            LogDirFailed, StorageExhausted: the disk does not take them.
        """
        partition = self.partition
        log = partition.log
        self._is_compared = True  # all that follows comes from this source
        mark = partition.high_watermark
        if not self._begin_where_they_begin(records):
            return
        for piece in pieces(records):
            if partition.closed or self.is_drained:
                return
            first = log.log_end_offset
            self.source_epoch = last_leader_epoch(piece)
            set_leader_epoch(piece, partition.leader_epoch)
            try:
                log.appender.append_as_follower(piece, now_ms=now_ms)
            finally:
                if log.log_end_offset > first:
                    partition.took_over(first, len(piece))
            if partition.high_watermark < mark:  # the log started again, at the batch that its start is in
                partition.high_watermark = min(mark, log.log_end_offset)
            yield
        if log.log_end_offset >= self.source_end:
            self.caught_up_ms = now_ms
        self._follow_start()

    def _begin_where_they_begin(self, records: Buffer) -> bool:
        """If the log is empty and starts inside of the first batch, let it start at that batch; DeleteRecords may end there. `take` moves
        the start up again. Returns whether the records can be appended."""
        log = self.partition.log
        if log.log_start_offset != log.log_end_offset or len(records) < HEADER_SIZE:
            return True
        first = read_header(records)
        if first.base_offset < log.log_end_offset <= first.last_offset:
            if log.is_swapping:
                return False
            self.partition.cut_log(first.base_offset, None, start_again_at=first.base_offset)
        return True

    def follow_start(self) -> None:
        """Move the start of the log as far as that of the source is known, and is replicated here. Call it regularly: a source tells its
        start once, and the high watermark here may reach it later."""
        if self.state not in OF_FAILBACK and not self.is_drained:
            self._follow_start()

    def _follow_start(self) -> None:
        partition = self.partition
        start = min(self.source_start, partition.high_watermark)
        if start > partition.log.log_start_offset:
            partition.log.truncator.delete_records_before(start)
            partition.tell_log_start()

    # Promotion

    @property
    def is_drained(self) -> bool:
        """Whether the copy takes nothing more, because it is promoted and has what the source had."""
        if self.state not in {PROMOTING, PROMOTING_NOW}:
            return False
        return self._is_ended or self.state == PROMOTING_NOW

    @property
    def must_ask_end(self) -> bool:
        """Whether a promotion has begun, and the source must be asked for its end; `receive_end` takes the answer.

        A fetch does not tell it: a broker that has just begun to lead in the source may answer with an older high watermark. Asked for
        the end, it refuses until it knows it (KIP-207). The answer to a fetch may also be one to a request from before the promotion.
        """
        return self.state == PROMOTING and self._end_to_reach == UNKNOWN

    def receive_end(self, end: int) -> None:
        """The source ends at `end`, or ended there at some time since the promotion began."""
        self._end_to_reach = max(self._end_to_reach, end)

    @property
    def is_at_source_end(self) -> bool:
        end = self.partition.log.log_end_offset
        return self._end_to_reach != UNKNOWN and end >= max(self._end_to_reach, self.source_end)

    @property
    def is_ready(self) -> bool:
        """Whether the topic may be opened for writers, as far as this partition goes."""
        return self._is_ended and self.partition.high_watermark == self.partition.log.log_end_offset

    def end_transactions(self, now_ms: int) -> int:
        """Once a promoted copy is drained, abort its open transactions: their producers cannot end them here. Returns how many.

        Raises:
            StorageError: the disk does not take the markers; the next call continues.
        """
        partition = self.partition
        if (
            self.state not in {PROMOTING, PROMOTING_NOW}
            or self._is_ended
            or not (self.state == PROMOTING_NOW or self.is_at_source_end)
        ):
            return 0
        log, count = partition.log, 0
        if self._copied_end == UNKNOWN:
            self._copied_end = log.log_end_offset
        for producer in log.reader.producers():
            if producer.current_txn_start_offset < 0:
                continue
            epoch = max(producer.coordinator_epoch, 0)
            marker = marker_batch(producer.producer_id, producer.epoch, commit=False, coordinator_epoch=epoch, now_ms=now_ms)
            first = log.log_end_offset
            LogAppender(log).append_own(*marker, leader_epoch=partition.leader_epoch, now_ms=now_ms)
            partition.took_over(first, len(marker.batch.data))
            count += 1
        self._is_ended = True
        return count

    # Status

    def _bytes_of(self, lag: int) -> int:
        """About the size of so many records, as that of the records here; UNKNOWN if there are none."""
        log = self.partition.log
        records = log.log_end_offset - log.log_start_offset
        if lag <= 0:
            return lag
        return lag * log.size_bytes // records if records > 0 else UNKNOWN

    def status(self, now_ms: int) -> PartitionStatus:
        """What an operator wants to know."""
        self._notice_state()
        log = self.partition.log
        end = log.log_end_offset
        copied = end if self._copied_end == UNKNOWN else self._copied_end
        lag = max(self.source_end - copied, 0) if self.source_end >= 0 else UNKNOWN
        state = self.divergence.state if self.state in OF_FAILBACK else self.state
        if self.is_stopped or self.is_source_deleted:
            state = "stopped"
        return PartitionStatus(
            topic=self.partition.topic,
            partition=self.partition.index,
            state="ready" if self.is_ready else state,
            start_offset=log.log_start_offset,
            end_offset=end,
            source_end_offset=self.source_end,
            lag=lag,
            lag_ms=max(now_ms - self.caught_up_ms, 0) if lag else 0,
            reason=self.reason,
            producer_id_end=max((producer.producer_id + 1 for producer in log.reader.producers()), default=0),
            common_offset=self.divergence.common_offset,
            lag_bytes=self._bytes_of(lag),
            copied_end_offset=copied,
            source_leader_epoch=self.source_leader_epoch,
            silent_ms=UNKNOWN if self._heard_ms == NEVER_MS else max(now_ms - self._heard_ms, 0),
        )
