"""A replica with a working log, on leader and follower: the limit of what readers see, waiting fetches, and flushes to the disk.

Rules
  1. Readers see nothing at or above the high watermark.
  2. Events (a moved high watermark, a closed partition) wake waiting fetches; nothing polls.
  3. If the topic has `flush.messages` = n, fewer than n records count as kept without being on the disk. An append that would make it n
     waits for a flush, and so do all records after it. With n = 1, committed or visible records survive the loss of power.
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
        """A request that waits for records of a partition."""

        def records_added(self, size: int) -> None:
            """`size` more bytes can be read."""
            ...

        def high_watermark_moved(self) -> None:
            """For a follower: there is nothing more to read, but more of the records that it has read are committed."""
            ...

        def log_start_moved(self) -> None:
            """Records were removed from the log's start."""
            ...

        def partition_closed(self) -> None:
            """The partition is gone, or led in another epoch; the request must ask again."""
            ...

    class FlushScheduler(Protocol):
        """Runs the flushes that partitions ask for."""

        def flush_soon(self, partition: OnlineReplica) -> None:
            """Plan, run and finish a flush; a second call before the flush was planned has no effect."""
            ...

        def flush_later(self, partition: OnlineReplica, delay_ms: int) -> None:
            """Like `flush_soon`, after `delay_ms`."""
            ...


READ_UNCOMMITTED, READ_COMMITTED = 0, 1
NEVER = 2**63 - 1


class OnlineReplica(Replica):
    """See the module.

    Args:
        log: the partition's log; this object is its only writer.
        leader_id: broker id of the leader.
        leader_epoch: the leader's epoch.
        flushes: runs the flushes that `flush.messages` and `flush.ms` ask for; without it these settings have no effect.
        high_watermark: the last known one; None if there never were other replicas, so that all kept records are committed.
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
        """Whole batches, from the one with `offset` up to the limit of what readers see; the arguments are those of `LogReader.read`.

        Raises:
            KafkaError: OFFSET_OUT_OF_RANGE, `offset` is outside of the log. Between the high watermark and the log's end there is
                nothing to read yet: a reader may have been there before the leader changed.
        """
        limit = self._readers_end(isolation_level)
        return self.log.reader.read(
            offset, max_bytes, limit_offset=limit, minimum_one=minimum_one, is_verified_later=is_verified_later
        )

    def read_behind(self, region: FileRegion, max_bytes: int, isolation_level: int) -> Behind | None:
        """The result of the next `read` by a reader that has taken `region`; see `LogReader.read_behind`."""
        return self.log.reader.read_behind(region, max_bytes, limit_offset=self._readers_end(isolation_level))

    def _readers_end(self, isolation_level: int) -> int:
        """The offset before which readers of this isolation level may read."""
        return self.last_stable_offset if isolation_level == READ_COMMITTED else self.high_watermark

    def aborted_in(self, region: FileRegion | None, offset: int) -> list[tuple[int, int]]:
        """The aborted transactions that a reader at `offset` must leave out of a region: producer id and first offset of each.

        The region may be in a later segment than the offset, if compaction has left nothing in between.
        """
        if region is None:
            return []
        end = min(self.last_stable_offset, self.log.reader.segment_end(region.base_offset))
        return [(each.producer_id, each.first_offset) for each in self.log.reader.aborted_transactions(offset, end)]

    @property
    def last_stable_offset(self) -> int:
        """The start of the oldest transaction without an end below the high watermark; the high watermark if there is none. If the start
        of that transaction was deleted, this is the log start offset."""
        unstable = self.log.reader.first_unstable_offset(self.high_watermark)
        return self.high_watermark if unstable is None else min(max(unstable, self.log.log_start_offset), self.high_watermark)

    def settle_transactions(self) -> None:
        """Forget the transactions that have ended below the high watermark; reads do it too, but there may be none."""
        self.log.reader.first_unstable_offset(self.high_watermark)

    def check_leader_epoch(self, epoch: int) -> None:
        """Refuse a request made for another epoch (KIP-320); -1 means no check.

        Raises:
            KafkaError: FENCED_LEADER_EPOCH for an older one, UNKNOWN_LEADER_EPOCH for a newer one.
        """
        if epoch in (-1, self.leader_epoch):
            return
        raise KafkaError(ErrorCode.FENCED_LEADER_EPOCH if epoch < self.leader_epoch else ErrorCode.UNKNOWN_LEADER_EPOCH)

    @abstractmethod
    def add_fetch_waiter(self, waiter: FetchWaiter, *, as_follower: bool = False) -> None:
        """Tell `waiter` about records that it can read: committed records, or for a follower appended ones."""

    def remove_fetch_waiter(self, waiter: FetchWaiter) -> None:
        self._fetch_waiters.pop(waiter, None)

    def tell_log_start(self) -> None:
        """Tell all waiting fetches that records were removed from the log's start."""
        for waiter in self._all_fetch_waiters():
            waiter.log_start_moved()

    def close(self, reason: ErrorCode = ErrorCode.NOT_LEADER_OR_FOLLOWER) -> None:
        self.closed = True
        self._send_fetchers_away()

    def _send_fetchers_away(self) -> None:
        """Make the waiting fetches ask again."""
        waiters = self._all_fetch_waiters()
        self._fetch_waiters.clear()
        for waiter in waiters:
            waiter.partition_closed()

    def _all_fetch_waiters(self) -> list[FetchWaiter]:
        return list(self._fetch_waiters)

    def _advance(self, offset: int, added_bytes: int) -> None:
        """Record that everything below `offset` is committed, and tell the waiting fetches."""
        if offset <= self.high_watermark:
            return
        self.high_watermark = offset
        if self._fetch_waiters:
            for waiter in list(self._fetch_waiters):
                waiter.records_added(added_bytes)

    # Flushing

    def update_config(self, config: TopicConfig) -> None:
        """Apply changed settings of the topic; records that they no longer hold back until a flush are kept."""
        self.log.update_config(config)
        self._plan_flushing()
        self._flush_or_keep()

    @property
    def _is_held_back(self) -> bool:
        """Whether the end of the log must reach the disk before it counts as kept."""
        return self.log.log_end_offset - self.log.durable_end >= self.log.config.flush_messages

    @property
    def _kept_end(self) -> int:
        """The offset below which all records are as safe on this broker as the topic's settings ask."""
        return self.log.durable_end if self._flushes is not None and self._is_held_back else self.log.log_end_offset

    @property
    def needs_flush(self) -> bool:
        return self._kept_end < self.log.log_end_offset

    def resume_flushing(self) -> None:
        """Ask for the flushes that records already in the log need; this broker's former role may have asked for them, but it has ended."""
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
        """Ask for the flushes that the settings need now; records that need not wait for them are kept."""
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
        """The next flush, of all records up to now; None if all are on the disk, perhaps by a flush of this broker's former role.

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
        """Take over the result of `plan`.

        Raises:
            LogDirFailed: the flush failed; no more records count as kept.
        """
        self.log.finish_flush(plan)
        if self.closed:
            return
        self._is_flushed(plan.size)
        if self.log.durable_end < self.log.log_end_offset:
            self._flush_or_keep()

    def _is_flushed(self, size: int) -> None:
        """Record that the log is on the disk up to its durable end; `size` are the hidden bytes before that."""
        self._is_flush_timed = False
        self._plan_flushing()
        self._keep(self.log.durable_end, size)

    @abstractmethod
    def _keep(self, offset: int, size: int) -> None:
        """Record that records below `offset` need not wait for a flush any more; `size` are the hidden bytes before it."""
