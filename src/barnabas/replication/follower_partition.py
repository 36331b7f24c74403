"""A partition that another broker leads: this replica appends the leader's answers to its log, and consumers read from it.

`FollowerState` cuts the log; this module has the interface for the rest of the broker.

Rules
  1. The high watermark is the leader's, but at most the log end offset; it moves back only if the log is cut.
  2. A read past the end of this log gets NOT_LEADER_OR_FOLLOWER, so that the client asks the leader. Clients may ask a broker that has
     lost its disk, because they do not know of the loss. OFFSET_OUT_OF_RANGE would make them reset their position.
  3. If the topic's settings ask for it, a follower reports records to the leader only when they are on the disk: `is_ready` is False
     while a flush is due.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, ClassVar, Literal

from barnabas.errors import ErrorCode, KafkaError
from barnabas.replication.follower_state import Cut, FollowerState, LeadersAnswer, Next, Position
from barnabas.replication.online_replica import OnlineReplica
from barnabas.replication.partition_followers import LeaderAndIsr
from barnabas.storage.file_region import FileRegion
from barnabas.storage.log import Log

if TYPE_CHECKING:
    from barnabas.replication.online_replica import FetchWaiter, FlushScheduler


class FollowerPartition(OnlineReplica):
    """A follower.

    Args:
        log: its log; this object is the only writer.
        state: the leader and its epoch.
        flushes: as in `OnlineReplica`.
        high_watermark: the last known one, from the checkpoint or from this broker's former role.
    """

    __slots__ = ("follower_state", "on_close", "on_ready")

    is_leader: ClassVar[Literal[False]] = False
    refusal: ClassVar[ErrorCode] = ErrorCode.NOT_LEADER_OR_FOLLOWER  # error code for requests that only the leader may answer

    def __init__(self, log: Log, state: LeaderAndIsr, *, flushes: FlushScheduler | None, high_watermark: int) -> None:
        super().__init__(
            log, leader_id=state.leader, leader_epoch=state.leader_epoch, flushes=flushes, high_watermark=high_watermark
        )
        self.follower_state = FollowerState(
            log, leader_id=state.leader, leader_epoch=state.leader_epoch, high_watermark=self.high_watermark
        )
        self.on_ready: Callable[[], None] | None = None  # called when a due flush has finished
        self.on_close: Callable[[], None] | None = None

    def follow(self, state: LeaderAndIsr) -> bool:
        """Follow the leader that the controller names; False if `state` is older, or names the same leader and epoch."""
        if state.leader_epoch < self.leader_epoch or (state.leader_epoch, state.leader) == (self.leader_epoch, self.leader_id):
            return False
        self.leader_id, self.leader_epoch = state.leader, state.leader_epoch
        self.follower_state = FollowerState(
            self.log, leader_id=state.leader, leader_epoch=state.leader_epoch, high_watermark=self.high_watermark
        )
        self._send_fetchers_away()
        return True

    def close(self, reason: ErrorCode = ErrorCode.NOT_LEADER_OR_FOLLOWER) -> None:
        super().close(reason)
        if self.on_close is not None:
            self.on_close()

    # Fetching

    @property
    def is_ready(self) -> bool:
        """Whether the next fetch may be sent: it tells the leader that this replica keeps all of its log."""
        return not (self._flushes is not None and self._is_held_back)

    @property
    def position(self) -> Position:
        return self.follower_state.position

    def receive(self, asked: Position, answer: LeadersAnswer, now_ms: int) -> Next:
        """Apply the leader's answer to a fetch at `asked`; raises as `FollowerState.receive`, and then a part may be in the log."""
        log, end = self.log, self.log.log_end_offset
        start = log.log_start_offset
        try:
            step = self.follower_state.receive(asked, answer, now_ms)
        finally:
            self._follow_log(end, len(answer.records))
        if log.log_start_offset > start:
            self.tell_log_start()
        return step

    def cut(self, cut: Cut) -> Next:
        """See `FollowerState.cut`."""
        end = self.log.log_end_offset
        step = self.follower_state.cut(cut)
        self._follow_log(end, 0)
        return step

    def reset(self, leader_start: int, leader_end: int) -> Next:
        """Handle a position outside of the leader's log; see `FollowerState.reset`."""
        end = self.log.log_end_offset
        step = self.follower_state.reset(leader_start, leader_end)
        self._follow_log(end, 0)
        return step

    def _follow_log(self, end_before: int, size: int) -> None:
        """Update the flush and the high watermark after the log has become longer or shorter."""
        end, mark = self.log.log_end_offset, self.follower_state.high_watermark
        if end < end_before:
            self._hidden_bytes = 0
            self._plan_flushing()
        elif end > end_before:
            self._hidden_bytes += size
            self._flush_or_keep()
        if mark < self.high_watermark:
            self.high_watermark = mark
        elif mark > self.high_watermark:
            shown, self._hidden_bytes = self._hidden_bytes, 0
            self._advance(mark, shown)
            self.settle_transactions()

    # Reading

    def read(
        self, offset: int, max_bytes: int, *, minimum_one: bool, isolation_level: int = 0, is_verified_later: bool = False
    ) -> FileRegion | None:
        """As `OnlineReplica.read`; raises NOT_LEADER_OR_FOLLOWER past the end of this log, because the leader may have these records."""
        if offset > self.log.log_end_offset:
            raise KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        return super().read(
            offset, max_bytes, minimum_one=minimum_one, isolation_level=isolation_level, is_verified_later=is_verified_later
        )

    def diverging_epoch(self, last_fetched_epoch: int, fetch_offset: int) -> None:
        """As `LeaderPartition.diverging_epoch`; raises NOT_LEADER_OR_FOLLOWER if the logs differ: only the leader knows which is right."""
        if last_fetched_epoch < 0:
            return
        epoch, end_offset = self.log.reader.end_offset_for_epoch(last_fetched_epoch)
        if epoch < last_fetched_epoch or end_offset < fetch_offset:
            raise KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER)

    def _keep(self, offset: int, size: int) -> None:
        if self.on_ready is not None and self.is_ready:
            self.on_ready()

    def add_fetch_waiter(self, waiter: FetchWaiter, *, as_follower: bool = False) -> None:
        self._fetch_waiters[waiter] = None
