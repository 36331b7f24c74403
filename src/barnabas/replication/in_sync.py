"""The in-sync replicas of a partition, as its leader sees them, and the high watermark that follows from them.

Owns the followers' progress, the set of in-sync replicas (ISR) that the controller wrote last, and the proposed change of it that is not
answered yet. No I/O: the leader asks the controller for the change that `propose_*` returns. It passes the answer to `settle` or
`withdraw`, or to neither if the outcome is unknown.

Rules
  1. A replica is in sync if it reached the leader's end within `replica.lag.time.max.ms`.
  2. While a change is under way, both sets count: a committed record is in every replica of both (`maximal`), since a new leader could
     come from either. A change with an unknown outcome stays under way until the controller's next state arrives.
  3. Only one change is under way at a time.
  4. The high watermark moves only while at least `min.insync.replicas` replicas are in sync according to the controller: the last
     remaining replica does not commit records alone (KIP-966).
  5. A follower joins once it has all records below the high watermark and before the start of the leader's epoch, and its log starts no
     earlier than the leader's. It may lead next, and an earlier start would bring back records that DeleteRecords has deleted.
  6. A follower that has all records need not fetch each partition: any request of the follower counts (`heard`), because its fetch
     session skips partitions without news.
  7. A fetch of an earlier registration of a follower says nothing about its log now. A slow network, or a wait here, may delay it until
     after a fetch of the later one. It is refused, as in Kafka; otherwise the older position and broker epoch would stay (rule 6).

Source: KIP-497 (AlterPartition), KIP-966 (rule 4), KIP-841 and KIP-903 (replicas that may join; broker epochs).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType
from typing import NamedTuple

UNKNOWN_OFFSET = -1
UNKNOWN_BROKER_EPOCH = -1
NEVER_MS = -(2**62)
NOBODY: Mapping[int, int] = MappingProxyType({})


class Member(NamedTuple):
    """A replica of a proposed ISR; by the broker epoch the controller can refuse a replica that restarted in the meantime."""

    replica_id: int
    broker_epoch: int


class IsrChange(NamedTuple):
    """A change that the leader asks the controller for; it is valid only in these epochs."""

    members: tuple[Member, ...]
    leader_epoch: int
    partition_epoch: int


class Follower:
    """The state of one follower, as the leader knows it."""

    __slots__ = ("_last_fetch_leader_end", "_last_fetch_ms", "broker_epoch", "end_offset", "last_caught_up_ms", "start_offset")

    def __init__(self, last_caught_up_ms: int) -> None:
        self.end_offset = UNKNOWN_OFFSET
        self.start_offset = UNKNOWN_OFFSET
        self.broker_epoch = UNKNOWN_BROKER_EPOCH
        self.last_caught_up_ms = last_caught_up_ms
        self._last_fetch_ms = NEVER_MS
        self._last_fetch_leader_end = UNKNOWN_OFFSET

    def fetched(self, offset: int, start_offset: int, broker_epoch: int, leader_end: int, now_ms: int) -> None:
        """Record a fetch from `offset` on: the follower has all records before it. The follower was caught up if `offset` was the
        leader's end, now or at the previous fetch."""
        if offset >= leader_end:
            self.last_caught_up_ms = max(self.last_caught_up_ms, now_ms)
        elif self._last_fetch_leader_end != UNKNOWN_OFFSET and offset >= self._last_fetch_leader_end:
            self.last_caught_up_ms = max(self.last_caught_up_ms, self._last_fetch_ms)
        self.end_offset, self.start_offset, self.broker_epoch = offset, start_offset, broker_epoch
        self._last_fetch_ms, self._last_fetch_leader_end = now_ms, leader_end

    def is_caught_up(self, leader_end: int, now_ms: int, lag_max_ms: int) -> bool:
        return self.end_offset == leader_end or now_ms - self.last_caught_up_ms <= lag_max_ms


class InSyncReplicas:
    """The replicas of one partition while this broker leads it in one epoch.

    Args:
        replicas: broker ids, with this leader.
        isr: as the controller wrote it, with `partition_epoch`.
        epoch_start: the log end offset when this leader epoch began.
        lag_max_ms: `replica.lag.time.max.ms`.
        heard: the time of each broker's last request; the code that serves their fetches updates it.
    """

    __slots__ = (
        "_followers",
        "_heard",
        "_lag_max_ms",
        "epoch_start",
        "isr",
        "leader_epoch",
        "leader_id",
        "partition_epoch",
        "proposed",
    )

    def __init__(
        self,
        *,
        leader_id: int,
        replicas: Iterable[int],
        isr: Iterable[int],
        leader_epoch: int,
        partition_epoch: int,
        epoch_start: int,
        now_ms: int,
        lag_max_ms: int,
        heard: Mapping[int, int] = NOBODY,
    ) -> None:
        self.leader_id = leader_id
        self.leader_epoch = leader_epoch
        self.partition_epoch = partition_epoch
        self.epoch_start = epoch_start
        self.isr = frozenset(isr)
        self.proposed: frozenset[int] | None = None
        self._lag_max_ms = lag_max_ms
        self._heard = heard
        self._followers: dict[int, Follower] = {}
        self.set_replicas(replicas, now_ms)

    # From the controller

    def set_replicas(self, replicas: Iterable[int], now_ms: int) -> None:
        """Change the assignment; added replicas that are in sync get `replica.lag.time.max.ms` for their first fetch."""
        wanted = [replica for replica in replicas if replica != self.leader_id]
        followers = self._followers
        self._followers = {r: followers.get(r) or Follower(now_ms if r in self.isr else NEVER_MS) for r in wanted}

    def settle(self, isr: Iterable[int], partition_epoch: int) -> bool:
        """Set the ISR that the controller wrote; False if it is older than the known one."""
        if partition_epoch < self.partition_epoch:
            return False
        self.isr, self.partition_epoch, self.proposed = frozenset(isr), partition_epoch, None
        return True

    def withdraw(self) -> None:
        """Drop the proposed change, which the controller certainly refused; only the former set counts."""
        self.proposed = None

    # From followers

    def fetched(
        self, replica_id: int, offset: int, *, start_offset: int, broker_epoch: int, leader_end: int, now_ms: int
    ) -> Follower | None:
        """Record a fetch of a follower from `offset` on; None if it is no replica of this partition, or has registered again since."""
        follower = self._followers.get(replica_id)
        if follower is None or UNKNOWN_BROKER_EPOCH < broker_epoch < follower.broker_epoch:
            return None
        follower.fetched(offset, start_offset, broker_epoch, leader_end, now_ms)
        return follower

    def appending(self, leader_end: int) -> None:
        """Call it before the log grows past `leader_end`: a follower with all records up to there was caught up at its last request."""
        for replica_id, follower in self._followers.items():
            if follower.end_offset == leader_end:
                follower.last_caught_up_ms = max(follower.last_caught_up_ms, self._heard.get(replica_id, NEVER_MS))

    def log_was_cut(self, leader_end: int) -> None:
        """The leader's log ends at `leader_end` now. A follower that was past it has to tell its end again."""
        self.epoch_start = min(self.epoch_start, leader_end)
        for follower in self._followers.values():
            if follower.end_offset > leader_end:
                follower.end_offset = UNKNOWN_OFFSET

    def all_end_at(self, leader_end: int) -> bool:
        """Whether the last fetch of each follower that may be in sync was at `leader_end`."""
        maximal = self.maximal
        return all(follower.end_offset == leader_end for replica, follower in self._followers.items() if replica in maximal)

    @property
    def is_complete(self) -> bool:
        """Whether all replicas are in sync according to the controller."""
        return len(self.isr) > len(self._followers)

    def caught_up_outside(self, leader_end: int, now_ms: int) -> list[int]:
        """Followers that are caught up, but not in sync according to the controller."""
        if self.is_complete:
            return []
        return [
            replica_id
            for replica_id, follower in self._followers.items()
            if replica_id not in self.isr and follower.is_caught_up(leader_end, now_ms, self._lag_max_ms)
        ]

    def followers(self) -> dict[int, Follower]:
        return dict(self._followers)

    # Results

    @property
    def maximal(self) -> frozenset[int]:
        """All replicas that may be in sync according to the controller, whatever the outcome of the proposed change."""
        return self.isr if self.proposed is None else self.isr | self.proposed

    def lacks_replicas(self, min_insync_replicas: int) -> bool:
        """Whether too few replicas are in sync for `min.insync.replicas`; if there are fewer replicas than that, all must be in sync."""
        return len(self.isr) < min(min_insync_replicas, len(self._followers) + 1)

    def high_watermark(
        self,
        current: int,
        leader_end: int,
        *,
        min_insync_replicas: int,
        now_ms: int,
        may_join: Callable[[int, int], bool] = lambda *_: True,
    ) -> int:
        """The new high watermark: at least `current`, at most `leader_end`.

        It also waits for a follower that has caught up and is about to join. The follower can join only with all records below the high
        watermark, so otherwise it might never reach it.

        Args:
            may_join: as in `propose_expansion`; the high watermark does not wait for a follower that may not join.
        """
        if self.lacks_replicas(min_insync_replicas):
            return current
        maximal, mark = self.maximal, leader_end
        for replica_id, follower in self._followers.items():
            if follower.end_offset >= mark:
                continue
            if replica_id in maximal or (
                follower.end_offset >= max(current, self.epoch_start)
                and follower.is_caught_up(leader_end, now_ms, self._lag_max_ms)
                and may_join(replica_id, follower.broker_epoch)
            ):
                mark = follower.end_offset
        return max(current, mark)

    def lowest_start_offset(self) -> int:
        """The lowest log start offset of the followers that may be in sync; UNKNOWN_OFFSET while one of them has not fetched yet.
        DeleteRecords waits for it."""
        in_sync = self.maximal
        starts = (follower.start_offset for replica_id, follower in self._followers.items() if replica_id in in_sync)
        return min(starts, default=2**63 - 1)

    def propose_expansion(
        self, replica_id: int, high_watermark: int, may_join: Callable[[int, int], bool], *, log_start: int = 0
    ) -> IsrChange | None:
        """Propose the ISR with `replica_id`; None if the replica may not join now.

        Args:
            may_join: takes a replica id and a broker epoch; whether the broker is registered, not fenced, not shutting down, and its
                disk works.
            log_start: log start offset of the leader.
        """
        follower = self._followers.get(replica_id)
        if follower is None or self.proposed is not None or replica_id in self.isr:
            return None
        if follower.end_offset < max(high_watermark, self.epoch_start) or follower.start_offset < log_start:
            return None
        if not may_join(replica_id, follower.broker_epoch):
            return None
        return self._propose(self.isr | {replica_id})

    def propose_shrinking(self, leader_end: int, now_ms: int) -> IsrChange | None:
        """Propose the ISR without the followers that have fallen behind; None if there are none."""
        if self.proposed is not None:
            return None
        late = {
            replica_id
            for replica_id, follower in self._followers.items()
            if replica_id in self.isr and not follower.is_caught_up(leader_end, now_ms, self._lag_max_ms)
        }
        return self._propose(self.isr - late) if late else None

    def _propose(self, isr: frozenset[int]) -> IsrChange:
        self.proposed = isr
        epochs = {replica_id: follower.broker_epoch for replica_id, follower in self._followers.items()}
        members = tuple(Member(replica_id, epochs.get(replica_id, UNKNOWN_BROKER_EPOCH)) for replica_id in sorted(isr))
        return IsrChange(members, self.leader_epoch, self.partition_epoch)
