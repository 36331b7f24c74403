"""The markers that are still to be written for transactions with a decided end.

A marker goes to every partition of a transaction; when all are written, the transaction is complete. The sender takes markers
by `take_fresh` and reports results to `written`. No I/O, no clock.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from barnabas.coordination.transactions.transaction import State, TopicPartition, Transaction


class Marker(NamedTuple):
    """The end of one transaction, to be written to each of its partitions."""

    transactional_id: str
    producer_id: int
    producer_epoch: int
    commit: bool
    client_version: int


class MarkersDue:
    """The markers of one coordinator shard that are not written yet."""

    def __init__(self) -> None:
        self._left: dict[Marker, set[TopicPartition]] = {}
        self._by_id: dict[str, Marker] = {}
        self._fresh: list[Marker] = []
        self._ended: list[str] = []

    def __len__(self) -> int:
        return len(self._left)

    def __iter__(self) -> Iterator[tuple[Marker, frozenset[TopicPartition]]]:
        for marker, partitions in self._left.items():
            yield marker, frozenset(partitions)

    def begin(self, decided: Transaction) -> Marker:
        """The end of a transaction is decided and committed."""
        marker = Marker(
            decided.transactional_id,
            decided.producer_id,
            decided.producer_epoch,
            decided.state is State.PREPARE_COMMIT,
            decided.client_version,
        )
        self._by_id[decided.transactional_id] = marker
        self._left[marker] = set(decided.partitions)
        self._fresh.append(marker)
        return marker

    def written(self, marker: Marker, partitions: Iterable[TopicPartition]) -> bool:
        """The marker is in `partitions`, or they were deleted; returns whether it is in all partitions now.

        Also False for a marker that is not due any more, as after a repeated answer.
        """
        left = self._left.get(marker)
        if left is None:
            return False
        left.difference_update(partitions)
        return not left

    def complete_of(self, transactional_id: str) -> list[Marker]:
        """The marker of this id if it is due and in all partitions."""
        marker = self._by_id.get(transactional_id)
        return [marker] if marker is not None and not self._left[marker] else []

    def take_fresh(self) -> list[tuple[Marker, frozenset[TopicPartition]]]:
        """The markers that became due since the last call, to be sent."""
        fresh, self._fresh = self._fresh, []
        return [(marker, frozenset(self._left[marker])) for marker in fresh if self._left.get(marker)]

    def is_complete(self, marker: Marker) -> bool:
        """Whether it is due and in all partitions."""
        return self._left.get(marker) == set()

    def forget(self, transactional_id: str) -> None:
        """Remove the marker: the transaction is complete, or the coordinator moved."""
        marker = self._by_id.pop(transactional_id, None)
        if marker is not None:
            del self._left[marker]
            self._ended.append(transactional_id)

    def take_ended(self) -> list[str]:
        """The transactional ids whose marker stopped being due since the last call."""
        ended, self._ended = self._ended, []
        return ended

    def drop_topic(self, topic: str) -> list[Marker]:
        """A topic was deleted and needs no markers; returns the markers that are in all partitions now."""
        complete = []
        for marker, left in self._left.items():
            gone = {partition for partition in left if partition[0] == topic}
            if gone:
                left -= gone
                if not left:
                    complete.append(marker)
        return complete
