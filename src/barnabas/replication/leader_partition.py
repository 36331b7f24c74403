"""One partition that this broker leads: appends to it, its high watermark, and the requests that wait for either.

`OnlineReplica` has the part that leaders and followers share.

Rules
  1. The high watermark never moves back while this broker leads, and never passes the log's end.
  2. Consumers see nothing at or above the high watermark; followers read to the log's end.
  3. A leader without followers commits the records that it keeps. With followers, `followers` computes the high watermark after each
     append, each fetch of a follower and each state from the controller (`_commit`).
  4. While fewer than min.insync.replicas are in sync, the leader refuses acks=all: before the append, or after it for producers that
     wait already.

A leader without followers and flush settings pays one comparison for all of this: `_detour_at` is above every offset then. With
followers it is below every offset.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, ClassVar, Literal

from barnabas.config.topic import TopicConfig
from barnabas.errors import ErrorCode, KafkaError
from barnabas.replication.in_sync import IsrChange
from barnabas.replication.online_replica import NEVER, OnlineReplica
from barnabas.replication.partition_followers import Cluster, LeaderAndIsr, PartitionFollowers
from barnabas.storage.file_region import FileRegion
from barnabas.storage.log import AppendOrigin, AppendResult, Log

if TYPE_CHECKING:
    from barnabas.protocol.records.record import OwnBatch
    from barnabas.protocol.records.rows import Run
    from barnabas.replication.online_replica import FetchWaiter, FlushScheduler
    from barnabas.storage.markers import Ending
    from barnabas.storage.producer_rewind import ProducerRewind

Done = Callable[[KafkaError | None], None]


class LeaderPartition(OnlineReplica):
    """The leader of one partition; the arguments are those of `OnlineReplica`."""

    __slots__ = ("_commit_waiters", "_deletion_waiters", "_detour_at", "_kept_waiters", "followers", "is_under_min_isr")

    is_leader: ClassVar[Literal[True]] = True

    def __init__(
        self,
        log: Log,
        *,
        leader_id: int,
        leader_epoch: int,
        flushes: FlushScheduler | None = None,
        high_watermark: int | None = None,
    ) -> None:
        self._detour_at = NEVER  # appends that end at or past this offset involve a flush or followers
        self.followers: PartitionFollowers | None = None  # None: this broker has the only replica
        self.is_under_min_isr = False
        # End offset, callback, whether to refuse it if too few replicas are in sync.
        self._commit_waiters: list[tuple[int, Done, bool]] = []
        self._kept_waiters: list[tuple[int, Done]] = []
        self._deletion_waiters: list[tuple[int, Done]] = []
        super().__init__(log, leader_id=leader_id, leader_epoch=leader_epoch, flushes=flushes, high_watermark=high_watermark)

    # Appending

    def append_as_leader(
        self, records: memoryview, now_ms: int, origin: AppendOrigin = AppendOrigin.CLIENT, *, acks_all: bool = False
    ) -> AppendResult:
        """Append one batch.

        Args:
            acks_all: the producer wants the records on all in-sync replicas, of which there must be `min.insync.replicas`.

        Raises:
            KafkaError: NOT_ENOUGH_REPLICAS; other errors as `LogAppender.append_as_leader`.
        """
        if acks_all and self.is_under_min_isr:
            raise KafkaError(ErrorCode.NOT_ENOUGH_REPLICAS)
        log = self.log
        result = log.appender.append_as_leader(records, leader_epoch=self.leader_epoch, now_ms=now_ms, origin=origin)
        if not result.duplicate:
            if log.log_end_offset < self._detour_at:
                self._advance(log.log_end_offset, len(records))
            else:
                self._appended(result.first_offset, len(records))
        return result

    def append_own(self, batch: OwnBatch, now_ms: int, ending: Ending | None = None) -> int:
        """Append a batch that this broker has made, as with `acks_all`; returns its last offset.

        Args:
            ending: the content of the marker, if the batch ends a transaction.

        Raises:
            KafkaError: NOT_ENOUGH_REPLICAS; other errors as `LogAppender.append_own`.
        """
        if self.is_under_min_isr:
            raise KafkaError(ErrorCode.NOT_ENOUGH_REPLICAS)
        log = self.log
        first_offset = log.log_end_offset
        last_offset = log.appender.append_own(batch, ending, leader_epoch=self.leader_epoch, now_ms=now_ms)
        if log.log_end_offset < self._detour_at:
            self._advance(log.log_end_offset, len(batch.data))
        else:
            self._appended(first_offset, len(batch.data))
        if ending is not None:
            self.settle_transactions()
        return last_offset

    def admits_run(self, run: Run, buffer: memoryview, *, acks_all: bool) -> bool:
        """Whether `append_run` can take the checked batches of `run`, which are in `buffer`; if not, they are appended one by one.

        Raises:
            KafkaError: as `append_as_leader`, for the producer of the batches.
        """
        if acks_all and self.is_under_min_isr:
            return False
        return self.log.appender.admits_run(run, buffer, leader_epoch=self.leader_epoch)

    def append_run(self, run: Run, buffer: memoryview) -> int:
        """Append a run that `admits_run` has accepted, all or none; returns the first batch's base offset.

        Raises:
            StorageError: as `append_as_leader`; nothing was appended.
        """
        log = self.log
        first_offset = log.appender.append_run(run, buffer, leader_epoch=self.leader_epoch)
        if log.log_end_offset < self._detour_at:
            self._advance(log.log_end_offset, run.size)
        else:
            self._appended(first_offset, run.size)
        return first_offset

    def took_over(self, first_offset: int, size: int) -> None:
        """Count batches that were copied to the log from another cluster; they begin at `first_offset` and take `size` bytes."""
        self._appended(first_offset, size)
        self.settle_transactions()

    def cut_log(self, offset: int, rewind: ProducerRewind | None, *, start_again_at: int | None = None) -> None:
        """Drop the records from `offset` on: they were written here, and another cluster that took over has others there.

        Nothing may be appended before the next leader epoch. Until then followers see by offsets alone that the log became shorter.

        Args:
            rewind: see `LogTruncator.truncate_to`.
            start_again_at: drop all records, and let the log start there.

        Raises:
            LogDirFailed: the disk does not work.
        """
        log = self.log
        if start_again_at is None:
            log.truncator.truncate_to(offset, rewind)
        else:
            log.truncator.truncate_fully_and_start_at(start_again_at)
        end = log.log_end_offset
        self.high_watermark = min(self.high_watermark, end) if start_again_at is None else end
        self._hidden_bytes = 0
        self._plan_flushing()
        refused = [done for last, done, _ in self._commit_waiters if last >= end]
        refused += [done for last, done in self._kept_waiters if last >= end]
        self._commit_waiters = [waiter for waiter in self._commit_waiters if waiter[0] < end]
        self._kept_waiters = [waiter for waiter in self._kept_waiters if waiter[0] < end]
        if self.followers is not None:
            self.followers.log_was_cut(end)
        for done in refused:
            done(KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER))
        self._send_fetchers_away()

    @property
    def is_followed_exactly(self) -> bool:
        """Whether all in-sync replicas have this log and nothing else, as far as their last fetches tell."""
        return self.followers is None or self.followers.replicas.all_end_at(self.log.log_end_offset)

    def _appended(self, first_offset: int, size: int) -> None:
        """Tell the followers' state and the flush about an append that begins at `first_offset` and takes `size` bytes."""
        if self.followers is None:
            self._hidden_bytes += size
        else:
            self.followers.appended(first_offset, self.log.log_end_offset, size)
        self._flush_or_keep()

    def is_committed(self, last_offset: int) -> bool:
        return last_offset < self.high_watermark

    def is_kept(self, last_offset: int) -> bool:
        """Whether `last_offset` is as safe on this broker as the topic's settings ask; this is enough for acks=1."""
        return last_offset < (self.high_watermark if self.followers is None else self.followers.kept_end)

    def wait_committed(self, last_offset: int, done: Done) -> None:
        """Call `done(None)` once `last_offset` is below the high watermark, or with the error that prevents it."""
        self._commit_waiters.append((last_offset, done, False))

    def wait_acknowledged(self, last_offset: int, done: Done, *, acks_all: bool) -> None:
        """Call `done(None)` once a producer may be told that `last_offset` is safe, or with the error that prevents it.

        The error may be NOT_ENOUGH_REPLICAS_AFTER_APPEND: the record is in the log, and is committed only if other replicas come back.
        """
        if acks_all or self.followers is None:
            self._commit_waiters.append((last_offset, done, acks_all))
        else:
            self._kept_waiters.append((last_offset, done))

    @property
    def low_watermark(self) -> int:
        """The lowest log start offset of this and all in-sync replicas: no record below it can come back."""
        start = self.log.log_start_offset
        return start if self.followers is None else min(start, self.followers.replicas.lowest_start_offset())

    def is_deleted(self, offset: int) -> bool:
        """Whether all records below `offset` are gone, whichever broker leads next; False while too few replicas are in sync."""
        return not self.is_under_min_isr and offset <= self.low_watermark

    def wait_deleted(self, offset: int, done: Done) -> None:
        """Call `done(None)` once `is_deleted(offset)`, or with the error that prevents it; at once if the outcome is known."""
        if self.closed:
            done(KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER))
        elif self.is_deleted(offset):
            done(None)
        else:
            self._deletion_waiters.append((offset, done))

    def close(self, reason: ErrorCode = ErrorCode.NOT_LEADER_OR_FOLLOWER) -> None:
        waiters = (self._commit_waiters, self._kept_waiters, self._deletion_waiters)
        told = [waiter[1] for some in waiters for waiter in some]
        self._commit_waiters, self._kept_waiters, self._deletion_waiters = [], [], []
        self.closed = True
        for done in told:
            done(KafkaError(reason))
        super().close(reason)

    # Epochs

    def diverging_epoch(self, last_fetched_epoch: int, fetch_offset: int) -> tuple[int, int] | None:
        """The (epoch, end offset) at which a fetcher's log diverges from ours, if its last batch has `last_fetched_epoch` (KIP-595).
        None if it does not diverge."""
        if last_fetched_epoch < 0:
            return None
        epoch, end_offset = self.log.reader.end_offset_for_epoch(last_fetched_epoch)
        if epoch < 0:
            raise KafkaError(ErrorCode.OFFSET_OUT_OF_RANGE)
        return (epoch, end_offset) if epoch < last_fetched_epoch or end_offset < fetch_offset else None

    def end_offset_for_epoch(self, leader_epoch: int) -> tuple[int, int]:
        """The largest epoch up to `leader_epoch` and its end offset; (-1, -1) if there is none (KIP-101).

        The current epoch ends at the end of the log.
        """
        if leader_epoch == self.leader_epoch:
            return leader_epoch, self.log.log_end_offset
        return self.log.reader.end_offset_for_epoch(leader_epoch)

    @property
    def knows_end(self) -> bool:
        """Whether the high watermark has reached the start of this leader epoch; before, more may be committed than is known (KIP-207)."""
        return self.followers is None or self.high_watermark >= self.followers.replicas.epoch_start

    # State from the controller

    def lead(self, state: LeaderAndIsr, cluster: Cluster, now_ms: int) -> None:
        """Lead in the epoch and with the replicas that the controller names; an older state is ignored."""
        if state.leader_epoch < self.leader_epoch:
            return
        begins = state.leader_epoch > self.leader_epoch
        self.leader_epoch = state.leader_epoch
        self.log.appender.begin_epoch(state.leader_epoch)  # so that a consumer that asks for an epoch in between gets its end
        if begins:
            self._send_fetchers_away()  # their fetches belong to the previous epoch
        if len(state.replicas) == 1:
            self._lead_alone()
        elif self.followers is None or begins:
            self._lead_others(state, cluster, now_ms)
        elif not self.followers.update(state, now_ms):
            return
        self._plan_flushing()
        self._in_sync_changed()
        self._flush_or_keep()
        if self.followers is not None:
            self.followers.maybe_expand_all(self)

    def _lead_alone(self) -> None:
        if self.followers is not None:
            self._hidden_bytes = self.followers.shown(NEVER)
            self.followers = None
            self._commit_waiters += [(last_offset, done, False) for last_offset, done in self._kept_waiters]
            self._kept_waiters = []

    def _lead_others(self, state: LeaderAndIsr, cluster: Cluster, now_ms: int) -> None:
        log, before = self.log, self.followers
        hidden = self._hidden_bytes if before is None else before.shown(NEVER)
        self.followers = PartitionFollowers(
            self.leader_id,
            state,
            cluster,
            key=(self.topic_id, self.index),
            epoch_start=log.log_end_offset,
            kept_end=self._kept_end,
            now_ms=now_ms,
        )
        if self.high_watermark < log.log_end_offset:
            self.followers.hide(log.log_end_offset, hidden)

    def settle_isr(self, isr: Iterable[int], *, leader_epoch: int, partition_epoch: int) -> None:
        """Apply the controller's answer to a proposed change."""
        if self.followers is not None and leader_epoch == self.leader_epoch and self.followers.settle(isr, partition_epoch):
            self._in_sync_changed()
            self._commit()
            self.followers.maybe_expand_all(self)

    def is_within_isr(self, isr: Iterable[int]) -> bool:
        """Whether all in-sync replicas are in `isr`."""
        return self.followers is not None and self.followers.replicas.isr.issubset(isr)

    def isr_refused(self, change: IsrChange) -> None:
        """Drop `change`, which the controller has not done and will not do; it may be proposed again."""
        if self.followers is not None and self.followers.withdraw(change):
            self._commit()

    def is_proposing(self, change: IsrChange) -> bool:
        """Whether `change` still waits for the controller's answer."""
        return not self.closed and self.followers is not None and self.followers.change is change

    def update_config(self, config: TopicConfig) -> None:
        super().update_config(config)
        self._in_sync_changed()
        self._commit()

    def _in_sync_changed(self) -> None:
        minimum = self.log.config.min_insync_replicas
        self.is_under_min_isr = self.followers is not None and self.followers.replicas.lacks_replicas(minimum)
        if self._deletion_waiters:
            self._tell_deleted()
        if self.is_under_min_isr and self._commit_waiters:
            refused = [done for _, done, wants_replicas in self._commit_waiters if wants_replicas]
            self._commit_waiters = [waiter for waiter in self._commit_waiters if not waiter[2]]
            for done in refused:
                done(KafkaError(ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND))

    # Followers

    def fetched_by(self, replica_id: int, offset: int, *, start_offset: int, broker_epoch: int, now_ms: int) -> None:
        """Record a fetch of a follower from `offset` on: it has all records before.

        Raises:
            KafkaError: NOT_LEADER_OR_FOLLOWER, the broker is no replica, or has registered again since; OFFSET_OUT_OF_RANGE.
        """
        followers, log = self.followers, self.log
        if followers is None:
            raise KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        if not log.log_start_offset <= offset <= log.log_end_offset:
            raise KafkaError(ErrorCode.OFFSET_OUT_OF_RANGE)
        followers.now_ms = now_ms
        found = followers.replicas.fetched(
            replica_id,
            offset,
            start_offset=start_offset,
            broker_epoch=broker_epoch,
            leader_end=log.log_end_offset,
            now_ms=now_ms,
        )
        if found is None:
            raise KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        followers.maybe_expand(self, replica_id)
        self._commit()
        if self._deletion_waiters:
            self._tell_deleted()

    def _tell_deleted(self) -> None:
        if self.is_under_min_isr:
            return
        mark = self.low_watermark
        ready = [done for offset, done in self._deletion_waiters if offset <= mark]
        self._deletion_waiters = [waiter for waiter in self._deletion_waiters if waiter[0] > mark]
        for done in ready:
            done(None)

    def read_as_follower(
        self, offset: int, max_bytes: int, *, minimum_one: bool, is_verified_later: bool = False
    ) -> FileRegion | None:
        """Whole batches, from the one with `offset` on; the arguments are those of `LogReader.read`.

        Raises:
            KafkaError: OFFSET_OUT_OF_RANGE, `offset` is outside of the log.
        """
        return self.log.reader.read(
            offset,
            max_bytes,
            limit_offset=self.log.log_end_offset,
            minimum_one=minimum_one,
            as_stored=True,
            is_verified_later=is_verified_later,
        )

    def check_in_sync(self, now_ms: int) -> None:
        """Ask the controller to remove followers that fell behind from the ISR, or to add those that caught up; call it regularly."""
        followers = self.followers
        if followers is None:
            return
        followers.now_ms = now_ms
        if self.high_watermark == self.log.log_end_offset and followers.replicas.is_complete:
            return  # all replicas are in sync and have all records
        followers.maybe_shrink(self)
        followers.maybe_expand_all(self)
        self._commit()

    def add_fetch_waiter(self, waiter: FetchWaiter, *, as_follower: bool = False) -> None:
        if as_follower and self.followers is not None:
            self.followers.waiters[waiter] = None
        else:
            self._fetch_waiters[waiter] = None

    def remove_fetch_waiter(self, waiter: FetchWaiter) -> None:
        self._fetch_waiters.pop(waiter, None)
        if self.followers is not None:
            self.followers.waiters.pop(waiter, None)

    def _all_fetch_waiters(self) -> list[FetchWaiter]:
        return [*self._fetch_waiters, *(() if self.followers is None else self.followers.waiters)]

    def _send_fetchers_away(self) -> None:
        waiters = self._all_fetch_waiters()
        self._fetch_waiters.clear()
        if self.followers is not None:
            self.followers.waiters.clear()
        for waiter in waiters:
            waiter.partition_closed()

    # Committing

    def _plan_flushing(self) -> None:
        super()._plan_flushing()
        self._detour_at = self._flush_at if self.followers is None else -1

    def _keep(self, offset: int, size: int) -> None:
        followers = self.followers
        if followers is None:
            if offset > self.high_watermark:
                self._hidden_bytes -= size
                self._advance(offset, size)
            return
        followers.kept_end = max(followers.kept_end, offset)
        if self._kept_waiters:
            ready = [done for last, done in self._kept_waiters if last < offset]
            self._kept_waiters = [waiter for waiter in self._kept_waiters if waiter[0] >= offset]
            for done in ready:
                done(None)
        self._commit()

    def _commit(self) -> None:
        """Move the high watermark as far as the in-sync replicas have the log."""
        followers = self.followers
        if followers is None:
            return
        mark = followers.committed(self.high_watermark, self.log.config.min_insync_replicas)
        if mark > self.high_watermark:
            self._advance(mark, followers.shown(mark))
            if followers.waiters:
                for waiter in list(followers.waiters):
                    waiter.high_watermark_moved()

    def _advance(self, offset: int, added_bytes: int) -> None:
        """Record that everything below `offset` is committed, and tell the waiting requests."""
        if offset <= self.high_watermark:
            return
        self.high_watermark = offset
        if self._commit_waiters:
            ready = [done for last, done, _ in self._commit_waiters if last < offset]
            self._commit_waiters = [waiter for waiter in self._commit_waiters if waiter[0] >= offset]
            for done in ready:
                done(None)
        if self._fetch_waiters:
            for waiter in list(self._fetch_waiters):
                waiter.records_added(added_bytes)
