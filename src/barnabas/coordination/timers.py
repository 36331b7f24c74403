"""Deadlines as data: who is due when, without a clock of its own.

Rules
  1. A key has at most one deadline; setting it again replaces it.
  2. Nothing is due before its deadline; what is due comes out in order of deadline.

How: a heap of entries beside a table of the real deadlines. Moving a deadline later, which every heartbeat does, only writes the
table; the heap's entry is found to be early when it comes up and is put back. So a heartbeat costs one store into a dict. An entry
whose key was cancelled stays as well; when most are such, which a peer can bring about with members that come and go and deadlines
of days, the heap is made anew.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from typing import Generic, TypeVar

K = TypeVar("K")
SPARE_ENTRIES = 8  # beyond two for each deadline


class Timers(Generic[K]):
    """The deadlines of one shard, in milliseconds of whatever clock the caller uses."""

    def __init__(self) -> None:
        self._deadlines: dict[K, int] = {}
        self._heap: list[tuple[int, int, K]] = []
        self._entries: dict[K, int] = {}  # the earliest entry of the heap for each key that has one
        self._sequence = 0  # keeps keys out of comparisons

    def __len__(self) -> int:
        return len(self._deadlines)

    def schedule(self, key: K, deadline_ms: int) -> None:
        """Make `key` due at `deadline_ms`, whatever it was before."""
        self._deadlines[key] = deadline_ms
        entry = self._entries.get(key)
        if entry is None or deadline_ms < entry:
            self._push(key, deadline_ms)

    def cancel(self, key: K) -> None:
        """Forget `key`; it need not be known."""
        self._deadlines.pop(key, None)

    def next_deadline_ms(self) -> int | None:
        """No later than the next deadline; it may be early, since a deadline that moved is put in order only when it comes up."""
        return self._heap[0][0] if self._heap else None

    def due(self, now_ms: int) -> Iterator[K]:
        """The keys due at `now_ms`, each forgotten as it is handed out. Those set while iterating may come out as well."""
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
