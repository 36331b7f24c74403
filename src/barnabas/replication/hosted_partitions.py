"""The partitions that this broker has, by topic name and by topic id.

A partition whose disk failed stays in the look-ups as an `OfflinePartition`, which refuses everything; iteration skips it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from uuid import UUID

from barnabas.errors import ErrorCode, KafkaError
from barnabas.replication.leader_partition import LeaderPartition
from barnabas.replication.offline_partition import OfflinePartition
from barnabas.replication.partition import OnlinePartition, Partition


class HostedPartitions:
    """Look-ups for the hot path: a topic by its bytes in a request, then a partition by its index.

    Args:
        exists: whether the cluster has a partition, on any broker.
    """

    def __init__(self, exists: Callable[[str, int], bool] = lambda *_: False) -> None:
        self._exists = exists
        self._by_name: dict[str, dict[int, Partition]] = {}
        self._by_name_bytes: dict[bytes, dict[int, Partition]] = {}
        self._by_id: dict[bytes, dict[int, Partition]] = {}
        self.offline_count = 0
        self.closed_count = 0  # counts up; caches drop closed partitions when it has grown

    def add(self, partition: Partition) -> None:
        found = self._by_name.get(partition.topic)
        if found is None:
            found = self._by_name[partition.topic] = {}
            self._by_name_bytes[partition.topic.encode()] = found
        self._by_id[partition.topic_id.bytes] = found
        replaced = found.get(partition.index)
        self.offline_count += partition.is_offline - (replaced is not None and replaced.is_offline)
        found[partition.index] = partition

    def take_offline(self, partition: OnlinePartition) -> None:
        """Replace a partition whose disk failed: waiting requests get an error, and later requests are refused."""
        stand_in = OfflinePartition(
            partition.topic,
            partition.topic_id,
            partition.index,
            leader_id=partition.leader_id,
            leader_epoch=partition.leader_epoch,
        )
        self.add(stand_in)
        self.closed_count += 1
        partition.close(ErrorCode.KAFKA_STORAGE_ERROR)

    def is_offline(self, topic: str, index: int) -> bool:
        if not self.offline_count:
            return False
        found = self.get(topic, index)
        return found is not None and found.is_offline

    def remove(self, topic: str, index: int) -> Partition | None:
        """Remove a partition, close it and return it."""
        found = self._by_name.get(topic, {})
        partition = found.pop(index, None)
        if partition is None:
            return None
        self.offline_count -= partition.is_offline
        if not found:
            del self._by_name[topic]
            del self._by_name_bytes[topic.encode()]
            del self._by_id[partition.topic_id.bytes]
        self.closed_count += 1
        partition.close()
        return partition

    def topic(self, name: str) -> dict[int, Partition]:
        return self._by_name.get(name, {})

    def by_name_bytes(self, name: bytes) -> dict[int, Partition] | None:
        return self._by_name_bytes.get(name)

    def by_id_bytes(self, topic_id: bytes) -> dict[int, Partition] | None:
        return self._by_id.get(topic_id)

    def get(self, topic: str, index: int) -> Partition | None:
        return self._by_name.get(topic, {}).get(index)

    def absence(self, topic: str, index: int) -> ErrorCode:
        """The error for a partition that this broker does not have: NOT_LEADER_OR_FOLLOWER if other brokers have it."""
        return ErrorCode.NOT_LEADER_OR_FOLLOWER if self._exists(topic, index) else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION

    def require(self, topic: str, index: int) -> OnlinePartition:
        """The partition; raises KafkaError if it is not here (see `absence`), with KAFKA_STORAGE_ERROR if its disk failed."""
        partition = self._by_name.get(topic, {}).get(index)
        if partition is None:
            raise KafkaError(self.absence(topic, index))
        if partition.is_offline:
            raise KafkaError(partition.refusal)
        return partition

    def require_leader(self, topic: str, index: int) -> LeaderPartition:
        """The partition, if this broker leads it; raises KafkaError as `require`, and NOT_LEADER_OR_FOLLOWER if another broker does."""
        partition = self.require(topic, index)
        if not partition.is_leader:
            raise KafkaError(partition.refusal)
        return partition

    def by_id(self, topic_id: UUID, index: int) -> Partition | None:
        return self._by_id.get(topic_id.bytes, {}).get(index)

    def __iter__(self) -> Iterator[OnlinePartition]:
        for partitions in self._by_name.values():
            for partition in partitions.values():
                if not partition.is_offline:
                    yield partition

    def __len__(self) -> int:
        return sum(map(len, self._by_name.values())) - self.offline_count
