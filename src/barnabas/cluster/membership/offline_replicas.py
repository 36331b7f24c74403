"""Replicas of this broker whose log is in a directory that failed: what the controller has to know to have others lead.

The broker goes on with its other directories (KIP-112). It says in its own registration which partitions it cannot serve, and for those the
controller takes it for dead. Source: KIP-858 has brokers say that a directory failed, and the controller knows which replicas were in
it; here nobody but the broker knows where its logs lie, so it names them.

Rules
  1. What failed is out of use until the process ends: a partition stays here until its topic is gone, even if it is taken from this broker
     and given back.
  2. While a directory has failed, the logs of deleted topics are not said to be gone: some may lie there, and the next start removes them.
     What is said of partitions of theirs stays until then too, so that the other brokers do not wait for this one to say so.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from uuid import UUID

MAX_SAID = 20_000  # some 120 kB of the registration, in a commit of 1 MB; with more the broker ends, as if all had failed


class OfflineReplicas:
    """See the module; nothing of it is there most of the time."""

    def __init__(self) -> None:
        self.has_failed = False
        self._partitions: dict[UUID, set[int]] = {}
        self.said: Mapping[UUID, tuple[int, ...]] = {}

    def __len__(self) -> int:
        return sum(map(len, self._partitions.values()))

    def add(self, partitions: Iterable[tuple[UUID, int]]) -> None:
        """A directory failed that has, or would have, the logs of these."""
        self.has_failed = True
        for topic_id, partition in partitions:
            self._partitions.setdefault(topic_id, set()).add(partition)
        self._say()

    def forget(self, topic_ids: Iterable[UUID]) -> None:
        """These topics are gone."""
        gone = [topic_id for topic_id in topic_ids if self._partitions.pop(topic_id, None) is not None]
        if gone:
            self._say()

    def _say(self) -> None:
        self.said = {topic_id: tuple(sorted(partitions)) for topic_id, partitions in self._partitions.items()}
