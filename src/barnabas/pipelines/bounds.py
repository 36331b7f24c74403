"""The part of its topics that a batch query must read, according to its filters. No Spark, no I/O."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

NO_END = 2**63 - 1


@dataclass(frozen=True, slots=True)
class Bounds:
    """Offsets [first_offset, end_offset) of the partitions that pass every test. `first_time_ms` moves the start of a partition
    to its first record with this time or a later one.

    There is no upper bound by time, since records may not be in the order of their timestamps.
    """

    topics: frozenset[str] | None = None
    partition_tests: tuple[Callable[[int], bool], ...] = ()
    first_offset: int = 0
    end_offset: int = NO_END
    first_time_ms: int | None = None

    def has(self, topic: str, partition: int) -> bool:
        return (self.topics is None or topic in self.topics) and all(test(partition) for test in self.partition_tests)

    def of_topics(self, topics: frozenset[str]) -> Bounds:
        return replace(self, topics=topics if self.topics is None else self.topics & topics)

    def of_partitions(self, test: Callable[[int], bool]) -> Bounds:
        return replace(self, partition_tests=(*self.partition_tests, test))

    def of_offsets(self, first: int, end: int) -> Bounds:
        return replace(self, first_offset=max(self.first_offset, first), end_offset=min(self.end_offset, end))

    def since(self, time_ms: int) -> Bounds:
        return replace(self, first_time_ms=time_ms if self.first_time_ms is None else max(self.first_time_ms, time_ms))


EVERYTHING = Bounds()
