"""Deadlines as data, without a clock.

Rules
  1. A key has at most one deadline; setting it again replaces it.
  2. No key is due before its deadline; due keys are returned in order of deadline.

How: a heap of entries and a table of the real deadlines. Every heartbeat moves a deadline to a later time, and this changes
only the table. When the early entry becomes the first of the heap, it is put back with the real deadline. So a heartbeat costs
one store into a dict. Entries of cancelled keys also stay. A peer can create many of them: members that come and go, with
deadlines of days. When most entries are of cancelled keys, the heap is built again.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from typing import Generic, TypeVar

K = TypeVar("K")
SPARE_ENTRIES = 8  # heap entries beyond two for each deadline, before the heap is rebuilt


class Timers(Generic[K]):
    """The deadlines of one shard, in milliseconds of the caller's clock."""

    def __init__(self) -> None:
        self._deadlines: dict[K, int] = {}
        self._heap: list[tuple[int, int, K]] = []
        self._entries: dict[K, int] = {}  # each key's earliest entry in the heap
        self._sequence = 0  # breaks ties, so that the heap never compares keys

    def __len__(self) -> int:
        return len(self._deadlines)

    def schedule(self, key: K, deadline_ms: int) -> None:
        """Make `key` due at `deadline_ms`, replacing an earlier deadline."""
        self._deadlines[key] = deadline_ms
        entry = self._entries.get(key)
        if entry is None or deadline_ms < entry:
            self._push(key, deadline_ms)

    def cancel(self, key: K) -> None:
        """Remove `key`, if it is known."""
        self._deadlines.pop(key, None)

    def next_deadline_ms(self) -> int | None:
        """A time not later than the next deadline; it may be earlier, since the heap reorders a moved deadline only when its
        entry is the first."""
        return self._heap[0][0] if self._heap else None

    def due(self, now_ms: int) -> Iterator[K]:
        """The keys due at `now_ms`, each removed when it is returned. Keys set during the iteration may be included."""
        while self._heap and self._heap[0][0] <= now_ms:
            entry, _, key = heapq.heappop(self._heap)
            if self._entries.get(key) != entry:
                continue
            del self._entries[key]
            deadline = self._deadlines.get(key)
            if deadline is None:
                continue
            if deadline > entry:
                self._push(key, deadline)
                continue
            del self._deadlines[key]
            yield key

    def _push(self, key: K, deadline_ms: int) -> None:
        if len(self._heap) > 2 * len(self._deadlines) + SPARE_ENTRIES:
            self._entries = dict(self._deadlines)
            self._heap = [(deadline, sequence, known) for sequence, (known, deadline) in enumerate(self._deadlines.items())]
            heapq.heapify(self._heap)
            self._sequence = len(self._heap)
            return
        self._sequence += 1
        self._entries[key] = deadline_ms
        heapq.heappush(self._heap, (deadline_ms, self._sequence, key))
