"""One partition on this broker: its log, who leads it, how far it is committed, and who waits for that.

Rules
  1. The high watermark never moves back while this broker leads, and never passes the log's end.
  2. Readers see nothing at or above the high watermark.
  3. Waiting is woken by events (an append, a moved watermark, a closed partition), never by polling.

The leader is its only replica so far, so everything appended is committed at once; the rules for followers come with replication and
change only `_maybe_advance`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from barnabas.errors import ErrorCode, KafkaError
from barnabas.storage.log import AppendOrigin, AppendResult, FileRegion, Log

if TYPE_CHECKING:
    from typing import Protocol

    class FetchWaiter(Protocol):
        """Somebody who waits for records of a partition."""

        def records_added(self, size: int) -> None:
            """`size` more bytes can be read."""
            ...

        def log_start_moved(self) -> None:
            """Records were removed from the log's start."""
            ...

        def partition_closed(self) -> None: ...


READ_UNCOMMITTED, READ_COMMITTED = 0, 1
IN_SYNC_REPLICAS = 1  # the leader is its only replica


class Partition:
    """The leader of one partition.

    Args:
        log: the partition's log; this object is its only writer.
        leader_id: broker id of the leader.
        leader_epoch: the epoch it leads in.
    """

    __slots__ = (
        "_commit_waiters",
        "_fetch_waiters",
        "closed",
        "high_watermark",
        "index",
        "leader_epoch",
        "leader_id",
        "log",
        "topic",
        "topic_id",
    )

    def __init__(self, log: Log, *, leader_id: int, leader_epoch: int, high_watermark: int | None = None) -> None:
        assert log.topic_id is not None, "a hosted log has its topic's id"
        self.log = log
        self.topic_id = log.topic_id
        self.topic = log.topic
        self.index = log.partition
        self.leader_id = leader_id
        self.leader_epoch = leader_epoch
        self.high_watermark = log.log_end_offset if high_watermark is None else high_watermark
        self.closed = False
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
            self._maybe_advance(len(records))
        return result

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

    def close(self) -> None:
        """This broker no longer has the partition: whoever waits is told."""
        self.closed = True
        waiters, self._commit_waiters = self._commit_waiters, []
        for _, done in waiters:
            done(KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER))
        for waiter in list(self._fetch_waiters):
            waiter.partition_closed()
        self._fetch_waiters.clear()

    def _maybe_advance(self, added_bytes: int) -> None:
        offset = self.log.log_end_offset
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
