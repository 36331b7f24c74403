"""Reports this broker's replicas in failed log directories, so that the controller elects other leaders.

The broker continues with its other directories (KIP-112). Its registration names the partitions that it cannot serve, and for
these the controller treats it as dead. Source: in KIP-858 brokers report a failed directory, and the controller knows its
replicas. Here only the broker knows the directory of each log, so it reports the replicas.

Rules
  1. A failed directory is unused until the process ends: a partition stays in the report until its topic is deleted, even if it
     is moved away and back.
  2. While a directory is failed, the broker does not confirm the removal of deleted topics: some of their logs may be there,
     and the next start removes them. Reports of their partitions also stay until then, so that other brokers do not wait for a
     confirmation.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from uuid import UUID

MAX_SAID = (
    20_000  # about 120 kB of the registration, in a commit of 1 MB; with more, the broker stops as if all directories had failed
)


class OfflineReplicas:
    """See the module; usually it is empty."""

    def __init__(self) -> None:
        self.has_failed = False
        self._partitions: dict[UUID, set[int]] = {}
        self.said: Mapping[UUID, tuple[int, ...]] = {}

    def __len__(self) -> int:
        return sum(map(len, self._partitions.values()))

    def add(self, partitions: Iterable[tuple[UUID, int]]) -> None:
        """Add these partitions: a directory failed that has, or would get, their logs."""
        self.has_failed = True
        for topic_id, partition in partitions:
            self._partitions.setdefault(topic_id, set()).add(partition)
        self._say()

    def forget(self, topic_ids: Iterable[UUID]) -> None:
        """Drop these deleted topics."""
        gone = [topic_id for topic_id in topic_ids if self._partitions.pop(topic_id, None) is not None]
        if gone:
            self._say()

    def _say(self) -> None:
        self.said = {topic_id: tuple(sorted(partitions)) for topic_id, partitions in self._partitions.items()}
