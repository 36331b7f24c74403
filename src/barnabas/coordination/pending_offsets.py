"""Offsets that transactions have written and not ended yet.

Rules
  1. They are committed by the marker of their transaction, or gone with it.
  2. A plain commit of the same partition that came after them in the log wins, whatever the marker says.
  3. While an offset is pending, a reader who asks for stable offsets is told to wait (KIP-447).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from barnabas.coordination.records import OffsetCommitValue

Place = tuple[str, str, int]  # group, topic, partition


class PendingOffsets:
    """What each producer's open transaction has written; an overtaken offset is None, and is pending all the same."""

    def __init__(self) -> None:
        self._by_producer: dict[int, dict[Place, OffsetCommitValue | None]] = {}
        self._producers: dict[Place, set[int]] = {}

    def __len__(self) -> int:
        """How many transactions are open."""
        return len(self._by_producer)

    def add(self, producer_id: int, place: Place, value: OffsetCommitValue | None) -> None:
        """A record of a transaction; without a value the offset is to be forgotten, which no transaction does."""
        self._by_producer.setdefault(producer_id, {})[place] = value
        self._producers.setdefault(place, set()).add(producer_id)

    def overtake(self, place: Place) -> None:
        """A plain commit follows what is pending."""
        for producer_id in self._producers.get(place, ()):
            self._by_producer[producer_id][place] = None

    def is_pending(self, place: Place) -> bool:
        return place in self._producers

    def end(self, producer_id: int) -> Iterator[tuple[Place, OffsetCommitValue]]:
        """The transaction of a producer is over; what it wrote and nobody has overtaken."""
        for place, value in self._by_producer.pop(producer_id, {}).items():
            self._forget_producer(place, producer_id)
            if value is not None:
                yield place, value

    def forget(self, places: Iterable[Place]) -> None:
        """Groups or topics are gone, and with them what is pending for them."""
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
