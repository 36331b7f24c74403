"""Limits the rates at which the broker sends to and fetches for replicas that catch up (KIP-73). So clients keep their share of disks and
network.

`leader.replication.throttled.rate` limits the bytes that this broker sends, `follower.replication.throttled.rate` those that it fetches.
Both count the replicas in the topic's `*.replication.throttled.replicas`: `partition:broker`, where the broker is the leader in the first
list and the follower in the second, or `*`.

Rules
  1. A throttle delays only replicas that are out of sync, because acknowledgements wait for in-sync replicas. Bytes to in-sync replicas
     count too.
  2. A fetch skips a throttled partition and continues with the others.
  3. A waiting fetch looks again after at most a second, because the rate may have been raised.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.quota.rate import RateLimit

if TYPE_CHECKING:
    from barnabas.replication.follower_partition import FollowerPartition
    from barnabas.replication.leader_partition import LeaderPartition
    from barnabas.replication.partition import OnlinePartition
    from barnabas.server.services import Services

LONGEST_WAIT_MS = 1_000.0
ALL = "*"


class Throttles:
    """The rates of one broker."""

    def __init__(self, services: Services) -> None:
        self._services = services
        saved_s = services.config.replication_quota_window_size_seconds
        self.sending = RateLimit(saved_s)
        self.fetching = RateLimit(saved_s)
        self.update_config()

    def update_config(self) -> None:
        config, now_ms = self._services.config, self._now_ms()
        self.sending.set_rate(config.leader_replication_throttled_rate, now_ms)
        self.fetching.set_rate(config.follower_replication_throttled_rate, now_ms)

    # As a leader

    def is_sending_throttled(self, partition: OnlinePartition) -> bool:
        return self._is_named(partition.log.config.leader_replication_throttled_replicas, partition)

    def room_to_send(self, partition: LeaderPartition, replica_id: int) -> int | None:
        """The bytes that may be sent to a replica now, 0 if it must wait; None if no throttle applies."""
        if self.sending.is_unlimited or not self.is_sending_throttled(partition):
            return None
        followers = partition.followers
        if followers is None or replica_id in followers.replicas.isr:
            return None
        return max(self.sending.room(self._now_ms()), 0)

    def sent(self, partition: OnlinePartition, size: int) -> None:
        if partition.log.config.leader_replication_throttled_replicas and self.is_sending_throttled(partition):
            self.sending.record(size, self._now_ms())

    def sending_wait_ms(self) -> float:
        return min(self.sending.wait_ms(self._now_ms()), LONGEST_WAIT_MS)

    # As a follower

    def fetching_wait_ms(self, partition: FollowerPartition) -> float:
        """The time in ms for which a partition must not be fetched; 0 if it may be fetched now."""
        if self.fetching.is_unlimited or partition.follower_state.has_caught_up or not self._is_fetching_throttled(partition):
            return 0.0
        return min(self.fetching.wait_ms(self._now_ms()), LONGEST_WAIT_MS)

    def received(self, partition: FollowerPartition, size: int) -> None:
        if partition.log.config.follower_replication_throttled_replicas and self._is_fetching_throttled(partition):
            self.fetching.record(size, self._now_ms())

    def _is_fetching_throttled(self, partition: FollowerPartition) -> bool:
        return self._is_named(partition.log.config.follower_replication_throttled_replicas, partition)

    def _is_named(self, replicas: frozenset[str], partition: OnlinePartition) -> bool:
        return bool(replicas) and (ALL in replicas or f"{partition.index}:{self._services.config.broker_id}" in replicas)

    def _now_ms(self) -> float:
        return self._services.clock.monotonic_ms()
