"""The partitions that this broker has, by topic name and by topic id."""

from __future__ import annotations

from collections.abc import Iterator
from uuid import UUID

from barnabas.errors import ErrorCode, KafkaError
from barnabas.replication.partition import Partition


class Partitions:
    """Look-ups for the hot path: a topic by the bytes a request carries, then a partition by its index."""

    def __init__(self) -> None:
        self._by_name: dict[str, dict[int, Partition]] = {}
        self._by_name_bytes: dict[bytes, dict[int, Partition]] = {}
        self._by_id: dict[bytes, dict[int, Partition]] = {}

    def add(self, partition: Partition) -> None:
        found = self._by_name.get(partition.topic)
        if found is None:
            found = self._by_name[partition.topic] = {}
            self._by_name_bytes[partition.topic.encode()] = found
            self._by_id[partition.topic_id.bytes] = found
        found[partition.index] = partition

    def remove(self, topic: str, index: int) -> Partition | None:
        """Forget a partition; it is closed and returned."""
        found = self._by_name.get(topic, {})
        partition = found.pop(index, None)
        if partition is None:
            return None
        if not found:
            del self._by_name[topic]
            del self._by_name_bytes[topic.encode()]
            del self._by_id[partition.topic_id.bytes]
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

    def require(self, topic: str, index: int) -> Partition:
        """Raises KafkaError UNKNOWN_TOPIC_OR_PARTITION where it is not here."""
        partition = self._by_name.get(topic, {}).get(index)
        if partition is None:
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        return partition

    def by_id(self, topic_id: UUID, index: int) -> Partition | None:
        return self._by_id.get(topic_id.bytes, {}).get(index)

    def __iter__(self) -> Iterator[Partition]:
        for partitions in self._by_name.values():
            yield from partitions.values()

    def __len__(self) -> int:
        return sum(map(len, self._by_name.values()))
