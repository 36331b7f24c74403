"""The source in memory behaves as every source."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count

import pytest

from barnabas.protocol.records.record import Record
from barnabas.tables.source import TopicSource
from tests.tables.memory_source import MemorySource, Pair
from tests.tables.sources import SourceConformance


class MemoryTransaction:
    """A transaction over sources in memory."""

    def __init__(self, house: MemoryHouse, producer_id: int) -> None:
        self._house, self._producer_id = house, producer_id

    def append(self, topic: str, partition: int, records: Sequence[Record | Pair], *, timestamp_ms: int = 0) -> int:
        source = self._house.topics[topic]
        return source.append(partition, records, timestamp_ms=timestamp_ms, producer_id=self._producer_id)

    def end(self, *, commit: bool) -> None:
        for source in self._house.topics.values():
            source.end_transaction(self._producer_id, commit=commit)


class MemoryHouse:
    """Topics in memory; a source and its topic are one."""

    def __init__(self) -> None:
        self.topics: dict[str, MemorySource] = {}
        self._ids = count(1)

    def source(self, topic: str) -> TopicSource:
        if topic not in self.topics:
            self.create(topic)
            self.topics[topic].is_deleted = True
        return self.topics[topic]

    def create(self, topic: str, partitions: int = 1, **_: str) -> None:
        made = MemorySource(topic, partitions, topic_id=f"{next(self._ids):032x}")
        if topic in self.topics:  # the sources of the name see the later topic
            self.topics[topic].__dict__.update(made.__dict__)
        else:
            self.topics[topic] = made

    def append(self, topic: str, partition: int, records: Sequence[Record | Pair], *, timestamp_ms: int = 0) -> int:
        return self.topics[topic].append(partition, records, timestamp_ms=timestamp_ms)

    def transaction(self) -> MemoryTransaction:
        return MemoryTransaction(self, next(self._ids))

    def delete_records(self, topic: str, partition: int, before: int) -> None:
        self.topics[topic].delete_records(partition, before)

    def delete_topic(self, topic: str) -> None:
        self.topics[topic].is_deleted = True


class TestMemorySource(SourceConformance):
    @pytest.fixture
    def house(self) -> MemoryHouse:
        return MemoryHouse()
