"""The fetchers of a broker: one for each leader that it follows, or `num.replica.fetchers` that share its partitions.

A partition has at most one fetcher, and none while it has no leader.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING
from zlib import crc32

from barnabas.protocol.values import NO_LEADER
from barnabas.server.cluster.peers import peers_of
from barnabas.server.replication.fetcher import Fetcher

if TYPE_CHECKING:
    from barnabas.replication.follower_partition import FollowerPartition
    from barnabas.server.logs.log_start_offsets import LogStartOffsets
    from barnabas.server.replication.throttles import Throttles
    from barnabas.server.services import Services

Slot = tuple[int, int]  # leader id, number of the fetcher


class FetcherManager:
    """The fetchers of one broker."""

    def __init__(self, services: Services, throttles: Throttles, log_start_offsets: LogStartOffsets) -> None:
        self._services = services
        self._throttles = throttles
        self._log_start_offsets = log_start_offsets
        self._fetchers: dict[Slot, Fetcher] = {}
        self._home: dict[FollowerPartition, Slot] = {}
        self._closing: set[asyncio.Task[None]] = set()
        self._closed = False
        self.requests = peers_of(lambda: services.metadata, services, "fetcher-requests")

    def __len__(self) -> int:
        return len(self._fetchers)

    def follow(self, partition: FollowerPartition) -> None:
        """Fetch from the current leader of the partition, from its position on."""
        slot = self._slot(partition)
        if self._home.get(partition) != slot:
            self.leave(partition)
        if slot is None or self._closed:
            return
        fetcher = self._fetchers.get(slot)
        if fetcher is None:
            fetcher = self._fetchers[slot] = Fetcher(
                self._services, self._throttles, self._log_start_offsets, self.requests, *slot
            )
        self._home[partition] = slot
        partition.on_close = lambda: self.leave(partition)
        fetcher.add(partition)

    def _slot(self, partition: FollowerPartition) -> Slot | None:
        if partition.leader_id == NO_LEADER:
            return None
        return partition.leader_id, (
            crc32(partition.topic.encode()) + partition.index
        ) % self._services.config.num_replica_fetchers

    def leave(self, partition: FollowerPartition) -> None:
        """Stop fetching the partition. A closed partition leaves by itself."""
        slot = self._home.pop(partition, None)
        if slot is None:
            return
        fetcher = self._fetchers[slot]
        fetcher.remove(partition)
        if not len(fetcher):
            del self._fetchers[slot]
            closing = self._services.loop.create_task(fetcher.close())
            self._closing.add(closing)
            closing.add_done_callback(self._closing.discard)

    async def close(self) -> None:
        self._closed = True
        await asyncio.gather(*(fetcher.close() for fetcher in self._fetchers.values()), *self._closing)
        self._fetchers.clear()
        self._home.clear()
        await self.requests.close()
