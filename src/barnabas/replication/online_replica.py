"""A replica with a working log, on leader and follower: how far readers see, waiting fetches, and how records get to the disk.

Rules
  1. Readers see nothing at or above the high watermark.
  2. Waiting is woken by events (a moved watermark, a closed partition), never by polling.
  3. Where the topic has `flush.messages` = n, fewer than n records count as kept without being on the disk. An append that would make it
     n waits for a flush, and so does everything behind it. With n = 1, committed or visible records survive the loss of power.
  4. After a failed flush nothing more counts as kept; waiting requests get an error.

How flushes work: an append past `_flush_at` asks the scheduler for a flush. The scheduler calls `plan_flush`, runs the plan in a thread,
among those of other partitions, and gives it back to `finish_flush`. `finish_flush` tells `_keep` how far records are kept.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, ClassVar, Literal

from barnabas.config.topic import TopicConfig
from barnabas.errors import ErrorCode, KafkaError
from barnabas.replication.replica import Replica
from barnabas.storage.file_region import Behind, FileRegion
from barnabas.storage.flushing import FlushPlan
from barnabas.storage.log import Log

if TYPE_CHECKING:
    from typing import Protocol

    class FetchWaiter(Protocol):
        """Somebody who waits for records of a partition."""

        def records_added(self, size: int) -> None:
            """`size` more bytes can be read."""
            ...

        def high_watermark_moved(self) -> None:
            """For who follows: nothing more can be read, but more of what was read is committed."""
            ...

        def log_start_moved(self) -> None:
            """Records were removed from the log's start."""
            ...

        def partition_closed(self) -> None:
            """It is gone, or led in another epoch: ask again, and wait anew."""
            ...

    class FlushScheduler(Protocol):
        """Runs the flushes that partitions ask for."""

        def flush_soon(self, partition: OnlineReplica) -> None:
            """Plan, run and finish a flush; asked again before that was planned, it is the same one."""
            ...

        def flush_later(self, partition: OnlineReplica, delay_ms: int) -> None:
            """The same after `delay_ms`."""
            ...


READ_UNCOMMITTED, READ_COMMITTED = 0, 1
NEVER = 2**63 - 1


class OnlineReplica(Replica):
    """See the module.

    Args:
        log: the partition's log; this object is its only writer.
        leader_id: broker id of the leader.
        leader_epoch: the epoch it leads in.
        flushes: runs what `flush.messages` and `flush.ms` ask for; without one they have no effect.
        high_watermark: as far as it is known; None where there never were other replicas, and all that is kept is committed.
    """

    __slots__ = (
        "_fetch_waiters",
        "_flush_at",
        "_flushes",
        "_hidden_bytes",
        "_is_flush_timed",
        "log",
    )

    is_offline: ClassVar[Literal[False]] = False

    def __init__(
        self,
        log: Log,
        *,
        leader_id: int,
        leader_epoch: int,
        flushes: FlushScheduler | None = None,
        high_watermark: int | None = None,
    ) -> None:
        assert log.topic_id is not None, "a hosted log has its topic's id"
        self.log = log
        self.topic_id = log.topic_id
        self.topic = log.topic
        self.index = log.partition
        self.leader_id = leader_id
        self.leader_epoch = leader_epoch
        self.closed = False
        self._fetch_waiters: dict[FetchWaiter, None] = {}  # in order of arrival
        self._flushes = flushes
        self._flush_at = NEVER  # appends that end at or past this offset involve a flush
        self._hidden_bytes = 0  # appended, but not below the high watermark yet
        self._is_flush_timed = False  # `flush_later` was called, and no flush has followed
        kept_end = self._kept_end
        self.high_watermark = kept_end if high_watermark is None else max(log.log_start_offset, min(high_watermark, kept_end))
        self._plan_flushing()

    # Reading

    def read(
        self, offset: int, max_bytes: int, *, minimum_one: bool, isolation_level: int = 0, is_verified_later: bool = False
    ) -> FileRegion | None:
        """Whole batches from the one that holds `offset` up to what readers may see; the arguments are those of `LogReader.read`.

        Raises:
            KafkaError: OFFSET_OUT_OF_RANGE outside of the log. Between the high watermark and the log's end there is nothing to read
                yet: a reader may have been there before the leader changed.
        """
        limit = self._readers_end(isolation_level)
        return self.log.reader.read(
            offset, max_bytes, limit_offset=limit, minimum_one=minimum_one, is_verified_later=is_verified_later
        )

    def read_behind(self, region: FileRegion, max_bytes: int, isolation_level: int) -> Behind | None:
        """The result of the next `read` by a reader that has taken `region`; see `LogReader.read_behind`."""
        return self.log.reader.read_behind(region, max_bytes, limit_offset=self._readers_end(isolation_level))

    def _readers_end(self, isolation_level: int) -> int:
        """Up to which offset readers of this isolation may see."""
        return self.last_stable_offset if isolation_level == READ_COMMITTED else self.high_watermark

    def aborted_in(self, region: FileRegion | None, offset: int) -> list[tuple[int, int]]:
        """The aborted transactions that a reader at `offset` has to leave out of a region: producer id and first offset of each.

        The region may lie in a later segment than the offset, where compaction has left nothing in between.
        """
        if region is None:
            return []
        end = min(self.last_stable_offset, self.log.reader.segment_end(region.base_offset))
        return [(each.producer_id, each.first_offset) for each in self.log.reader.aborted_transactions(offset, end)]

    @property
    def last_stable_offset(self) -> int:
        """Where the oldest transaction begins whose end is not below the high watermark, or the log if its beginning was deleted since;
        else the high watermark."""
        unstable = self.log.reader.first_unstable_offset(self.high_watermark)
        return self.high_watermark if unstable is None else min(max(unstable, self.log.log_start_offset), self.high_watermark)

    def settle_transactions(self) -> None:
        """Forget the transactions that have ended below the high watermark; where nobody reads, nobody else does."""
        self.log.reader.first_unstable_offset(self.high_watermark)

    def check_leader_epoch(self, epoch: int) -> None:
        """Refuse a request made for another epoch (KIP-320); -1 asks for no check.

        Raises:
            KafkaError: FENCED_LEADER_EPOCH for an older one, UNKNOWN_LEADER_EPOCH for a newer one.
        """
        if epoch in (-1, self.leader_epoch):
            return
        raise KafkaError(ErrorCode.FENCED_LEADER_EPOCH if epoch < self.leader_epoch else ErrorCode.UNKNOWN_LEADER_EPOCH)

    @abstractmethod
    def add_fetch_waiter(self, waiter: FetchWaiter, *, as_follower: bool = False) -> None:
        """Tell `waiter` of what it can read: what is committed, or for a follower what is appended."""

    def remove_fetch_waiter(self, waiter: FetchWaiter) -> None:
        self._fetch_waiters.pop(waiter, None)

    def tell_log_start(self) -> None:
        """Records were removed from the log's start: whoever waits here is told."""
        for waiter in self._all_fetch_waiters():
            waiter.log_start_moved()

    def close(self, reason: ErrorCode = ErrorCode.NOT_LEADER_OR_FOLLOWER) -> None:
        self.closed = True
        self._send_fetchers_away()

    def _send_fetchers_away(self) -> None:
        """Let the waiting fetches ask again."""
        waiters = self._all_fetch_waiters()
        self._fetch_waiters.clear()
        for waiter in waiters:
            waiter.partition_closed()

    def _all_fetch_waiters(self) -> list[FetchWaiter]:
        return list(self._fetch_waiters)

    def _advance(self, offset: int, added_bytes: int) -> None:
        """Everything below `offset` is committed."""
        if offset <= self.high_watermark:
            return
        self.high_watermark = offset
        if self._fetch_waiters:
            for waiter in list(self._fetch_waiters):
                waiter.records_added(added_bytes)

    # Flushing

    def update_config(self, config: TopicConfig) -> None:
        """The topic's settings changed, those about flushing too: what they no longer hold back is kept."""
        self.log.update_config(config)
        self._plan_flushing()
        self._flush_or_keep()

    @property
    def _is_held_back(self) -> bool:
        """Whether the end of the log must reach the disk before it is kept."""
        return self.log.log_end_offset - self.log.durable_end >= self.log.config.flush_messages

    @property
    def _kept_end(self) -> int:
        """Below it, everything is as safe on this broker as the topic asks."""
        return self.log.durable_end if self._flushes is not None and self._is_held_back else self.log.log_end_offset

    @property
    def needs_flush(self) -> bool:
        return self._kept_end < self.log.log_end_offset

    def resume_flushing(self) -> None:
        """Ask for the flushes that what is in the log already wants: the part that this broker had before may have asked, and is over."""
        log, flushes = self.log, self._flushes
        if flushes is None or log.durable_end >= log.log_end_offset:
            return
        if self.needs_flush:
            flushes.flush_soon(self)
        if log.config.flush_ms < NEVER and not self._is_flush_timed:
            self._is_flush_timed = True
            flushes.flush_later(self, log.config.flush_ms)
            self._plan_flushing()

    def _plan_flushing(self) -> None:
        if self._flushes is None:
            return
        config, durable_end = self.log.config, self.log.durable_end
        if config.flush_ms < NEVER and not self._is_flush_timed:
            self._flush_at = durable_end + 1  # the first record that is not on the disk starts the timer
        else:
            self._flush_at = min(durable_end + config.flush_messages, NEVER)

    def _flush_or_keep(self) -> None:
        """Ask for the flushes that the settings want now; what need not wait for them is kept."""
        log, flushes = self.log, self._flushes
        if flushes is not None and log.log_end_offset >= self._flush_at:
            if log.config.flush_ms < NEVER and not self._is_flush_timed and log.durable_end < log.log_end_offset:
                self._is_flush_timed = True
                flushes.flush_later(self, log.config.flush_ms)
                self._plan_flushing()
            if self._is_held_back:
                flushes.flush_soon(self)
                return
        self._keep(log.log_end_offset, self._hidden_bytes)

    def plan_flush(self) -> FlushPlan | None:
        """The next flush, of all there is now; None where all is on the disk, be it by a flush of the part that this broker had before.

        Raises:
            LogDirFailed: the disk failed before.
        """
        plan = self.log.plan_flush(everything=False)
        if plan is None:
            self._is_flushed(self._hidden_bytes)
        else:
            plan.size = self._hidden_bytes
        return plan

    def finish_flush(self, plan: FlushPlan) -> None:
        """Take over what `plan` has brought to the disk.

        Raises:
            LogDirFailed: it has not; nothing more is kept.
        """
        self.log.finish_flush(plan)
        if self.closed:
            return
        self._is_flushed(plan.size)
        if self.log.durable_end < self.log.log_end_offset:
            self._flush_or_keep()

    def _is_flushed(self, size: int) -> None:
        """The log is on the disk up to its durable end; `size` are the hidden bytes before that."""
        self._is_flush_timed = False
        self._plan_flushing()
        self._keep(self.log.durable_end, size)

    @abstractmethod
    def _keep(self, offset: int, size: int) -> None:
        """Records below `offset` need not wait for a flush any more; `size` are the hidden bytes before it."""
