"""The followers of one partition that this broker leads: the partition's work for them.

Owns the in-sync replicas (`InSyncReplicas`), `kept_end`, the bytes that readers do not see yet, and the waiting fetches of followers.

Rules
  1. `kept_end` is the leader's own part in the high watermark: below it, the leader's log is as safe as the topic's settings ask.
     Records that need a flush and are not flushed do not count.
  2. A change of the ISR is proposed to the controller through `Cluster.propose`; its answer comes back to the partition.
  3. Followers are told about records when they are appended, and about the high watermark when it moves.
  4. `now_ms` is of a clock that never goes back. An append does not give the time: it uses the last known time.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Protocol

from barnabas.replication.in_sync import InSyncReplicas, IsrChange

if TYPE_CHECKING:
    from uuid import UUID

    from barnabas.replication.leader_partition import LeaderPartition
    from barnabas.replication.online_replica import FetchWaiter

MAX_HIDDEN_PIECES = 256  # uncommitted appends with a size of their own; the size of later ones is added to the last


class LeaderAndIsr(Protocol):
    """The controller's state of a partition; `cluster.metadata.image.PartitionState` is one."""

    @property
    def leader(self) -> int: ...
    @property
    def leader_epoch(self) -> int: ...
    @property
    def replicas(self) -> tuple[int, ...]: ...
    @property
    def isr(self) -> tuple[int, ...]: ...
    @property
    def partition_epoch(self) -> int: ...


class Cluster(Protocol):
    """The interface of the rest of the broker that a leader needs."""

    @property
    def lag_max_ms(self) -> int:
        """`replica.lag.time.max.ms`."""
        ...

    @property
    def heard(self) -> Mapping[int, int]:
        """The time of each broker's last request for records, by the same clock as every `now_ms` here."""
        ...

    def may_join(self, replica_id: int, broker_epoch: int, topic_id: UUID, partition: int) -> bool:
        """Whether a broker may be in sync: registered in this epoch, not fenced, not shutting down, and its log is on a disk that works.

        A broker whose disk failed continues to fetch other partitions, so it would otherwise count as caught up.
        """
        ...

    def in_sync_changed(self, before: frozenset[int], after: frozenset[int]) -> None:
        """Count a change of the ISR that the controller made."""
        ...

    def propose(self, partition: LeaderPartition, change: IsrChange) -> None:
        """Ask the controller; the answer comes by the partition's `settle_isr` or `isr_refused`, or as a newer `LeaderAndIsr`."""
        ...


class PartitionFollowers:
    """See the module.

    Args:
        leader_id: this broker.
        state: the controller's state of the partition.
        key: topic id and number of the partition.
        epoch_start: the log end offset when this leader epoch began.
        kept_end: the offset below which the leader's own log is as safe as the topic's settings ask.
    """

    __slots__ = ("_cluster", "_hidden", "_key", "change", "kept_end", "now_ms", "replicas", "waiters")

    def __init__(
        self,
        leader_id: int,
        state: LeaderAndIsr,
        cluster: Cluster,
        *,
        key: tuple[UUID, int],
        epoch_start: int,
        kept_end: int,
        now_ms: int,
    ) -> None:
        self._cluster = cluster
        self._key = key
        self.replicas = InSyncReplicas(
            leader_id=leader_id,
            replicas=state.replicas,
            isr=state.isr,
            leader_epoch=state.leader_epoch,
            partition_epoch=state.partition_epoch,
            epoch_start=epoch_start,
            now_ms=now_ms,
            lag_max_ms=cluster.lag_max_ms,
            heard=cluster.heard,
        )
        self.kept_end = kept_end
        self.now_ms = now_ms  # the time of the last call
        self.change: IsrChange | None = None  # proposed to the controller, which has not answered yet
        self.waiters: dict[FetchWaiter, None] = {}  # waiting fetches of followers
        self._hidden: deque[tuple[int, int]] = deque()  # (end offset, bytes) of uncommitted appends

    def update(self, state: LeaderAndIsr, now_ms: int) -> bool:
        """Apply a state from the controller in the same leader epoch; False for an older one.

        The metadata repeats the state that an answer to a change has already given. The leader may have proposed another change in
        between. The repeated state says nothing about that change, so both sets still count.
        """
        is_known = state.partition_epoch == self.replicas.partition_epoch and frozenset(state.isr) == self.replicas.isr
        if not is_known and not self.settle(state.isr, state.partition_epoch):
            return False
        self.now_ms = now_ms
        self.replicas.set_replicas(state.replicas, now_ms)
        return True

    # Records

    def appended(self, start: int, end: int, size: int) -> None:
        """Record that [start, end) was appended, in `size` bytes."""
        self.replicas.appending(start)
        self.hide(end, size)
        if self.waiters:
            for waiter in list(self.waiters):
                waiter.records_added(size)

    def log_was_cut(self, end: int) -> None:
        """Record that the leader's log ends at `end` now, before where it ended."""
        self._hidden.clear()
        self.kept_end = min(self.kept_end, end)
        self.replicas.log_was_cut(end)

    def hide(self, end: int, size: int) -> None:
        """Record that the `size` bytes before `end` are not committed yet."""
        hidden = self._hidden
        if len(hidden) >= MAX_HIDDEN_PIECES:
            hidden[-1] = end, hidden[-1][1] + size
        else:
            hidden.append((end, size))

    def shown(self, offset: int) -> int:
        """Record that records below `offset` are committed; returns the approximate number of bytes that become visible."""
        hidden, size = self._hidden, 0
        while hidden and hidden[0][0] <= offset:
            size += hidden.popleft()[1]
        return size

    def committed(self, current: int, min_insync_replicas: int) -> int:
        """The high watermark that follows from the current state."""
        return self.replicas.high_watermark(
            current,
            self.kept_end,
            min_insync_replicas=min_insync_replicas,
            now_ms=self.now_ms,
            may_join=self._may_join,
        )

    # The in-sync set

    def _may_join(self, replica_id: int, broker_epoch: int) -> bool:
        return self._cluster.may_join(replica_id, broker_epoch, *self._key)

    def maybe_expand(self, partition: LeaderPartition, replica_id: int) -> None:
        if replica_id not in self.replicas.isr:
            mark, start = partition.high_watermark, partition.log.log_start_offset
            self._propose(partition, self.replicas.propose_expansion(replica_id, mark, self._may_join, log_start=start))

    def maybe_expand_all(self, partition: LeaderPartition) -> None:
        """Let caught-up followers join that could not join before: they were fenced, or another change was under way."""
        for replica_id in self.replicas.caught_up_outside(partition.log.log_end_offset, self.now_ms):
            self.maybe_expand(partition, replica_id)

    def maybe_shrink(self, partition: LeaderPartition) -> None:
        self._propose(partition, self.replicas.propose_shrinking(partition.log.log_end_offset, self.now_ms))

    def _propose(self, partition: LeaderPartition, change: IsrChange | None) -> None:
        if change is not None:
            self.change = change
            self._cluster.propose(partition, change)

    def settle(self, isr: Iterable[int], partition_epoch: int) -> bool:
        """Apply the controller's answer; False if a newer state is known."""
        before = self.replicas.isr
        if not self.replicas.settle(isr, partition_epoch):
            return False
        self.change = None
        if self.replicas.isr != before:
            self._cluster.in_sync_changed(before, self.replicas.isr)
        return True

    def withdraw(self, change: IsrChange) -> bool:
        """Drop a change that the controller certainly refused; False if it is not the one under way."""
        if self.change is not change:
            return False
        self.change = None
        self.replicas.withdraw()
        return True
