"""Offsets of open transactions.

Rules
  1. The marker of their transaction commits or drops them.
  2. Of two offsets of one partition, the later one in the log wins, even if the marker of the earlier one comes last. The later
     one may be a plain commit, or the offset of a transaction that was committed first. Compaction keeps only the later one.
  3. While an offset is pending, a request for stable offsets gets UNSTABLE_OFFSET_COMMIT (KIP-447).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from barnabas.coordination.group_records import OffsetCommitValue

Place = tuple[str, str, int]  # group, topic, partition


class PendingOffsets:
    """The offsets of each producer's open transaction with their order in the log; an overtaken offset is None, but still
    pending."""

    def __init__(self) -> None:
        self._by_producer: dict[int, dict[Place, tuple[int, OffsetCommitValue | None]]] = {}
        self._producers: dict[Place, set[int]] = {}
        self._written = 0

    def __len__(self) -> int:
        """The number of open transactions."""
        return len(self._by_producer)

    def add(self, producer_id: int, place: Place, value: OffsetCommitValue | None) -> None:
        """Add a record of a transaction; a tombstone is ignored, since no transaction writes one."""
        self._written += 1
        self._by_producer.setdefault(producer_id, {})[place] = self._written, value
        self._producers.setdefault(place, set()).add(producer_id)

    def overtake(self, place: Place) -> None:
        """A plain commit overtakes pending offsets."""
        self._overtake(place, self._written + 1)

    def _overtake(self, place: Place, order: int) -> None:
        for producer_id in self._producers.get(place, ()):
            written, _ = self._by_producer[producer_id][place]
            if written < order:
                self._by_producer[producer_id][place] = written, None

    def is_pending(self, place: Place) -> bool:
        return place in self._producers

    def end(self, producer_id: int, *, commit: bool) -> list[tuple[Place, OffsetCommitValue]]:
        """End the transaction of a producer; returns its committed offsets that were not overtaken."""
        committed = []
        for place, (order, value) in self._by_producer.pop(producer_id, {}).items():
            self._forget_producer(place, producer_id)
            if commit and value is not None:
                self._overtake(place, order)
                committed.append((place, value))
        return committed

    def forget(self, places: Iterable[Place]) -> None:
        """Drop pending offsets of deleted groups or topics."""
        for place in places:
            for producer_id in self._producers.pop(place, ()):
                left = self._by_producer[producer_id]
                del left[place]
                if not left:
                    del self._by_producer[producer_id]

    def places(self) -> Iterator[Place]:
        return iter(list(self._producers))

    def _forget_producer(self, place: Place, producer_id: int) -> None:
        producers = self._producers[place]
        producers.discard(producer_id)
        if not producers:
            del self._producers[place]
