"""One partition on this broker: its log, who leads it, how far it is committed, and who waits for that.

Rules
  1. The high watermark never moves back while this broker leads, and never passes the log's end.
  2. Readers see nothing at or above the high watermark.
  3. Waiting is woken by events (an append, a moved watermark, a closed partition), never by polling.
  4. Where the topic has `flush.messages` = n, fewer than n records below the high watermark are not on the disk: an append that would
     make it n waits for a flush, and so does everything behind it. With n = 1, what is committed or seen survives the loss of power.
  5. After a flush that failed nothing is committed any more; whoever waits is told so.

How flushes work: an append past `_flush_at` asks the scheduler for a flush. The scheduler calls `plan_flush`, runs the plan in a thread,
among those of other partitions, and gives it back to `finish_flush`, which moves the high watermark. Topics without flush settings have
`_flush_at` out of reach: one comparison is all they pay.

The leader is its only replica so far, so what is appended (and flushed) is committed; the rules for followers come with replication and
change only `_advance`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from barnabas.config.topic import TopicConfig
from barnabas.errors import ErrorCode, KafkaError
from barnabas.storage.flushing import FlushPlan
from barnabas.storage.log import AppendOrigin, AppendResult, FileRegion, Log

if TYPE_CHECKING:
    from typing import Protocol

    from barnabas.protocol.records.scan import Run

    class FetchWaiter(Protocol):
        """Somebody who waits for records of a partition."""

        def records_added(self, size: int) -> None:
            """`size` more bytes can be read."""
            ...

        def log_start_moved(self) -> None:
            """Records were removed from the log's start."""
            ...

        def partition_closed(self) -> None: ...

    class FlushScheduler(Protocol):
        """Runs the flushes that partitions ask for."""

        def flush_soon(self, partition: Partition) -> None:
            """Plan, run and finish a flush; asked again before that was planned, it is the same one."""
            ...

        def flush_later(self, partition: Partition, delay_ms: int) -> None:
            """The same after `delay_ms`."""
            ...


READ_UNCOMMITTED, READ_COMMITTED = 0, 1
IN_SYNC_REPLICAS = 1  # the leader is its only replica
NEVER = 2**63 - 1


class Partition:
    """The leader of one partition.

    Args:
        log: the partition's log; this object is its only writer.
        leader_id: broker id of the leader.
        leader_epoch: the epoch it leads in.
        flushes: runs what `flush.messages` and `flush.ms` ask for; without one they have no effect.
    """

    __slots__ = (
        "_commit_waiters",
        "_fetch_waiters",
        "_flush_at",
        "_flushes",
        "_hidden_bytes",
        "_is_flush_timed",
        "closed",
        "high_watermark",
        "index",
        "leader_epoch",
        "leader_id",
        "log",
        "topic",
        "topic_id",
    )

    is_offline = False

    def __init__(self, log: Log, *, leader_id: int, leader_epoch: int, flushes: FlushScheduler | None = None) -> None:
        assert log.topic_id is not None, "a hosted log has its topic's id"
        self.log = log
        self.topic_id = log.topic_id
        self.topic = log.topic
        self.index = log.partition
        self.leader_id = leader_id
        self.leader_epoch = leader_epoch
        self.closed = False
        self._flushes = flushes
        self._flush_at = NEVER  # an append that ends at or past this offset has to do with a flush
        self._hidden_bytes = 0  # appended, not below the high watermark yet
        self._is_flush_timed = False  # `flush_later` was asked, and nothing was flushed since
        self.high_watermark = log.durable_end if flushes is not None and self._is_held_back else log.log_end_offset
        if flushes is not None:
            self._plan_flushing()
        self._fetch_waiters: dict[FetchWaiter, None] = {}  # in the order in which they came
        self._commit_waiters: list[tuple[int, Callable[[KafkaError | None], None]]] = []

    def append_as_leader(
        self, records: memoryview, now_ms: int, origin: AppendOrigin = AppendOrigin.CLIENT, *, acks_all: bool = False
    ) -> AppendResult:
        """Append one batch.

        Args:
            acks_all: the producer wants it on all replicas in sync, of which there must be `min.insync.replicas`.

        Raises:
            KafkaError: NOT_ENOUGH_REPLICAS, and as `Log.append_as_leader`.
        """
        if acks_all and self.log.config.min_insync_replicas > IN_SYNC_REPLICAS:
            raise KafkaError(ErrorCode.NOT_ENOUGH_REPLICAS)
        result = self.log.append_as_leader(records, leader_epoch=self.leader_epoch, now_ms=now_ms, origin=origin)
        if not result.duplicate:
            if self.log.log_end_offset < self._flush_at:
                self._advance(self.log.log_end_offset, len(records))
            else:
                self._appended_past_flush_point(len(records))
        return result

    def append_run(self, run: Run, buffer: memoryview, *, acks_all: bool) -> int | None:
        """Append the checked batches of `run`, which lie in `buffer`, all or none; the first one's base offset.

        Returns:
            None where it takes more than writing them; nothing was done then.

        Raises:
            KafkaError, StorageError: as `append_as_leader`.
        """
        log = self.log
        if acks_all and log.config.min_insync_replicas > IN_SYNC_REPLICAS:
            return None
        first_offset = log.append_run(run, buffer, leader_epoch=self.leader_epoch)
        if first_offset is not None:
            if log.log_end_offset < self._flush_at:
                self._advance(log.log_end_offset, run.size)
            else:
                self._appended_past_flush_point(run.size)
        return first_offset

    def is_committed(self, last_offset: int) -> bool:
        return last_offset < self.high_watermark

    def wait_committed(self, last_offset: int, done: Callable[[KafkaError | None], None]) -> None:
        """Call `done(None)` once `last_offset` is below the high watermark, or with the error that prevents it."""
        self._commit_waiters.append((last_offset, done))

    def read(self, offset: int, max_bytes: int, *, minimum_one: bool, isolation_level: int = 0) -> FileRegion | None:
        """Whole batches from the one that holds `offset` up to what readers may see.

        Raises:
            KafkaError: OFFSET_OUT_OF_RANGE outside [log start offset, high watermark].
        """
        if offset > self.high_watermark:
            raise KafkaError(ErrorCode.OFFSET_OUT_OF_RANGE)
        limit = self.last_stable_offset if isolation_level == READ_COMMITTED else self.high_watermark
        return self.log.read(offset, max_bytes, limit_offset=limit, minimum_one=minimum_one)

    @property
    def last_stable_offset(self) -> int:
        """The first offset of the oldest open transaction, or the high watermark: no transactions are open so far."""
        return self.high_watermark

    def check_leader_epoch(self, epoch: int) -> None:
        """Refuse a request made for another epoch (KIP-320); -1 asks for no check.

        Raises:
            KafkaError: FENCED_LEADER_EPOCH for an older one, UNKNOWN_LEADER_EPOCH for a newer one.
        """
        if epoch in (-1, self.leader_epoch):
            return
        raise KafkaError(ErrorCode.FENCED_LEADER_EPOCH if epoch < self.leader_epoch else ErrorCode.UNKNOWN_LEADER_EPOCH)

    def diverging_epoch(self, last_fetched_epoch: int, fetch_offset: int) -> tuple[int, int] | None:
        """Where a fetcher whose last batch has `last_fetched_epoch` leaves our log (KIP-595): (epoch, end offset), or None."""
        if last_fetched_epoch < 0:
            return None
        epoch, end_offset = self.log.end_offset_for_epoch(last_fetched_epoch)
        if epoch < 0:
            raise KafkaError(ErrorCode.OFFSET_OUT_OF_RANGE)
        return (epoch, end_offset) if epoch < last_fetched_epoch or end_offset < fetch_offset else None

    def end_offset_for_epoch(self, leader_epoch: int) -> tuple[int, int]:
        """The largest epoch up to `leader_epoch` and the offset it ends before; (-1, -1) where there is none (KIP-101).

        The epoch that still is led ends at the end of the log.
        """
        if leader_epoch == self.leader_epoch:
            return leader_epoch, self.log.log_end_offset
        return self.log.end_offset_for_epoch(leader_epoch)

    def add_fetch_waiter(self, waiter: FetchWaiter) -> None:
        self._fetch_waiters[waiter] = None

    def remove_fetch_waiter(self, waiter: FetchWaiter) -> None:
        self._fetch_waiters.pop(waiter, None)

    def tell_log_start(self) -> None:
        """Records were removed from the log's start: whoever follows the partition is told."""
        for waiter in list(self._fetch_waiters):
            waiter.log_start_moved()

    def close(self, reason: ErrorCode = ErrorCode.NOT_LEADER_OR_FOLLOWER) -> None:
        """This broker no longer has the partition: whoever waits is told."""
        self.closed = True
        waiters, self._commit_waiters = self._commit_waiters, []
        for _, done in waiters:
            done(KafkaError(reason))
        for waiter in list(self._fetch_waiters):
            waiter.partition_closed()
        self._fetch_waiters.clear()

    # Flushing

    def update_config(self, config: TopicConfig) -> None:
        """The topic's settings changed, those about flushing too: what they no longer hold back is committed."""
        self.log.update_config(config)
        if self._flushes is not None:
            self._plan_flushing()
            self._flush_or_advance()

    @property
    def _is_held_back(self) -> bool:
        """Whether the end of the log must reach the disk before it is committed."""
        return self.log.log_end_offset - self.log.durable_end >= self.log.config.flush_messages

    @property
    def needs_flush(self) -> bool:
        return self.high_watermark < self.log.log_end_offset

    def _plan_flushing(self) -> None:
        config, durable_end = self.log.config, self.log.durable_end
        if config.flush_ms < NEVER and not self._is_flush_timed:
            self._flush_at = durable_end + 1  # the first record that is not on the disk starts the clock
        else:
            self._flush_at = min(durable_end + config.flush_messages, NEVER)

    def _appended_past_flush_point(self, size: int) -> None:
        self._hidden_bytes += size
        self._flush_or_advance()

    def _flush_or_advance(self) -> None:
        """Ask for the flushes that the settings want now, and commit what need not wait for them."""
        assert self._flushes is not None, "only a partition with a scheduler has a point at which to flush"
        config = self.log.config
        if config.flush_ms < NEVER and not self._is_flush_timed and self.log.durable_end < self.log.log_end_offset:
            self._is_flush_timed = True
            self._flushes.flush_later(self, config.flush_ms)
            self._plan_flushing()
        if self._is_held_back:
            self._flushes.flush_soon(self)
        else:
            self._show(self.log.log_end_offset, self._hidden_bytes)

    def plan_flush(self) -> FlushPlan | None:
        """The next flush, of all there is now; None where all is on the disk.

        Raises:
            LogDirFailed: the disk failed before.
        """
        plan = self.log.plan_flush(everything=False)
        if plan is not None:
            plan.size = self._hidden_bytes
        return plan

    def finish_flush(self, plan: FlushPlan) -> None:
        """Commit what `plan` has brought to the disk.

        Raises:
            LogDirFailed: it has not; nothing is committed.
        """
        self.log.finish_flush(plan)
        if self.closed:
            return
        self._is_flush_timed = False
        self._plan_flushing()
        if self.log.durable_end > self.high_watermark:
            self._show(self.log.durable_end, plan.size)
        if self.log.durable_end < self.log.log_end_offset:
            self._flush_or_advance()

    def _show(self, offset: int, size: int) -> None:
        """Commit what was held back up to `offset`: `size` bytes."""
        self._hidden_bytes -= size
        self._advance(offset, size)

    def _advance(self, offset: int, added_bytes: int) -> None:
        """Everything below `offset` is committed."""
        if offset <= self.high_watermark:
            return
        self.high_watermark = offset
        if self._commit_waiters:
            ready = [done for last, done in self._commit_waiters if last < offset]
            self._commit_waiters = [(last, done) for last, done in self._commit_waiters if last >= offset]
            for done in ready:
                done(None)
        if self._fetch_waiters:
            for waiter in list(self._fetch_waiters):
                waiter.records_added(added_bytes)
