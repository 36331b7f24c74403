"""Limits over all logs: the number of segments with an open file, and of segments with a part of their index in memory.

Owns two lists of segments: those with an open descriptor, in the order of opening, and those whose index keeps windows, in the order of
their last new window.

Rules
  1. A region from a log must stay readable until the loop runs again. So nothing is closed at the moment when one more is opened: `trim`
     runs in a later turn of the loop. Until then there may be more than `limit`, as many as one turn can open. `is_crowded` tells
     readers when to leave the rest for the next turn.
  2. A segment that was used since the last `trim` is skipped once (second chance); a segment that a flush uses is always skipped.
  3. Segments that leave their log are no longer counted: `Garbage` closes them.
  4. A segment that is closed, or leaves its log, drops its windows.
  5. Threads that open or close whole logs call `opened` and `forget` while the loop trims: each step is one call of the dict.

How it works: a read or an append only sets a flag on its segment; the order matters only when there are too many.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Sized
from typing import Protocol

from barnabas import limits
from barnabas.storage.index import SparseIndex


class OpenSegment(Protocol):
    """The interface of a segment for this module."""

    used: bool  # since `trim` last looked at the segment
    pins: int  # flushes that need the open file
    index: SparseIndex

    def close(self) -> None: ...


class OpenFiles:
    """The open segments of one broker.

    Args:
        limit: how many may stay open.
        later: calls its argument in a later turn of the loop; threads call it too, when they open the first segments of logs.
        held: files that other code has open; they count as well, up to half of the limit.
    """

    __slots__ = ("_held", "_is_trimming", "_later", "_segments", "_with_windows", "limit")

    def __init__(self, limit: int, later: Callable[[Callable[[], None]], object], held: Sized = ()) -> None:
        self.limit = limit
        self._held = held
        self._later = later
        self._segments: OrderedDict[OpenSegment, None] = OrderedDict()
        self._with_windows: OrderedDict[OpenSegment, bool] = OrderedDict()
        self._is_trimming = False

    def __len__(self) -> int:
        return len(self._segments)

    @property
    def _most(self) -> int:
        """The number of segments that may stay open now."""
        return self.limit - min(len(self._held), self.limit // 2)

    @property
    def is_crowded(self) -> bool:
        """Whether so many are open beyond the limit that no reader should open another before `trim` has run."""
        return len(self._segments) >= self.limit + self.limit // 2

    def opened(self, segment: OpenSegment) -> None:
        self._segments[segment] = None
        self.check()

    def check(self) -> None:
        """Enforce the limit of open files, after segments were opened or other code holds more files."""
        if len(self._segments) > self._most and not self._is_trimming:
            self._is_trimming = True
            self._later(self.trim)

    def forget(self, segment: OpenSegment) -> None:
        """Remove a segment that was closed, or that other code closes."""
        self._segments.pop(segment, None)
        if self._with_windows.pop(segment, False):
            segment.index.forget_windows()

    def keep_windows(self, segment: OpenSegment) -> None:
        """Record that its index has one more window; if too many segments have some, the oldest one drops its windows."""
        self._with_windows.pop(segment, False)
        self._with_windows[segment] = True
        if len(self._with_windows) > limits.MAX_WINDOWED_INDEXES:
            oldest, _ = self._with_windows.popitem(last=False)
            oldest.index.forget_windows()

    def trim(self) -> None:
        """Close the segments that were unused for longest, down to the limit; looks at each at most twice."""
        self._is_trimming = False
        most = self._most
        for _ in range(2 * len(self._segments)):
            if len(self._segments) <= most:
                return
            segment, _ = self._segments.popitem(last=False)
            if segment.used or segment.pins:
                segment.used = False
                self._segments[segment] = None
            else:
                segment.close()
